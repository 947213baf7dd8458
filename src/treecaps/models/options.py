"""Fields of configurations: their defaults, their bounds, and the words of the help."""

from collections.abc import Iterator
from dataclasses import field, fields
from typing import Any, NamedTuple

from treecaps.errors import UsageError

MAX_INT = 1_000_000
MAX_LAYERS = 100


class Bounds(NamedTuple):
    """What the numbers of an option must be: at least, above, at most, below."""

    ge: float | None = None
    gt: float | None = None
    le: float | None = None
    lt: float | None = None

    def allows(self, value: float) -> bool:
        """Return whether a number is within the bounds."""
        return not (
            (self.ge is not None and value < self.ge)
            or (self.gt is not None and value <= self.gt)
            or (self.le is not None and value > self.le)
            or (self.lt is not None and value >= self.lt)
        )

    def __str__(self) -> str:
        words = ("at least", "above", "at most", "below")
        return " and ".join(
            f"{word} {bound:,}"
            for word, bound in zip(words, self, strict=True)
            if bound is not None
        )


def option(
    default: Any,
    text: str,
    *,
    ge: float | None = None,
    gt: float | None = None,
    le: float | None = None,
    lt: float | None = None,
    learned: bool = False,
) -> Any:
    """Make a field of a configuration.

    Args:
        default: Its value where it is not set.
        text: What it is, for the help.
        ge: The least value; of a whole number 1 by default.
        gt: A value that it must be above.
        le: The greatest value; of a whole number a million by default.
        lt: A value that it must be below.
        learned: Whether training finds it, so that nobody sets it.
    """
    bounds = Bounds(ge, gt, le, lt)
    return field(default=default, metadata={"help": text, "bounds": bounds, "learned": learned})


def check_bounds(config: Any) -> None:
    """Raise ``UsageError`` if an option of a configuration is out of its bounds."""
    for one in fields(config):
        value = getattr(config, one.name)
        if isinstance(value, tuple) and len(value) > MAX_LAYERS:
            raise UsageError(f"{one.name} may name at most {MAX_LAYERS} layers")
        declared: Bounds = one.metadata["bounds"]
        for number in _numbers(value):
            bounds = declared
            if isinstance(number, int):
                low = 1 if declared.ge is None else declared.ge
                high = MAX_INT if declared.le is None else declared.le
                # Only the bound that is broken is of interest.
                bounds = Bounds(ge=low) if number < low else Bounds(le=high)
            if not bounds.allows(number):
                said = "" if isinstance(number, int) and number > MAX_INT else f", not {value}"
                raise UsageError(f"{one.name} must be {bounds}{said}")


def _numbers(value: Any) -> Iterator[float]:
    for one in value if isinstance(value, tuple) else (value,):
        if isinstance(one, int | float) and not isinstance(one, bool):
            yield one
