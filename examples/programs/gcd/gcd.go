package main

import "fmt"

// gcd returns the greatest common divisor of two integers.
func gcd(a, b int) int {
	for b != 0 {
		a, b = b, a%b
	}
	if a < 0 {
		return -a
	}
	return a
}

// gcdAll folds gcd over any number of arguments.
func gcdAll(first int, rest ...int) int {
	result := first
	for _, n := range rest {
		result = gcd(result, n)
		if result == 1 {
			break
		}
	}
	return result
}

func main() {
	fmt.Println(gcd(270, 192))
	fmt.Println(gcdAll(60, 90, 150, 210))
}
