"""The application: which path gets which answer."""

import json
from collections.abc import Awaitable, Callable
from importlib.resources import files
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from treecaps._version import __version__
from treecaps.errors import SearchError, TreeCapsError
from treecaps.rendering.docs import to_html
from treecaps.rendering.page import read_asset
from treecaps.server import schema
from treecaps.server.engine import Engine
from treecaps.server.limits import RefusedError
from treecaps.server.metrics import Metrics
from treecaps.syntax.languages import LANGUAGES, language_of_file
from treecaps.text import replace_surrogates, to_one_line

_PAGE = files("treecaps.server") / "page"
_FILES = {
    "/": ("index.html", "text/html"),
    "/page.css": ("page.css", "text/css"),
    "/page.js": ("page.js", "text/javascript"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
}
_WORDS = {
    408: "The request took too long to arrive.",
    413: "The request, or its tree, is too large.",
    421: "The server is called by a name that it does not go by.",
    422: "Something about the request or its program is wrong.",
    429: "Too many requests are under way.",
    431: "The head of the request is too large.",
    503: "There was no answer in time.",
}
_ERRORS: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.ErrorAnswer, "description": words} for status, words in _WORDS.items()
}


class _JSON(JSONResponse):
    """An answer; names of files and classes in it need not be Unicode."""

    def render(self, content: Any) -> bytes:
        try:
            return super().render(content)
        except UnicodeEncodeError:
            return replace_surrogates(json.dumps(content, ensure_ascii=False)).encode()


def create_app(engine: Engine, metrics: Metrics, name: str) -> FastAPI:
    """Make the application.

    Args:
        engine: What answers.
        metrics: What is told to Prometheus.
        name: What the model is called.
    """
    app = FastAPI(
        title="treecaps",
        version=__version__,
        description="What programs do, told from their syntax trees.",
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
    )
    _add_errors(app)
    _add_answers(app, engine)
    _add_rest(app, engine, metrics, name)
    described = app.openapi()
    # Which classes there are depends on the model.
    fields = described["components"]["schemas"]["ExplainRequest"]["properties"]
    fields["label"]["anyOf"][0]["enum"] = list(engine.model.labels)
    _add_page(app, described)
    return app


def _add_answers(app: FastAPI, engine: Engine) -> None:
    def post(
        path: str, answer: Any, summary: str, others: dict[int | str, dict[str, Any]] | None = None
    ) -> Callable[..., Any]:
        # Answers go out as they are: checking them against their models again takes time.
        good = {"model": answer, "description": "The answer."}
        responses = {200: good, **_ERRORS, **(others or {})}
        return app.post(
            path, response_class=_JSON, responses=responses, summary=summary, tags=["v1"]
        )

    @post(
        "/v1/classify",
        schema.ClassificationAnswer | list[schema.ClassificationAnswer],
        "Tell which class a program belongs to",
    )
    async def classify(request: schema.ClassifyRequest) -> Response:
        found = [one.to_dict() for one in await engine.classify(request.source(), request.top)]
        return _JSON(found if request.functions else found[0])

    @post(
        "/v1/embed",
        schema.EmbeddingAnswer | list[schema.EmbeddingAnswer],
        "Turn a program into a vector",
    )
    async def embed(request: schema.EmbedRequest) -> Response:
        found = [one.to_dict() for one in await engine.embed(request.source())]
        return _JSON(found if request.functions else found[0])

    @post("/v1/explain", schema.ExplanationAnswer, "Show what of a program leads to its class")
    async def explain(request: schema.ExplainRequest) -> Response:
        found = await engine.explain(request.source(), request.label, request.method)
        return _JSON(found)

    @post(
        "/v1/search",
        schema.SearchAnswer | list[schema.SearchAnswer],
        "Find what is most like a program",
        {
            404: {
                "model": schema.ErrorAnswer,
                "description": "The server has no index, or the program no such lines.",
            }
        },
    )
    async def search(request: schema.SearchRequest) -> Response:
        found = await engine.search(
            request.source(), request.top, request.chosen(), request.with_code
        )
        return _JSON(found if request.functions else found[0])

    @post("/v1/language", schema.LanguageAnswer, "Tell the language of a program")
    async def language(request: schema.LanguageRequest) -> Response:
        return _JSON({"language": await engine.language(request.source())})


def _add_rest(app: FastAPI, engine: Engine, metrics: Metrics, name: str) -> None:
    limits = engine.limits
    about = {
        "treecaps": __version__,
        "model": name,
        "labels": list(engine.model.labels),
        "languages": sorted(LANGUAGES),
        "limits": {
            "max_bytes": limits.max_bytes,
            "max_nodes": limits.max_nodes,
            "seconds": limits.seconds,
            "waiting": limits.waiting,
            "batch": limits.batch,
        },
        "samples": [
            {"name": sample, "language": language_of_file(sample).name} for sample in _samples()
        ],
    }

    @app.get("/v1/about", response_model=schema.About, tags=["v1"])
    async def tell_about() -> Response:
        """Tell what the server is made of: model, classes, languages, limits."""
        index = engine.index
        size = None if index is None else {"files": index.files, "entries": len(index)}
        return _JSON({**about, "index": size})

    stuck = {"model": schema.ErrorAnswer, "description": "No worker can answer."}

    @app.get("/healthz", response_model=schema.Health, responses={503: stuck}, tags=["server"])
    async def tell_health() -> Response:
        """Tell that the server serves."""
        if not await engine.can_answer():
            raise RefusedError(503, "stuck", "no worker can answer: try again in a moment")
        return _JSON({"status": "ok"})

    @app.get("/metrics", response_class=Response, tags=["server"])
    async def tell_metrics() -> Response:
        """Return metrics in Prometheus' text format."""
        return Response(metrics.to_text(), media_type="text/plain; version=0.0.4; charset=utf-8")


def _samples() -> list[str]:
    # Where the package is installed, its Python files are compiled, into a folder beside them.
    return sorted(one.name for one in (_PAGE / "samples").iterdir() if one.is_file())


def _add_page(app: FastAPI, described: dict[str, Any]) -> None:
    def add(path: str, content: bytes, kind: str) -> None:
        async def give() -> Response:
            return Response(content, media_type=f"{kind}; charset=utf-8")

        app.add_api_route(path, give, methods=["GET"], include_in_schema=False)

    for path, (name, kind) in _FILES.items():
        add(path, (_PAGE / name).read_bytes(), kind)
    add("/style.css", read_asset("style.css").encode(), "text/css")
    for name in _samples():
        add(f"/samples/{name}", (_PAGE / "samples" / name).read_bytes(), "text/plain")
    add("/openapi.json", bytes(_JSON(described).body), "application/json")
    add("/docs", to_html(described).encode(), "text/html")


def _add_errors(app: FastAPI) -> None:
    def give(status: int, code: str, message: str, **headers: str) -> Response:
        refusal = RefusedError(status, code, to_one_line(message))
        return _JSON(refusal.to_dict(), status, headers)

    def on(error: Any) -> Callable[..., Callable[[Request, Any], Awaitable[Response]]]:
        return app.exception_handler(error)

    @on(RequestValidationError)
    async def tell_invalid(_: Request, error: RequestValidationError) -> Response:
        return give(422, "invalid", "; ".join(map(_spell, error.errors()[:5])))

    @on(TreeCapsError)
    async def tell_error(_: Request, error: TreeCapsError) -> Response:
        return give(422, "usage", str(error))

    @on(SearchError)
    async def tell_lost_index(_: Request, error: SearchError) -> Response:
        return give(503, "index", str(error))

    @on(RefusedError)
    async def tell_refusal(_: Request, error: RefusedError) -> Response:
        return give(error.status, error.code, error.message)

    @on(HTTPException)
    async def tell_status(request: Request, error: HTTPException) -> Response:
        if error.status_code == 400:  # what FastAPI says of a body that it cannot read
            return give(422, "invalid", _spell_unread(error.__cause__))
        words = {
            404: (
                "not-found",
                f"there is nothing at {request.url.path}; /docs tells what there is",
            ),
            405: ("method", f"{request.url.path} does not take {request.method}"),
        }
        code, message = words.get(error.status_code, ("http", str(error.detail)))
        return give(error.status_code, code, message, **(error.headers or {}))

    @on(Exception)
    async def tell_bug(_: Request, error: Exception) -> Response:
        return give(500, "internal", f"a mistake of the server: {type(error).__name__}")


def _spell(problem: dict[str, Any]) -> str:
    """Say what is wrong with a request, and where."""
    if problem["type"] == "json_invalid":
        return f"the body is no JSON: {problem['ctx']['error']}"
    where = ".".join(str(part) for part in problem["loc"] if part != "body")
    said = str(problem["msg"]).removeprefix("Value error, ")
    return f"{where or 'the body'}: {said[:1].lower()}{said[1:]}"


def _spell_unread(cause: BaseException | None) -> str:
    """Say why a body cannot be read at all."""
    match cause:
        case UnicodeDecodeError():
            return "the body is no JSON: it is not UTF-8"
        case RecursionError():
            return "the body is nested too deeply: send one object of plain values"
        case ValueError():
            return "the body holds a number with too many digits"
    return "the body cannot be read"
