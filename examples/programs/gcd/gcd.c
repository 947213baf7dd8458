#include <stdio.h>
#include <stdlib.h>

/* Euclid's algorithm with remainders. */
static unsigned long gcd(unsigned long a, unsigned long b)
{
    while (b != 0) {
        unsigned long r = a % b;
        a = b;
        b = r;
    }
    return a;
}

int main(int argc, char **argv)
{
    unsigned long a = 1071;
    unsigned long b = 462;

    if (argc == 3) {
        a = strtoul(argv[1], NULL, 10);
        b = strtoul(argv[2], NULL, 10);
    }
    printf("gcd(%lu, %lu) = %lu\n", a, b, gcd(a, b));
    return EXIT_SUCCESS;
}
