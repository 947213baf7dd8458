"""Guess the language of code whose file name does not tell it."""

import re

from treecaps.errors import ProgramError
from treecaps.syntax.languages import LANGUAGES, language_of_script
from treecaps.syntax.parse import loaded_frontend
from treecaps.syntax.program import Program

_HEAD = 4000
"""How many bytes are looked at: enough to tell, and quickly parsed in every language."""
_TRIED = 4
"""In how many languages code is parsed, those that most clues speak for."""

# Each that is found is one point; of languages that are as likely, the first is taken.
_CLUES = {
    "c": (
        r"#\s*include\s*<\w+\.h>",
        r"\b(?:int|void|char|double|float|long|struct \w+)[ *]+\w+\s*\([^;{]*\)\s*\{",
        r"\b(?:printf|scanf|malloc|free|sizeof)\s*\(",
        r"\bstruct \w+\s*\*|\btypedef\b|->",
    ),
    "cpp": (
        r"#\s*include\s*<\w+>|#\s*include\s*<bits/",
        r"\bstd::|\busing namespace\b",
        r"\b(?:cout|cin|vector|string|map|pair)\b\s*(?:<<|>>|<\w)",
        r"\btemplate\s*<|\b(?:public|private|protected)\s*:|\bnullptr\b|\w+::~?\w+|\bconst \w+\s*&",
    ),
    "java": (
        r"\bimport java[.x]|\bpackage [\w.]+;",
        r"\bpublic (?:static |final |abstract )*(?:class|interface|enum|void|int)\b",
        r"\bSystem\.(?:out|in)\b|\bString\[\] \w+|\bboolean\b",
        r"\b(?:extends|implements|throws)\b|\bfinal \w+|@Override|\bnew (?:int|ArrayList)\b",
    ),
    "c_sharp": (
        r"\busing [A-Z][\w.]*;|\bnamespace [\w.]+",
        r"\bConsole\.\w+|\bforeach\s*\(|\bstring\[\]",
        r"\b(?:public|private|internal)(?: static| override| readonly| sealed)* "
        r"[\w<>\[\],]+ [A-Z]\w*\s*[({<]",
        r"\{\s*get;|=>|\bvar \w+ =|\bout \w+|\bbool \w+|\.Length\b|\.Count\b",
    ),
    "go": (r"^package \w+\s*$", r"\bfunc (?:\(\w+ \*?\w+\) )?\w+\(", r":=|\bfmt\.", r"\brange\b"),
    "javascript": (
        r"\bfunction\b\s*\*?\s*\w*\s*\(",
        r"\b(?:const|let|var) [\w{\[]",
        r"\bconsole\.log\b|\brequire\(|\bmodule\.exports\b|\bexport\b",
        r"===|!==|=>|\.length\b|\bthis\.",
    ),
    "typescript": (
        r"[\w)\]]\??\s*:\s*(?:number|string|boolean|void|any|unknown|never|Array<|Map<|\w+\[\])",
        r"\b(?:const|let|var) [\w{\[]",
        r"\binterface \w+\s*[{<]|\btype \w+(?:<\w+>)? =|\bas (?:const|\w+)\b|\breadonly\b|<T>",
        r"===|!==|=>|\.length\b|\bthis\.|\bfunction\b",
    ),
    "tsx": (r":\s*(?:number|string|boolean|JSX\.\w+|React\.\w+)", r"return \(?\s*<\w+", r"</\w+>"),
    "kotlin": (
        r"\bfun (?:<[^>]*> )?[\w.]+\s*\(",
        r"\bva[lr] \w+\s*(?::|=)",
        r"\bprintln\(|\bwhen\s*[({]|\bdata class\b|\bcompanion object\b|\bin \w+\.indices\b",
        r":\s*(?:Int|String|Boolean|IntArray|List<|Array<|MutableList<)|\buntil\b|\bdownTo\b",
    ),
    "php": (r"<\?(?:php|=)", r"\$\w+", r"<\?php", r"<\?php"),
    "python": (
        r"^\s*(?:async )?def \w+\(.*\)?.*:?\s*$",
        r"^\s*(?:if|for|while|elif|else|try|with|class)\b[^{};]*:\s*(?:#.*)?$",
        r"^\s*(?:import|from) [\w.]+",
        r"\bself\.|\bNone\b|\bprint\(|\blen\(|\brange\(|__\w+__",
    ),
    "ruby": (
        r"^\s*def [\w.]+[?!=]?(?:\s*\(.*\))?\s*$",
        r"^\s*end\s*$",
        r"\bputs\b|\battr_\w+|\brequire ['\"]|\.each\b|\bnil\b|\bunless\b|\belsif\b|\buntil\b",
        r"\bdo \|\w+|\{ ?\|\w+|@\w+|\.new\b|\.nil\?",
    ),
    "rust": (
        r"\bfn \w+(?:<[^>]*>)?\s*\(",
        r"\blet (?:mut )?\w+|&mut\b|&\[?\w+",
        r"\bimpl\b|\bpub \w+|\buse (?:std|crate)|\bmatch\b|->",
        r"\w+!\(|\b[iuf](?:8|16|32|64|size)\b|\bVec<|\bOption<|\bSome\(",
    ),
    "swift": (
        r"\bfunc \w+(?:<[^>]*>)?\s*\(",
        r"\b(?:let|var) \w+\s*(?::|=)",
        r"\bimport Foundation\b|\bguard\b|\binit\s*\(|\bif let\b|\binout\b|\bmutating\b|\b_ \w+:",
        r"->|:\s*\[?(?:Int|String|Bool|Double)\b|\bnil\b|\.\.<|\.count\b",
    ),
}
_PATTERNS = {
    name: tuple(re.compile(clue, re.MULTILINE) for clue in clues) for name, clues in _CLUES.items()
}

# What never ends goes to the end, so that no text takes long.
_NOT_CODE = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|\"(?:\\.|[^\"\\\n])*\"?"
    # C headers say so what only compilers of C++ shall see.
    r"|^[ \t]*#[ \t]*if[^\n]*__cplusplus.*?(?:^[ \t]*#[ \t]*(?:endif|else)|\Z)",
    re.DOTALL | re.MULTILINE,
)
_ONLY_CPP = re.compile(
    r"\btemplate\s*<|\bnamespace\s+\w|\bclass\s+\w+\s*[;:{]|\b(?:public|private|protected)\s*:"
    r"|\w::~?\w|\busing\s+\w|\bvirtual\s+\w|\bconstexpr\s+\w|\bnullptr\b|\bnoexcept\b"
    r"|\bstatic_cast<|\bconst [\w:]+ ?&|#\s*include\s*<\w+>"
)


def language_of_code(name: str, text: bytes) -> str:
    """Return the language of a file whose name does not tell it, from its contents.

    A header is C++ if anything in it is not C. A script names its interpreter in its first line.
    """
    if name.lower().endswith(".h"):
        code = _NOT_CODE.sub(" ", text.decode("utf-8", "replace"))
        return "cpp" if _ONLY_CPP.search(code) else "c"
    script = language_of_script(text)
    if script:
        return script.name
    if text.startswith(b"#!"):
        line = text.split(b"\n", 1)[0].decode("utf-8", "replace").strip()
        raise ProgramError(
            "unknown-language",
            f"unknown language (the first line is {line[:60]!r}); name it with language=NAME",
        )
    return guess_language(text)


def guess_language(code: str | bytes) -> str:
    """Return the name of the language that a piece of code is most likely in.

    Clues in the text (``#include``, ``fn``, ``:=``) speak for languages. Of the few that most speak
    for, that is taken whose parser finds least amiss; a clue makes up for an error.
    """
    data = code.encode("utf-8", "replace") if isinstance(code, str) else code
    head = _head(data)
    text = head.decode("utf-8", "replace")
    points = {
        name: sum(bool(clue.search(text)) for clue in clues) for name, clues in _PATTERNS.items()
    }
    # Without its tag, all is plain text to PHP, and nothing can be amiss.
    points = {name: count for name, count in points.items() if name != "php" or count > 1}
    tried = sorted(points, key=lambda name: -points[name])[:_TRIED]
    parser = loaded_frontend("tree-sitter", False)

    def amiss(name: str) -> tuple[int, float]:
        try:
            tree = parser.parse(Program.from_clean_text(head, name))
        except ProgramError:  # it took too long
            return len(head), 1.0
        return len(tree.errors) - points[name], tree.error_share

    return min((name for name in tried if name in LANGUAGES), key=amiss)


def _head(data: bytes) -> bytes:
    """Return the beginning of code, cut at the end of a line."""
    if len(data) <= _HEAD:
        return data
    cut = data.rfind(b"\n", 0, _HEAD)
    return data[: cut if cut > 0 else _HEAD]
