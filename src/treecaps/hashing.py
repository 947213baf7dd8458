"""Digests of contents: the same on every computer, and in every version that reads old files."""

from collections.abc import Iterable
from pathlib import Path

import xxhash

from treecaps.files import read_blocks


def digest(content: bytes) -> str:
    """Return a digest of bytes: 32 hexadecimal digits."""
    return xxhash.xxh3_128_hexdigest(content)


def digest_parts(parts: Iterable[bytes]) -> str:
    """Return the digest of bytes that come in parts, wherever they are divided."""
    state = xxhash.xxh3_128()
    for part in parts:
        state.update(part)
    return state.hexdigest()


def digest_fields(*fields: str | bytes) -> str:
    """Return a digest of several values, which depends on where each of them ends."""
    values = (
        field.encode("utf-8", "surrogatepass") if isinstance(field, str) else field
        for field in fields
    )
    return digest_parts(len(value).to_bytes(8, "little") + value for value in values)


def digest_file(path: Path) -> str:
    """Return the digest of a file's contents."""
    return digest_parts(read_blocks(path))


def hash_64(content: bytes) -> int:
    """Return a hash of bytes: a number of 64 bits, from 0 on."""
    return xxhash.xxh3_64_intdigest(content)
