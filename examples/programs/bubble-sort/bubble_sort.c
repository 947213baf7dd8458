#include <stdbool.h>
#include <stdio.h>

static void swap(int *x, int *y)
{
    int tmp = *x;
    *x = *y;
    *y = tmp;
}

/* Sorts in place; gives up as soon as a pass makes no exchange. */
void bubble_sort(int v[], size_t len)
{
    bool swapped = true;

    while (swapped && len > 1) {
        swapped = false;
        for (size_t i = 1; i < len; i++) {
            if (v[i - 1] > v[i]) {
                swap(&v[i - 1], &v[i]);
                swapped = true;
            }
        }
        len--;
    }
}

int main(void)
{
    int data[] = {42, 7, -3, 19, 0, 88, 7};
    size_t count = sizeof(data) / sizeof(data[0]);

    bubble_sort(data, count);
    for (size_t i = 0; i < count; i++)
        printf("%d ", data[i]);
    putchar('\n');
    return 0;
}
