<?php

final class BubbleSort
{
    /** @var callable(mixed, mixed): int */
    private $comparator;

    public function __construct(?callable $comparator = null)
    {
        $this->comparator = $comparator ?? fn ($a, $b) => $a <=> $b;
    }

    public function sort(array $values): array
    {
        $n = count($values);

        for ($i = 0; $i < $n - 1; $i++) {
            for ($j = 0; $j < $n - $i - 1; $j++) {
                // Neighbours in the wrong order trade places.
                if (($this->comparator)($values[$j], $values[$j + 1]) > 0) {
                    [$values[$j], $values[$j + 1]] = [$values[$j + 1], $values[$j]];
                }
            }
        }

        return $values;
    }
}

$numbers = [27, 3, 14, 81, 9, 60];
echo implode(' ', (new BubbleSort())->sort($numbers)), "\n";

$byLength = new BubbleSort(fn ($a, $b) => strlen($a) - strlen($b));
echo implode(' ', $byLength->sort(['banana', 'fig', 'plum', 'raspberry'])), "\n";
