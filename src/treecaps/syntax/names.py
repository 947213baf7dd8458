"""Which leaves of a tree are names."""

_NAMES = frozenset(
    (
        "name",
        "constant",
        "label",
        "label_name",
        "implicit_parameter",
        "metavariable",
        "instance_variable",
        "class_variable",
        "global_variable",
        "simple_symbol",
        "hash_key_symbol",
        "shorthand_property_identifier_pattern",
    )
)
# Python's own trees have a name as the text of how it is used.
_AST_NAMES = frozenset(("Load", "Store", "Del", "arg", "alias"))


def is_name(kind: str) -> bool:
    """Whether leaves of a kind are names that a programmer chose."""
    return kind.endswith("identifier") or kind in _NAMES or kind in _AST_NAMES
