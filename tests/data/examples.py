"""Data sets for tests."""

import json
from pathlib import Path

from tests.conftest import ROOT
from treecaps.data.corpus import Corpus

PROGRAMS = ROOT / "examples" / "programs"


def write_data(path: Path, count: int = 700) -> Path:
    """Write programs of several languages, some of which cannot be parsed by ``ast``."""
    with open(path, "w", encoding="utf-8") as file:
        for number in range(count):
            code, language = [
                (f"int f{number}(void) {{ return {number}; }}", "c"),
                (f"def f{number}(): return {number}", "python"),
                ("print 1", "python"),
                ("", "cobol"),
            ][number % 4]
            record = {"code": code, "language": language, "label": str(number % 3)}
            file.write(json.dumps(record) + "\n")
    return path


def equal(one: Corpus, other: Corpus) -> bool:
    return (
        one.about == other.about
        and list(one) == list(other)
        and (one.ids, one.labels, one.languages) == (other.ids, other.labels, other.languages)
        and one.failures == other.failures
    )
