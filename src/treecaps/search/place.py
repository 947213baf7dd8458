"""Where an index is: a file, or a database at an address."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

from treecaps.errors import UsageError

_SCHEMES = ("postgresql://", "postgres://")
_SHOWN = ("host", "port")
"""Options of an address that are told; others may be secret."""


@dataclass(frozen=True)
class Address:
    """The address of a database. As text it has no password, so any message may hold it.

    Args:
        secret: The whole address, as libpq takes it.
    """

    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        # Whatever of a password is not taken for one could be told in a message.
        scheme, _, behind = self.secret.partition("://")
        authority = re.split(r"[/?#]", behind, maxsplit=1)[0]
        if (
            f"{scheme}://" not in _SCHEMES
            or behind.count("@") > 1
            or "@" in behind[len(authority) :]
        ):
            raise UsageError(
                "the address of the database cannot be read: it is postgresql://USER@HOST:PORT/NAME,"
                " with @ / ? # % of a password written as %40 %2F %3F %23 %25"
            )

    def __str__(self) -> str:
        parts = urlsplit(self.secret)
        user, at, host = parts.netloc.rpartition("@")
        shown = [(name, value) for name, value in parse_qsl(parts.query) if name in _SHOWN]
        query = f"?{urlencode(shown, safe='/')}" if shown else ""
        return f"postgresql://{user.partition(':')[0]}{at}{host}{parts.path}{query}"


Place = Path | Address
"""What is named where an index is wanted."""


def to_place(place: str | Path | Address) -> Place:
    """Return where an index is, from a path or an address in text."""
    if isinstance(place, str) and place.startswith(_SCHEMES):
        return Address(place)
    return place if isinstance(place, Address) else Path(place)
