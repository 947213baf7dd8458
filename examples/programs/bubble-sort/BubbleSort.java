import java.util.Arrays;

public final class BubbleSort {

    private BubbleSort() {
    }

    public static void sort(int[] numbers) {
        boolean changed;
        do {
            changed = false;
            for (int i = 0; i + 1 < numbers.length; i++) {
                if (numbers[i] > numbers[i + 1]) {
                    swap(numbers, i, i + 1);
                    changed = true;
                }
            }
        } while (changed); // one clean pass means we are done
    }

    private static void swap(int[] numbers, int a, int b) {
        int held = numbers[a];
        numbers[a] = numbers[b];
        numbers[b] = held;
    }

    public static void main(String[] args) {
        int[] sample = {31, 4, 15, 92, 65, 35, 8};
        sort(sample);
        System.out.println(Arrays.toString(sample));
    }
}
