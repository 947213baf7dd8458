"""Which model and parsers made an index."""

import json
from pathlib import Path

from treecaps.errors import ModelError, SearchError
from treecaps.hashing import digest
from treecaps.inference.embed import Embedder
from treecaps.models.settings import to_json
from treecaps.syntax.frontends import get_frontend


def fingerprint(embedder: Embedder) -> str:
    """Return a digest of all that vectors depend on beside the programs."""
    model = embedder.model
    parser = get_frontend(model.frontend, comments=model.comments).versions()
    made_by = [
        model.fingerprint(),
        model.weights,
        to_json(model.config),
        model.frontend,
        model.comments,
        parser,
    ]
    return digest(json.dumps(made_by, sort_keys=True).encode())


def model_name(model: str | Path) -> str:
    """Return what finds a model again from any folder: its own, or a bundled one's name."""
    return str(Path(model).resolve()) if Path(model).exists() else str(model)


def load_embedder(name: str, index: Path) -> Embedder:
    """Load the model that an index names."""
    try:
        return Embedder(name)
    except ModelError as error:
        raise SearchError(f"the model of {index} cannot be used: {error}") from None
