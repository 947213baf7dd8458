#include <stdbool.h>
#include <stdio.h>

#define CAPACITY 8

struct stack {
    int items[CAPACITY];
    int top; /* number of items held */
};

static bool push(struct stack *s, int value)
{
    if (s->top == CAPACITY)
        return false;
    s->items[s->top++] = value;
    return true;
}

/* Both readers report failure instead of touching an empty stack. */
static bool peek(const struct stack *s, int *out)
{
    if (s->top == 0)
        return false;
    *out = s->items[s->top - 1];
    return true;
}

static bool pop(struct stack *s, int *out)
{
    return peek(s, out) && s->top--;
}

int main(void)
{
    struct stack s = {.top = 0};
    int value;

    for (int i = 1; push(&s, i * i); i++)
        ;
    while (pop(&s, &value))
        printf("%d\n", value);
    return 0;
}
