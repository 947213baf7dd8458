"""Visits of syntax: the order in which the parts of a program are computed."""

from collections.abc import Callable, Generator, Iterable

from treecaps.syntax.dataflow.blocks import Blocks, Jumps
from treecaps.syntax.tree import Tree

_Steps = Generator["_Steps", None, None]


class Visits(Blocks):
    """Goes through a tree and notes each variable in the block that it stands in.

    Args:
        tree: A tree of Python, Java, C or C++.
    """

    def __init__(self, tree: Tree) -> None:
        super().__init__(tree)
        self.kinds = tree.kind_names()
        self.children: list[list[int]] = [[] for _ in range(len(tree))]
        for node, parent in enumerate(tree.parent.tolist()):
            if parent >= 0:
                self.children[parent].append(node)
        self.jumps: list[Jumps] = []
        self.label: bytes | None = None  # of the statement that is visited next
        self.functions = 0
        # A visit asks for others by yielding them: trees may be deeper than Python's stack.
        waiting: list[_Steps] = [self.visit(0)]
        while waiting:
            step = next(waiting[-1], None)
            if step is None:
                waiting.pop()
            else:
                waiting.append(step)

    def named(self, node: int) -> list[int]:
        """Return the children that are neither signs nor comments."""
        return [
            child
            for child in self.children[node]
            if not self.kinds[child].startswith('"') and not self.kinds[child].endswith("comment")
        ]

    def split(self, node: int, *signs: str) -> tuple[list[int], list[int]]:
        """Return the children before and after the first that is one of some signs."""
        children = self.children[node]
        for place, child in enumerate(children):
            if self.kinds[child] in signs:
                return children[:place], children[place + 1 :]
        return children, []

    def visit(self, node: int) -> _Steps:
        """Visit a node and all below it, in the order in which they are computed."""
        kind = self.kinds[node]
        if kind in _WITHOUT:
            return
        # What the parser could not make whole is visited as it stands.
        if kind in _VISITS and (kind in _JUMPS or self.named(node)):
            yield _VISITS[kind](self, node)
        elif kind == "identifier":
            self.meet(node)
        else:
            for child in self.children[node]:
                yield self.visit(child)

    def _visit_all(self, nodes: Iterable[int]) -> _Steps:
        for node in nodes:
            yield self.visit(node)

    def write(self, nodes: Iterable[int], *, read: bool = False) -> _Steps:
        """Visit what is assigned to; ``read`` if its old value counts."""
        for node in nodes:
            kind = self.kinds[node]
            if kind == "identifier":
                self.meet(node, read=read, write=True)
            elif kind in _PATTERNS:
                yield self.write(self.children[node], read=read)
            elif kind in _PARTS and self.children[node]:
                # To change a part is to change the whole, whose other parts stay.
                first, *others = self.children[node]
                if kind not in _FIELDS:
                    yield self._visit_all(others)
                yield self.write([first], read=True)
            elif kind in _REFERENCES:
                yield self.write(self.children[node], read=True)
            elif kind == "array_declarator":
                yield self._visit_all(self.children[node][1:])
                yield self.write(self.children[node][:1], read=read)
            elif kind != "function_declarator":
                yield self.visit(node)

    def assign(
        self, targets: Iterable[int], values: Iterable[int], *, read: bool = False
    ) -> _Steps:
        """Visit values, then what they are assigned to."""
        begin = len(self.uses)
        yield self._visit_all(values)
        middle = len(self.uses)
        yield self.write(targets, read=read)
        sources = self.uses[begin:middle]
        for use in self.uses[middle:]:
            if use.write:
                self.computed += [(use.node, source.node) for source in sources]

    def _visit_nameless(self, node: int) -> _Steps:
        """Visit a class, or whatever has a name that is no variable."""
        yield self._visit_all(
            child for child in self.children[node] if self.kinds[child] != "identifier"
        )

    def _visit_function(self, node: int) -> _Steps:
        outside = self.here, self.guard, self.jumps, self.function
        self.functions += 1
        self.here, self.guard, self.jumps, self.function = self.block(), None, [], self.functions
        self.entries.append(self.here)
        yield self._visit_nameless(node)
        self.here, self.guard, self.jumps, self.function = outside

    def _visit_lambda(self, node: int) -> _Steps:
        before, jumps = self.here, self.jumps
        self.here, self.jumps = self.block(before), []
        first, *others = self.children[node]
        if self.kinds[first] == "identifier":
            yield self.write([first])
            yield self._visit_all(others)
        else:
            yield self._visit_all(self.children[node])
        self.here, self.jumps = self.block(before, self.here), jumps

    def _visit_parameters(self, node: int) -> _Steps:
        """Visit what holds names of parameters: lists of names, or one with type and default."""
        targets, values = self.split(node, '"="')
        for target in targets:
            if self.kinds[target] == "function_declarator":
                continue  # not what is declared here, but elsewhere
            if self.kinds[target] in _VISITS:
                yield self.visit(target)
            else:
                yield self.assign([target], values)

    def _visit_call(self, node: int) -> _Steps:
        first, *others = self.children[node]
        yield self._visit_all(others if self.kinds[first] == "identifier" else [first, *others])

    def _visit_method_call(self, node: int) -> _Steps:
        children = self.children[node]
        for place, child in enumerate(children):
            following = self.kinds[children[place + 1]] if place + 1 < len(children) else ""
            if not (self.kinds[child] == "identifier" and following == "argument_list"):
                yield self.visit(child)

    def _visit_field(self, node: int) -> _Steps:
        yield self._visit_all(self.children[node][:1])

    def _visit_keyword(self, node: int) -> _Steps:
        yield self._visit_all(self.children[node][1:])

    def _visit_address(self, node: int) -> _Steps:
        """Visit ``&x``: as an argument, what is called may write there."""
        above = self.kinds[self.tree.parent[node]]
        first, *others = self.children[node]
        if self.kinds[first] == '"&"' and above == "argument_list":
            yield self.write(others, read=True)
        else:
            yield self._visit_all(others)

    def _visit_binary(self, node: int) -> _Steps:
        """Visit ``a + b``; ``cin >> x`` writes x."""
        left, right = self.split(node, '">>"')
        first = left[0]
        while self.kinds[first] == "binary_expression":
            first = self.children[first][0]
        text = self.tree.text[self.tree.start[first] : self.tree.end[first]]
        if right and text in (b"cin", b"std::cin"):
            yield self._visit_all(left if left[0] != first else ())
            yield self.write(right)
        else:
            yield self._visit_all(self.children[node])

    def _visit_assignment(self, node: int) -> _Steps:
        children = self.children[node]
        signs = [
            self.kinds[child]
            for child in children
            if self.kinds[child].startswith('"') and self.kinds[child].endswith('="')
        ]
        targets, values = self.split(node, *signs[:1])
        read = bool(signs) and signs[0] not in ('"="', '":="')
        yield self.assign(targets, values, read=read)

    def _visit_declarator(self, node: int) -> _Steps:
        """Visit ``x = 1`` and, in C++, ``x(1)``."""
        first, *others = self.children[node]
        yield self.assign([first], others)

    def _visit_update(self, node: int) -> _Steps:
        yield self.write(self.children[node], read=True)

    def _visit_as(self, node: int) -> _Steps:
        values, targets = self.split(node, '"as"')
        yield self.assign((part for one in targets for part in self.children[one]), values)

    # Statements.

    def _visit_if(self, node: int) -> _Steps:
        outer = self.guard
        ends = []
        condition, *branches = self.named(node)
        while True:
            begin = len(self.uses)
            yield self.visit(condition)
            uses, decided, inner = self.uses[begin:], self.here, self.guard
            self.here = self.block(decided)
            self.guard_by(condition, uses)
            yield self._visit_all(branches[:1])
            ends.append(self.here)
            self.here, self.guard = self.block(decided), inner
            self.guard_by(condition, uses, holds=False)
            branches = branches[1:]
            if not branches or self.kinds[branches[0]] != "elif_clause":
                break
            clause = self.named(branches[0])
            if not clause:
                break
            condition, branches = clause[0], [*clause[1:], *branches[1:]]
        yield self._visit_all(branches)
        self.here, self.guard = self.block(*ends, self.here), outer

    def _visit_conditional(self, node: int) -> _Steps:
        parts = self.named(node)
        if len(parts) != 3:
            yield self._visit_all(parts)
            return
        condition, then, other = parts
        if self.tree.language == "python":
            then, condition = condition, then
        outer, begin = self.guard, len(self.uses)
        yield self.visit(condition)
        uses, decided, ends = self.uses[begin:], self.here, []
        for branch, holds in ((then, True), (other, False)):
            self.here, self.guard = self.block(decided), outer
            self.guard_by(condition, uses, holds=holds)
            yield self.visit(branch)
            ends.append(self.here)
        self.here, self.guard = self.block(*ends), outer

    def loop(
        self,
        head: Iterable[_Steps],
        condition: int | None,
        body: list[int],
        update: Iterable[int] = (),
        otherwise: Iterable[int] = (),
    ) -> _Steps:
        """Visit a loop: its head each time, then its body while a condition holds.

        ``otherwise`` is what Python does after a loop that no ``break`` has left.
        """
        outer, label, self.label = self.guard, self.label, None
        again = self.here = self.block(self.here)
        yield from head
        begin = len(self.uses)
        if condition is not None:
            yield self.visit(condition)
        over, updating, after = self.block(self.here), self.block(), self.block()
        self.here = self.block(self.here)
        if condition is not None:
            self.guard_by(condition, self.uses[begin:])
        self.jumps.append(Jumps(after, updating, label))
        yield self._visit_all(body)
        self.jumps.pop()
        self.after[self.here].append(updating)
        self.here = updating
        yield self._visit_all(update)
        self.after[self.here].append(again)
        self.here, self.guard = over, outer
        yield self._visit_all(otherwise)
        self.after[self.here].append(after)
        self.here = after

    def _visit_while(self, node: int) -> _Steps:
        condition, *others = self.named(node)
        yield self.loop((), condition, others[:1], otherwise=others[1:])

    def _visit_do(self, node: int) -> _Steps:
        parts = self.named(node)
        again = self.here = self.block(self.here)
        after, deciding = self.block(), self.block()
        self.jumps.append(Jumps(after, deciding, self.label))
        self.label = None
        yield self._visit_all(parts[:1])
        self.jumps.pop()
        self.after[self.here].append(deciding)
        self.here = deciding
        yield self._visit_all(parts[1:])
        self.after[self.here] += [again, after]
        self.here = after

    def _visit_for(self, node: int) -> _Steps:
        if self.tree.language == "python":
            target, *others = self.named(node)
            yield self.each([target], others[0] if others else None, others[1:2], others[2:])
            return
        parts: list[list[int]] = [[], [], []]
        place = 0
        head, body = self.split(node, '")"')
        for child in head:
            kind = self.kinds[child]
            if kind in ("local_variable_declaration", "declaration"):
                parts[0].append(child)
                place = 1
            elif kind == '";"':
                place = min(place + 1, 2)
            elif not kind.startswith('"'):
                parts[place].append(child)
        yield self._visit_all(parts[0])
        condition = parts[1][0] if parts[1] else None
        yield self.loop((), condition, body, parts[2])

    def _visit_for_each(self, node: int) -> _Steps:
        """Visit ``for (type x : values) body``."""
        head, rest = self.split(node, '":"')
        values, body = [], rest
        for place, child in enumerate(rest):
            if self.kinds[child] == '")"':
                values, body = rest[:place], rest[place + 1 :]
                break
        yield self.each(head, values[0] if values else None, body)

    def each(
        self,
        targets: list[int],
        values: int | None,
        body: list[int],
        otherwise: Iterable[int] = (),
    ) -> _Steps:
        """Visit values once, then a body for each of them."""
        begin = len(self.uses)
        if values is not None:
            yield self.visit(values)
        sources = self.uses[begin:]

        def take() -> _Steps:
            middle = len(self.uses)
            yield self.write(targets)
            for use in self.uses[middle:]:
                self.computed += [(use.node, source.node) for source in sources]

        yield self.loop([take()], None, body, otherwise=otherwise)

    def _visit_clause(self, node: int) -> _Steps:
        """Visit ``for x in values`` inside of a comprehension."""
        targets, values = self.split(node, '"in"')
        yield self.assign(targets, values)

    def _visit_comprehension(self, node: int) -> _Steps:
        value, *clauses = self.named(node)
        before = self.here
        again = self.here = self.block(before)
        yield self._visit_all([*clauses, value])
        self.after[self.here].append(again)
        self.here = self.block(before, self.here)

    def _visit_switch(self, node: int) -> _Steps:
        value, *blocks = self.named(node)
        yield self.visit(value)
        decided, after = self.here, self.block(self.here)
        self.jumps.append(Jumps(after, None, self.label))
        self.label = None
        self.here = self.block(decided)
        for group in (child for block in blocks for child in self.named(block)):
            if self.kinds[group] in _CASES:
                self.here = self.block(decided, self.here)
            yield self.visit(group)
            if self.kinds[group] == "switch_rule":  # case 1 -> ...: the next does not follow
                self.leave(after)
        self.jumps.pop()
        self.after[self.here].append(after)
        self.here = after

    def _visit_match(self, node: int) -> _Steps:
        value, *blocks = self.named(node)
        yield self.visit(value)
        decided, ends = self.here, []
        for case in (child for block in blocks for child in self.named(block)):
            self.here = self.block(decided)
            for part in self.named(case) if self.kinds[case] == "case_clause" else [case]:
                yield (
                    self._capture(part) if self.kinds[part] == "case_pattern" else self.visit(part)
                )
            ends.append(self.here)
        self.here = self.block(decided, *ends)

    def _capture(self, node: int) -> _Steps:
        """Visit the pattern of a case: names by themselves are written."""
        kind, parts = self.kinds[node], self.named(node)
        if kind == "dotted_name":
            yield self.write(parts if len(parts) == 1 else ())
        elif kind == "identifier":
            yield self.write([node])
        else:
            # The first name of these is that of a class or a field.
            for part in parts[1:] if kind in ("class_pattern", "keyword_pattern") else parts:
                yield self._capture(part)

    def _visit_try(self, node: int) -> _Steps:
        before = self.here
        self.here = self.block(before)
        done: int | None = None
        ends: list[int] = []
        last: list[int] = []
        for part in self.named(node):
            kind = self.kinds[part]
            if kind == "finally_clause":
                last.append(part)
            elif kind in ("except_clause", "except_group_clause", "catch_clause"):
                done = self.here if done is None else done
                # It may have failed at the beginning or at the end.
                self.here = self.block(before, done)
                yield self.visit(part)
                ends.append(self.here)
            elif kind == "else_clause":  # what follows if nothing has failed
                self.here = self.block(self.here if done is None else done)
                yield self.visit(part)
                done = self.here
            else:
                yield self.visit(part)
        self.here = self.block(self.here if done is None else done, *ends)
        yield self._visit_all(last)

    def _visit_labelled(self, node: int) -> _Steps:
        """Visit ``name: statement``, which ``break name`` leaves."""
        name, *others = self.named(node)
        label = self.tree.text[self.tree.start[name] : self.tree.end[name]]
        after = self.block()
        self.jumps.append(Jumps(after, None, label, by_label=True))
        self.label = label
        yield self._visit_all(others)
        self.label = None
        self.jumps.pop()
        self.here = self.block(self.here, after)

    def _find_jumps(self, node: int) -> list[Jumps]:
        """Return what a ``break`` or ``continue`` may be about, the innermost last."""
        labels = self.named(node)
        if not labels:
            return [jumps for jumps in self.jumps if not jumps.by_label]
        label = self.tree.text[self.tree.start[labels[0]] : self.tree.end[labels[0]]]
        return [jumps for jumps in self.jumps if jumps.label == label]

    def _visit_break(self, node: int) -> _Steps:
        found = self._find_jumps(node)
        self.leave(found[-1].after if found else None)
        yield from ()

    def _visit_continue(self, node: int) -> _Steps:
        loops = [jumps.again for jumps in self._find_jumps(node) if jumps.again is not None]
        self.leave(loops[-1] if loops else None)
        yield from ()

    def _visit_instanceof(self, node: int) -> _Steps:
        """Visit ``x instanceof Type name``."""
        values, others = self.split(node, '"instanceof"')
        names = [child for child in others if self.kinds[child] == "identifier"]
        yield self.assign(names, values)

    def _visit_resource(self, node: int) -> _Steps:
        """Visit ``Type name = value`` of a try with resources, or a variable alone."""
        targets, values = self.split(node, '"="')
        if values:
            yield self.assign([one for one in targets if self.kinds[one] == "identifier"], values)
        else:
            yield self._visit_all(targets)

    def _visit_return(self, node: int) -> _Steps:
        yield self._visit_all(self.children[node])
        self.leave(None)


_WITHOUT = frozenset(
    (
        "type",
        "import_statement",
        "import_from_statement",
        "future_import_statement",
        "import_declaration",
        "package_declaration",
        "annotation",
        "marker_annotation",
        "qualified_identifier",
        "scoped_identifier",
        "scoped_type_identifier",
        "global_statement",
        "nonlocal_statement",
        "enumerator",
        "goto_statement",
        "preproc_def",
        "preproc_function_def",
        "preproc_include",
        "using_declaration",
        "template_parameter_list",
        "ERROR",
    )
)
"""What holds no variables."""
_PATTERNS = frozenset(
    (
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "dictionary_splat_pattern",
        "expression_list",
        "tuple",
        "list",
        "parenthesized_expression",
        "pointer_declarator",
        "reference_declarator",
        "parenthesized_declarator",
        "structured_binding_declarator",
    )
)
_FIELDS = frozenset(("attribute", "field_access", "field_expression"))
_PARTS = _FIELDS | {"subscript", "array_access", "subscript_expression"}
_REFERENCES = frozenset(("pointer_expression",))
_JUMPS = frozenset(
    (
        "break_statement",
        "continue_statement",
        "return_statement",
        "raise_statement",
        "throw_statement",
    )
)
_CASES = frozenset(("switch_block_statement_group", "switch_rule", "case_statement"))

_VISITS: dict[str, Callable[[Visits, int], _Steps]] = {
    **dict.fromkeys(
        ("function_definition", "method_declaration", "constructor_declaration"),
        Visits._visit_function,
    ),
    **dict.fromkeys(
        (
            "class_definition",
            "class_declaration",
            "interface_declaration",
            "enum_declaration",
            "record_declaration",
            "function_declarator",
        ),
        Visits._visit_nameless,
    ),
    **dict.fromkeys(("lambda", "lambda_expression"), Visits._visit_lambda),
    **dict.fromkeys(
        (
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
        ),
        Visits._visit_parameters,
    ),
    **dict.fromkeys(("call", "call_expression"), Visits._visit_call),
    "method_invocation": Visits._visit_method_call,
    **dict.fromkeys(_FIELDS, Visits._visit_field),
    "keyword_argument": Visits._visit_keyword,
    "pointer_expression": Visits._visit_address,
    "binary_expression": Visits._visit_binary,
    **dict.fromkeys(
        (
            "assignment",
            "augmented_assignment",
            "assignment_expression",
            "named_expression",
            "variable_declarator",
        ),
        Visits._visit_assignment,
    ),
    "init_declarator": Visits._visit_declarator,
    "update_expression": Visits._visit_update,
    "as_pattern": Visits._visit_as,
    "if_statement": Visits._visit_if,
    **dict.fromkeys(("conditional_expression", "ternary_expression"), Visits._visit_conditional),
    "while_statement": Visits._visit_while,
    "do_statement": Visits._visit_do,
    "for_statement": Visits._visit_for,
    **dict.fromkeys(("enhanced_for_statement", "for_range_loop"), Visits._visit_for_each),
    "for_in_clause": Visits._visit_clause,
    **dict.fromkeys(
        (
            "list_comprehension",
            "set_comprehension",
            "dictionary_comprehension",
            "generator_expression",
        ),
        Visits._visit_comprehension,
    ),
    **dict.fromkeys(("switch_expression", "switch_statement"), Visits._visit_switch),
    **dict.fromkeys(("try_statement", "try_with_resources_statement"), Visits._visit_try),
    "match_statement": Visits._visit_match,
    "labeled_statement": Visits._visit_labelled,
    "instanceof_expression": Visits._visit_instanceof,
    "resource": Visits._visit_resource,
    "break_statement": Visits._visit_break,
    "continue_statement": Visits._visit_continue,
    **dict.fromkeys(
        ("return_statement", "raise_statement", "throw_statement"), Visits._visit_return
    ),
}
