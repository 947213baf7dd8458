#include <stdio.h>
#include <string.h>

/* How often does each small letter occur in a line? "No" if there is none. */
int main() {
    char line[400];
    int times[26] = {0}, any = 0;
    gets(line);
    int length = strlen(line);
    for (int place = 0; place < length; place++) {
        if (line[place] >= 'a' && line[place] <= 'z') {
            times[line[place] - 'a']++;
            any = 1;
        }
    }
    if (!any) {
        printf("No");
        return 0;
    }
    for (int letter = 0; letter < 26; letter++) {
        if (times[letter] > 0) {
            printf("%c=%d\n", 'a' + letter, times[letter]);
        }
    }
    return 0;
}
