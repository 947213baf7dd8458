"""Rules for expressions: calls, fields, and all that assigns."""

from treecaps.syntax.dataflow.walk import FIELDS, Steps, Walk, rule


@rule("call", "call_expression")
def _visit_call(walk: Walk, node: int) -> Steps:
    first, *others = walk.children[node]
    yield walk.visit_all(others if walk.kinds[first] == "identifier" else [first, *others])


@rule("method_invocation")
def _visit_method_call(walk: Walk, node: int) -> Steps:
    children = walk.children[node]
    for place, child in enumerate(children):
        following = walk.kinds[children[place + 1]] if place + 1 < len(children) else ""
        if not (walk.kinds[child] == "identifier" and following == "argument_list"):
            yield walk.visit(child)


@rule(*FIELDS)
def _visit_field(walk: Walk, node: int) -> Steps:
    yield walk.visit_all(walk.children[node][:1])


@rule("keyword_argument")
def _visit_keyword(walk: Walk, node: int) -> Steps:
    yield walk.visit_all(walk.children[node][1:])


@rule("pointer_expression")
def _visit_address(walk: Walk, node: int) -> Steps:
    """Visit ``&x``: as an argument, what is called may write there."""
    above = walk.kinds[walk.tree.parent[node]]
    first, *others = walk.children[node]
    if walk.kinds[first] == '"&"' and above == "argument_list":
        yield walk.write(others, read=True)
    else:
        yield walk.visit_all(others)


@rule("binary_expression")
def _visit_binary(walk: Walk, node: int) -> Steps:
    """Visit ``a + b``; ``cin >> x`` writes x."""
    left, right = walk.split(node, '">>"')
    first = left[0]
    while walk.kinds[first] == "binary_expression":
        first = walk.children[first][0]
    if right and walk.text(first) in (b"cin", b"std::cin"):
        yield walk.visit_all(left if left[0] != first else ())
        yield walk.write(right)
    else:
        yield walk.visit_all(walk.children[node])


@rule(
    "assignment",
    "augmented_assignment",
    "assignment_expression",
    "named_expression",
    "variable_declarator",
)
def _visit_assignment(walk: Walk, node: int) -> Steps:
    children = walk.children[node]
    signs = [
        walk.kinds[child]
        for child in children
        if walk.kinds[child].startswith('"') and walk.kinds[child].endswith('="')
    ]
    targets, values = walk.split(node, *signs[:1])
    read = bool(signs) and signs[0] not in ('"="', '":="')
    yield walk.assign(targets, values, read=read)


@rule("init_declarator")
def _visit_declarator(walk: Walk, node: int) -> Steps:
    """Visit ``x = 1`` and, in C++, ``x(1)``."""
    first, *others = walk.children[node]
    yield walk.assign([first], others)


@rule("update_expression")
def _visit_update(walk: Walk, node: int) -> Steps:
    yield walk.write(walk.children[node], read=True)


@rule("as_pattern")
def _visit_as(walk: Walk, node: int) -> Steps:
    values, targets = walk.split(node, '"as"')
    yield walk.assign((part for one in targets for part in walk.children[one]), values)


@rule("instanceof_expression")
def _visit_instanceof(walk: Walk, node: int) -> Steps:
    """Visit ``x instanceof Type name``."""
    values, others = walk.split(node, '"instanceof"')
    names = [child for child in others if walk.kinds[child] == "identifier"]
    yield walk.assign(names, values)


@rule("resource")
def _visit_resource(walk: Walk, node: int) -> Steps:
    """Visit ``Type name = value`` of a try with resources, or a variable alone."""
    targets, values = walk.split(node, '"="')
    if values:
        yield walk.assign([one for one in targets if walk.kinds[one] == "identifier"], values)
    else:
        yield walk.visit_all(targets)
