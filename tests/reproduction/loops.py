"""Small data sets in the place of those of the paper."""

import json
import random
from pathlib import Path

LOOPS = {
    "python": {
        "sum": "def {f}({v}):\n    {t} = {n}\n    for {i} in {v}:\n        {t} += {i}\n"
        "    return {t}\n",
        "max": "def {f}({v}):\n    {t} = {n}\n    for {i} in {v}:\n        if {i} > {t}:\n"
        "            {t} = {i}\n    return {t}\n",
    },
    "java": {
        "sum": "class A {{ int {f}(int[] {v}) {{ int {t} = {n}; for (int {i} : {v}) {t} += {i};"
        " return {t}; }} }}\n",
        "max": "class A {{ int {f}(int[] {v}) {{ int {t} = {n}; for (int {i} : {v}) if ({i} > {t})"
        " {t} = {i}; return {t}; }} }}\n",
    },
    "c": {
        "sum": "int {f}(int *{v}, int n) {{ int {t} = {n}; for (int {i} = 0; {i} < n; {i}++)"
        " {t} += {v}[{i}]; return {t}; }}\n",
        "max": "int {f}(int *{v}, int n) {{ int {t} = {n}; for (int {i} = 0; {i} < n; {i}++)"
        " if ({v}[{i}] > {t}) {t} = {v}[{i}]; return {t}; }}\n",
    },
}
DATA = {"python-algorithms": "python", "java-sort": "java", "poj104": "c"}
NAMES = ["alpha", "beta", "gamma", "delta", "omega", "kappa", "sigma", "theta"]


def write_data(home: Path) -> Path:
    """Write 24 programs to learn from and 8 to score for each data set, and return the folder."""
    for name, language in DATA.items():
        (home / name).mkdir(parents=True)
        for part, count in (("train", 12), ("test", 4)):
            chance = random.Random(part)
            rows = []
            for number in range(count):
                for label, code in LOOPS[language].items():
                    words = dict(zip("fvti", chance.sample(NAMES, 4), strict=True))
                    text = code.format(n=number, **words)
                    rows.append({"code": text, "language": language, "label": label})
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (home / name / f"{part}.jsonl").write_text(lines)
    return home
