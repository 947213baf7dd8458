using System;

public class Stack<T>
{
    private T[] items = new T[4];

    public int Count { get; private set; }

    public void Push(T item)
    {
        if (Count == items.Length) Array.Resize(ref items, Count * 2);
        items[Count++] = item;
    }

    public T Pop()
    {
        T item = Peek();
        items[--Count] = default(T); // let go of the reference
        return item;
    }

    public T Peek()
    {
        if (Count == 0) throw new InvalidOperationException("The stack is empty.");
        return items[Count - 1];
    }
}

public static class Program
{
    public static void Main()
    {
        var history = new Stack<string>();
        history.Push("/home");
        history.Push("/news");
        history.Push("/news/42");
        Console.WriteLine("Leaving " + history.Pop());
        Console.WriteLine("Back on " + history.Peek() + ", depth " + history.Count);
    }
}
