/// Greatest common divisor for every built-in integer type.
func gcd<Number: BinaryInteger>(_ first: Number, _ second: Number) -> Number {
    var a = first
    var b = second
    while b != 0 {
        (a, b) = (b, a % b)
    }
    return a < 0 ? 0 - a : a
}

struct Fraction {
    let top: Int
    let bottom: Int

    var reduced: Fraction {
        let divisor = gcd(top, bottom)
        return Fraction(top: top / divisor, bottom: bottom / divisor)
    }
}

print("gcd(91, 39) =", gcd(91, 39))

// 1920 x 1080 comes out as 16:9.
let ratio = Fraction(top: 1920, bottom: 1080).reduced
print("\(ratio.top):\(ratio.bottom)")
