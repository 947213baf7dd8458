"""Rules for labels, and for what jumps: break, continue, return and exceptions."""

from treecaps.syntax.dataflow.blocks import Jumps
from treecaps.syntax.dataflow.walk import Steps, Walk, rule


@rule("labeled_statement")
def _visit_labelled(walk: Walk, node: int) -> Steps:
    """Visit ``name: statement``, which ``break name`` leaves."""
    name, *others = walk.named(node)
    label = walk.text(name)
    after = walk.block()
    walk.jumps.append(Jumps(after, None, label, by_label=True))
    walk.label = label
    yield walk.visit_all(others)
    walk.label = None
    walk.jumps.pop()
    walk.here = walk.block(walk.here, after)


@rule("break_statement")
def _visit_break(walk: Walk, node: int) -> Steps:
    found = _find_jumps(walk, node)
    walk.leave(found[-1].after if found else None)
    yield from ()


@rule("continue_statement")
def _visit_continue(walk: Walk, node: int) -> Steps:
    loops = [jumps.again for jumps in _find_jumps(walk, node) if jumps.again is not None]
    walk.leave(loops[-1] if loops else None)
    yield from ()


@rule("return_statement", "raise_statement", "throw_statement")
def _visit_return(walk: Walk, node: int) -> Steps:
    yield walk.visit_all(walk.children[node])
    walk.leave(None)


def _find_jumps(walk: Walk, node: int) -> list[Jumps]:
    """Return what a ``break`` or ``continue`` may be about, the innermost last."""
    labels = walk.named(node)
    if not labels:
        return [jumps for jumps in walk.jumps if not jumps.by_label]
    label = walk.text(labels[0])
    return [jumps for jumps in walk.jumps if jumps.label == label]
