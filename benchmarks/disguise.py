"""Copies of programs in disguise, by the steps that copied homework goes through.

Each step changes the text of a program where its syntax tree says so, and the result still parses.
A step that finds nothing to change returns the program as it is. The steps are for Java, C, C++,
C# and Python. They look like what people do, not like what a compiler would accept in every case.
"""

import random
import re
from collections.abc import Callable
from itertools import pairwise

from treecaps.errors import ProgramError
from treecaps.syntax.parse import loaded_frontend
from treecaps.syntax.program import Program
from treecaps.syntax.rewrite import rewrite
from treecaps.syntax.tree import Tree

Cut = tuple[int, int, str]
Step = Callable[[Program, random.Random], Program]

LANGUAGES = ("c", "c_sharp", "cpp", "java", "python")

_BLOCKS = ("block", "compound_statement")
_FUNCTIONS = ("function_definition", "method_declaration")
_SIMPLE = (
    "expression_statement",
    "declaration",
    "local_variable_declaration",
    "local_declaration_statement",
)
_DECLARATIONS = _SIMPLE[1:]
_JUMPS = ("break_statement", "continue_statement", "return_statement")
_DECLARING = (
    "variable_declarator",
    "init_declarator",
    "declaration",
    "array_declarator",
    "pointer_declarator",
    "reference_declarator",
    "function_declarator",
    "formal_parameter",
    "parameter_declaration",
    "parameter",
    "parameters",
    "default_parameter",
    "method_declaration",
    "function_definition",
    "enhanced_for_statement",
    "foreach_statement",
    "for_range_loop",
    "for_statement",
    "for_in_clause",
    "pattern_list",
    "assignment",
    "lambda_parameters",
)
_LIST = """alpha beta gamma delta value item total answer current index left right first last
    temp result counter limit size number data input output queue table cell score cost best
    worst middle low high start finish next prior node edge weight level depth width line mark
    flag state found seen used group part whole piece chunk block sum product base power"""
_WORDS = _LIST.split()


class View:
    """A tree and its text, with the children of each node at hand."""

    def __init__(self, program: Program) -> None:
        self.program = program
        self.tree: Tree = loaded_frontend("tree-sitter", comments=True).parse(program)
        self.kinds = self.tree.kind_names()
        self.parent = self.tree.parent.tolist()
        self.start, self.end = self.tree.start.tolist(), self.tree.end.tolist()
        self.children: list[list[int]] = [[] for _ in self.kinds]
        for node, up in enumerate(self.parent[1:], 1):
            self.children[up].append(node)

    def text(self, node: int) -> str:
        """Return the source text of a node."""
        return self.tree.text[self.start[node] : self.end[node]].decode()

    def all(self, *kinds: str) -> list[int]:
        """Return the nodes of some kinds."""
        return [node for node, kind in enumerate(self.kinds) if kind in kinds]

    def below(self, node: int) -> range:
        """Return the nodes under a node."""
        last = node + 1
        while last < len(self.parent) and self.parent[last] >= node:
            last += 1
        return range(node + 1, last)

    def holds(self, node: int, *kinds: str) -> bool:
        """Whether some node under a node is of one of these kinds."""
        return any(self.kinds[inner] in kinds for inner in self.below(node))

    def names(self, node: int) -> set[str]:
        """Return the names that stand under a node."""
        return {self.text(one) for one in self.below(node) if self.kinds[one] == "identifier"}

    def margin(self, node: int) -> str | None:
        """Return the white space that a node's line begins with, if nothing else does."""
        before = self.tree.text[: self.start[node]].rpartition(b"\n")[2].decode()
        return None if before.strip() else before

    def edit(self, cuts: list[Cut]) -> Program:
        """Return the program with some parts replaced."""
        text, done, pieces = self.tree.text, 0, []
        for start, end, new in sorted(cuts):
            if start >= done:
                pieces += [text[done:start], new.encode()]
                done = end
        return self.program.replace(text=b"".join([*pieces, text[done:]]))


def change_layout(program: Program, chance: random.Random) -> Program:
    """Drop the comments, write others, indent by another width, and move braces."""
    view = View(program)
    comments = [node for node, kind in enumerate(view.kinds) if "comment" in kind]
    text = view.edit([(view.start[node], view.end[node], " ") for node in comments]).text.decode()
    python = program.language == "python"
    sign = "#" if python else "//"
    lines = []
    quoted = '"""' in text or "'''" in text
    for line in text.split("\n"):
        bare = line.lstrip(" \t")
        if not bare:
            continue
        if quoted:
            lines.append(line)
            continue
        if bare.rstrip().endswith("{") and not bare.startswith("#") and chance.random() < 0.5:
            bare = bare.rstrip()[:-1].rstrip() + "\n{"
        lines.append(line[: len(line) - len(line.lstrip(" \t"))] * 2 + bare)
        if bare.rstrip().endswith((";", "}")) and chance.random() < 0.1:
            lines.append(f"{sign} {chance.choice(_WORDS)} {chance.choice(_WORDS)}")
    return program.replace(text="\n".join([*lines, ""]).encode())


def declared_names(view: View) -> list[str]:
    """Return the names that a program gives to its variables and functions."""
    found = []
    for node, kind in enumerate(view.kinds):
        up = view.parent[node]
        if kind != "identifier" or view.kinds[up] not in _DECLARING:
            continue
        after = view.children[up].index(node)
        if view.kinds[up] in ("assignment", "for_statement", "for_in_clause") and any(
            view.kinds[one] in ('"="', '"in"') for one in view.children[up][:after]
        ):
            continue
        if view.kinds[up] == "init_declarator" and after:
            continue
        found.append(view.text(node))
    return sorted(set(found) - {"main", "Main", "self"})


def rename(program: Program, chance: random.Random) -> Program:
    """Give every variable and function of the program another name."""
    view = View(program)
    names = declared_names(view)
    words = [f"{one}_{two}" for one in _WORDS for two in _WORDS]
    taken = view.tree.text.decode()
    words = [word for word in chance.sample(_WORDS, len(_WORDS)) + words if word not in taken]
    new = dict(zip(names, words, strict=False))
    leaves = [node for node in view.all("identifier", "field_identifier") if view.text(node) in new]
    return view.edit([(view.start[node], view.end[node], new[view.text(node)]) for node in leaves])


def change_constants(program: Program, chance: random.Random) -> Program:
    """Change half of the numbers above 1, and the words in strings."""
    view = View(program)
    cuts = []
    for node, kind in enumerate(view.kinds):
        text = view.text(node)
        if view.children[node] or chance.random() < 0.5:
            continue
        if re.fullmatch(r"[2-9]|[1-9]\d+", text):
            cuts.append((view.start[node], view.end[node], str(int(text) + chance.randint(1, 9))))
        elif re.fullmatch(r"string_(content|fragment|literal_content)", kind):
            words = re.sub(r"(?<![%\\{])\b[A-Za-z]{3,}\b", lambda _: chance.choice(_WORDS), text)
            cuts.append((view.start[node], view.end[node], words))
    return view.edit(cuts)


def reorder(program: Program, chance: random.Random) -> Program:
    """Shuffle functions that stand beside each other, and exchange independent statements."""
    view = View(program)
    cuts = []
    for children in view.children:
        functions = [node for node in children if view.kinds[node] in _FUNCTIONS]
        if len(functions) > 1 and len({view.margin(node) for node in functions}) == 1:
            moved = chance.sample(functions, len(functions))
            for old, new in zip(functions, moved, strict=True):
                cuts.append((view.start[old], view.end[old], view.text(new)))
    program = view.edit(cuts)
    view, cuts = View(program), []
    for children in view.children:
        done = -1
        for one, other in pairwise(children):
            both_simple = view.kinds[one] in _SIMPLE and view.kinds[other] in _SIMPLE
            if one == done or not both_simple or view.margin(one) != view.margin(other):
                continue
            if view.margin(one) is None or view.names(one) & view.names(other):
                continue
            if chance.random() < 0.7:
                cuts.append((view.start[one], view.end[one], view.text(other)))
                cuts.append((view.start[other], view.end[other], view.text(one)))
                done = other
    return view.edit(cuts)


def change_loops(program: Program, chance: random.Random) -> Program:
    """Write ``for`` as ``while``, and ``while`` as ``for``, one loop after the other."""
    for _ in range(8):
        view = View(program)
        if not (cuts := next(filter(None, map(_other_loop(view), view.all("for_statement"))), [])):
            break
        program = view.edit(cuts)
    if program.language == "python":
        return program
    view = View(program)
    cuts = []
    for node in view.all("while_statement"):
        body = view.children[node][-1]
        if chance.random() < 0.5 or view.kinds[view.parent[node]] == "do_statement":
            continue
        head = view.tree.text[view.start[node] : view.start[body]].decode()
        condition = head[head.index("(") + 1 : head.rindex(")")]
        cuts.append((view.start[node], view.start[body], f"for (; {condition}; ) "))
    return view.edit(cuts)


def _other_loop(view: View) -> Callable[[int], list[Cut]]:
    def python(node: int) -> list[Cut]:
        children = view.children[node]
        name, values = view.text(children[1]), view.text(children[3])
        counted = re.fullmatch(r"x?range\(([^(),]+)(?:, *([^(),]+))?\)", values)
        margin, body = view.margin(node), children[-1]
        if not counted or margin is None or view.kinds[body] != "block":
            return []
        if not name.isidentifier() or view.holds(node, "continue_statement"):
            return []
        first, last = ("0", counted[1]) if counted[2] is None else (counted[1], counted[2])
        inner = view.margin(view.children[body][0])
        if inner is None:
            return []
        head = f"{name} = {first}\n{margin}while {name} < {last}:\n{inner}"
        text = view.text(body).rstrip()
        return [(view.start[node], view.end[node], f"{head}{text}\n{inner}{name} += 1")]

    def braces(node: int) -> list[Cut]:
        children = view.children[node]
        semicolons = [child for child in children if view.kinds[child] == '";"']
        close = [child for child in children if view.kinds[child] == '")"']
        body = children[-1]
        if not close or view.kinds[body] not in _BLOCKS or view.holds(node, "continue_statement"):
            return []
        last = view.start[close[-1]]
        first = view.end[children[1]]
        head = view.tree.text[first:last].decode()
        parts = head.split(";")
        if len(parts) != 3 or len(semicolons) not in (1, 2):
            return []
        before, condition, after = (part.strip() for part in parts)
        steps = "".join(f"{step.strip()};\n" for step in after.split(",") if step.strip())
        inside = view.text(body)[1:-1].rstrip()
        loop = f"while ({condition or 'true'}) {{{inside}\n{steps}}}"
        start = f"{before};\n" if before else ""
        return [(view.start[node], view.end[node], f"{{ {start}{loop} }}")]

    return python if view.tree.language == "python" else braces


def extract(program: Program, chance: random.Random) -> Program:
    """Move the inside of some blocks into functions of their own."""
    for number in range(2):
        view = View(program)
        blocks = [node for node in view.all(*_BLOCKS) if _can_leave(view, node)]
        if not blocks:
            break
        block = chance.choice(blocks)
        function = block
        while view.kinds[function] not in _FUNCTIONS:
            function = view.parent[function]
        known = set(declared_names(view))
        names = sorted(view.names(block) & known)
        name = f"helper{number}"
        program = view.edit(_move(view, function, block, name, names))
    return program


def _can_leave(view: View, block: int) -> bool:
    if view.holds(block, *_JUMPS) or len(view.below(block)) < 25:
        return False
    up = view.parent[block]
    around = view.kinds[up]
    if around in _FUNCTIONS or around in ("module", "class_definition"):
        return False
    while up >= 0 and view.kinds[up] not in _FUNCTIONS:
        up = view.parent[up]
    return bool(up >= 0)


def _move(view: View, function: int, block: int, name: str, names: list[str]) -> list[Cut]:
    if view.tree.language == "python":
        margin = view.margin(function) or ""
        own = "self" in names
        given = [one for one in names if one != "self"]
        inner = view.margin(view.children[block][0]) or ""
        body = re.sub(rf"(?m)^{inner}", margin + "    ", view.text(block))
        head = f"def {name}({', '.join(['self'] * own + given)}):\n{margin}    {body}\n\n{margin}"
        call = f"{'self.' * own}{name}({', '.join(given)})"
        return [
            (view.start[function], view.start[function], head),
            (view.start[block], view.end[block], call),
        ]
    static = "static " * (view.tree.language in ("java", "c_sharp"))
    typed = ", ".join(f"int {one}" for one in names)
    head = f"{static}void {name}({typed}) {view.text(block)}\n\n"
    call = f"{{ {name}({', '.join(names)}); }}"
    return [
        (view.start[function], view.start[function], head),
        (view.start[block], view.end[block], call),
    ]


def add_unused(program: Program, chance: random.Random) -> Program:
    """Add statements that do nothing."""
    view = View(program)
    python = program.language == "python"
    cuts: list[Cut] = []
    for node, kind in enumerate(view.kinds):
        margin = view.margin(node)
        if kind not in _SIMPLE or margin is None or chance.random() < 0.7:
            continue
        if view.kinds[view.parent[node]] not in _BLOCKS:
            continue
        name, number = chance.choice(_WORDS) + str(len(cuts)), chance.randint(0, 99)
        new = [f"{name} = {number}" if python else f"int {name} = {number};"]
        if chance.random() < 0.5:
            test = f"if {name} > {number}:" if python else f"if ({name} > {number})"
            more = f"{name} = {name} * 2" if python else f"{{ {name} = {name} * 2; }}"
            new += [f"{test}\n{margin}    {more}"]
        cuts.append((view.start[node], view.start[node], f"\n{margin}".join([*new, ""])))
    return view.edit(cuts)


def spell_otherwise(program: Program, chance: random.Random) -> Program:
    """Turn comparisons, write ``a += b`` as ``a = a + b``, exchange branches."""
    return rewrite(program, chance.randrange(2**31))


STEPS: dict[str, Step] = {
    "layout": change_layout,
    "names": rename,
    "constants": change_constants,
    "order": reorder,
    "expressions": spell_otherwise,
    "loops": change_loops,
    "functions": extract,
    "unused": add_unused,
}


def disguise(program: Program, steps: list[str], chance: random.Random) -> tuple[Program, int]:
    """Take some steps, each if the result parses; return the copy and how many changed it."""
    faults = len(View(program).tree.errors)
    taken = 0
    for name in steps:
        try:
            changed = STEPS[name](program, chance)
            if changed.text == program.text or len(View(changed).tree.errors) > faults:
                continue
        except (ProgramError, UnicodeDecodeError):
            continue
        program, taken = changed, taken + 1
    return program, taken
