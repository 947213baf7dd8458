# A stack kept as a chain of nodes.
class Stack
  class EmptyError < StandardError; end

  Node = Struct.new(:value, :rest)

  attr_reader :size

  def initialize
    @head = nil
    @size = 0
  end

  def push(value)
    @head = Node.new(value, @head)
    @size += 1
    self
  end
  alias << push

  def pop
    value = peek
    @head = @head.rest
    @size -= 1
    value
  end

  def peek
    raise EmptyError, 'nothing on the stack' if empty?

    @head.value
  end

  def empty?
    @head.nil?
  end
end

stack = Stack.new
stack << :red << :amber << :green
puts stack.peek
puts stack.pop until stack.empty?
puts "size: #{stack.size}"
