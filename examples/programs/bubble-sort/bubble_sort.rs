/// One sweep over the slice; tells whether anything moved.
fn sweep<T: PartialOrd>(items: &mut [T]) -> bool {
    let mut moved = false;
    for i in 1..items.len() {
        if items[i - 1] > items[i] {
            items.swap(i - 1, i);
            moved = true;
        }
    }
    moved
}

pub fn bubble_sort<T: PartialOrd>(items: &mut [T]) {
    let mut end = items.len();
    while sweep(&mut items[..end]) {
        // The largest item of this sweep now sits at `end - 1`.
        end -= 1;
    }
}

fn main() {
    let mut readings = vec![3.7, -1.2, 9.4, 0.5, 2.2];
    bubble_sort(&mut readings);
    println!("{readings:?}");

    let mut words = ["delta", "alpha", "charlie", "bravo"];
    bubble_sort(&mut words);
    println!("{}", words.join(" "));
}
