"""Which model and parsers made an index."""

import json

from treecaps.errors import ModelError, SearchError
from treecaps.hashing import digest
from treecaps.inference.embed import Embedder
from treecaps.models.bundled import HOME
from treecaps.models.settings import to_json
from treecaps.models.trained import TrainedModel
from treecaps.search.place import Place
from treecaps.syntax.frontends import get_frontend

_UNSAVED = "<unsaved>"


def fingerprint(embedder: Embedder) -> str:
    """Return a digest of all that vectors depend on beside the programs."""
    model = embedder.model
    parser = get_frontend(model.frontend, comments=model.comments).versions()
    made_by = [
        model.fingerprint(),
        model.engine.weights,
        to_json(model.config),
        model.frontend,
        model.comments,
        parser,
    ]
    return digest(json.dumps(made_by, sort_keys=True).encode())


def model_name(model: TrainedModel) -> str:
    """Return what finds a model again from any folder: its own, or a bundled one's name."""
    if model.folder is None:
        return _UNSAVED
    return model.folder.name if model.folder.parent == HOME else str(model.folder.resolve())


def load_embedder(name: str, index: Place) -> Embedder:
    """Load the model that an index names."""
    if name == _UNSAVED:
        raise SearchError(f"the model of {index} was not saved: give its embedder, or index again")
    try:
        return Embedder(name)
    except ModelError as error:
        raise SearchError(f"the model of {index} cannot be used: {error}") from None
