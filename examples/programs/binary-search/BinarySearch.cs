using System;
using System.Collections.Generic;

public static class BinarySearch
{
    /// <summary>Finds an item in an ascending list, or returns null.</summary>
    public static int? Find<T>(IList<T> items, T target) where T : IComparable<T>
    {
        return Find(items, target, 0, items.Count - 1);
    }

    private static int? Find<T>(IList<T> items, T target, int left, int right)
        where T : IComparable<T>
    {
        if (left > right)
        {
            return null;
        }

        int middle = left + (right - left) / 2;
        int order = target.CompareTo(items[middle]);

        if (order == 0)
        {
            return middle;
        }

        return order < 0
            ? Find(items, target, left, middle - 1)
            : Find(items, target, middle + 1, right);
    }

    public static void Main()
    {
        var years = new List<int> { 1969, 1977, 1984, 1991, 2000, 2007, 2016 };
        Console.WriteLine("1991: " + Find(years, 1991));
        Console.WriteLine("1999 present: " + Find(years, 1999).HasValue);
    }
}
