#include <cstdint>
#include <iostream>
#include <utility>

// Binary version: only shifts and subtractions, no division.
constexpr std::uint64_t gcd(std::uint64_t u, std::uint64_t v) {
    if (u == 0) return v;
    if (v == 0) return u;

    int shift = 0;
    while (((u | v) & 1) == 0) {
        u >>= 1;
        v >>= 1;
        ++shift;
    }
    while ((u & 1) == 0) u >>= 1;

    while (v != 0) {
        while ((v & 1) == 0) v >>= 1;
        if (u > v) {
            std::uint64_t t = u;
            u = v;
            v = t;
        }
        v -= u;
    }
    return u << shift;
}

static_assert(gcd(12, 18) == 6, "gcd must work at compile time");

int main() {
    const std::pair<std::uint64_t, std::uint64_t> pairs[] = {{48, 180}, {17, 5}, {0, 9}};
    for (const auto& [a, b] : pairs) {
        std::cout << a << " and " << b << " share " << gcd(a, b) << '\n';
    }
}
