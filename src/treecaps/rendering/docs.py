"""The description of the server as a plain page, without a script."""

from collections.abc import Iterator
from html import escape
from typing import Any

_FRAME = """<!doctype html>
<html lang="en"><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>treecaps: what the server answers</title>
<link rel="stylesheet" href="style.css"><link rel="stylesheet" href="page.css">
<link rel="icon" href="icon.svg">
<header><h1>What the server answers</h1>
<p>Requests and answers are JSON; an error is <code>{"error": {"code", "message"}}</code>. The same
for programs: <a href="openapi.json">openapi.json</a>. <a href="./">Back to the page</a>.</p>
</header><main class="docs">
"""


def to_page(schema: dict[str, Any]) -> str:
    """Return a page of an OpenAPI description."""
    parts = list(_paths(schema))
    return _FRAME + "\n".join(parts) + "\n</main></html>\n"


def _paths(schema: dict[str, Any]) -> Iterator[str]:
    models = schema["components"]["schemas"]
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            yield f"<h2><code>{method.upper()} {escape(path)}</code></h2>"
            said = about.get("description") or about["summary"]
            yield f"<p>{escape(said.rstrip('.'))}.</p>"
            body = about.get("requestBody", {}).get("content", {}).get("application/json")
            if body:
                yield from _fields(_model(body["schema"], models))
                yield f"<pre>curl -s localhost:8000{escape(path)} --json '{_EXAMPLE}'</pre>"
            answers = ", ".join(sorted(about["responses"]))
            yield f'<p class="quiet">Statuses: {answers}</p>'


_EXAMPLE = '{"code": "int gcd(int a, int b) { return b ? gcd(b, a % b) : a; }"}'


def _model(part: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    name = part.get("$ref", "").rpartition("/")[2]
    model: dict[str, Any] = models.get(name, part)
    return model


def _fields(model: dict[str, Any]) -> Iterator[str]:
    yield '<div class="wide"><table><tr><th>field</th><th>type</th><th></th></tr>'
    for name, field in model["properties"].items():
        needed = "" if name in model.get("required", ()) else ", may be left out"
        yield (
            f"<tr><td><code>{escape(name)}</code></td><td>{escape(_type(field))}{needed}</td>"
            f"<td>{escape(field.get('description', ''))}</td></tr>"
        )
    yield "</table></div>"


def _type(field: dict[str, Any]) -> str:
    kinds = [one.get("type", "") for one in field.get("anyOf", [field])]
    return " or ".join(kind for kind in kinds if kind != "null")
