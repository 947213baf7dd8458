#include <cstddef>
#include <functional>
#include <iostream>
#include <utility>
#include <vector>

template <typename T, typename Compare = std::less<T>>
void bubbleSort(std::vector<T>& items, Compare before = Compare()) {
    std::size_t unsorted = items.size();

    // Everything from the last exchange onwards is already in its place.
    while (unsorted > 1) {
        std::size_t lastSwap = 0;
        for (std::size_t j = 1; j < unsorted; ++j) {
            if (before(items[j], items[j - 1])) {
                std::swap(items[j], items[j - 1]);
                lastSwap = j;
            }
        }
        unsorted = lastSwap;
    }
}

int main() {
    std::vector<double> weights{61.5, 48.2, 90.1, 73.0, 55.9};

    bubbleSort(weights);
    for (double w : weights) std::cout << w << ' ';
    std::cout << '\n';

    bubbleSort(weights, std::greater<double>());
    std::cout << "heaviest: " << weights.front() << '\n';
}
