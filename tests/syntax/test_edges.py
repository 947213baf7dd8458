import random
from collections.abc import Iterator
from itertools import pairwise, product
from typing import Any

import pytest

import treecaps
from tests.conftest import EXAMPLES
from treecaps.syntax.edges import EDGES, LANGUAGES, find_edges
from treecaps.syntax.tree import Tree

# Small programs with every path through them, to be written in each language.

Statement = tuple[Any, ...]


class Writer:
    """Writes a program, and remembers the order in which variables stand in it."""

    def __init__(self, language: str) -> None:
        self.python = language == "python"
        self.lines: list[str] = []
        self.count = 0

    def variables(self, names: list[str]) -> list[tuple[int, str]]:
        numbered = list(enumerate(names, self.count))
        self.count += len(names)
        return numbered

    def write(self, body: list[Statement], depth: int) -> list[Statement]:
        """Return the statements with the variables numbered as they stand in the text."""
        return [self.statement(one, depth) for one in body]

    def statement(self, one: Statement, depth: int) -> Statement:
        word, *parts = one
        if word == "set":
            target, sources, compound = parts
            (left,) = self.variables([target])
            right = self.variables(sources)
            value = " + ".join([*sources, "1"])
            self.line(f"{target} {'+=' if compound else '='} {value}", depth, ";")
            return ("set", left, right, compound)
        if word in ("if", "while"):
            names, body, *other = parts
            condition = self.variables(names)
            test = " < ".join([*names, "1"]) if len(names) < 2 else f"{names[0]} < {names[1]}"
            self.line(f"{word} {test}:" if self.python else f"{word} ({test}) {{", depth)
            inner = self.write(body, depth + 1)
            otherwise: list[Statement] = []
            if other and other[0]:
                self.line("else:" if self.python else "} else {", depth)
                otherwise = self.write(other[0], depth + 1)
            if not self.python:
                self.line("}", depth)
            return (word, condition, inner, otherwise)
        self.line(word if word != "return" else "return 1", depth, ";")
        return (word,)

    def line(self, text: str, depth: int, end: str = "") -> None:
        self.lines.append("    " * depth + text + ("" if self.python else end))


def compose(chance: random.Random, depth: int, loop: bool) -> list[Statement]:
    body: list[Statement] = []
    for _ in range(chance.randint(1, 3)):
        roll = chance.random()
        names = chance.sample("abc", chance.randint(1, 2))
        if depth and roll < 0.3:
            other = compose(chance, depth - 1, loop) if chance.random() < 0.5 else []
            body.append(("if", names, compose(chance, depth - 1, loop), other))
        elif depth and roll < 0.5:
            body.append(("while", names, compose(chance, depth - 1, True)))
        elif roll < 0.6:
            body.append((chance.choice(["break", "continue", "return"] if loop else ["return"]),))
            break
        else:
            body.append(("set", chance.choice("abc"), names, chance.random() < 0.3))
    return body


Path = tuple[tuple[tuple[int, str, bool], ...], str]
"""The variables met on one way through, number, name, written; and how it ends."""
ROUNDS = 3
MOST = 20_000


def paths(body: list[Statement]) -> Iterator[Path]:
    if not body:
        yield (), ""
        return
    rest = list(paths(body[1:]))
    for first, end in walk(body[0]):
        if end:
            yield first, end
        else:
            for then, last in rest:
                yield (*first, *then), last


def reads(names: list[tuple[int, str]]) -> tuple[tuple[int, str, bool], ...]:
    return tuple((number, name, False) for number, name in names)


def walk(one: Statement) -> Iterator[Path]:
    word, *parts = one
    if word == "set":
        (number, name), sources, _ = parts
        yield (*reads(sources), (number, name, True)), ""
    elif word == "if":
        condition, body, otherwise = parts
        for branch in (body, otherwise):
            for then, end in paths(branch):
                yield (*reads(condition), *then), end
    elif word == "while":
        condition, body, _ = parts
        once = list(paths(body))
        seen: set[Path] = set()
        for rounds in range(ROUNDS + 1):
            for bodies in product(once, repeat=rounds):
                met: tuple[Any, ...] = reads(condition)
                ending = ""
                for then, end in bodies:
                    met += then
                    if end in ("break", "return"):
                        ending = "return" if end == "return" else "break"
                        break
                    met += reads(condition)
                path = (met, "return" if ending == "return" else "")
                if path not in seen:
                    seen.add(path)
                    yield path
    else:
        yield (), word


def by_all_paths(body: list[Statement]) -> dict[str, set[tuple[int, int]]]:
    found: dict[str, set[tuple[int, int]]] = {"LastUse": set(), "LastWrite": set()}
    for met, _ in paths(body):
        used: dict[str, int] = {}
        written: dict[str, int] = {}
        for number, name, write in met:
            if name in used:
                found["LastUse"].add((number, used[name]))
            if name in written:
                found["LastWrite"].add((number, written[name]))
            used[name] = number
            if write:
                written[name] = number
    return found


def count_paths(body: list[Statement]) -> int:
    total = 1
    for word, *parts in body:
        if word == "if":
            total *= count_paths(parts[1]) + count_paths(parts[2])
        elif word == "while":
            total *= sum(count_paths(parts[1]) ** rounds for rounds in range(ROUNDS + 1))
    return total


def numbered(tree: Tree) -> dict[int, int]:
    """Number the variables a, b and c of a program as they stand in its text."""
    kinds = tree.kind_names()
    nodes = [
        node
        for node in range(len(tree))
        if kinds[node] == "identifier" and tree.token(node) in ("a", "b", "c")
    ]
    return {node: number for number, node in enumerate(nodes)}


@pytest.mark.parametrize("language", LANGUAGES)
def test_all_ways_through_a_program_are_followed(language: str) -> None:
    tried = 0
    for seed in range(300):
        chance = random.Random(seed)
        body = compose(chance, 2, loop=False)
        if count_paths([(w, *p, []) if w == "while" else (w, *p) for w, *p in body]) > MOST:
            continue
        tried += 1
        writer = Writer(language)
        python = language == "python"
        known = writer.write(body, 2 if language == "java" else 1)
        head = {
            "python": ["def f():"],
            "java": ["class A {", "    int f() {"],
        }.get(language, ["int f() {"])
        tail = [] if python else ["}"] * len(head)
        code = "\n".join([*head, *writer.lines, *tail])
        tree = treecaps.parse_code(code, language)
        assert not len(tree.errors)
        numbers = numbered(tree)
        assert len(numbers) == writer.count
        edges = find_edges(tree)
        for kind, wanted in by_all_paths(known).items():
            found = {(numbers[one], numbers[other]) for one, other in edges[kind].tolist()}
            assert found == wanted, f"{kind} in\n{code}"
    assert tried > 100


def named_edges(code: str, language: str, kind: str) -> set[tuple[str, str]]:
    """Return edges between variables (or conditions), each as its text and line."""
    tree = treecaps.parse_code(code, language)
    assert not len(tree.errors)

    def name(node: int) -> str:
        text = tree.text[tree.start[node] : tree.end[node]].decode()
        return f"{text}@{tree.line_and_column(node)[0]}"

    return {(name(one), name(other)) for one, other in find_edges(tree)[kind].tolist()}


WRITES = """
python: def f(x, y=1, *z): | return x + y + len(z)
    x2<x1 y2<y1 z2<z1
python: for i, j in p: | q = i | print(j, q)
    i2<i1 j3<j1 q3<q2 i1<i1 j1<j1 q2<q2
python: p = [1] |0 q = [k * k for k in p] |0 print(q)
    p2<p1 k2<k2 q3<q2
python: with open(p) as f: | f.read()
    f2<f1
python: try: | x = 1 |0 except E as e: | x = e |0 print(x)
    x5<x2 x5<x4 x4<x2 e4<e3
python: a = 1 |0 b = [a] |0 b[a] = 2 |0 print(b)
    a2<a1 a3<a1 b3<b2 b4<b3
python: if (n := g()): | print(n)
    n2<n1
python: x: int = 1 |0 g(x=x, y=x.x)
    x2<x1
python: x = 1 |0 def f(x): | return x |0 print(x)
    x3<x2 x4<x1
python: h = lambda m: m |0 h(1)
    m1<m1
python: try: | x = 1 |0 except E: | x = 2 |0 else: | print(x) |0 print(x)
    x4<x2 x6<x2 x7<x2 x7<x4
python: x = 0 |0 while g(): | x = 1 | if h(): break |0 else: | x = 2 |0 print(x)
    x3<x1 x3<x3 x6<x1 x6<x3 x7<x3 x7<x6
python: x = 0 |0 for i in p: | if i: break |0 else: | x = 2 |0 print(x)
    i2<i2 i3<i2 x5<x1 x6<x1 x6<x5
python: match p: |  case x: y = x |  case [a, A(b, k=c)]: y = a + b + c |  case _ if p: y = p |0 print(y)
    x2<x2 a3<a3 b3<b3 c3<c3 y5<y2 y5<y3 y5<y4
java: class A { int f(int a, int... b) { | return a; } }
    a2<a1
java: class A { void f(int[] b) { | for (int i = 0; i < 3; | i++) | b[i] = i; } }
    i2<i2 i2<i3 i3<i2 i3<i3 i4<i2 i4<i3 b4<b1 b4<b4
java: class A { void f(int[] b) { | for (int k : b) | g(k); } }
    b2<b1 k2<k2 k3<k2
java: class A { void f(int x, int y) { | switch (x) { | case 1: y = 1; | case 2: y = 2; break; | default: y = 3; } | g(y); } }
    x2<x1 y3<y1 y4<y1 y4<y3 y5<y1 y6<y1 y6<y4 y6<y5
java: class A { void f(int x, int y) { | switch (x) { | case 1 -> y = 1; | default -> y = 3; } | g(y); } }
    x2<x1 y3<y1 y4<y1 y5<y1 y5<y3 y5<y4
java: class A { void f(int x, int y) { | a: while (y > 0) { | while (y > 1) { x = 1; | break a; } | x = 2; } | g(x); } }
    y2<y1 y3<y1 x3<x1 x3<x5 x5<x1 x5<x5 x6<x1 x6<x3 x6<x5
java: class A { void f(int x, int y) { | a: while (x > 0) { | while (y > 0) { x = 1; | if (y > x) continue a; } | x = 2; } } }
    x2<x1 x2<x3 x2<x5 y3<y1 x3<x1 x3<x3 x3<x5 y4<y1 x4<x3 x5<x1 x5<x3 x5<x5
java: class A { void f(Object o) { | if (o instanceof String s) | g(s); } }
    o2<o1 s3<s2
java: class A { void f() { | try (R r = g()) { | h(r); } } }
    r3<r2
java: class A { void f() { R s = w -> | w; } }
    w2<w1
java: class A { int f(int g) { | int x = g(1), y; | y = x++; | return A.g(y) + x; } }
    x3<x2 y3<y2 y4<y3 x4<x3
c: int f(int a, int *b, int c[]) { | return a + *b + c[0]; }
    a2<a1 b2<b1 c2<c1
c: int main() { | int n; | scanf("%d", &n); | return n; }
    n3<n2 n4<n3
c: int f(int a); int g(int b) { | do b--; | while (b); | return b; }
    b2<b1 b2<b2 b3<b2 b4<b2
cpp: int f() { | int x, y; | std::cin >> x >> y; | return x + y; }
    x3<x2 y3<y2 x4<x3 y4<y3
cpp: void f(V v) { | for (auto k : v) | g(k); }
    v2<v1 k2<k2 k3<k2
"""  # noqa: E501
"""Programs, their lines divided by bars, and below which variable was last written where."""


def cases() -> Iterator[tuple[str, str, set[tuple[str, str]]]]:
    lines = WRITES.strip().splitlines()
    for program, edges in zip(lines[::2], lines[1::2], strict=True):
        language, _, code = program.partition(": ")
        code = code.replace(" |0 ", "\n").replace(" | ", "\n  ")
        pairs = set()
        for edge in edges.split():
            one, _, other = edge.partition("<")
            pairs.add((f"{one[:-1]}@{one[-1]}", f"{other[:-1]}@{other[-1]}"))
        yield language, code, pairs


@pytest.mark.parametrize(("language", "code", "writes"), list(cases()))
def test_last_writes(language: str, code: str, writes: set[tuple[str, str]]) -> None:
    assert named_edges(code, language, "LastWrite") == writes


BRANCHES = """\
def f(x, y):
  z = x + y
  z += x
  if x > z:
    y = x
  elif y:
    x = y
  else:
    print(x, y)
"""


def test_other_edges_of_variables() -> None:
    computed, guarded, negated, lexical = (
        named_edges(BRANCHES, "python", kind)
        for kind in ("ComputedFrom", "GuardedBy", "GuardedByNegation", "LastLexicalUse")
    )
    assert computed == {
        ("z@2", "x@2"),
        ("z@2", "y@2"),
        ("z@3", "x@3"),
        ("y@5", "x@5"),
        ("x@7", "y@7"),
    }
    assert guarded == {("x@5", "x > z@4"), ("y@7", "y@6")}
    assert negated == {("x@9", "x > z@4"), ("y@9", "y@6")}
    assert {("x@2", "x@1"), ("x@9", "x@7"), ("y@5", "y@2"), ("z@4", "z@3")} <= lexical
    java = "class A { int f(int n) { return n > 1 ? n\n: -n\n; } }"
    assert named_edges(java, "java", "GuardedBy") == {("n@1", "n > 1@1")}
    assert named_edges(java, "java", "GuardedByNegation") == {("n@2", "n > 1@1")}


def test_every_tree_has_children_and_tokens_that_follow() -> None:
    for path in EXAMPLES:
        tree = treecaps.parse_file(path)
        edges = find_edges(tree)
        assert tuple(edges) == EDGES
        assert len(edges["Child"]) == len(tree) - 1
        assert (tree.parent[edges["Child"][:, 1]] == edges["Child"][:, 0]).all()
        tokens = [node for node in range(len(tree)) if tree.token(node)]
        assert edges["NextToken"].tolist() == list(map(list, pairwise(tokens)))
        followed = tree.language in LANGUAGES
        assert all((len(edges[kind]) > 0) == followed for kind in ("LastUse", "LastWrite"))


@pytest.mark.parametrize("language", LANGUAGES)
def test_broken_and_deep_programs_are_no_problem(language: str) -> None:
    paths = [path for path in EXAMPLES if treecaps.parse_file(path).language == language]
    chance = random.Random(0)
    for path in paths:
        text = path.read_bytes()
        for _ in range(60):
            begin = chance.randrange(len(text))
            cut = text[:begin] + text[begin + chance.randrange(1, 30) :]
            tree = treecaps.parse_code(cut.decode("utf-8", "replace"), language)
            for pairs in find_edges(tree).values():
                assert pairs.shape[1] == 2
                assert not pairs.size or (pairs.min() >= 0 and pairs.max() < len(tree))
    deep = "(" * 3000 + "a" + ")" * 3000
    tree = treecaps.parse_code(
        f"a = {deep}" if language == "python" else f"int a = {deep};", language
    )
    find_edges(tree)
