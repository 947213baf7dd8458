"""Fields of configurations, with the words that the command line explains them with."""

from dataclasses import field
from typing import Any


def option(default: Any, text: str) -> Any:
    """Make a field of a configuration: its default, and what it is."""
    return field(default=default, metadata={"help": text})
