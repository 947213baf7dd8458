class Stack:
    """A last-in, first-out collection."""

    def __init__(self, iterable=()):
        self._items = list(iterable)

    def push(self, item):
        self._items.append(item)

    def pop(self):
        if not self._items:
            raise IndexError("pop from an empty stack")
        return self._items.pop()

    def peek(self):
        if not self._items:
            raise IndexError("peek at an empty stack")
        return self._items[-1]

    def __len__(self):
        return len(self._items)

    def __repr__(self):
        return f"Stack({self._items!r})"


books = Stack(["atlas", "novel"])
books.push("cookbook")
print(books.peek())

# An empty stack is falsy, so this drains it.
while books:
    print("removing", books.pop())
print(books)
