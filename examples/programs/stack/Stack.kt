class Stack<T> : Iterable<T> {
    private val elements = ArrayList<T>()

    val size: Int
        get() = elements.size

    fun push(element: T) {
        elements.add(element)
    }

    fun peek(): T? = elements.lastOrNull()

    fun pop(): T? = if (elements.isEmpty()) null else elements.removeAt(elements.lastIndex)

    // Walks from the top down.
    override fun iterator(): Iterator<T> = elements.asReversed().iterator()
}

fun main() {
    val plates = Stack<String>()
    listOf("blue", "white", "green").forEach(plates::push)

    println("On top: ${plates.peek()}")
    println("Taken: ${plates.pop()}")
    println("Left (${plates.size}): ${plates.joinToString()}")
}
