"""The command ``treecaps``: its commands, its version, and how errors become messages."""

import logging
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, NoReturn

import click

from treecaps._version import __version__
from treecaps.cli.flags import add_flags
from treecaps.cli.output import note
from treecaps.errors import MissingExtraError, TreeCapsError, describe_os_error, naming_extra
from treecaps.text import did_you_mean, to_one_line

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

COMMANDS = {
    "bugs": "Tell where programs may have bugs.",
    "classify": "Tell which classes programs belong to.",
    "clones": "Find code that is copied or alike, also across languages.",
    "data": "Describe a data set: classes, sizes, failures, duplicates.",
    "embed": "Compute embeddings of programs.",
    "evaluate": "Score a trained model on programs whose classes are known.",
    "explain": "Show what of a program leads to its class.",
    "help": "Show the help of a command.",
    "index": "Make the index of a folder for search, or bring it up to date.",
    "models": "List the models that come with the package.",
    "parse": "Turn source files into syntax trees.",
    "reproduce": "Train and score what a table of the paper needs.",
    "search": "Find code like a file, or like some of its lines, in an index.",
    "serve": "Answer over HTTP, and show a page in the browser.",
    "train": "Train networks for a task: classification, similarity or bugs.",
    "vectors": "Learn vectors for the kinds of nodes, and inspect them.",
}

ENTRY_POINTS = "treecaps.commands"

log = logging.getLogger("treecaps")


def _of_other_packages() -> "dict[str, EntryPoint]":
    """Return the commands that other packages add; none of them replaces one of treecaps."""
    from importlib.metadata import entry_points  # not needed by the commands of treecaps

    found = {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
    return {name: found[name] for name in sorted(found.keys() - COMMANDS.keys())}


def _load(entry: "EntryPoint") -> click.Command | None:
    try:
        command = entry.load()
    except Exception as error:  # whatever is wrong with it, the others can be used
        log.warning("the command %s cannot be loaded: %s", entry.name, error)
        return None
    if not isinstance(command, click.Command):
        log.warning("the command %s cannot be loaded: %s is no command", entry.name, entry.value)
        return None
    return command


class _Commands(click.Group):
    """Commands that are imported only when they run, so that --help is instant."""

    running: click.Command | None = None
    """The command that was chosen."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        try:
            found = super().resolve_command(ctx, args)
        except click.UsageError:
            hint = did_you_mean(args[0], self.list_commands(ctx)) or "see treecaps --help"
            raise click.UsageError(f"there is no command {args[0]!r}; {hint}") from None
        self.running = found[1]
        return found

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS, *_of_other_packages()]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            entry = _of_other_packages().get(cmd_name)
            return _load(entry) if entry else None
        command: click.Command = import_module(f"treecaps.cli.{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))
        if others := _of_other_packages():
            # Their help would have to be imported, and that may take long.
            rows = [
                (name, f"From the package {entry.dist.name if entry.dist else entry.module}.")
                for name, entry in others.items()
            ]
            with formatter.section("Commands of other packages"):
                formatter.write_dl(rows)


def _tell(error: click.ClickException) -> str:
    """Return what is wrong with the words that were typed, and where their help is."""
    text, _, close = error.format_message().strip().rstrip(".").partition(". Did you mean ")
    text = text[:1].lower() + text[1:]
    if close:
        plain = close.replace("'", "")
        return f"{text}; did you mean {plain}"
    if text.endswith("?") or not isinstance(error, click.UsageError) or not error.ctx:
        return text
    return f"{text}; see {error.ctx.command_path} --help"


class _OneLine(logging.Formatter):
    """Puts a warning on one line, whatever names it holds."""

    def format(self, record: logging.LogRecord) -> str:
        return to_one_line(super().format(record))


def _print_versions(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or ctx.resilient_parsing:
        return
    from treecaps.syntax.frontends import FRONTENDS, get_frontend

    click.echo(f"treecaps {__version__}")
    for name in FRONTENDS:
        try:
            for package, number in get_frontend(name).versions().items():
                click.echo(f"{package} {number}")
        except MissingExtraError as error:
            click.echo(f"{name} not installed ({error})")
    ctx.exit()


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "-V",
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show the versions of treecaps, its parsers and its grammars, and exit.",
)
def cli() -> None:
    """Tell what a program does from its syntax tree."""


def run() -> NoReturn:
    """Run the command line as a program, and end at once: unloading torch takes half a second."""
    # Threads that wait for others soon sleep instead of keeping them from a core when it is busy.
    # Sooner still, waking them up would cost more on an idle one. Torch reads it when it loads.
    os.environ.setdefault("GOMP_SPINCOUNT", "10000")
    # What NumPy computes here is too little for several threads; cores take other programs.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    status: object = 0
    try:
        main()
    except SystemExit as ended:
        status = ended.code
    logging.shutdown()
    for stream in filter(None, (sys.stdout, sys.stderr)):  # None: closed from the beginning
        try:
            stream.flush()
        except OSError:
            status = status or 2
    os._exit(status if isinstance(status, int) else 0)


def main() -> None:
    """Run the command line. Exit 0: good; 1: some inputs failed; 2: it could not be done."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("treecaps: %(message)s"))
    logging.getLogger("treecaps").addHandler(handler)
    try:
        with naming_extra("this"):
            status = cli(prog_name="treecaps", standalone_mode=False)
    except click.ClickException as error:
        if type(error).__name__ == "NoArgsIsHelpError":  # newer versions only
            error.show()
        else:
            note(f"treecaps: error: {_tell(error)}")
        status = 2
    except click.Abort:
        note("treecaps: interrupted")
        status = 130
    except TreeCapsError as error:
        if os.environ.get("TREECAPS_TRACEBACK"):
            raise
        note(f"treecaps: error: {add_flags(str(error), error.arguments, cli.running)}")
        status = 2
    except OSError as error:
        note(f"treecaps: error: cannot write the output: {describe_os_error(error)}")
        status = 2
    sys.exit(status if isinstance(status, int) else 0)
