"""Programs written in another way that means the same."""

from collections.abc import Callable
from zlib import crc32

import numpy as np

from treecaps.syntax.parse import loaded_frontend
from treecaps.syntax.program import Program
from treecaps.syntax.view import BLOCKS, WHOLE, Cut, View, splice

Rule = Callable[[View, int], tuple[Cut, ...]]
"""Returns the cuts that write a node in another way; none if there is no such way."""

_MIRRORED = {
    b"<": b">",
    b">": b"<",
    b"<=": b">=",
    b">=": b"<=",
    b"==": b"==",
    b"!=": b"!=",
    b"===": b"===",
    b"!==": b"!==",
}
_OPERATORS = (b"+", b"-", b"*")
_STEPS = (b"++", b"--")

_ONE_MORE = frozenset(("c", "go", "java", "c_sharp"))
"""Where ``a++`` is ``a += 1`` whatever a is; elsewhere it may be an iterator, or text."""
_SAME_SUM = frozenset(("c", "go", "javascript", "typescript", "tsx", "php"))
"""Where ``a += b`` is ``a = a + b`` whatever they are; elsewhere a may be a list others have."""
_SHORTER_SUM = _SAME_SUM | {"java", "c_sharp"}
"""Where the latter is the former. The other way round, Java and C# make narrow numbers wide."""

_IFS = (
    ('"if"', "condition", "block", '"else"', "block"),
    ('"if"', '"("', "condition", '")"', "block", '"else"', "block"),
    ('"if"', "condition", '":"', "block", '"else"', '":"', "block"),
)


def rewrite(program: Program, seed: int) -> Program:
    """Return a program that does the same and is written in another way.

    Comparisons are turned round, steps and sums spelled out or shortened, returned values put into
    parentheses or out of them, and the branches of an ``if`` exchanged; chance decides where. A
    program that has none of these, or that the parser does not wholly understand, stays as it is.

    Args:
        program: Any program.
        seed: Random seed: the same gives the same.

    Raises:
        ProgramError: tree-sitter refuses the program.
    """
    # Without the text, chance would treat the beginnings of all programs alike.
    rng = np.random.default_rng([seed, crc32(program.text)])
    for rules in (_EXCHANGES, _CHANGES):  # what is exchanged may be changed inside
        tree = loaded_frontend("tree-sitter", comments=True).parse(program)
        if len(tree.errors):
            break
        program = program.replace(text=splice(tree.text, _cuts(View(tree), rules, rng)))
    return program


def _cuts(view: View, rules: dict[str, Rule], rng: np.random.Generator) -> list[Cut]:
    """Return the cuts of half of the nodes that can be written in another way."""
    wanted = np.array([kind in rules for kind in view.tree.kinds])
    chosen: list[Cut] = []
    done = 0
    for node in np.flatnonzero(wanted[view.tree.kind]).tolist():
        if view.start[node] < done or rng.random() < 0.5:
            continue
        cuts = rules[view.kind(node)](view, node)
        if cuts and rules is _EXCHANGES:  # what is inside of it is there as it was
            done = cuts[-1][1]
        chosen += cuts
    return sorted(chosen, key=lambda cut: cut[:2])


def _turn_comparison(view: View, node: int) -> tuple[Cut, ...]:
    """Write ``a < b`` as ``b > a``: without calls, it is all one which is looked at first."""
    children = view.children(node)
    # Among arguments, <a, b> may be taken for types.
    if len(children) != 3 or "argument" in view.kind(view.parent(node)):
        return ()
    left, sign, right = children
    mirrored = _MIRRORED.get(view.text(sign))
    if mirrored is None or not (view.is_operand(left) and view.is_operand(right)):
        return ()
    new = (view.text(right), mirrored, view.text(left))
    return tuple(
        (view.start[child], view.end[child], text)
        for child, text in zip(children, new, strict=True)
    )


def _spell_step(view: View, node: int) -> tuple[Cut, ...]:
    """Write ``a++`` or ``++a`` as ``a += 1`` where their value is not asked for."""
    # A name comes before signs in this order.
    children = sorted(view.children(node), key=lambda child: not view.is_named(child))
    if len(children) != 2 or not (view.is_named(children[0]) and _is_statement(view, node)):
        return ()
    text, sign = map(view.text, children)
    if sign not in _STEPS:
        return ()
    if view.language not in _ONE_MORE and text not in view.counters:
        return ()
    return ((view.start[node], view.end[node], b"%s %s= 1" % (text, sign[:1])),)


def _is_statement(view: View, node: int) -> bool:
    kind, around = view.kind(view.parent(node)), []
    for away in (-1, 1):
        sibling = view.sibling(node, away)
        around.append(None if sibling is None else view.kind(sibling))
    return (
        view.kind(node) in ("inc_statement", "dec_statement")
        or (kind == "for_statement" and around == ['";"', '")"'])
        or (kind == "expression_statement" and around == [None, '";"'])
    )


def _spell_sum(view: View, node: int) -> tuple[Cut, ...]:
    """Write ``a += b`` as ``a = a + b``, or the other way round."""
    children = view.children(node)
    if len(children) != 3 or "assign" in view.kind(view.parent(node)):
        return ()
    target, sign, value = view.only(children[0]), children[1], view.only(children[2])
    if not view.is_named(target):
        return ()
    name, operator = view.text(target), view.text(sign)
    start, end = view.start[sign], view.end[sign]
    if operator == b"=":
        known, inside = _SHORTER_SUM, view.children(value)
        if len(inside) != 3 or view.text(inside[0]) != name:
            return ()
        operator, more = view.text(inside[1]), inside[2]
        shorter = (view.start[inside[0]], view.start[more], b"")
        cuts: tuple[Cut, ...] = ((start, end, operator + b"="), shorter)
    else:
        known, operator, more = _SAME_SUM, operator[:-1], value
        enclosed = () if view.is_operand(more) else _enclose(view, more)
        cuts = ((start, end, b"= %s %s" % (name, operator)), *enclosed)
    if operator not in _OPERATORS or not view.is_pure(more):
        return ()
    is_count = name in view.counters and WHOLE.fullmatch(view.text(more))
    return cuts if view.language in known or is_count else ()


def _enclose(view: View, node: int) -> tuple[Cut, ...]:
    start, end = view.start[node], view.end[node]
    return ((start, start, b"("), (end, end, b")"))


def _enclose_returned(view: View, node: int) -> tuple[Cut, ...]:
    """Write ``return a`` as ``return (a)``, or the other way round."""
    children = [child for child in view.children(node) if view.kind(child) != '";"']
    if len(children) != 2 or b"\n" in view.text(node):
        return ()
    value = view.only(children[1])
    inside = view.children(value) if view.kind(value) == "parenthesized_expression" else [value]
    bare = inside[len(inside) // 2]
    if len(inside) not in (1, 3) or not (view.is_pure(bare) or view.kind(bare) in _COMPARISONS):
        return ()
    if bare == value:
        return _enclose(view, value) if view.kind(value) != "expression_list" else ()
    start, end = view.start[value], view.end[value]
    space = b" " if view.tree.text[start - 1 : start].isalnum() else b""
    return ((start, start + 1, space), (end - 1, end, b""))


def _exchange_branches(view: View, node: int) -> tuple[Cut, ...]:
    """Write ``if (a) {b} else {c}`` as ``if (!(a)) {c} else {b}``."""
    children = [
        inner
        for child in view.children(node)
        for inner in (view.children(child) if view.kind(child) == "else_clause" else (child,))
    ]
    blocks = [child for child in children if view.kind(child) in BLOCKS]
    place = 2 if len(children) > 2 and view.kind(children[1]) == '"("' else 1
    kinds = (view.kind(child) for child in children)
    shape = ["block" if kind in BLOCKS else kind for kind in kinds]
    shape[place : place + 1] = ["condition"]
    if tuple(shape) not in _IFS or len(blocks) != 2:
        return ()
    condition = children[place]
    if view.kind(condition) in ("parenthesized_expression", "condition_clause"):
        inside = view.children(condition)
        if len(inside) != 3:
            return ()
        condition = inside[1]
    # What is declared there is not known in the other branch.
    if "declaration" in view.kind(condition) or view.kind(condition).startswith("let_"):
        return ()
    one, other = blocks
    python = view.language == "python"
    margin = _margin(view, one)
    if python and (margin is None or margin != _margin(view, other)):
        return ()
    negated = (b"not (%s)" if python else b"!(%s)") % view.text(condition)
    return (
        (view.start[condition], view.end[condition], negated),
        (view.start[one], view.end[one], view.text(other)),
        (view.start[other], view.end[other], view.text(one)),
    )


def _margin(view: View, node: int) -> bytes | None:
    """Return what a node's first line begins with, if that is nothing but space."""
    start = view.start[node]
    margin = view.tree.text[view.tree.text.rfind(b"\n", 0, start) + 1 : start]
    return None if margin.strip() else margin


_COMPARISONS = (
    "binary_expression",
    "comparison_operator",
    "binary",
    "comparison_expression",
    "equality_expression",
)
_STEP_KINDS = (
    "update_expression",
    "postfix_unary_expression",
    "prefix_unary_expression",
    "inc_statement",
    "dec_statement",
)
_SUM_KINDS = (
    "assignment",
    "assignment_expression",
    "assignment_statement",
    "augmented_assignment",
    "augmented_assignment_expression",
    "compound_assignment_expr",
    "operator_assignment",
)
_EXCHANGES: dict[str, Rule] = dict.fromkeys(("if_statement", "if_expression"), _exchange_branches)
_CHANGES: dict[str, Rule] = {
    **dict.fromkeys(_COMPARISONS, _turn_comparison),
    **dict.fromkeys(_STEP_KINDS, _spell_step),
    **dict.fromkeys(_SUM_KINDS, _spell_sum),
    **dict.fromkeys(("return_statement", "return_expression"), _enclose_returned),
}
"""What is done with nodes of which kind."""
