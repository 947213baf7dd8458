"""SARIF: what was found in programs, for code scanners."""

from collections.abc import Iterable
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from treecaps._version import __version__

if TYPE_CHECKING:
    from treecaps.inference.bugs import Bug, BugReport

_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_PLAIN = "suspicious"
"""The rule of what is suspicious without a kind."""


def to_sarif(reports: "Iterable[BugReport]") -> dict[str, Any]:
    """Return the places of programs that may have a bug as a SARIF 2.1.0 log."""
    results = [_result(report.id, bug) for report in reports for bug in report.bugs]
    rules = sorted({result["ruleId"] for result in results})
    driver = {
        "name": "treecaps",
        "version": __version__,
        "rules": [
            {"id": rule, "shortDescription": {"text": rule.replace("-", " ")}} for rule in rules
        ],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}


def _result(name: str, bug: "Bug") -> dict[str, Any]:
    region = {
        "startLine": bug.line,
        "startColumn": bug.column,
        "endLine": bug.end_line,
        "endColumn": bug.end_column,
    }
    kind = bug.kind or _PLAIN
    return {
        "ruleId": kind.replace(" ", "-"),
        "level": "warning",
        "message": {"text": f"There may be a bug here ({kind}): {bug.code}"},
        "rank": round(100 * bug.probability, 1),
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": quote(PurePath(name).as_posix())},
                    "region": region,
                }
            }
        ],
    }
