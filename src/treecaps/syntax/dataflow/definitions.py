"""Rules for what defines names: classes, functions, lambdas, parameters and declarations."""

from treecaps.syntax.dataflow.walk import RULES, Steps, Walk, rule


@rule(
    "class_definition",
    "class_declaration",
    "interface_declaration",
    "enum_declaration",
    "record_declaration",
    "function_declarator",
)
def _visit_nameless(walk: Walk, node: int) -> Steps:
    """Visit a class, or whatever has a name that is no variable."""
    yield walk.visit_all(
        child for child in walk.children[node] if walk.kinds[child] != "identifier"
    )


@rule("function_definition", "method_declaration", "constructor_declaration")
def _visit_function(walk: Walk, node: int) -> Steps:
    outside = walk.here, walk.guard, walk.jumps, walk.function
    walk.functions += 1
    walk.here, walk.guard, walk.jumps, walk.function = walk.block(), None, [], walk.functions
    walk.entries.append(walk.here)
    yield _visit_nameless(walk, node)
    walk.here, walk.guard, walk.jumps, walk.function = outside


@rule("lambda", "lambda_expression")
def _visit_lambda(walk: Walk, node: int) -> Steps:
    before, jumps = walk.here, walk.jumps
    walk.here, walk.jumps = walk.block(before), []
    first, *others = walk.children[node]
    if walk.kinds[first] == "identifier":
        yield walk.write([first])
        yield walk.visit_all(others)
    else:
        yield walk.visit_all(walk.children[node])
    walk.here, walk.jumps = walk.block(before, walk.here), jumps


@rule(
    "parameters",
    "lambda_parameters",
    "default_parameter",
    "typed_parameter",
    "typed_default_parameter",
    "formal_parameter",
    "catch_formal_parameter",
    "inferred_parameters",
    "parameter_declaration",
    "optional_parameter_declaration",
    "declaration",
)
def _visit_parameters(walk: Walk, node: int) -> Steps:
    """Visit what holds names of parameters: lists of names, or one with type and default."""
    targets, values = walk.split(node, '"="')
    for target in targets:
        if walk.kinds[target] == "function_declarator":
            continue  # not what is declared here, but elsewhere
        if walk.kinds[target] in RULES:
            yield walk.visit(target)
        else:
            yield walk.assign([target], values)
