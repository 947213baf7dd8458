package main

import "fmt"

type ordered interface {
	~int | ~float64 | ~string
}

// BubbleSort orders xs in place, smallest first.
func BubbleSort[T ordered](xs []T) {
	for end := len(xs) - 1; end > 0; end-- {
		sorted := true
		for i := 0; i < end; i++ {
			if xs[i] > xs[i+1] {
				xs[i], xs[i+1] = xs[i+1], xs[i]
				sorted = false
			}
		}
		if sorted {
			return
		}
	}
}

func main() {
	nums := []int{9, 4, 6, 1, 8, 3}
	BubbleSort(nums)
	fmt.Println(nums)

	names := []string{"mia", "zoe", "ada", "leo"}
	BubbleSort(names)
	fmt.Println(names)
}
