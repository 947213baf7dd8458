#include <stdio.h>

/* Returns the index of key in the sorted array a, or -1 if it is absent. */
static int binary_search(const int *a, int n, int key)
{
    int lo = 0;
    int hi = n - 1;

    while (lo <= hi) {
        int mid = lo + (hi - lo) / 2;

        if (a[mid] == key)
            return mid;
        if (a[mid] < key)
            lo = mid + 1;
        else
            hi = mid - 1;
    }
    return -1;
}

int main(void)
{
    int primes[] = {2, 3, 5, 7, 11, 13, 17, 19, 23, 29};
    int n = sizeof primes / sizeof primes[0];

    printf("17 is at index %d\n", binary_search(primes, n, 17));
    printf("18 is at index %d\n", binary_search(primes, n, 18));
    return 0;
}
