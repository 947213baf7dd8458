from pathlib import Path

import pytest

from treecaps.errors import UsageError
from treecaps.search.place import Address, to_place

SECRET = "Zebra7-quagga"


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        (f"postgresql://me:{SECRET}@db:5433/code", "postgresql://me@db:5433/code"),
        (f"postgres://me:{SECRET}@db/code", "postgresql://me@db/code"),
        (f"postgresql://me:{SECRET}:x@[::1]:5433/code", "postgresql://me@[::1]:5433/code"),
        (f"postgresql://me:a%40{SECRET}@one:1,two:2/code", "postgresql://me@one:1,two:2/code"),
        (f"postgresql://db/code?password={SECRET}&user=me", "postgresql://db/code"),
        (
            f"postgresql:///code?host=/run/db&sslpassword={SECRET}",
            "postgresql:///code?host=/run/db",
        ),
        ("postgresql://", "postgresql://"),
    ],
)
def test_an_address_is_told_without_its_password(address: str, shown: str) -> None:
    place = to_place(address)
    assert str(place) == shown
    assert place == Address(address)
    assert SECRET not in f"{place} {place!r}"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://me:a@{SECRET}@db/code",
        f"postgresql://me:a/{SECRET}@db/code",
        f"postgresql://me:a?{SECRET}@db/code",
        f"postgresql://me:a#{SECRET}@db/code",
        f"mysql://me:{SECRET}@db/code",
    ],
)
def test_an_address_with_an_unclear_password_is_refused_without_it(address: str) -> None:
    with pytest.raises(UsageError, match="%40 %2F") as refused:
        Address(address)
    assert SECRET not in str(refused.value)


def test_anything_else_is_a_path() -> None:
    assert to_place("some/index") == to_place(Path("some/index")) == Path("some/index")
    assert to_place("postgresql:index") == Path("postgresql:index")
