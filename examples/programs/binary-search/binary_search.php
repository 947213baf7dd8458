<?php

declare(strict_types=1);

/**
 * Leftmost position of $target in a sorted list, or false.
 *
 * @param int[] $haystack
 */
function binarySearch(array $haystack, int $target): int|false
{
    $low = 0;
    $high = count($haystack) - 1;
    $found = false;

    while ($low <= $high) {
        $mid = intdiv($low + $high, 2);

        if ($haystack[$mid] < $target) {
            $low = $mid + 1;
            continue;
        }
        if ($haystack[$mid] === $target) {
            // Remember this hit but keep looking to the left.
            $found = $mid;
        }
        $high = $mid - 1;
    }

    return $found;
}

$prices = [5, 9, 9, 9, 14, 20, 33];

foreach ([9, 20, 7] as $price) {
    $position = binarySearch($prices, $price);
    echo $price, ': ', $position === false ? 'none' : $position, PHP_EOL;
}
