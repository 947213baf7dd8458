"""Functions that do no work of their own: constructors and accessors."""

from functools import cache

import numpy as np
from numpy.typing import NDArray

from treecaps.syntax.common import WORK, common_kind, to_common
from treecaps.syntax.functions import Function

_CONSTRUCTORS = frozenset(
    (
        # tree-sitter
        "constructor_declaration",
        "compact_constructor_declaration",
        "destructor_declaration",
        "secondary_constructor",
        "init_declaration",
        "deinit_declaration",
        # srcML
        "constructor",
        "destructor",
    )
)
_NAMES = {
    "javascript": ("constructor",),
    "php": ("__construct", "__destruct"),
    "python": ("__init__", "__new__", "__del__"),
    "ruby": ("initialize",),
    "rust": ("new",),
    "tsx": ("constructor",),
    "typescript": ("constructor",),
}
_LARGEST = 80
"""No accessor has more nodes than that."""


def is_trivial(function: Function) -> bool:
    """Whether a function only makes an object, or only gets or sets a value."""
    return is_constructor(function) or is_accessor(function)


def is_constructor(function: Function) -> bool:
    """Whether a function makes objects, or destroys them."""
    tree, name = function.tree, function.name
    if tree.kinds[tree.kind[0]] in _CONSTRUCTORS or name in _NAMES.get(tree.language, ()):
        return True
    if tree.language != "cpp" or tree.frontend != "tree-sitter":
        return False
    *scope, last = name.split("::")
    if last.startswith("~") or (scope and scope[-1] == last):
        return True
    # Only constructors have no type, and conversions, which are accessors mostly.
    kinds = [tree.kinds[kind] for kind in tree.kind[tree.children(0)].tolist()]
    return bool(kinds) and kinds[0] == "function_declarator" and last != "main"


def is_accessor(function: Function) -> bool:
    """Whether a function does no more than to return a value, or to assign one."""
    if len(function.tree) > _LARGEST:
        return False
    kind = to_common(function.tree).kind
    steps = np.isin(kind, [common_kind(name) for name in ("assign", "return")])
    return not np.isin(kind[1:], _work()).any() and int(steps.sum()) <= 1


@cache
def _work() -> NDArray[np.uint64]:
    return np.array([common_kind(name) for name in WORK], np.uint64)
