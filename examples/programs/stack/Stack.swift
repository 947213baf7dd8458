struct Stack<Element> {
    private var storage: [Element] = []

    var isEmpty: Bool { storage.isEmpty }
    var count: Int { storage.count }

    mutating func push(_ element: Element) {
        storage.append(element)
    }

    @discardableResult
    mutating func pop() -> Element? {
        storage.popLast()
    }

    func peek() -> Element? {
        storage.last
    }
}

extension Stack: ExpressibleByArrayLiteral {
    init(arrayLiteral elements: Element...) {
        storage = elements
    }
}

var cards: Stack = ["7 of hearts", "queen of spades"]
cards.push("ace of clubs")
print("Showing:", cards.peek() ?? "nothing")

cards.pop()
// What is left comes off in reverse order.
while let card = cards.pop() {
    print("Dealt \(card)")
}
