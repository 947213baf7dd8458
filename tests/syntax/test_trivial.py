import pytest

from treecaps.syntax.functions import find_functions
from treecaps.syntax.parse import parse_code
from treecaps.syntax.trivial import is_accessor, is_constructor, is_trivial


@pytest.mark.parametrize(
    ("language", "code", "constructors"),
    [
        (
            "python",
            "class A:\n    def __init__(self): self.f()\n    def f(self): g()",
            "__init__",
        ),
        ("java", "class A { A(int x) { f(); } void f() { g(); } }", "A"),
        ("c_sharp", "class A { A() { F(); } ~A() { F(); } void F() { G(); } }", "A A"),
        (
            "cpp",
            "class A { A() { f(); } void f() { g(); } };\nA::A(int x) { f(); }",
            "A A::A",
        ),
        ("cpp", "main() { f(); }\nint f() { g(); }", ""),
        ("javascript", "class A { constructor() { f(); } f() { g(); } }", "constructor"),
        ("typescript", "class A { constructor() { f(); } f() { g(); } }", "constructor"),
        ("php", "<?php class A { function __construct() { f(); } function f() {} }", "__construct"),
        (
            "ruby",
            "class A\n  def initialize\n    f\n  end\n  def f; g; end\nend",
            "initialize",
        ),
        ("rust", "impl A { fn new() -> A { f() } fn f() { g() } }", "new"),
        ("kotlin", "class A { constructor(x: Int) { f() }\n fun f() { g() } }", "<function>"),
        ("swift", "struct A { init(x: Int) { f() }\n func f() { g() } }", "init"),
        ("python", "def constructor(): f()", ""),
    ],
)
def test_constructors(language: str, code: str, constructors: str) -> None:
    found = find_functions(parse_code(code, language))
    assert [one.name for one in found if is_constructor(one)] == constructors.split()


@pytest.mark.parametrize(
    ("language", "code"),
    [
        (
            "python",
            "class A:\n    @property\n    def x(self):\n        'x'\n        return self._x",
        ),
        ("python", "class A:\n    def set_x(self, x): self.x = x"),
        ("java", "class A { public int getX() { return this.x; } }"),
        ("java", "class A { public void setX(int x) { this.x = x; } }"),
        ("c_sharp", "class A { int X() { return x; } }"),
        ("cpp", "struct A { int x() const { return x_; } };"),
        ("javascript", "class A { get x() { return this._x; } }"),
        ("typescript", "class A { get x(): number { return this._x; } }"),
        ("go", "package p\nfunc (a *A) X() int { return a.x }"),
        ("rust", "impl A { fn x(&self) -> u32 { self.x } }"),
        ("ruby", "def x\n  @x\nend"),
        ("php", "<?php class A { function x() { return $this->x; } }"),
        ("kotlin", "class A { fun x(): Int { return y } }"),
        ("swift", "struct A { func x() -> Int { return y } }"),
    ],
)
def test_accessors(language: str, code: str) -> None:
    (found,) = find_functions(parse_code(code, language))
    assert is_accessor(found)


@pytest.mark.parametrize(
    ("language", "code"),
    [
        ("python", "def add(a, b): return a + b"),
        ("python", "def f(a):\n    b = a\n    return b"),
        ("java", "class A { int f(int[] a) { return a[0]; } }"),
        ("java", "class A { int gcd(int a, int b) { return b == 0 ? a : gcd(b, a % b); } }"),
        ("go", "package p\nfunc f(x int) { for x > 0 { x-- } }"),
        ("ruby", "def f(x)\n  x.g\nend"),
        ("cpp", "bool empty() { return n == 0; }"),
    ],
)
def test_what_computes_is_not_trivial(language: str, code: str) -> None:
    (found,) = find_functions(parse_code(code, language))
    assert not is_trivial(found)
