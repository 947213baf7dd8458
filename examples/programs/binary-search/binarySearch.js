'use strict';

const byNumber = (a, b) => a - b;

/**
 * Search a sorted array with a custom comparator.
 * Gives back the index of a match, or -1.
 */
function binarySearch(array, needle, compare = byNumber) {
  let start = 0;
  let end = array.length - 1;

  while (start <= end) {
    const pivot = Math.floor((start + end) / 2);
    const diff = compare(array[pivot], needle);

    if (diff === 0) return pivot;
    if (diff < 0) {
      start = pivot + 1;
    } else {
      end = pivot - 1;
    }
  }

  return -1;
}

const scores = [3, 8, 14, 21, 34, 55, 89];
console.log(binarySearch(scores, 34));

const users = [{ name: 'Ann' }, { name: 'Bo' }, { name: 'Cleo' }];
const byName = (a, b) => a.name.localeCompare(b.name);
console.log(binarySearch(users, { name: 'Bo' }, byName));
