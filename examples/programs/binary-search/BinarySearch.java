public class BinarySearch {

    private final long[] values;

    public BinarySearch(long... sortedValues) {
        this.values = sortedValues.clone();
    }

    /** Looks for the key by halving the remaining range at each call. */
    public int indexOf(long key) {
        return indexOf(key, 0, values.length - 1);
    }

    private int indexOf(long key, int from, int to) {
        if (from > to) {
            return -1;
        }
        int middle = (from + to) >>> 1;
        if (key < values[middle]) {
            return indexOf(key, from, middle - 1);
        } else if (key > values[middle]) {
            return indexOf(key, middle + 1, to);
        }
        return middle;
    }

    public static void main(String[] args) {
        BinarySearch ids = new BinarySearch(101, 205, 309, 412, 518, 633, 777);
        System.out.println("412 -> " + ids.indexOf(412));
        System.out.println("500 -> " + ids.indexOf(500));
    }
}
