import kotlin.math.abs

// The compiler turns this tail call into a loop.
tailrec fun gcd(a: Long, b: Long): Long =
    if (b == 0L) abs(a) else gcd(b, a % b)

infix fun Long.isCoprimeTo(other: Long): Boolean = gcd(this, other) == 1L

fun main() {
    val pairs = listOf(
        252L to 105L,
        35L to 64L,
        -18L to 24L
    )

    pairs.forEach { (a, b) ->
        val suffix = if (a isCoprimeTo b) " (coprime)" else ""
        println("gcd($a, $b) = ${gcd(a, b)}$suffix")
    }
}
