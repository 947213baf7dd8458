#include <stdio.h>

/* Where is a number the greatest of its row and the least of its column? */
int main() {
    int rows, columns, table[8][8];
    scanf("%d,%d", &rows, &columns);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            scanf("%d", &table[i][j]);
    for (int i = 0; i < rows; i++) {
        int best = 0, least = 1;
        for (int j = 1; j < columns; j++)
            if (table[i][j] > table[i][best])
                best = j;
        for (int other = 0; other < rows; other++)
            if (table[other][best] < table[i][best])
                least = 0;
        if (least) {
            printf("%d+%d", i, best);
            return 0;
        }
    }
    printf("No");
    return 0;
}
