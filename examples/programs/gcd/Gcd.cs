using System;
using System.Linq;

class Gcd
{
    // Expression-bodied recursion; the sign of the inputs is ignored.
    static int Of(int a, int b) => b == 0 ? Math.Abs(a) : Of(b, a % b);

    static int OfMany(params int[] numbers) => numbers.Aggregate(0, Of);

    static void Main(string[] args)
    {
        int[] numbers = args.Length > 0
            ? args.Select(int.Parse).ToArray()
            : new[] { 84, -36, 120 };

        Console.WriteLine("Numbers: " + string.Join(", ", numbers));
        Console.WriteLine("Greatest common divisor: " + OfMany(numbers));
    }
}
