import java.util.NoSuchElementException;

public class LinkedStack<E> {

    private record Node<E>(E value, Node<E> below) {
    }

    private Node<E> top;

    public void push(E value) {
        top = new Node<>(value, top);
    }

    public E peek() {
        if (isEmpty()) {
            throw new NoSuchElementException("empty stack");
        }
        return top.value();
    }

    public E pop() {
        E value = peek();
        top = top.below();
        return value;
    }

    public boolean isEmpty() {
        return top == null;
    }

    // Digits come off the number from the right, and print from the left.
    public static void main(String[] args) {
        LinkedStack<Integer> digits = new LinkedStack<>();
        for (int n = 8051; n > 0; n /= 10) {
            digits.push(n % 10);
        }
        while (!digits.isEmpty()) {
            System.out.print(digits.pop() + " ");
        }
        System.out.println();
    }
}
