#include <stdio.h>

/* In how many ways is a number the product of factors, smallest first? */
int ways(int rest, int least) {
    int count = 1;
    for (int factor = least; factor * factor <= rest; factor++) {
        if (rest % factor == 0) {
            count += ways(rest / factor, factor);
        }
    }
    return count;
}

int main() {
    int cases, number;
    scanf("%d", &cases);
    while (cases--) {
        scanf("%d", &number);
        printf("%d\n", ways(number, 2));
    }
    return 0;
}
