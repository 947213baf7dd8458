class Stack {
  #items = [];

  get size() {
    return this.#items.length;
  }

  push(...values) {
    this.#items.push(...values);
    return this;
  }

  pop() {
    return this.#items.pop();
  }

  peek() {
    return this.#items[this.size - 1];
  }
}

// Checks that every bracket is closed in the right order.
function isBalanced(text) {
  const closers = { ')': '(', ']': '[', '}': '{' };
  const open = new Stack();

  for (const ch of text) {
    if ('([{'.includes(ch)) {
      open.push(ch);
    } else if (ch in closers && open.pop() !== closers[ch]) {
      return false;
    }
  }
  return open.size === 0;
}

console.log(isBalanced('f(a[0], { b: (1) })'));
console.log(isBalanced('(]'));
console.log(new Stack().push(1, 2, 3).peek());
