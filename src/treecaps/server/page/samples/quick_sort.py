def quick_sort(values, low=0, high=None):
    if high is None:
        high = len(values) - 1
    if low < high:
        middle = partition(values, low, high)
        quick_sort(values, low, middle - 1)
        quick_sort(values, middle + 1, high)
    return values


def partition(values, low, high):
    pivot = values[high]
    place = low
    for i in range(low, high):
        if values[i] <= pivot:
            values[i], values[place] = values[place], values[i]
            place += 1
    values[place], values[high] = values[high], values[place]
    return place


print(quick_sort([5, 2, 9, 1, 7]))
