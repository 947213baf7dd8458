export type Comparator<T> = (left: T, right: T) => number;

const ascending: Comparator<number> = (left, right) => left - right;

/** Recursive bubble sort: each call settles the last of `size` elements. */
function bubble<T>(items: T[], compare: Comparator<T>, size: number): void {
  if (size < 2) {
    return;
  }
  let touched = false;
  for (let k = 0; k < size - 1; k += 1) {
    if (compare(items[k], items[k + 1]) > 0) {
      const kept = items[k];
      items[k] = items[k + 1];
      items[k + 1] = kept;
      touched = true;
    }
  }
  if (touched) {
    bubble(items, compare, size - 1);
  }
}

export function bubbleSort<T>(items: T[], compare: Comparator<T>): T[] {
  bubble(items, compare, items.length);
  return items;
}

console.log(bubbleSort([12, 5, 33, 1, 20], ascending));
console.log(bubbleSort(["pine", "oak", "elm"], (a, b) => a.localeCompare(b)));
