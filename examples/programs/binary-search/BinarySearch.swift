// Works on any sorted collection with constant-time indexing.
extension RandomAccessCollection where Element: Comparable {
    func binarySearch(for key: Element) -> Index? {
        var lower = startIndex
        var upper = endIndex

        while lower < upper {
            let half = distance(from: lower, to: upper) / 2
            let middle = index(lower, offsetBy: half)

            if self[middle] == key {
                return middle
            } else if self[middle] < key {
                lower = index(after: middle)
            } else {
                upper = middle
            }
        }
        return nil
    }
}

let heights = [142, 150, 158, 163, 171, 180, 196]

if let position = heights.binarySearch(for: 163) {
    print("163 cm found at \(position)")
}
print(heights.binarySearch(for: 175) == nil ? "175 cm not found" : "175 cm found")
