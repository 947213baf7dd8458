func bubbleSort<T>(_ array: inout [T], by areInIncreasingOrder: (T, T) -> Bool) {
    guard array.count > 1 else { return }

    var isSorted = false
    var passes = 0

    repeat {
        isSorted = true
        passes += 1
        for index in 0..<(array.count - passes) {
            if areInIncreasingOrder(array[index + 1], array[index]) {
                array.swapAt(index, index + 1)
                isSorted = false
            }
        }
    } while !isSorted
}

var grades = [71, 93, 65, 88, 79]
bubbleSort(&grades, by: <)
print("Lowest to highest:", grades)

// The same routine sorts downwards with another comparison.
bubbleSort(&grades) { $0 > $1 }
print("Highest to lowest:", grades)
