#include <stdio.h>

int binary_search(const int *values, int count, int wanted)
{
    int low = 0, high = count - 1;
    while (low <= high) {
        int middle = low + (high - low) / 2;
        if (values[middle] == wanted)
            return middle;
        if (values[middle] < wanted)
            low = middle + 1;
        else
            high = middle - 1;
    }
    return -1;
}

int main(void)
{
    int values[] = {1, 3, 4, 7, 11, 18};
    printf("%d\n", binary_search(values, 6, 7));
    return 0;
}
