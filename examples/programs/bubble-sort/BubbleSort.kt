package sorting

private fun <T> MutableList<T>.swap(i: Int, j: Int) {
    this[i] = this[j].also { this[j] = this[i] }
}

/** Bubbles the largest values to the back, one pass at a time. */
fun <T : Comparable<T>> bubbleSort(list: MutableList<T>) {
    for (end in list.lastIndex downTo 1) {
        var swapped = false
        for (i in 0 until end) {
            if (list[i] > list[i + 1]) {
                list.swap(i, i + 1)
                swapped = true
            }
        }
        if (!swapped) return
    }
}

fun main() {
    val laps = mutableListOf(63.2, 59.8, 61.4, 60.0, 58.7)
    bubbleSort(laps)
    println(laps.joinToString(" < "))
}
