use std::cmp::Ordering;

/// Looks up `target` in an ascending slice by splitting it in two.
fn binary_search<T: Ord>(slice: &[T], target: &T) -> Option<usize> {
    let mut base = 0;
    let mut rest = slice;

    while !rest.is_empty() {
        let mid = rest.len() / 2;
        match rest[mid].cmp(target) {
            Ordering::Equal => return Some(base + mid),
            Ordering::Greater => rest = &rest[..mid],
            Ordering::Less => {
                rest = &rest[mid + 1..];
                base += mid + 1;
            }
        }
    }
    None
}

fn main() {
    let letters = ['b', 'e', 'h', 'k', 'n', 'q', 't', 'w'];
    for wanted in ['k', 'z', 'b'] {
        match binary_search(&letters, &wanted) {
            Some(i) => println!("{wanted} is at {i}"),
            None => println!("{wanted} is not there"),
        }
    }
}
