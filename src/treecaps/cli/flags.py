"""Which options of the command line set the arguments that errors of the library name."""

import shlex
from collections.abc import Iterable, Iterator

import click

FLAGS = {
    "append": "--append",
    "background": "--background",
    "cache": "--cache",
    "comments": "--comments",
    "device": "--device",
    "ensemble": "--ensemble",
    "folder": "--out",
    "frontend": "--frontend",
    "host": "--host",
    "init_from": "--init-from",
    "label": "--label",
    "language": "--language",
    "max_bytes": "--max-mb",
    "model": "--model",
    "overwrite": "--overwrite",
    "path": "--out",
    "port": "--port",
    "preset": "--preset",
    "ray": "--ray",
    "resume": "--resume",
    "seed": "--seed",
    "task": "--task",
    "val": "--val",
    "val_background": "--val-background",
    "workers": "--workers",
}
"""The option for each argument, by the names that the functions of the library have for them."""


def add_flags(message: str, arguments: Iterable[str], command: click.Command | None = None) -> str:
    """Return a message with the options for some arguments in brackets at its end.

    Options that the command does not have are left out, and those that have the value already.

    Args:
        message: What an error says.
        arguments: Names of arguments, or ``name=value``. If no option is for ``name``, it is an
            option of a preset.
        command: The command that ran, or its group; the one that runs by default.
    """
    given: dict[str, object] = {}
    if command is None and (context := click.get_current_context(silent=True)):
        command, given = context.command, context.params
    known = set(flags_of(command)) if command else set()
    found = []
    for argument in arguments:
        name, _, value = argument.partition("=")
        flag, *rest = _to_words(name, value)
        if flag in known and not (value and given.get(name) == value):
            found.append(" ".join((flag, *rest)))
    return f"{message} ({', '.join(found)})" if found else message


def _to_words(name: str, value: str) -> list[str]:
    if name in FLAGS:
        return [FLAGS[name]] if value in ("", "True") else [FLAGS[name], shlex.quote(value)]
    return ["--set", shlex.quote(f"{name}={value}")] if value else [""]


def flags_of(command: click.Command) -> Iterator[str]:
    """Yield the options of a command, or of all commands of a group."""
    for parameter in command.params:
        yield from parameter.opts
    if isinstance(command, click.Group):
        for member in command.commands.values():
            yield from flags_of(member)
