<?php

class Stack implements Countable
{
    private array $data = [];

    public function __construct(private readonly int $limit = 100)
    {
    }

    public function push(mixed $item): void
    {
        if ($this->count() >= $this->limit) {
            throw new OverflowException('Stack is full');
        }
        $this->data[] = $item;
    }

    public function pop(): mixed
    {
        if ($this->data === []) {
            throw new UnderflowException('Stack is empty');
        }
        return array_pop($this->data);
    }

    public function peek(): mixed
    {
        return $this->data === [] ? null : end($this->data);
    }

    public function count(): int
    {
        return count($this->data);
    }
}

// Undo the last of three edits.
$edits = new Stack(10);
foreach (['insert', 'indent', 'delete'] as $edit) {
    $edits->push($edit);
}
echo 'Undo: ', $edits->pop(), PHP_EOL;
echo 'Last is now: ', $edits->peek(), ' of ', count($edits), PHP_EOL;
