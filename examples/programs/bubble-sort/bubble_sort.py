"""Bubble sort with an optional key function."""


def bubble_sort(values, key=lambda item: item):
    """Sort a list in place, stopping once a pass changes nothing."""
    for end in range(len(values) - 1, 0, -1):
        swapped = False
        for i in range(end):
            if key(values[i]) > key(values[i + 1]):
                values[i], values[i + 1] = values[i + 1], values[i]
                swapped = True
        if not swapped:
            break


def main():
    numbers = [5, -2, 8, 8, 0, 13, 1]
    bubble_sort(numbers)
    print(numbers)

    # Shortest words come first.
    words = ["kangaroo", "ox", "heron", "cat"]
    bubble_sort(words, key=len)
    print(words)


if __name__ == "__main__":
    main()
