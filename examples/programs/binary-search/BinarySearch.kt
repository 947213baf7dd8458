/** Index of [key] in this ascending list, or null when there is none. */
fun <T : Comparable<T>> List<T>.searchSorted(key: T): Int? {
    var range = indices

    while (!range.isEmpty()) {
        val mid = range.first + (range.last - range.first) / 2
        val cmp = this[mid].compareTo(key)

        range = when {
            cmp < 0 -> (mid + 1)..range.last
            cmp > 0 -> range.first until mid
            else -> return mid
        }
    }
    return null
}

fun main() {
    val cities = listOf("Athens", "Berlin", "Cairo", "Lima", "Oslo", "Quito")

    for (city in listOf("Lima", "Madrid")) {
        val index = cities.searchSorted(city)
        println(if (index != null) "$city is number $index" else "$city is unknown")
    }
}
