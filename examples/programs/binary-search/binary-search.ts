type Ordered = number | string;

// Index of the first element that is not smaller than the target.
function lowerBound<T extends Ordered>(sorted: readonly T[], target: T): number {
  let lo = 0;
  let hi = sorted.length;

  while (lo < hi) {
    const mid = (lo + hi) >>> 1;
    if (sorted[mid] < target) {
      lo = mid + 1;
    } else {
      hi = mid;
    }
  }
  return lo;
}

export function binarySearch<T extends Ordered>(
  sorted: readonly T[],
  target: T,
): number | undefined {
  const at = lowerBound(sorted, target);
  return sorted[at] === target ? at : undefined;
}

const codes = ["AT", "BE", "DE", "ES", "FR", "IT", "NL", "PT"];

console.log("FR:", binarySearch(codes, "FR"));
console.log("GB:", binarySearch(codes, "GB"));
console.log("40:", binarySearch<number>([10, 20, 30, 40], 40));
