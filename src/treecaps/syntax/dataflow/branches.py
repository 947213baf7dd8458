"""Rules for what takes one of several ways: if, switch, match and try."""

from treecaps.syntax.dataflow.blocks import Jumps
from treecaps.syntax.dataflow.walk import Steps, Walk, rule

_CASES = frozenset(("switch_block_statement_group", "switch_rule", "case_statement"))


@rule("if_statement")
def _visit_if(walk: Walk, node: int) -> Steps:
    outer = walk.guard
    ends = []
    condition, *branches = walk.named(node)
    while True:
        begin = len(walk.uses)
        yield walk.visit(condition)
        uses, decided, inner = walk.uses[begin:], walk.here, walk.guard
        walk.here = walk.block(decided)
        walk.guard_by(condition, uses)
        yield walk.visit_all(branches[:1])
        ends.append(walk.here)
        walk.here, walk.guard = walk.block(decided), inner
        walk.guard_by(condition, uses, holds=False)
        branches = branches[1:]
        if not branches or walk.kinds[branches[0]] != "elif_clause":
            break
        clause = walk.named(branches[0])
        if not clause:
            break
        condition, branches = clause[0], [*clause[1:], *branches[1:]]
    yield walk.visit_all(branches)
    walk.here, walk.guard = walk.block(*ends, walk.here), outer


@rule("conditional_expression", "ternary_expression")
def _visit_conditional(walk: Walk, node: int) -> Steps:
    parts = walk.named(node)
    if len(parts) != 3:
        yield walk.visit_all(parts)
        return
    condition, then, other = parts
    if walk.tree.language == "python":
        then, condition = condition, then
    outer, begin = walk.guard, len(walk.uses)
    yield walk.visit(condition)
    uses, decided, ends = walk.uses[begin:], walk.here, []
    for branch, holds in ((then, True), (other, False)):
        walk.here, walk.guard = walk.block(decided), outer
        walk.guard_by(condition, uses, holds=holds)
        yield walk.visit(branch)
        ends.append(walk.here)
    walk.here, walk.guard = walk.block(*ends), outer


@rule("switch_expression", "switch_statement")
def _visit_switch(walk: Walk, node: int) -> Steps:
    value, *blocks = walk.named(node)
    yield walk.visit(value)
    decided, after = walk.here, walk.block(walk.here)
    walk.jumps.append(Jumps(after, None, walk.label))
    walk.label = None
    walk.here = walk.block(decided)
    for group in (child for block in blocks for child in walk.named(block)):
        if walk.kinds[group] in _CASES:
            walk.here = walk.block(decided, walk.here)
        yield walk.visit(group)
        if walk.kinds[group] == "switch_rule":  # case 1 -> ...: the next does not follow
            walk.leave(after)
    walk.jumps.pop()
    walk.enter(after)


@rule("match_statement")
def _visit_match(walk: Walk, node: int) -> Steps:
    value, *blocks = walk.named(node)
    yield walk.visit(value)
    decided, ends = walk.here, []
    for case in (child for block in blocks for child in walk.named(block)):
        walk.here = walk.block(decided)
        for part in walk.named(case) if walk.kinds[case] == "case_clause" else [case]:
            visit = _capture if walk.kinds[part] == "case_pattern" else Walk.visit
            yield visit(walk, part)
        ends.append(walk.here)
    walk.here = walk.block(decided, *ends)


def _capture(walk: Walk, node: int) -> Steps:
    """Visit the pattern of a case: names by themselves are written."""
    kind, parts = walk.kinds[node], walk.named(node)
    if kind == "dotted_name":
        yield walk.write(parts if len(parts) == 1 else ())
    elif kind == "identifier":
        yield walk.write([node])
    else:
        # The first name of these is that of a class or a field.
        for part in parts[1:] if kind in ("class_pattern", "keyword_pattern") else parts:
            yield _capture(walk, part)


@rule("try_statement", "try_with_resources_statement")
def _visit_try(walk: Walk, node: int) -> Steps:
    before = walk.here
    walk.here = walk.block(before)
    done: int | None = None
    ends: list[int] = []
    last: list[int] = []
    for part in walk.named(node):
        kind = walk.kinds[part]
        if kind == "finally_clause":
            last.append(part)
        elif kind in ("except_clause", "except_group_clause", "catch_clause"):
            done = walk.here if done is None else done
            # It may have failed at the beginning or at the end.
            walk.here = walk.block(before, done)
            yield walk.visit(part)
            ends.append(walk.here)
        elif kind == "else_clause":  # what follows if nothing has failed
            walk.here = walk.block(walk.here if done is None else done)
            yield walk.visit(part)
            done = walk.here
        else:
            yield walk.visit(part)
    walk.here = walk.block(walk.here if done is None else done, *ends)
    yield walk.visit_all(last)
