/* Loops for which NumPy has no function. treecaps/compiled.py says what they are for; each does
   what a function in NumPy does, which also runs where nothing was compiled, and which the tests
   hold it against.

   Arrays come as contiguous buffers: those of numbers are int64, those of vectors float32; outputs
   overlap nothing. Python sees to their types; here their sizes are checked, and every index before
   it is used. VERSION changes with what a function takes: compiled.py must ask for the same. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define MOST_WEIGHTS 3
#define MOST_STATICS 16
#define MOST_SIZE (1 << 20)
#define VERSION 1
#define TINY 1.17549435e-38f /* the smallest float32 */

static int has_avx2;
static uint64_t secret; /* so that nobody can choose texts that all get one slot */

typedef struct {
    Py_buffer view;
    void *data;
    Py_ssize_t length;
} Array;

/* Get a buffer of items of some size; 0 if there is none. */
static int get(PyObject *object, Array *array, Py_ssize_t item, int writable) {
    int flags = PyBUF_C_CONTIGUOUS | (writable ? PyBUF_WRITABLE : 0);
    if (PyObject_GetBuffer(object, &array->view, flags) < 0) return 0;
    array->data = array->view.buf;
    array->length = array->view.len / item;
    if (array->view.itemsize == item && (uintptr_t)array->data % (uintptr_t)item == 0) return 1;
    PyBuffer_Release(&array->view);
    PyErr_SetString(PyExc_TypeError, "an array is of another type, or not aligned");
    return 0;
}

/* Get several buffers, told by a letter each: n numbers, v vectors, t text; capitals for outputs. */
static int get_all(PyObject *const *objects, Array *arrays, const char *types) {
    for (int i = 0; types[i]; i++) {
        char type = types[i] | 32;
        Py_ssize_t item = type == 'n' ? 8 : type == 'v' ? 4 : 1;
        if (!get(objects[i], &arrays[i], item, !(types[i] & 32))) {
            while (i--) PyBuffer_Release(&arrays[i].view);
            return 0;
        }
    }
    return 1;
}

static void release(Array *arrays, int count) {
    for (int i = 0; i < count; i++) PyBuffer_Release(&arrays[i].view);
}

/* Say what is wrong, if nothing else is. */
static PyObject *fail(const char *message) {
    if (PyErr_Occurred()) return NULL;
    PyErr_SetString(PyExc_ValueError, message);
    return NULL;
}

/* ---- Equal things get one number, in the order in which they first occur. ---- */

typedef struct {
    int32_t *slots;
    uint64_t mask;
    int64_t *number, *first, count;
} Table;

static uint64_t mix(uint64_t hash, uint64_t value) {
    unsigned __int128 product = (unsigned __int128)(hash ^ value) * (secret | 1);
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

static uint64_t finish(uint64_t hash) {
    hash = (hash ^ (hash >> 32)) * 0xBF58476D1CE4E5B9u;
    return hash ^ (hash >> 31);
}

static int open_table(Table *table, Array *number, Array *first, int64_t size) {
    if (number->length < size || first->length < size || size >= INT32_MAX) return 0;
    uint64_t slots = 16;
    while (slots < 2 * (uint64_t)size) slots *= 2;
    *table = (Table){malloc(slots * sizeof(int32_t)), slots - 1, number->data, first->data, 0};
    if (!table->slots) return PyErr_NoMemory() != NULL;
    memset(table->slots, 0xFF, slots * sizeof(int32_t));
    return 1;
}

/* Give item i its number; SAME tells whether it equals item `other`. */
#define NUMBER(table, i, hash, SAME)                                     \
    do {                                                                 \
        uint64_t slot = finish(hash) & (table).mask;                     \
        for (;; slot = (slot + 1) & (table).mask) {                      \
            int32_t known = (table).slots[slot];                         \
            if (known < 0) {                                             \
                (table).slots[slot] = known = (int32_t)(table).count;    \
                (table).first[(table).count++] = (i);                    \
                (table).number[i] = known;                               \
                break;                                                   \
            }                                                            \
            int64_t other = (table).first[known];                        \
            if (SAME) {                                                  \
                (table).number[i] = known;                               \
                break;                                                   \
            }                                                            \
        }                                                                \
    } while (0)

static PyObject *number_distinct(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Array a[3];
    Table table;
    if (count != 3) return fail("number_distinct(values, NUMBER, FIRST)");
    if (!get_all(args, a, "nNN")) return NULL;
    const int64_t *values = a[0].data;
    int good = open_table(&table, &a[1], &a[2], a[0].length);
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        for (int64_t i = 0; i < a[0].length; i++)
            NUMBER(table, i, mix(secret, (uint64_t)values[i]), values[other] == values[i]);
        Py_END_ALLOW_THREADS
        free(table.slots);
    }
    release(a, 3);
    return good ? PyLong_FromLongLong(table.count) : fail("the arrays do not fit");
}

static PyObject *number_texts(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Array a[5];
    Table table;
    if (count != 5) return fail("number_texts(text, starts, ends, NUMBER, FIRST)");
    if (!get_all(args, a, "tnnNN")) return NULL;
    const char *text = a[0].data;
    const int64_t *starts = a[1].data, *ends = a[2].data, size = a[1].length;
    int good = a[2].length == size;
    for (int64_t i = 0; good && i < size; i++)
        good = 0 <= starts[i] && starts[i] <= ends[i] && ends[i] <= a[0].length;
    if (good && (good = open_table(&table, &a[3], &a[4], size))) {
        Py_BEGIN_ALLOW_THREADS
        for (int64_t i = 0; i < size; i++) {
            const char *begin = text + starts[i];
            size_t length = (size_t)(ends[i] - starts[i]), place = 0;
            uint64_t hash = mix(secret, length), part;
            for (; place + 8 <= length; place += 8) {
                memcpy(&part, begin + place, 8);
                hash = mix(hash, part);
            }
            part = 0;
            memcpy(&part, begin + place, length - place);
            hash = mix(hash, part);
            NUMBER(table, i, hash, (size_t)(ends[other] - starts[other]) == length &&
                   !memcmp(text + starts[other], begin, length));
        }
        Py_END_ALLOW_THREADS
        free(table.slots);
    }
    release(a, 5);
    return good ? PyLong_FromLongLong(table.count) : fail("the arrays do not fit");
}

static int is_runs(const int64_t *offsets, int64_t size, int64_t members) {
    if (size < 0 || offsets[0] < 0 || offsets[size] > members) return 0;
    for (int64_t i = 0; i < size; i++)
        if (offsets[i] > offsets[i + 1]) return 0;
    return 1;
}

static int are_below(const int64_t *rows, int64_t begin, int64_t end, int64_t bound) {
    for (int64_t i = begin; i < end; i++)
        if (rows[i] < 0 || rows[i] >= bound) return 0;
    return 1;
}

static int are_equal(const int64_t *classes, const int64_t *one, const int64_t *other, int64_t size) {
    for (int64_t i = 0; i < size; i++)
        if (classes[one[i]] != classes[other[i]]) return 0;
    return 1;
}

static PyObject *number_subtrees(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Array a[6];
    Table table;
    if (count != 6)
        return fail("number_subtrees(symbol, classes, child, child_offsets, NUMBER, FIRST)");
    if (!get_all(args, a, "nnnnNN")) return NULL;
    const int64_t *symbol = a[0].data, *classes = a[1].data, *child = a[2].data;
    const int64_t *offsets = a[3].data, size = a[0].length;
    int good = a[1].length == size && a[3].length == size + 1 &&
               is_runs(offsets, size, a[2].length) && are_below(child, 0, a[2].length, size);
    if (good && (good = open_table(&table, &a[4], &a[5], size))) {
        Py_BEGIN_ALLOW_THREADS
        for (int64_t i = 0; i < size; i++) {
            const int64_t *begin = child + offsets[i], length = offsets[i + 1] - offsets[i];
            uint64_t hash = mix(secret, (uint64_t)symbol[i]);
            for (int64_t j = 0; j < length; j++) hash = mix(hash, (uint64_t)classes[begin[j]]);
            NUMBER(table, i, hash,
                   symbol[other] == symbol[i] && offsets[other + 1] - offsets[other] == length &&
                   are_equal(classes, child + offsets[other], begin, length));
        }
        Py_END_ALLOW_THREADS
        free(table.slots);
    }
    release(a, 6);
    return good ? PyLong_FromLongLong(table.count) : fail("the arrays do not fit");
}

/* ---- The nodes of a tree of tree-sitter. ---- */

static int move(PyObject *method) {
    PyObject *moved = PyObject_CallNoArgs(method);
    Py_XDECREF(moved);
    return moved ? moved == Py_True : -1;
}

static long attribute(PyObject *node, const char *name, PyObject **known) {
    if (!*known && !(*known = PyUnicode_InternFromString(name))) return -1;
    PyObject *value = PyObject_GetAttr(node, *known);
    long number = value ? PyLong_AsLong(value) : -1;
    Py_XDECREF(value);
    return number;
}

/* Walk from a cursor on, in pre-order. Rows are kind, parent, start, end and whether the node is
   missing; nodes of kinds that are left out are none, nor is what is below them. */
static int walk(
    PyObject *cursor, const char *left_out, Py_ssize_t kinds, int broken, int32_t (**rows)[5],
    int32_t *count) {
    static PyObject *node_, *kind_, *start_, *end_, *missing_;
    PyObject *down = PyObject_GetAttrString(cursor, "goto_first_child");
    PyObject *across = down ? PyObject_GetAttrString(cursor, "goto_next_sibling") : NULL;
    PyObject *up = across ? PyObject_GetAttrString(cursor, "goto_parent") : NULL, *node = NULL;
    int32_t parent = -1, room = 0;
    int moved = up ? 1 : -1, first = 1;
    if (up && !node_ && !(node_ = PyUnicode_InternFromString("node"))) moved = -1;
    while (moved > 0) {
        Py_XDECREF(node);
        if (!(node = PyObject_GetAttr(cursor, node_))) break;
        long kind = attribute(node, "kind_id", &kind_);
        if (kind < 0) break;
        int taken = first || kind >= kinds || !left_out[kind];
        if (taken) {
            if (*count == room) {
                room = room ? 2 * room : 1024;
                void *more = realloc(*rows, (size_t)room * sizeof(**rows));
                if (!more || room > 1 << 28) PyErr_NoMemory();
                if (more) *rows = more;
                if (PyErr_Occurred() || PyErr_CheckSignals() < 0) break;
            }
            int32_t *row = (*rows)[(*count)++];
            row[0] = (int32_t)kind;
            row[1] = parent;
            row[2] = (int32_t)attribute(node, "start_byte", &start_);
            row[3] = (int32_t)attribute(node, "end_byte", &end_);
            row[4] = broken ? (int32_t)attribute(node, "is_missing", &missing_) : 0;
            if (row[2] < 0 || row[3] < 0 || row[4] < 0) break;
        }
        first = 0;
        moved = taken ? move(down) : 0;
        if (moved > 0) parent = *count - 1;
        while (!moved && !(moved = move(across)) && parent >= 0 && (moved = move(up)) > 0) {
            parent = (*rows)[parent][1];
            moved = 0;
        }
        if (!moved) break;
    }
    Py_XDECREF(node);
    Py_XDECREF(down);
    Py_XDECREF(across);
    Py_XDECREF(up);
    return !PyErr_Occurred();
}

static PyObject *flatten(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Array left_out;
    int32_t (*rows)[5] = NULL, nodes = 0;
    if (count != 3) return fail("flatten(cursor, left_out, broken)");
    int broken = PyObject_IsTrue(args[2]);
    if (broken < 0 || !get(args[1], &left_out, 1, 0)) return NULL;
    PyObject *found = NULL;
    if (walk(args[0], left_out.data, left_out.length, broken, &rows, &nodes))
        found = PyBytes_FromStringAndSize((char *)rows, nodes * (Py_ssize_t)sizeof(*rows));
    free(rows);
    release(&left_out, 1);
    return found;
}

/* ---- Sums and routing. ---- */

/* As many numbers as a processor computes with at once: those of channels side by side. */
#define LANES 8
typedef float Lanes __attribute__((vector_size(4 * LANES)));
typedef int32_t Whole __attribute__((vector_size(4 * LANES)));
#define INLINE static inline __attribute__((always_inline))

/* The sizes of what is routed, and how. */
typedef struct {
    int channels, size, statics, iterations, printed;
} Routing;

#define NAME(name) name##_any
#include "_vectors.h"
#undef NAME

#if defined(__GNUC__) && !defined(__clang__) && defined(__x86_64__)
#pragma GCC push_options
#pragma GCC target("avx2,fma")
#define NAME(name) name##_avx2
#include "_vectors.h"
#undef NAME
#pragma GCC pop_options
#define BEST(name) (has_avx2 ? name##_avx2 : name##_any)
#define HAS_AVX2 (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
#else
#define BEST(name) name##_any
#define HAS_AVX2 0
#endif

static PyObject *sum_runs(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Array a[4 + MOST_WEIGHTS];
    const float *weights[MOST_WEIGHTS];
    int kinds = (int)count - 5;
    if (kinds < 1 || kinds > MOST_WEIGHTS)
        return fail("sum_runs(size, vectors, row, offsets, SUMS, one to three weights)");
    int64_t size = PyLong_AsLongLong(args[0]);
    if (PyErr_Occurred()) return NULL;
    const char *types[] = {"vnnVv", "vnnVvv", "vnnVvvv"};
    if (!get_all(args + 1, a, types[kinds - 1])) return NULL;
    const int64_t *row = a[1].data, *offsets = a[2].data, runs = a[2].length - 1;
    int good = size > 0 && size <= MOST_SIZE && runs >= 0 && is_runs(offsets, runs, a[1].length) &&
               a[3].length == runs * kinds * size &&
               are_below(row, offsets[0], offsets[runs], a[0].length / size);
    for (int kind = 0; kind < kinds; kind++) {
        weights[kind] = a[4 + kind].data;
        good = good && a[4 + kind].length == a[1].length;
    }
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        BEST(add_runs)(a[0].data, size, row, offsets, runs, weights, kinds, a[3].data);
        Py_END_ALLOW_THREADS
    }
    release(a, 4 + kinds);
    if (!good) return fail("the arrays do not fit");
    Py_RETURN_NONE;
}

static PyObject *route_channels(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    Array a[7];
    long number[5];
    const long most[5] = {1 << 16, 1 << 16, MOST_STATICS, 1 << 16, 1};
    if (count != 12)
        return fail("route_channels(channels, size, statics, iterations, printed, units, length,"
                    " window, count, weight, offsets, FOUND)");
    for (int i = 0; i < 5; i++) {
        number[i] = PyLong_AsLong(args[i]);
        if (PyErr_Occurred() || number[i] < (i < 3) || number[i] > most[i])
            return fail("there are too many capsules or iterations");
    }
    int64_t channels = number[0], size = number[1], statics = number[2];
    if (channels * size * statics > MOST_SIZE) return fail("there are too many capsules");
    if (!get_all(args + 5, a, "vvnvvnV")) return NULL;
    const int64_t *window = a[2].data, *offsets = a[5].data, programs = a[5].length - 1;
    int64_t windows = a[1].length / channels, all = channels * statics * size;
    Lanes *work = aligned_alloc(sizeof(Lanes), (size_t)(2 * statics * size) * sizeof(Lanes));
    if (!work) PyErr_NoMemory();
    int good = work && programs >= 0 && is_runs(offsets, programs, a[2].length) &&
               a[1].length == windows * channels && a[0].length == windows * channels * size &&
               a[3].length == a[2].length && a[4].length == a[2].length &&
               a[6].length == programs * all && are_below(window, 0, a[2].length, windows);
    if (good) {
        Py_BEGIN_ALLOW_THREADS
        Routing by = {(int)channels, (int)size, (int)statics, (int)number[3], (int)number[4]};
        memset(a[6].data, 0, (size_t)(programs * all) * sizeof(float));
        BEST(route)(by, a[0].data, a[1].data, window, a[3].data, a[4].data, offsets, programs, work,
              a[6].data);
        Py_END_ALLOW_THREADS
    }
    free(work);
    release(a, 7);
    if (!good) return fail("the arrays do not fit");
    Py_RETURN_NONE;
}

/* Say whether to use what newer processors can do, and return whether it was used. */
static PyObject *use_avx2(PyObject *self, PyObject *const *args, Py_ssize_t count) {
    int before = has_avx2, asked = count == 1 ? PyObject_IsTrue(args[0]) : -1;
    if (asked < 0) return fail("use_avx2(whether)");
    has_avx2 = asked && HAS_AVX2;
    return PyBool_FromLong(before);
}

#define METHOD(name) {#name, (PyCFunction)(void (*)(void))name, METH_FASTCALL, NULL}

static PyMethodDef methods[] = {
    METHOD(number_distinct), METHOD(number_texts),   METHOD(number_subtrees),
    METHOD(sum_runs),        METHOD(route_channels), METHOD(flatten),
    METHOD(use_avx2),
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "_compiled", NULL, -1, methods, NULL, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit__compiled(void) {
    PyObject *word = PyUnicode_FromString("treecaps"); /* its hash differs from run to run */
    if (!word) return NULL;
    secret = (uint64_t)PyObject_Hash(word);
    has_avx2 = HAS_AVX2;
    Py_DECREF(word);
    PyObject *module = PyModule_Create(&definition);
    if (module && PyModule_AddIntConstant(module, "VERSION", VERSION) < 0) Py_CLEAR(module);
    return module;
}
