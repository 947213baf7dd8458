# frozen_string_literal: true

def bubble_sort(array)
  result = array.dup
  remaining = result.size - 1

  loop do
    swapped = false

    remaining.times do |i|
      next if result[i] <= result[i + 1]

      result[i], result[i + 1] = result[i + 1], result[i]
      swapped = true
    end

    # The tail is settled, so the next pass can be shorter.
    remaining -= 1
    break unless swapped
  end

  result
end

ages = [34, 12, 57, 8, 41, 29]
puts "before: #{ages.inspect}"
puts "after:  #{bubble_sort(ages).inspect}"
