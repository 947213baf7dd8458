#include <stdio.h>

int first[100][100], second[100][100], product[100][100];

int main() {
    int rows, inner, columns;
    scanf("%d %d", &rows, &inner);
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < inner; j++)
            scanf("%d", &first[i][j]);
    scanf("%d %d", &inner, &columns);
    for (int i = 0; i < inner; i++)
        for (int j = 0; j < columns; j++)
            scanf("%d", &second[i][j]);
    for (int i = 0; i < rows; i++) {
        for (int j = 0; j < columns; j++) {
            for (int k = 0; k < inner; k++)
                product[i][j] += first[i][k] * second[k][j];
            printf(j == columns - 1 ? "%d\n" : "%d ", product[i][j]);
        }
    }
    return 0;
}
