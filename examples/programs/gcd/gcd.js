const gcd = (a, b) => (b === 0n ? a : gcd(b, a % b));

// BigInt keeps large numbers exact.
function lcm(a, b) {
  if (a === 0n || b === 0n) {
    return 0n;
  }
  return (a / gcd(a, b)) * b;
}

function report(a, b) {
  console.log(`gcd(${a}, ${b}) = ${gcd(a, b)}`);
  console.log(`lcm(${a}, ${b}) = ${lcm(a, b)}`);
}

report(144n, 60n);
report(123456789012345678n, 9876543210n);
