"""The description of the server as a plain page, without a script."""

from typing import Any

from treecaps.rendering.page import render


def to_html(schema: dict[str, Any]) -> str:
    """Return a page of an OpenAPI description."""
    models = schema["components"]["schemas"]
    requests = []
    for path, methods in schema["paths"].items():
        for method, about in methods.items():
            body = about.get("requestBody", {}).get("content", {}).get("application/json")
            requests.append(
                {
                    "method": method.upper(),
                    "path": path,
                    "about": (about.get("description") or about["summary"]).rstrip("."),
                    "fields": _fields(_model(body["schema"], models)) if body else [],
                    "statuses": ", ".join(sorted(about["responses"])),
                }
            )
    return render("docs", requests=requests)


def _model(part: dict[str, Any], models: dict[str, Any]) -> dict[str, Any]:
    name = part.get("$ref", "").rpartition("/")[2]
    model: dict[str, Any] = models.get(name, part)
    return model


def _fields(model: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "type": _type(field),
            "required": name in model.get("required", ()),
            "about": field.get("description", ""),
        }
        for name, field in model["properties"].items()
    ]


def _type(field: dict[str, Any]) -> str:
    kinds = [one.get("type", "") for one in field.get("anyOf", [field])]
    return " or ".join(kind for kind in kinds if kind != "null")
