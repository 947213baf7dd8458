interface Stack<T> {
  push(item: T): void;
  pop(): T | undefined;
  peek(): T | undefined;
  isEmpty(): boolean;
}

// The closure hides the array from the outside.
function createStack<T>(): Stack<T> {
  const items: T[] = [];

  return {
    push(item) {
      items.push(item);
    },
    pop: () => items.pop(),
    peek: () => items[items.length - 1],
    isEmpty: () => items.length === 0,
  };
}

function toBinary(value: number): string {
  const bits = createStack<number>();
  for (let rest = value; rest > 0; rest = Math.floor(rest / 2)) {
    bits.push(rest % 2);
  }
  let text = "";
  while (!bits.isEmpty()) {
    text += bits.pop();
  }
  return text || "0";
}

const pages = createStack<string>();
pages.push("intro");
pages.push("chapter one");
console.log(pages.peek());
console.log(toBinary(44));
