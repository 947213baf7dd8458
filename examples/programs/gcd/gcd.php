<?php

// The original method: take the smaller from the larger until they meet.
function gcd(int $a, int $b): int
{
    $a = abs($a);
    $b = abs($b);

    if ($a === 0 || $b === 0) {
        return $a + $b;
    }

    while ($a !== $b) {
        if ($a > $b) {
            $a -= $b;
        } else {
            $b -= $a;
        }
    }

    return $a;
}

printf("gcd(%d, %d) = %d\n", 105, 45, gcd(105, 45));
printf("gcd(%d, %d) = %d\n", -14, 21, gcd(-14, 21));

$tiles = gcd(360, 225);
echo "A 360 x 225 cm floor takes square tiles of {$tiles} cm.\n";
