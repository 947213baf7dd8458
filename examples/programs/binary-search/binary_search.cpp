#include <iostream>
#include <iterator>
#include <string>
#include <vector>

// Narrows [first, last) until it holds at most one candidate.
template <typename RandomIt, typename T>
RandomIt findSorted(RandomIt first, RandomIt last, const T& value) {
    const RandomIt end = last;
    while (first != last) {
        RandomIt middle = first + std::distance(first, last) / 2;
        if (*middle < value) {
            first = middle + 1;
        } else {
            last = middle;
        }
    }
    return (first != end && *first == value) ? first : end;
}

int main() {
    const std::vector<std::string> fruits{"apple", "cherry", "fig", "lemon", "mango", "pear"};

    for (const std::string& wanted : {std::string("lemon"), std::string("kiwi")}) {
        auto it = findSorted(fruits.begin(), fruits.end(), wanted);
        if (it == fruits.end()) {
            std::cout << wanted << ": not found\n";
        } else {
            std::cout << wanted << ": position " << it - fruits.begin() << '\n';
        }
    }
}
