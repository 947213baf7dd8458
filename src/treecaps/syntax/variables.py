"""Which names of a program are variables, and which others could stand there.

This goes by the kinds that tree-sitter gives the nodes of Python, Java, C, C++ and JavaScript.
"""

from functools import lru_cache

from treecaps.syntax.view import BLOCKS, View

_ASSIGNED_FIRST = frozenset(
    (
        "assignment",
        "variable_declarator",
        "init_declarator",
        "enhanced_for_statement",
        "for_in_clause",
    )
)
"""What declares the first variable in it; what stands behind is used."""
_INITIALIZED = frozenset(("assignment", "variable_declarator", "init_declarator"))
"""Where a variable is not there yet while its value is computed."""
_DECLARES = frozenset(
    (
        "declaration",
        "parameters",
        "formal_parameter",
        "formal_parameters",
        "parameter_declaration",
        "optional_parameter_declaration",
        "default_parameter",
        "typed_parameter",
        "typed_default_parameter",
        "lambda_parameters",
        "pointer_declarator",
        "array_declarator",
        "reference_declarator",
        "pattern_list",
        "tuple_pattern",
        "array_pattern",
        "for_in_statement",
        "for_range_loop",
    )
)
"""What declares each variable that stands directly in it before a sign for its value."""
_NOT_FIRST = frozenset(
    ("attribute", "field_access", "field_expression", "member_expression", "method_reference")
)
"""Whose first part alone is a variable."""
_NOT_AT_ALL = frozenset(
    (
        "import_statement",
        "import_from_statement",
        "dotted_name",
        "aliased_import",
        "function_definition",
        "function_declaration",
        "function_declarator",
        "function_expression",
        "class_definition",
        "class_declaration",
        "method_declaration",
        "constructor_declaration",
        "scoped_identifier",
        "qualified_identifier",
        "package_declaration",
        "enum_constant",
        "enumerator",
        "marker_annotation",
        "annotation",
        "decorator",
        "global_statement",
        "nonlocal_statement",
        "preproc_def",
        "preproc_function_def",
        "preproc_ifdef",
        "goto_statement",
        "labeled_statement",
        "type",
        "generic_type",
        "scoped_type_identifier",
        "using_declaration",
        "inferred_parameters",
    )
)
_CALLS = frozenset(("call", "call_expression", "new_expression"))
_FUNCTION_ENDINGS = ("function_definition", "method_declaration", "constructor_declaration")
_SCOPES = BLOCKS | {
    "for_statement",
    "for_in_statement",
    "enhanced_for_statement",
    "for_range_loop",
    "catch_clause",
    "lambda_expression",
    "lambda",
    "method_definition",
    "arrow_function",
    "function_declaration",
    "function_expression",
    *_FUNCTION_ENDINGS,
}
"""What a variable that is declared in it does not outlive."""
_PYTHON_SCOPES = frozenset(("function_definition", "lambda", "class_definition"))


def declares(view: View, node: int) -> bool:
    """Whether a name stands where a variable is declared, or set for the first time."""
    parent = view.parent(node)
    if parent < 0 or view.kind(node) != "identifier":
        return False
    kind, place = view.kind(parent), int(view.tree.position[node])
    if kind in _ASSIGNED_FIRST:
        before = view.children(parent)[:place]
        return not any(view.kind(one) in ('"="', '":"', '"in"') for one in before)
    if kind == "for_statement":
        return view.language == "python" and place == 1
    if kind not in _DECLARES:
        return False
    return not any(
        view.kind(one) in ('"="', '"["', '"in"', '":"') for one in view.children(parent)[:place]
    )


def is_variable(view: View, node: int) -> bool:
    """Whether a name stands for a variable that is used there, not declared, called or a field."""
    parent = view.parent(node)
    if parent < 0 or view.kind(node) != "identifier" or declares(view, node):
        return False
    kind, place = view.kind(parent), int(view.tree.position[node])
    if kind in _NOT_AT_ALL or kind.endswith("_type"):
        return False
    if kind in _CALLS or kind == "keyword_argument":
        return place > 1
    if kind == "method_invocation":
        after = view.sibling(node, 1)
        return after is not None and view.kind(after) == '"."'
    return kind not in _NOT_FIRST or place == 0


def others_in_scope(view: View, node: int) -> list[bytes]:
    """Return the names of other variables that are declared before, where they still count."""
    start, own = view.start[node], view.text(node)
    return sorted(
        {name for name, begin, end in _declared(view) if begin <= start < end and name != own}
    )


@lru_cache(4)
def _declared(view: View) -> tuple[tuple[bytes, int, int], ...]:
    """Return the variables that are declared: their names, and from where to where they count."""
    scopes = _PYTHON_SCOPES if view.language == "python" else _SCOPES
    found = []
    for node in range(len(view.tree)):
        if not declares(view, node):
            continue
        above, begin = view.parent(node), view.end[node]
        while above > 0 and view.kind(above) not in scopes:
            if view.kind(above) in _INITIALIZED:
                begin = view.end[above]
            above = view.parent(above)
        found.append((view.text(node), begin, view.end[max(above, 0)]))
    return tuple(found)
