def binary_search(items, target, low=0, high=None):
    """Return the index of target in the sorted sequence items, or None."""
    if high is None:
        high = len(items)
    if low >= high:
        return None

    mid = (low + high) // 2
    if items[mid] == target:
        return mid
    # Recurse into whichever half can still hold the target.
    if items[mid] < target:
        return binary_search(items, target, mid + 1, high)
    return binary_search(items, target, low, mid)


if __name__ == "__main__":
    squares = [n * n for n in range(20)]
    for value in (0, 49, 50, 361):
        index = binary_search(squares, value)
        print(f"{value}: {'not a square here' if index is None else index}")
