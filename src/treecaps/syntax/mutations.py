"""Mutations: programs into which a bug is put by a small change, at a place that is known."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from treecaps.errors import ProgramError
from treecaps.syntax.parse import loaded_frontend
from treecaps.syntax.program import Program
from treecaps.syntax.tree import Tree
from treecaps.syntax.variables import is_variable, others_in_scope
from treecaps.syntax.view import BLOCKS, WHOLE, Cut, View, splice

Random = np.random.Generator
Rule = Callable[[View, int, Random], tuple[Cut, ...]]
"""Returns the cuts that put a bug in at a node; none if there is no such bug."""

LANGUAGES = ("c", "cpp", "java", "javascript", "python")
"""The languages whose programs can be mutated; it is tested for these."""
FRONTEND = "tree-sitter"
"""The front end whose kinds of nodes the rules know."""

_TRIES = 8
"""How often another place is drawn where a change does not parse, or changes nothing."""
_PLACES_A_KIND = 40
"""How many places of a kind are looked at, so that a large program takes no longer."""

_OTHERS = {
    "<": "<= > >=",
    "<=": "< >= ==",
    ">": ">= < <=",
    ">=": "> <= ==",
    "==": "!= <= >=",
    "!=": "== < >",
    "===": "!==",
    "!==": "===",
    "+": "- *",
    "-": "+",
    "*": "+ /",
    "/": "* %",
    "//": "/ %",
    "%": "/",
    "&&": "||",
    "||": "&&",
    "and": "or",
    "or": "and",
    "&": "|",
    "|": "&",
    "<<": ">>",
    ">>": "<<",
    "+=": "-= =",
    "-=": "+=",
    "*=": "+=",
    "/=": "*=",
    "++": "--",
    "--": "++",
    "in": "not in",
    "not in": "in",
}
"""What may stand by mistake where an operator belongs."""
_WITH_OPERATOR = frozenset(
    (
        "binary_expression",
        "binary_operator",
        "comparison_operator",
        "boolean_operator",
        "augmented_assignment",
        "assignment_expression",
        "augmented_assignment_expression",
        "update_expression",
    )
)
_CONDITIONAL = frozenset(
    ("if_statement", "elif_clause", "while_statement", "do_statement", "conditional_expression")
)
_CONTRARY = {
    b"<": b">=",
    b">=": b"<",
    b">": b"<=",
    b"<=": b">",
    b"==": b"!=",
    b"!=": b"==",
    b"===": b"!==",
    b"!==": b"===",
}
_ATOMS = frozenset(
    ("identifier", "call", "call_expression", "method_invocation", "attribute", "subscript")
)
"""What may be negated without parentheses."""
_AND_OR = frozenset(('"&&"', '"||"', '"and"', '"or"'))
_NUMBERS = frozenset(("integer", "number", "number_literal", "decimal_integer_literal"))
_LITERALS = _NUMBERS | {"string", "string_literal", "char_literal", "true", "false", "float"}
_OPPOSITE = {b"true": b"false", b"false": b"true", b"True": b"False", b"False": b"True"}
_ARGUMENTS = frozenset(("argument_list", "arguments"))
_INDEXED = frozenset(("subscript", "subscript_expression", "array_access"))
_LISTS = BLOCKS | {
    "module",
    "program",
    "translation_unit",
    "case_statement",
    "switch_case",
    "switch_default",
    "switch_block_statement_group",
}
"""What statements stand in one after the other."""
_SIMPLE = frozenset(("expression_statement",))
_JUMPS = frozenset(("return_statement", "break_statement", "continue_statement"))
_NARROWER = {
    b"long": b"int",
    b"long long": b"int",
    b"long int": b"int",
    b"long long int": b"int",
    b"double": b"float",
    b"unsigned int": b"int",
}
_TYPES = frozenset(
    ("primitive_type", "sized_type_specifier", "integral_type", "floating_point_type")
)


@dataclass(frozen=True)
class Mutant:
    """A program with a bug.

    Args:
        tree: Its tree.
        kind: What kind of mistake it is, one of ``KINDS``.
        start: Where in its text the wrong piece of code begins. What is missing has none: then it
            is the place where it should be.
        end: Where that piece ends.
        node: The innermost node that holds the piece, or the first behind what is missing.
        expected: What stood there before; of what was moved, nothing.
    """

    tree: Tree
    kind: str
    start: int
    end: int
    node: int
    expected: bytes


def mutate(tree: Tree, rng: Random, *, wanted: str | None = None) -> Mutant | None:
    """Return a program with a bug, drawn from all that can be put in.

    First the kind of mistake is drawn, then the place. What has a bug parses as well as the
    program did, and differs from it in more than comments and layout.

    Args:
        tree: The tree of a program that is taken for right, by tree-sitter.
        rng: The random generator.
        wanted: Take this kind of mistake.

    Returns:
        The program, or ``None`` if no bug could be put in: the language is not known, or there is
        nothing to change.
    """
    if tree.language not in LANGUAGES or tree.frontend != FRONTEND:
        return None
    view = View(tree)
    names = tuple(KINDS) if wanted is None else (wanted,)
    for number in rng.permutation(len(names)).tolist():
        found = _mutate(view, names[number], rng)
        if found:
            return found
    return None


def _mutate(view: View, name: str, rng: Random) -> Mutant | None:
    tree, tries = view.tree, 0
    rule, kinds = KINDS[name]
    suited = np.array([kind in kinds for kind in tree.kinds], bool)
    places = rng.permutation(np.flatnonzero(suited[tree.kind]))
    for node in places[:_PLACES_A_KIND].tolist():
        cuts = rule(view, node, rng)
        if not cuts:
            continue
        found = _apply(tree, name, sorted(cuts))
        tries += 1
        if found or tries == _TRIES:
            return found
    return None


def _apply(tree: Tree, name: str, cuts: list[Cut]) -> Mutant | None:
    """Return the program after some cuts, if it parses and is another."""
    program = Program.from_clean_text(splice(tree.text, cuts), tree.language)
    comments = any(tree.kinds[kind].endswith("comment") for kind in np.unique(tree.kind))
    try:
        changed = loaded_frontend(FRONTEND, comments).parse(program)
    except ProgramError:
        return None
    if len(changed.errors) > len(tree.errors) or _shown(changed) == _shown(tree):
        return None
    start, before, new = cuts[0]  # of two that were exchanged, the first is where the bug is
    end = start + len(new)
    expected = tree.text[start:before].strip() if len(cuts) == 1 else b""
    return Mutant(changed, name, start, end, node_at(changed, start, end), expected)


def _shown(tree: Tree) -> list[bytes]:
    """Return the text of all leaves."""
    leaves = np.flatnonzero(tree.child_count == 0)
    spans = zip(tree.start[leaves].tolist(), tree.end[leaves].tolist(), strict=True)
    return [tree.text[start:end] for start, end in spans]


def node_at(tree: Tree, start: int, end: int) -> int:
    """Return the innermost node that holds a span; of an empty one the first leaf behind it.

    The text may end without another leaf; then it is the last.
    """
    if start < end:
        # What holds the span is one path from the root, so the last in pre-order is innermost.
        holds = (tree.start <= start) & (tree.end >= end)
        return int(np.flatnonzero(holds)[-1]) if holds.any() else 0
    leaves = np.flatnonzero((tree.child_count == 0) & (tree.end > tree.start))
    behind = leaves[tree.start[leaves] >= start]
    if len(behind):
        return int(behind[0])
    return int(leaves[-1]) if len(leaves) else 0


def _replace(view: View, node: int, new: bytes) -> tuple[Cut, ...]:
    return ((view.start[node], view.end[node], new),)


def _draw(rng: Random, values: list[bytes]) -> bytes:
    return values[int(rng.integers(len(values)))]


def _another_variable(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    if not is_variable(view, node):
        return ()
    others = others_in_scope(view, node)
    return _replace(view, node, _draw(rng, others)) if others else ()


def _another_operator(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    if view.kind(view.parent(node)) not in _WITH_OPERATOR:
        return ()
    others = _OTHERS[view.kind(node)[1:-1]].encode()
    if others in (b"<<", b">>") and view.language == "cpp":
        return ()  # these read and write
    words = [others] if others == b"not in" else others.split()
    return _replace(view, node, _draw(rng, words))


def _condition_of(view: View, node: int) -> int | None:
    """Return the condition of an ``if`` or a loop, without parentheses around it."""
    for child in view.children(node):
        if view.kind(child) in ("parenthesized_expression", "condition_clause"):
            inside = view.children(child)
            return inside[1] if len(inside) == 3 else None
    if view.language != "python" or not view.kind(node).endswith(("_statement", "_clause")):
        return None
    children = view.children(node)
    return children[1] if len(children) > 2 else None


def _negate(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    condition = _condition_of(view, node)
    if condition is None or "declaration" in view.kind(condition):
        return ()
    kind, text = view.kind(condition), view.text(condition)
    inside = view.children(condition)
    if len(inside) == 3 and view.text(inside[1]) in _CONTRARY:
        return _replace(view, inside[1], _CONTRARY[view.text(inside[1])])
    if kind in ("not_operator", "unary_expression") and text[:1] in (b"!", b"n"):
        return _replace(view, condition, view.text(inside[-1]))
    if kind not in _ATOMS:
        return ()
    return _replace(view, condition, (b"not " if view.language == "python" else b"!") + text)


def _drop_condition(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    children = view.children(node)
    if len(children) != 3 or view.kind(children[1]) not in _AND_OR:
        return ()
    return _replace(view, node, view.text(children[int(rng.choice((0, 2)))]))


def _off_by_one(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    text = view.text(node)
    if not WHOLE.fullmatch(text) or (text[:1] == b"0" and len(text) > 1):
        return ()
    above = view.parent(node)
    if text == b"1" and view.text(above).endswith((b"+1", b"-1", b"+ 1", b"- 1")):
        return _replace(view, above, view.text(view.children(above)[0]))
    number = int(text) + int(rng.choice((-1, 1)))
    return _replace(view, node, b"%d" % (number if number >= 0 else 1))


def _named(view: View, node: int) -> list[int]:
    return [child for child in view.children(node) if not view.kind(child).startswith('"')]


def _swap(view: View, one: int, other: int) -> tuple[Cut, ...]:
    return (
        (view.start[one], view.end[one], view.text(other)),
        (view.start[other], view.end[other], view.text(one)),
    )


def _swap_arguments(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    given = [child for child in _named(view, node) if view.kind(child) != "keyword_argument"]
    if len(given) < 2:
        return ()
    first = int(rng.integers(len(given) - 1))
    return _swap(view, given[first], given[first + 1])


def _another_index(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    inside = view.children(node)
    if view.kind(inside[-1]) == "subscript_argument_list":
        inside = view.children(inside[-1])
    given = [child for child in inside[1:] if not view.kind(child).startswith('"')]
    if len(given) != 1 or "slice" in view.kind(given[0]):
        return ()
    text = view.text(given[0])
    if WHOLE.fullmatch(text):
        return ()  # that is off by one
    sign = _draw(rng, [b"+", b"-"])
    if text.endswith((b"+ 1", b"- 1", b"+1", b"-1")) and view.children(given[0]):
        return _replace(view, given[0], view.text(view.children(given[0])[0]))
    return _replace(view, given[0], b"%s %s 1" % (text, sign))


def _another_literal(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    text, kind = view.text(node), view.kind(node)
    if text in _OPPOSITE:
        return _replace(view, node, _OPPOSITE[text])
    same = np.flatnonzero(view.tree.kind == view.tree.kind[node])
    others = {view.text(other) for other in same.tolist()} - {text}
    if kind in _NUMBERS:
        others |= {b"0", b"1"} - {text}
    return _replace(view, node, _draw(rng, sorted(others))) if others else ()


def _drop_statement(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    if view.kind(view.parent(node)) not in _LISTS:
        return ()
    after, before = view.sibling(node, 1), view.sibling(node, -1)
    if after is not None:
        return ((view.start[node], view.start[after], b""),)
    if before is not None and not view.kind(before).startswith('"'):
        return ((view.end[before], view.end[node], b""),)
    return ()


def _move_statement(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    after = view.sibling(node, 1)
    if view.kind(view.parent(node)) not in _LISTS or after is None:
        return ()
    if view.kind(after).startswith('"') or view.text(node) == view.text(after):
        return ()
    if b"\n" in view.text(node) + view.text(after):
        return ()  # lines of another depth would have to be indented anew
    return _swap(view, node, after)


def _narrower_type(view: View, node: int, rng: Random) -> tuple[Cut, ...]:
    new = _NARROWER.get(b" ".join(view.text(node).split()))
    return _replace(view, node, new) if new else ()


KINDS: dict[str, tuple[Rule, frozenset[str]]] = {
    "variable": (_another_variable, frozenset(("identifier",))),
    "operator": (_another_operator, frozenset(f'"{sign}"' for sign in _OTHERS)),
    "negated condition": (_negate, _CONDITIONAL),
    "missing condition": (_drop_condition, frozenset(("boolean_operator", "binary_expression"))),
    "off by one": (_off_by_one, _NUMBERS),
    "swapped arguments": (_swap_arguments, _ARGUMENTS),
    "index": (_another_index, _INDEXED),
    "literal": (_another_literal, _LITERALS),
    "missing statement": (_drop_statement, _SIMPLE),
    "moved statement": (_move_statement, _SIMPLE),
    "missing jump": (_drop_statement, _JUMPS),
    "type": (_narrower_type, _TYPES),
}
"""The kinds of mistakes: how each is made, at which kinds of nodes."""
