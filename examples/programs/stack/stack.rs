#[derive(Debug, Default)]
struct Stack<T> {
    items: Vec<T>,
}

impl<T> Stack<T> {
    fn new() -> Self {
        Stack { items: Vec::new() }
    }

    fn push(&mut self, item: T) {
        self.items.push(item);
    }

    fn pop(&mut self) -> Option<T> {
        self.items.pop()
    }

    fn peek(&self) -> Option<&T> {
        self.items.last()
    }
}

// Evaluates an expression in postfix notation.
fn evaluate(expr: &str) -> Option<i64> {
    let mut stack = Stack::new();
    for token in expr.split_whitespace() {
        let value = match token {
            "+" => stack.pop()? + stack.pop()?,
            "*" => stack.pop()? * stack.pop()?,
            number => number.parse().ok()?,
        };
        stack.push(value);
    }
    stack.peek().copied()
}

fn main() {
    println!("{:?}", evaluate("3 4 + 5 *"));
    println!("{:?}", evaluate("1 +"));
}
