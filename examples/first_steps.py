"""Tell what programs do: whole files, each function of a file, and code in a string."""

from pathlib import Path

import treecaps

PROGRAMS = Path(__file__).parent / "programs"

model = treecaps.load("algorithms")  # comes with the package: 75 algorithms, 13 languages

for answer in model.classify(sorted(PROGRAMS.glob("gcd/*.py")) + sorted(PROGRAMS.glob("stack/*"))):
    print(f"{Path(answer.id).name:20} {answer.label:10} {answer.probability:.0%}")

for answer in model.classify([PROGRAMS / "stack" / "stack.c"], functions=True):
    print(f"stack.c:{answer.line} {answer.function} is {answer.verdict}")

code = treecaps.Program("def f(n):\n    return n * f(n - 1) if n > 1 else 1\n", "python")
(answer,) = model.classify([code])
print(answer.verdict)
