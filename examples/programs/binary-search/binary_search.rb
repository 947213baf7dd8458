# Searches any sorted collection that answers to #length and #[].
class BinarySearcher
  def initialize(sorted)
    @sorted = sorted
  end

  def index(wanted)
    left = 0
    right = @sorted.length - 1

    until left > right
      middle = (left + right) / 2

      case wanted <=> @sorted[middle]
      when 0 then return middle
      when 1 then left = middle + 1
      else right = middle - 1
      end
    end

    nil
  end

  def include?(wanted)
    !index(wanted).nil?
  end
end

words = BinarySearcher.new(%w[ant bee cat dog elk fox gnu])
puts words.index('dog')
puts words.include?('emu')
