module Divisors
  module_function

  def gcd(a, b)
    return a.abs if b.zero?

    gcd(b, a.remainder(b))
  end

  # Works out the divisor of a whole list.
  def gcd_of(*numbers)
    numbers.reduce(0) { |acc, n| gcd(acc, n) }
  end
end

[[54, 24], [13, 7], [-20, 15]].each do |a, b|
  puts "gcd(#{a}, #{b}) = #{Divisors.gcd(a, b)}"
end

puts Divisors.gcd_of(48, 72, 108)
