use std::env;

fn gcd(a: u64, b: u64) -> u64 {
    match (a, b) {
        (n, 0) => n,
        (n, m) => gcd(m, n % m),
    }
}

fn main() {
    // Skip the program name and anything that is not a number.
    let mut numbers: Vec<u64> = env::args()
        .skip(1)
        .filter_map(|arg| arg.parse().ok())
        .collect();

    if numbers.is_empty() {
        numbers = vec![330, 75, 450];
    }

    let divisor = numbers.iter().copied().fold(0, gcd);
    println!("gcd of {numbers:?} = {divisor}");
}
