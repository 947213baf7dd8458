"""``KindVectors``: a vector for each kind of node, and where they come from."""

import json
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from treecaps.data.vocabulary import Vocabulary
from treecaps.errors import DataError, UsageError, describe_os_error
from treecaps.files import load_json, open_atomic, read_regular_file
from treecaps.inputs.base import Floats
from treecaps.inputs.distinct import Longs
from treecaps.text import did_you_mean

FORMAT = 1
_ABOUT = "treecaps-vectors"
_MAX_BYTES = 1 << 30


@dataclass(frozen=True, eq=False)
class KindVectors:
    """Vectors of V numbers for the K kinds of a vocabulary; row 0 is for all unknown kinds.

    Args:
        vocabulary: The kinds.
        values: ``[K, V]``.
        counts: ``[K]``, how many nodes of each kind the trees had.
        method: The way they were learned.
        data: The name of the data they were learned from.
        seed: Random seed.
        version: The treecaps that learned them.
    """

    vocabulary: Vocabulary = field(repr=False)
    values: Floats = field(repr=False)
    counts: Longs = field(repr=False)
    method: str
    data: str
    seed: int
    version: str

    @property
    def size(self) -> int:
        """V, how many numbers a vector has."""
        return int(self.values.shape[1])

    def vector(self, kind: str) -> Floats:
        """Return the vector ``[V]`` of a kind; an unknown kind has that of row 0."""
        values: Floats = self.values[self.vocabulary.number(kind)]
        return values

    def for_vocabulary(self, vocabulary: Vocabulary) -> Floats:
        """Return the vectors ``[K', V]`` of another vocabulary's kinds, row 0 where unknown."""
        values: Floats = self.values[[self.vocabulary.number(kind) for kind in vocabulary.kinds]]
        return values

    def by_frequency(self) -> list[str]:
        """Return the known kinds, those with most nodes first."""
        order = np.argsort(-self.counts[1:], kind="stable") + 1
        return [self.vocabulary.kinds[number] for number in order.tolist()]

    def neighbours(self, kind: str, top: int = 5) -> list[tuple[str, float]]:
        """Return the kinds whose vectors point most nearly the same way, with their cosines."""
        own = self.vocabulary.number(kind)
        if not own:
            names = self.by_frequency()
            some = f"there are vectors for {', '.join(names[:3])}, ..."
            hint = did_you_mean(kind, names) or some
            raise UsageError(f"there is no vector for the kind {kind!r}; {hint}")
        lengths = np.linalg.norm(self.values, axis=1)
        products = self.values @ self.values[own]
        cosines = products / np.maximum(lengths * lengths[own], np.finfo(np.float32).tiny)
        order = np.argsort(-cosines, kind="stable")
        others = [number for number in order.tolist() if number not in (0, own)]
        return [(self.vocabulary.kinds[number], float(cosines[number])) for number in others[:top]]

    def save(self, path: str | Path) -> None:
        """Write the vectors into one ``.safetensors`` file, which appears when complete."""
        about = {
            "format": FORMAT,
            "kinds": self.vocabulary.to_json(),
            "method": self.method,
            "data": self.data,
            "seed": self.seed,
            "version": self.version,
        }
        contents = save({"values": self.values, "counts": self.counts}, {_ABOUT: json.dumps(about)})
        try:
            with open_atomic(Path(path)) as file:
                file.write(contents)
        except OSError as error:
            raise DataError(f"cannot write {path}: {describe_os_error(error)}") from None

    @classmethod
    def load(cls, path: str | Path) -> "KindVectors":
        """Read what ``save`` wrote, and check it."""
        try:
            content = read_regular_file(path, _MAX_BYTES)
            tensors = load(content)
            # The head of the file: its size, then JSON, which was checked just now.
            head = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
            metadata = head.get("__metadata__") or {}
        except OSError as error:
            raise DataError(f"cannot read {path}: {describe_os_error(error)}") from None
        except (SafetensorError, ValueError, KeyError, TypeError, AttributeError):
            raise DataError(f"{path} is damaged, or no file of vectors") from None
        if _ABOUT not in metadata:
            raise DataError(f"{path} holds no vectors of kinds; make some: treecaps vectors learn")
        try:
            about = load_json(metadata[_ABOUT])
            newer = about["format"] > FORMAT
            made_by = str(about["version"])
            if not newer:
                vectors = cls(
                    vocabulary=Vocabulary.from_json(about["kinds"]),
                    values=tensors["values"],
                    counts=tensors["counts"],
                    method=str(about["method"]),
                    data=str(about["data"]),
                    seed=int(about["seed"]),
                    version=made_by,
                )
        except (DataError, KeyError, ValueError, TypeError, OverflowError) as error:
            raise DataError(f"{path} is damaged: {error}") from None
        if newer:
            raise DataError(f"{path} was written by a newer treecaps, {made_by}: update yours")
        kinds = len(vectors.vocabulary)
        if (
            vectors.values.dtype != np.float32
            or vectors.values.ndim != 2
            or len(vectors.values) != kinds
            or not vectors.size
            or vectors.counts.dtype != np.int64
            or vectors.counts.shape != (kinds,)
            or not np.isfinite(vectors.values).all()
        ):
            raise DataError(f"{path} is damaged: its numbers do not fit its {kinds:,} kinds")
        return vectors
