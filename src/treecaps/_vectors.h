/* The loops over vectors. `_compiled.c` includes this file once for each kind of processor: NAME
   says for which. */

static void NAME(add_runs)(
    const float *vectors, int64_t size, const int64_t *row, const int64_t *offsets, int64_t runs,
    const float *const *weights, int kinds, float *restrict sums) {
    for (int64_t run = 0; run < runs; run++, sums += kinds * size) {
        memset(sums, 0, (size_t)(kinds * size) * sizeof(float));
        for (int64_t place = offsets[run]; place < offsets[run + 1]; place++) {
            const float *restrict vector = vectors + row[place] * size;
            for (int kind = 0; kind < kinds; kind++) {
                float weight = weights[kind][place], *restrict sum = sums + kind * size;
                if (weight != 0)
                    for (int64_t i = 0; i < size; i++) sum[i] += weight * vector[i];
            }
        }
    }
}

INLINE Lanes NAME(load)(const float *numbers, int width) {
    Lanes found = {0};
    memcpy(&found, numbers, (size_t)width * sizeof(float));
    return found;
}

INLINE Lanes NAME(choose)(Whole mask, Lanes one, Lanes other) {
    return (Lanes)((mask & (Whole)one) | (~mask & (Whole)other));
}

/* exp(x) for x of 0 or less, to 2e-7 of it: a power of 2 times a polynomial. */
INLINE Lanes NAME(exp_below)(Lanes x) {
    x = NAME(choose)(x < -87.0f, (Lanes){0} - 87.0f, x);
    Whole n = __builtin_convertvector(x * 1.44269504f - 0.5f, Whole); /* rounds what is below 0 */
    Lanes whole = __builtin_convertvector(n, Lanes);
    Lanes r = x - whole * 0.693359375f + whole * 2.12194440e-4f, sum = r * 1.9875691500e-4f;
    sum = (sum + 1.3981999507e-3f) * r;
    sum = (sum + 8.3334519073e-3f) * r;
    sum = (sum + 4.1665795894e-2f) * r;
    sum = (sum + 1.6666665459e-1f) * r;
    sum = (sum + 5.0000001201e-1f) * r * r + r + 1.0f;
    return sum * (Lanes)((n + 127) << 23);
}

/* Route up to LANES channels of one program, those from `first` on: units are rows of
   [size, channels], chosen by `window`; found is [channels, statics, size]. */
INLINE void NAME(route_some)(
    Routing by, int size, int first, int width, const float *units, const float *length,
    const int64_t *window, const float *count, const float *weight, int64_t rows,
    Lanes *restrict work, float *restrict found) {
    int statics = by.statics, channels = by.channels, present = 0;
    Lanes *restrict total = work, *restrict sums = work + statics * size, share[MOST_STATICS];
    memset(total, 0, (size_t)(statics * size) * sizeof(Lanes));
    units += first, length += first, found += first * statics * size;
    /* The longest capsules start; a row fills as many places as it occurs. */
    for (int c = 0; c < width; c++) {
        int64_t best[MOST_STATICS];
        float keys[MOST_STATICS];
        int chosen = 0;
        for (int64_t i = 0; i < rows; i++) {
            float key = length[window[i] * channels + c];
            if (chosen == statics && key <= keys[statics - 1]) continue;
            int place = chosen < statics ? chosen++ : statics - 1;
            for (; place && key > keys[place - 1]; place--)
                best[place] = best[place - 1], keys[place] = keys[place - 1];
            best[place] = i, keys[place] = key;
        }
        present = 0;
        for (int next = 0, times = 0; present < statics && next < chosen; present++) {
            const float *unit = units + window[best[next]] * channels * size + c;
            for (int k = 0; k < size; k++) total[present * size + k][c] = unit[k * channels];
            if (++times >= count[best[next]]) next++, times = 0;
        }
    }
    for (int step = 0; step < by.iterations; step++) {
        memset(sums, 0, (size_t)(statics * size) * sizeof(Lanes));
        for (int64_t i = 0; i < rows; i++) {
            const float *unit = units + window[i] * channels * size;
            Lanes most = {0}, whole = {0};
            for (int j = 0; j < present; j++) {
                Lanes agreement = {0};
                for (int k = 0; k < size; k++)
                    agreement += total[j * size + k] * NAME(load)(unit + k * channels, width);
                most = j ? NAME(choose)(agreement > most, agreement, most) : agreement;
                share[j] = agreement;
            }
            for (int j = 0; j < present; j++) whole += share[j] = NAME(exp_below)(share[j] - most);
            for (int j = 0; j < present; j++) {
                Lanes due = share[j] * (weight[i] / whole);
                for (int k = 0; k < size; k++)
                    sums[j * size + k] += due * NAME(load)(unit + k * channels, width);
            }
        }
        for (int j = 0; j < statics; j++)
            for (int c = 0; c < width; c++) {
                float squared = 0;
                for (int k = 0; k < size; k++) {
                    float number = sums[j * size + k][c];
                    squared += number * number;
                }
                float scale = (by.printed ? 1 : sqrtf(squared + TINY)) / (1 + squared);
                for (int k = 0; k < size; k++) {
                    float value = sums[j * size + k][c] * scale;
                    found[(c * statics + j) * size + k] = value;
                    total[j * size + k][c] += value;
                }
            }
    }
}

static void NAME(route)(
    Routing by, const float *units, const float *length, const int64_t *window, const float *count,
    const float *weight, const int64_t *offsets, int64_t programs, Lanes *work, float *found) {
    for (int64_t program = 0; program < programs; program++) {
        int64_t begin = offsets[program], rows = offsets[program + 1] - begin;
        for (int first = 0; first < by.channels; first += LANES) {
            int width = by.channels - first;
#define ROUTE(size, width)                                                                       \
    NAME(route_some)(by, size, first, width, units, length, window + begin, count + begin,       \
                     weight + begin, rows, work, found)
            /* With numbers that it knows a compiler unrolls the loops. */
            if (width >= LANES && by.size == 8) ROUTE(8, LANES);
            else if (width >= LANES) ROUTE(by.size, LANES);
            else ROUTE(by.size, width);
        }
        found += by.channels * by.statics * by.size;
    }
}
#undef ROUTE
