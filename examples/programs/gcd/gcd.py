import sys
from functools import reduce


def gcd(a: int, b: int) -> int:
    """Greatest common divisor by Euclid's algorithm."""
    while b:
        a, b = b, a % b
    return abs(a)


def main(argv):
    # Any number of integers may be given on the command line.
    numbers = [int(arg) for arg in argv] or [462, 1071, 147]
    print("gcd of", *numbers, "is", reduce(gcd, numbers))


if __name__ == "__main__":
    main(sys.argv[1:])
