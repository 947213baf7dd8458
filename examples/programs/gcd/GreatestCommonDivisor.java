public class GreatestCommonDivisor {

    static int gcd(int a, int b) {
        if (a < 0 || b < 0) {
            throw new IllegalArgumentException("arguments must not be negative");
        }
        if (b == 0) {
            return a;
        }
        return gcd(b, a % b);
    }

    /** Writes a fraction in its lowest terms. */
    static String reduce(int numerator, int denominator) {
        int divisor = gcd(numerator, denominator);
        return (numerator / divisor) + "/" + (denominator / divisor);
    }

    public static void main(String[] args) {
        System.out.println("gcd(56, 98) = " + gcd(56, 98));
        System.out.println("56/98 = " + reduce(56, 98));
    }
}
