package main

import (
	"errors"
	"fmt"
)

// ErrEmpty is returned when there is nothing to read.
var ErrEmpty = errors.New("stack: empty")

// Stack is a last-in, first-out list; its zero value is ready to use.
type Stack[T any] struct {
	items []T
}

func (s *Stack[T]) Push(v T) { s.items = append(s.items, v) }

func (s *Stack[T]) Peek() (v T, err error) {
	if len(s.items) == 0 {
		return v, ErrEmpty
	}
	return s.items[len(s.items)-1], nil
}

func (s *Stack[T]) Pop() (T, error) {
	v, err := s.Peek()
	if err == nil {
		s.items = s.items[:len(s.items)-1]
	}
	return v, err
}

func main() {
	var s Stack[string]
	for _, word := range []string{"first", "second", "third"} {
		s.Push(word)
	}
	for v, err := s.Pop(); err == nil; v, err = s.Pop() {
		fmt.Println(v)
	}
}
