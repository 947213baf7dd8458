"""Typed values for the fields of configurations, from what people type and from JSON."""

import math
import numbers
from collections.abc import Iterable, Mapping
from dataclasses import asdict, fields
from types import NoneType, UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from treecaps.errors import UsageError
from treecaps.text import did_you_mean

Config = TypeVar("Config")

_WORDS = {"true": True, "yes": True, "on": True, "1": True}
_WORDS |= {"false": False, "no": False, "off": False, "0": False}
_NUMBERS = {int: numbers.Integral, float: numbers.Real}


def from_text(kind: Any, text: str) -> Any:
    """Return the value of a type that a text stands for, or raise ``ValueError``."""
    text = text.strip()
    if get_origin(kind) in {Union, UnionType}:
        if text.lower() == "none":
            return None
        return from_text(_inner(kind), text)
    if get_origin(kind) is tuple:
        parts = [part for part in text.strip("()").split(",") if part.strip()]
        return tuple(from_text(get_args(kind)[0], part) for part in parts)
    if kind is bool:
        if text.lower() not in _WORDS:
            raise ValueError(text)
        return _WORDS[text.lower()]
    return from_json(kind, kind(text) if kind in {int, float} else text)


def from_json(kind: Any, value: Any) -> Any:
    """Return a value of JSON as one of a type, or raise ``ValueError``."""
    if get_origin(kind) in {Union, UnionType}:
        return None if value is None else from_json(_inner(kind), value)
    if get_origin(kind) is Literal:
        good = value in get_args(kind)
    elif get_origin(kind) is tuple:
        good = isinstance(value, list | tuple)
        value = tuple(from_json(get_args(kind)[0], part) for part in value) if good else value
    elif kind in {int, float}:
        # The numbers of NumPy are numbers too.
        good = isinstance(value, _NUMBERS[kind]) and not isinstance(value, bool)
        try:
            good = good and math.isfinite(value)
        except OverflowError:
            good = False  # an integer beyond all floats
        value = kind(value) if good else value
    else:
        good = type(value) is kind
    if not good:
        raise ValueError(value)
    return value


def allowed(kind: Any) -> str:
    """Say which values a type has, in words for people."""
    if get_origin(kind) in {Union, UnionType}:
        return f"{allowed(_inner(kind))}, or none"
    if get_origin(kind) is Literal:
        return " or ".join(map(str, get_args(kind)))
    if get_origin(kind) is tuple:
        parts = "whole numbers" if get_args(kind)[0] is int else "names"
        example = "64,64" if parts == "whole numbers" else "c,cpp"
        return f'{parts} with commas between them ({example}), or nothing ("")'
    return {int: "a whole number", float: "a number", bool: "true or false"}[kind]


def show(value: Any) -> str:
    """Write a value as ``from_text`` takes it."""
    if isinstance(value, tuple | list):
        return ",".join(map(str, value)) or '""'
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def types_of(config: type) -> dict[str, Any]:
    """Return the type of each field of a configuration."""
    hints = get_type_hints(config)
    return {field.name: hints[field.name] for field in fields(config)}


def to_json(config: Any) -> dict[str, Any]:
    """Return the fields of a configuration as plain values."""
    return {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(config).items()
    }


def of_json(config: type[Config], values: Mapping[str, Any]) -> Config:
    """Make a configuration of what ``to_json`` returned, and check it.

    A field that is missing has its default: it was not yet there when the values were written.
    """
    types = types_of(config)
    made = {}
    for name, value in values.items():
        if name not in types:
            raise unknown_name(name, types)
        try:
            made[name] = from_json(types[name], value)
        except ValueError:
            raise UsageError(f"{name} must be {allowed(types[name])}, not {value!r}") from None
    return config(**made)


def unknown_name(name: str, names: Iterable[str], of: str = "") -> UsageError:
    """Return the error that there is no option of a name, with those that look like it.

    Args:
        name: What was given.
        names: The options that there are.
        of: What they are options of.
    """
    names = list(names)
    hint = did_you_mean(name, names) or f"there are {', '.join(names)}"
    where = f" of {of}" if of else ""
    return UsageError(f"there is no option {name!r}{where}; {hint}")


def _inner(kind: Any) -> Any:
    return next(part for part in get_args(kind) if part is not NoneType)
