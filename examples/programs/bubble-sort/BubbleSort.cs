using System;

namespace Sorting
{
    public static class BubbleSort
    {
        public static void Sort<T>(T[] array) where T : IComparable<T>
        {
            for (int pass = 0; pass < array.Length - 1; pass++)
            {
                // The largest remaining value drifts to the end of this pass.
                for (int i = 0; i < array.Length - 1 - pass; i++)
                {
                    if (array[i].CompareTo(array[i + 1]) > 0)
                    {
                        Swap(ref array[i], ref array[i + 1]);
                    }
                }
            }
        }

        private static void Swap<T>(ref T left, ref T right)
        {
            T held = left;
            left = right;
            right = held;
        }
    }

    internal class Program
    {
        private static void Main()
        {
            string[] planets = { "Venus", "Earth", "Saturn", "Mars", "Jupiter" };
            BubbleSort.Sort(planets);
            Console.WriteLine(string.Join(", ", planets));
        }
    }
}
