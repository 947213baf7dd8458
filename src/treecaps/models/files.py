"""Files that appear when complete, and are checked when read."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from treecaps.errors import ModelError, describe_os_error
from treecaps.files import load_json, read_regular_file, write_together

MAX_JSON_BYTES = 1 << 26
"""The largest JSON file that is read: three times what a vocabulary of a million names takes."""
MAX_TENSOR_BYTES = 1 << 32
"""The largest file of tensors that is read: a billion weights."""


def write_files(folder: Path, contents: Mapping[str, bytes]) -> None:
    """Write files that belong together; all of them, or on a full disk none.

    They take their names when all are on the disk, in the order given, so the last one may vouch
    for the others.
    """
    try:
        write_together(folder, contents)
    except OSError as error:
        raise ModelError(
            f"cannot write into {folder}: {describe_os_error(error)};"
            " what was there before is whole, make room or choose another folder"
        ) from None


def read_file(path: Path, otherwise: str) -> bytes:
    """Read a file, or raise an error that ends in what to do."""
    try:
        tensors = path.suffix == ".safetensors"
        return read_regular_file(path, MAX_TENSOR_BYTES if tensors else MAX_JSON_BYTES)
    except OSError as error:
        raise ModelError(f"cannot read {path}: {describe_os_error(error)}; {otherwise}") from None


def parse_json(content: bytes, path: Path, otherwise: str) -> Any:
    """Parse the contents of a JSON file, or raise an error that ends in what to do."""
    try:
        return load_json(content)
    except ValueError:
        raise ModelError(f"{path} is damaged: it is not JSON; {otherwise}") from None


def to_json_bytes(value: Any) -> bytes:
    """Return a value as the contents of a JSON file."""
    text = json.dumps(value, indent=1, ensure_ascii=False) + "\n"
    # Names of files may hold bytes that are no UTF-8. Python has surrogates for them, which
    # become escapes that JSON knows too.
    return text.encode("utf-8", "backslashreplace")
