"""Rules for loops and comprehensions."""

from collections.abc import Iterable

from treecaps.syntax.dataflow.blocks import Jumps
from treecaps.syntax.dataflow.walk import Steps, Walk, rule


@rule("while_statement")
def _visit_while(walk: Walk, node: int) -> Steps:
    condition, *others = walk.named(node)
    yield _loop(walk, (), condition, others[:1], otherwise=others[1:])


@rule("do_statement")
def _visit_do(walk: Walk, node: int) -> Steps:
    parts = walk.named(node)
    again = walk.here = walk.block(walk.here)
    after, deciding = walk.block(), walk.block()
    walk.jumps.append(Jumps(after, deciding, walk.label))
    walk.label = None
    yield walk.visit_all(parts[:1])
    walk.jumps.pop()
    walk.enter(deciding)
    yield walk.visit_all(parts[1:])
    walk.after[walk.here].append(again)
    walk.enter(after)


@rule("for_statement")
def _visit_for(walk: Walk, node: int) -> Steps:
    if walk.tree.language == "python":
        target, *others = walk.named(node)
        yield _each(walk, [target], others[0] if others else None, others[1:2], others[2:])
        return
    parts: list[list[int]] = [[], [], []]
    place = 0
    head, body = walk.split(node, '")"')
    for child in head:
        kind = walk.kinds[child]
        if kind in ("local_variable_declaration", "declaration"):
            parts[0].append(child)
            place = 1
        elif kind == '";"':
            place = min(place + 1, 2)
        elif not kind.startswith('"'):
            parts[place].append(child)
    yield walk.visit_all(parts[0])
    condition = parts[1][0] if parts[1] else None
    yield _loop(walk, (), condition, body, parts[2])


@rule("enhanced_for_statement", "for_range_loop")
def _visit_for_each(walk: Walk, node: int) -> Steps:
    """Visit ``for (type x : values) body``."""
    head, rest = walk.split(node, '":"')
    values, body = [], rest
    for place, child in enumerate(rest):
        if walk.kinds[child] == '")"':
            values, body = rest[:place], rest[place + 1 :]
            break
    yield _each(walk, head, values[0] if values else None, body)


@rule("for_in_clause")
def _visit_clause(walk: Walk, node: int) -> Steps:
    """Visit ``for x in values`` inside of a comprehension."""
    targets, values = walk.split(node, '"in"')
    yield walk.assign(targets, values)


@rule("list_comprehension", "set_comprehension", "dictionary_comprehension", "generator_expression")
def _visit_comprehension(walk: Walk, node: int) -> Steps:
    value, *clauses = walk.named(node)
    before = walk.here
    again = walk.here = walk.block(before)
    yield walk.visit_all([*clauses, value])
    walk.after[walk.here].append(again)
    walk.here = walk.block(before, walk.here)


def _loop(
    walk: Walk,
    head: Iterable[Steps],
    condition: int | None,
    body: list[int],
    update: Iterable[int] = (),
    otherwise: Iterable[int] = (),
) -> Steps:
    """Visit a loop: its head each time, then its body while a condition holds.

    ``otherwise`` is what Python does after a loop that no ``break`` has left.
    """
    outer, label, walk.label = walk.guard, walk.label, None
    again = walk.here = walk.block(walk.here)
    yield from head
    begin = len(walk.uses)
    if condition is not None:
        yield walk.visit(condition)
    over, updating, after = walk.block(walk.here), walk.block(), walk.block()
    walk.here = walk.block(walk.here)
    if condition is not None:
        walk.guard_by(condition, walk.uses[begin:])
    walk.jumps.append(Jumps(after, updating, label))
    yield walk.visit_all(body)
    walk.jumps.pop()
    walk.enter(updating)
    yield walk.visit_all(update)
    walk.after[walk.here].append(again)
    walk.here, walk.guard = over, outer
    yield walk.visit_all(otherwise)
    walk.enter(after)


def _each(
    walk: Walk,
    targets: list[int],
    values: int | None,
    body: list[int],
    otherwise: Iterable[int] = (),
) -> Steps:
    """Visit values once, then a body for each of them."""
    begin = len(walk.uses)
    if values is not None:
        yield walk.visit(values)
    sources = walk.uses[begin:]

    def take() -> Steps:
        middle = len(walk.uses)
        yield walk.write(targets)
        for use in walk.uses[middle:]:
            walk.computed += [(use.node, source.node) for source in sources]

    yield _loop(walk, [take()], None, body, otherwise=otherwise)
