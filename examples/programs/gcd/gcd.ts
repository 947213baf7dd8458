interface GcdResult {
  gcd: number;
  x: number;
  y: number;
}

// Extended form: also finds x and y with a * x + b * y = gcd.
function extendedGcd(a: number, b: number): GcdResult {
  if (b === 0) {
    return { gcd: a, x: 1, y: 0 };
  }
  const { gcd, x, y } = extendedGcd(b, a % b);
  return { gcd, x: y, y: x - Math.floor(a / b) * y };
}

function gcd(a: number, b: number): number {
  if (!Number.isInteger(a) || !Number.isInteger(b)) {
    throw new RangeError("gcd needs whole numbers");
  }
  return extendedGcd(Math.abs(a), Math.abs(b)).gcd;
}

console.log(gcd(240, 46));

const bezout = extendedGcd(240, 46);
console.log(`240 * ${bezout.x} + 46 * ${bezout.y} = ${bezout.gcd}`);
