#include <iostream>
#include <memory>
#include <stdexcept>
#include <utility>

template <typename T>
class Stack {
public:
    void push(T value) {
        head_ = std::make_unique<Node>(Node{std::move(value), std::move(head_)});
    }

    const T& peek() const {
        if (empty()) throw std::out_of_range("stack is empty");
        return head_->value;
    }

    T pop() {
        if (empty()) throw std::out_of_range("stack is empty");
        T value = std::move(head_->value);
        head_ = std::move(head_->next);
        return value;
    }

    bool empty() const { return head_ == nullptr; }

private:
    // Each node owns the one beneath it.
    struct Node {
        T value;
        std::unique_ptr<Node> next;
    };
    std::unique_ptr<Node> head_;
};

int main() {
    Stack<char> letters;
    for (char c : {'s', 't', 'a', 'r'}) letters.push(c);

    std::cout << "top: " << letters.peek() << '\n';
    while (!letters.empty()) std::cout << letters.pop();
    std::cout << '\n';
}
