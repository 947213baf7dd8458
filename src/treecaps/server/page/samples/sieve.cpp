#include <iostream>
#include <vector>

std::vector<int> primes_up_to(int limit) {
    std::vector<bool> prime(limit + 1, true);
    prime[0] = prime[1] = false;
    for (int i = 2; i * i <= limit; ++i) {
        if (prime[i]) {
            for (int j = i * i; j <= limit; j += i) {
                prime[j] = false;
            }
        }
    }
    std::vector<int> found;
    for (int i = 2; i <= limit; ++i) {
        if (prime[i]) found.push_back(i);
    }
    return found;
}

int main() {
    for (int p : primes_up_to(50)) std::cout << p << ' ';
}
