"""Blocks of uses of variables, and what may have happened before each use."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from treecaps.syntax.tree import Tree


class Use(NamedTuple):
    """Where a variable stands: a leaf, its name with its function, and whether it is written."""

    node: int
    name: tuple[int, bytes]
    write: bool


class Guard(NamedTuple):
    """A condition around what is visited: its node, the variables it names, what it is inside."""

    node: int
    names: frozenset[tuple[int, bytes]]
    holds: bool
    outer: "Guard | None"


class Jumps(NamedTuple):
    """Where ``break`` leads, and ``continue`` if it is a loop; its label, if it has one.

    What has a label and is neither a loop nor a switch is left by that label alone.
    """

    after: int
    again: int | None
    label: bytes | None = None
    by_label: bool = False


_State = dict[tuple[int, bytes], tuple[frozenset[int], frozenset[int]]]
"""Of each variable the last uses and the last writes."""


class Blocks:
    """Blocks of uses, one after the other, and which block may follow which.

    Args:
        tree: Where the variables stand.
    """

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.blocks: list[list[Use]] = [[]]
        self.after: list[list[int]] = [[]]
        self.here = 0
        self.entries = [0]
        self.uses: list[Use] = []
        self.guard: Guard | None = None
        self.function = 0
        self.computed: list[tuple[int, int]] = []
        self.guarded: dict[bool, list[tuple[int, int]]] = {True: [], False: []}

    def edges(self) -> dict[str, Iterable[tuple[int, int]]]:
        """Return the edges of each kind that variables have."""
        last_use, last_write = self._follow()
        before: dict[tuple[int, bytes], int] = {}
        lexical = []
        for use in sorted(self.uses):
            if use.name in before:
                lexical.append((use.node, before[use.name]))
            before[use.name] = use.node
        return {
            "LastUse": last_use,
            "LastWrite": last_write,
            "ComputedFrom": self.computed,
            "LastLexicalUse": lexical,
            "GuardedBy": self.guarded[True],
            "GuardedByNegation": self.guarded[False],
        }

    def _follow(self) -> tuple[list[tuple[int, int]], list[tuple[int, int]]]:
        """Bring what each block leaves to those that may follow, until nothing changes."""
        states: dict[int, _State] = {block: {} for block in self.entries}
        waiting = deque(self.entries)
        queued = set(waiting)
        while waiting:
            block = waiting.popleft()
            queued.discard(block)
            left = dict(states[block])
            for use in self.blocks[block]:
                _pass(left, use)
            for other in self.after[block]:
                new = other not in states
                if (_merge(states.setdefault(other, {}), left) or new) and other not in queued:
                    waiting.append(other)
                    queued.add(other)
        uses, writes = [], []
        for block, state in states.items():  # what follows a jump is never reached
            for use in self.blocks[block]:
                used, written = state.get(use.name, ((), ()))
                uses += [(use.node, other) for other in used]
                writes += [(use.node, other) for other in written]
                _pass(state, use)
        return uses, writes

    def block(self, *before: int) -> int:
        """Begin a block that may follow others."""
        self.blocks.append([])
        self.after.append([])
        for other in before:
            self.after[other].append(len(self.blocks) - 1)
        return len(self.blocks) - 1

    def enter(self, block: int) -> None:
        """Go on in a block that has begun already."""
        self.after[self.here].append(block)
        self.here = block

    def leave(self, target: int | None) -> None:
        """Jump; nothing follows here."""
        if target is not None:
            self.after[self.here].append(target)
        self.here = self.block()

    def text(self, node: int) -> bytes:
        """Return the source text of a node."""
        return self.tree.text[self.tree.start[node] : self.tree.end[node]]

    def meet(self, node: int, *, read: bool = True, write: bool = False) -> None:
        """Note a variable."""
        use = Use(node, (self.function, self.text(node)), write)
        self.uses.append(use)
        self.blocks[self.here].append(use)
        guard = self.guard if read else None
        while guard:
            if use.name in guard.names:
                self.guarded[guard.holds].append((node, guard.node))
            guard = guard.outer

    def guard_by(self, condition: int, uses: Iterable[Use], *, holds: bool = True) -> None:
        """Go into what is computed only if a condition holds, or does not."""
        names = frozenset(use.name for use in uses)
        self.guard = Guard(condition, names, holds, self.guard)


def _pass(state: _State, use: Use) -> None:
    """Bring a state past a use."""
    here = frozenset((use.node,))
    _, writes = state.get(use.name, (here, frozenset()))
    state[use.name] = here, here if use.write else writes


def _merge(state: _State, other: _State) -> bool:
    """Add what another state has; tell whether that was anything."""
    changed = False
    for name, (uses, writes) in other.items():
        old_uses, old_writes = state.get(name, (frozenset(), frozenset()))
        if not (uses <= old_uses and writes <= old_writes):
            state[name] = old_uses | uses, old_writes | writes
            changed = True
    return changed
