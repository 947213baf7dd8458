package main

import "fmt"

// search reports where target sits in the ascending slice xs.
// When it is missing, the index is where it would be inserted.
func search(xs []int, target int) (int, bool) {
	low, high := 0, len(xs)
	for low < high {
		mid := int(uint(low+high) >> 1)
		switch {
		case xs[mid] == target:
			return mid, true
		case xs[mid] < target:
			low = mid + 1
		default:
			high = mid
		}
	}
	return low, false
}

func main() {
	temps := []int{-12, -3, 0, 4, 9, 15, 22, 31}
	for _, t := range []int{9, 10, -12} {
		if i, ok := search(temps, t); ok {
			fmt.Printf("%d found at %d\n", t, i)
		} else {
			fmt.Printf("%d missing, belongs at %d\n", t, i)
		}
	}
}
