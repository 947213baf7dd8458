"""``treecaps clones``."""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from treecaps.cli.options import (
    PlaceType,
    cluster_options,
    embedding_model_option,
    json_option,
    max_bytes_option,
)
from treecaps.cli.output import (
    check_writable,
    fail,
    note,
    note_sources,
    progress,
    say,
    say_csv,
    say_json,
    tell_alike,
    write_page,
)
from treecaps.errors import ProgramError, UsageError

if TYPE_CHECKING:
    from treecaps.cluster import Workers
    from treecaps.inference.embed import Embedder
    from treecaps.search.clones import Group
    from treecaps.search.collection import Collection
    from treecaps.search.copies import Work
    from treecaps.search.index import Index
    from treecaps.search.units import Unit
    from treecaps.syntax.tree import Tree

_How = Literal["text", "json", "csv"]
_COLUMNS = (
    *("left", "right", "left_function", "right_function"),
    *("copied", "similarity", "probability"),
)


@click.command("clones")
@click.argument("place", metavar="DIR", type=PlaceType(database=False))
@embedding_model_option
@click.option(
    "--threshold",
    type=float,
    help="How similar the embeddings of two must be, up to 1. By default, so that 9 of 10 such"
    " pairs solve the same problem.",
)
@click.option(
    "--copied",
    type=float,
    help="Which share of the smaller one must stand in the other too, up to 1.  [default: 0.8]",
)
@click.option("--files", is_flag=True, help="Compare whole files, not functions.")
@click.option("--submissions", is_flag=True, help="Compare the direct sub-folders of DIR.")
@click.option("--pairs", is_flag=True, help="List pairs, not groups.")
@click.option(
    "--html",
    metavar="OUT",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Write a page there: groups, a graph, and pairs with both sources side by side.",
)
@click.option("--csv", "as_csv", is_flag=True, help="Print pairs as comma-separated values.")
@click.option(
    "--template",
    "templates",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Code that everybody was given, which does not count. May be repeated.",
)
@click.option(
    "--against",
    metavar="OLD",
    type=PlaceType(database=False),
    help="List pairs of DIR with this folder, or the folder of this index, only.",
)
@click.option(
    "--all",
    "everything",
    is_flag=True,
    help="Also tests, generated and ignored files, packages of others and what builds made.",
)
@click.option(
    "--min-lines",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Leave shorter functions out.",
)
@max_bytes_option
@cluster_options
@json_option
def command(
    place: Path,
    folder: Path,
    threshold: float | None,
    copied: float | None,
    files: bool,
    submissions: bool,
    pairs: bool,
    html: Path | None,
    as_csv: bool,
    templates: tuple[Path, ...],
    against: Path | None,
    everything: bool,
    min_lines: int,
    max_bytes: int,
    workers: "Workers | None",
    as_json: bool,
) -> int:
    """Find code that is copied or alike, also across languages.

    DIR is a folder, or an index of one; of an index only what is alike can be told. Copied is the
    share of the smaller one that stands in the other too, whatever its names, literals and layout.
    Alike is the share of pairs with embeddings as near as theirs that solve the same problem; with
    a model that was not trained for similarity, the product of both embeddings.

    Exit status 1 says that some were found, or that a file failed.
    """
    from treecaps.models.engine import set_num_threads
    from treecaps.nn.memory import tune_malloc

    # It is long because every option is a parameter.
    set_num_threads(1)  # the other cores parse
    tune_malloc()
    if files and submissions:
        raise UsageError("choose files or submissions, not both")
    if as_csv and as_json:
        raise UsageError("choose CSV or JSON, not both")
    if html:
        check_writable(html)
    if place.is_file():
        trees = (files, submissions, pairs, templates, against, html, as_csv, copied is not None)
        if any(trees):
            raise UsageError(f"{place} is an index, which has no syntax trees; name its folder")
        return _show_index(place, threshold, min_lines, as_json)
    from treecaps.inference.embed import Embedder
    from treecaps.search.collection import EQUAL, Collection

    embedder = Embedder(folder)
    what = "files" if files else "submissions" if submissions else "functions"
    reader = _Reader(embedder, what, everything, min_lines, max_bytes, workers)
    given = reader.read_templates(templates)
    new = reader.read(place)
    old = reader.read_old(against, new) if against else []
    collection = Collection(embedder, new, old, reader.take_apart(given))
    alone = len(new) < 2 and not old
    if alone:
        note(f"{place}: {len(new)} {what} to compare: nothing to compare with")
    listed = bool(pairs or against or as_csv or html)
    if listed and (left_out := collection.num_left_out):
        note(f"{left_out:,} {what} equal {EQUAL} others: each of them is in one pair at most")
    found = False
    if html:
        facts = _list_facts(place, against, templates, folder, collection, what)
        found = _write_page(html, collection, reader, threshold, copied, given, facts)
    if not alone and (as_json or as_csv or not html):
        if pairs or against or as_csv:
            how: _How = "csv" if as_csv else "json" if as_json else "text"
            least = embedder.alike if threshold is None else threshold
            found = _show_pairs(collection, threshold, copied, least, how)
        else:
            found = _show_groups(collection, threshold, copied, as_json)
    if html and not as_json and not as_csv:
        say(str(html))
    if not found and not alone and not as_json:
        note(f"none of {len(new):,} {what} are copied or alike")
    return 1 if found or reader.failures else 0


def _list_facts(
    place: Path,
    against: Path | None,
    templates: tuple[Path, ...],
    model: Path,
    collection: "Collection",
    what: str,
) -> list[tuple[str, str]]:
    """Return what the page says about the run."""
    count = len(collection) if collection.new is None else collection.new
    facts = [(what, f"{count:,}"), ("folder", str(place))]
    if against:
        facts.append(("compared with", f"{len(collection) - count:,} of {against}"))
    if templates:
        facts.append(("template", ", ".join(map(str, templates))))
    return [*facts, ("model", str(model))]


def _write_page(
    path: Path,
    collection: "Collection",
    reader: "_Reader",
    threshold: float | None,
    copied: float | None,
    given: "list[Tree]",
    facts: list[tuple[str, str]],
) -> bool:
    from treecaps.rendering.clones import to_html
    from treecaps.search.collection import COPIED
    from treecaps.search.comparison import compare

    with progress("comparing") as advance:
        comparison = compare(
            collection,
            reader.embedder,
            threshold,
            COPIED if copied is None else copied,
            template=given,
            max_bytes=reader.max_bytes,
            workers=reader.workers,
            step=lambda share: advance(share, f"{len(collection):,} {reader.what}"),
        )
    name = Path(dict(facts)["folder"]).resolve().name
    page = to_html(
        comparison,
        title=f"Copied and alike: {name}",
        what=reader.what,
        facts=facts,
        failures=reader.failures,
        template=bool(given),
    )
    write_page(path, page)
    return comparison.found


@dataclass
class _Reader:
    """Reads folders as the options say, and tells what fails or is left out."""

    embedder: "Embedder"
    what: str
    everything: bool
    min_lines: int
    max_bytes: int
    workers: "Workers | None"
    failures: list[str] = field(default_factory=list)

    def read(self, folder: Path) -> "list[Unit]":
        """Return what of a folder is compared."""
        from treecaps.search.leave_out import leave_out
        from treecaps.search.units import join_submissions, read_units
        from treecaps.syntax.sources import list_sources

        if not folder.is_dir():
            wrong = "is no folder" if folder.exists() else "does not exist"
            raise UsageError(f"{folder} {wrong}; name the folder whose programs to compare")
        sources = list_sources(folder, leave_out=not self.everything)
        files = sources.files
        if not self.everything:
            files, left = leave_out(folder, files)
            sources.left_out.update(left)
        note_sources(folder, sources)
        if not files and not sources.failures:
            raise UsageError(f"{folder} holds no programs in a known language to compare")
        functions = self.what == "functions"
        with progress("embedding") as advance:
            units, failures = read_units(
                folder,
                files,
                self.embedder,
                functions=functions,
                max_bytes=self.max_bytes,
                workers=self.workers,
                step=advance,
            )
        for failure in (*sources.failures, *failures):
            self.failures.append(f"{failure.id}: {failure.message}")
            fail(str(folder / failure.id), failure.message, failure.arguments)
        if self.what == "submissions":
            told = [*(failure.id for failure in failures), *set(sources.files).difference(files)]
            told += [*sources.ignored_folders, *(unit.path for unit in units)]
            self._tell_empty(folder, {Path(name).parts[0] for name in told})
            return join_submissions(units)
        return [unit for unit in units if not functions or self._is_long(unit)]

    def read_old(self, place: Path, new: "list[Unit]") -> "list[Unit]":
        """Return what new work is compared with; what is of the new work itself is left out."""
        known = {_origin(unit) for unit in new}
        every = self.read(_folder_of(place))
        old = [unit for unit in every if _origin(unit) not in known]
        if len(old) < len(every):
            note(
                f"{place}: left out {len(every) - len(old):,} {self.what} that are compared with it"
            )
        if not old:
            raise UsageError(
                f"{place} holds nothing else to compare with; without --against, all are compared"
                " with all"
            )
        return old

    def _tell_empty(self, folder: Path, known: set[str]) -> None:
        """Tell of submissions that hold no code, unless they are known for something else."""
        for name in sorted(entry.name for entry in os.scandir(folder) if entry.is_dir()):
            if name not in known and not name.startswith("."):
                message = "holds no code to compare"
                self.failures.append(f"{name}: {message}")
                fail(str(folder / name), message)

    def _is_long(self, unit: "Unit") -> bool:
        return (unit.last_line or 0) - (unit.line or 0) + 1 >= self.min_lines

    def read_templates(self, files: Iterable[Path]) -> "list[Tree]":
        """Return what everybody was given."""
        from treecaps.syntax.parse import parse_file

        frontend = self.embedder.model.frontend
        trees = []
        for file in files:
            try:
                trees.append(parse_file(file, frontend=frontend, max_bytes=self.max_bytes))
            except ProgramError as error:
                raise UsageError(f"the template {file} cannot be used: {error}") from None
        return trees

    def take_apart(self, trees: "list[Tree]") -> "list[Work]":
        """Return templates as what is compared: all together, or by function."""
        from treecaps.search.copies import Work
        from treecaps.syntax.functions import find_functions

        if not trees:
            return []
        works = [Work.from_trees(trees)]
        if self.what == "functions":
            works += [Work.from_tree(one.tree) for tree in trees for one in find_functions(tree)]
        return works


def _origin(unit: "Unit") -> tuple[frozenset[Path], int | None]:
    """Return where the code of a unit stands."""
    return frozenset(unit.folder.resolve() / name for name in unit.files), unit.line


def _folder_of(place: Path) -> Path:
    return _open(place).folder if place.is_file() else place


def _open(place: Path) -> "Index":
    """Open an index file, with a progress bar."""
    from treecaps.search.index import Index

    with progress("opening the index") as advance:
        return Index.open(place, step=lambda share: advance(share, str(place)))


def _show_index(place: Path, threshold: float | None, min_lines: int, as_json: bool) -> int:
    from treecaps.search.clones import find_clones

    index = _open(place)
    with progress("comparing") as advance:
        groups = find_clones(
            index,
            threshold,
            min_lines=min_lines,
            step=lambda share: advance(share, f"{len(index):,} functions"),
        )
    _say_groups(groups, as_json)
    if not groups and not as_json:
        note(f"none of {len(index):,} functions are alike")
    return 1 if groups else 0


def _show_groups(
    collection: "Collection", threshold: float | None, copied: float | None, as_json: bool
) -> bool:
    from treecaps.search.collection import COPIED

    with progress("comparing") as advance:
        groups = collection.groups(
            threshold,
            COPIED if copied is None else copied,
            step=lambda share: advance(share, f"{len(collection):,} programs"),
        )
    _say_groups(groups, as_json)
    return bool(groups)


def _say_groups(groups: "list[Group]", as_json: bool) -> None:
    for group in groups:
        if as_json:
            say_json(group.to_dict())
            continue
        copied = "" if group.copied is None else f"copied {group.copied:.2f} or more, "
        alike = tell_alike(min(group.members, key=lambda one: one.similarity))
        say(f"{len(group.members):,}: {copied}alike {alike} or more")
        for one in group.members:
            lines = "" if one.line is None else f":{one.line}-{one.last_line}"
            name = f" {one.function}" if one.function else ""
            share = "" if one.copied is None else f" copied {one.copied:.2f}"
            say(f"  {one.path}{lines}{name}{share} alike {tell_alike(one)} {one.language}")


def _show_pairs(
    collection: "Collection",
    threshold: float | None,
    copied: float | None,
    least: float,
    how: _How,
) -> bool:
    from treecaps.search.collection import COPIED

    if how == "text":
        copied = COPIED if copied is None else copied
    with progress("comparing") as advance:
        found = collection.pairs(
            threshold,
            copied,
            step=lambda share: advance(share, f"{len(collection):,} programs"),
        )
    if how == "csv":
        say_csv(_COLUMNS)
    for pair in found:
        if how == "json":
            say_json(pair.to_dict())
        elif how == "csv":
            values = pair.to_dict()
            say_csv([values.get(name, "") for name in _COLUMNS])
        else:
            names = (f"{one.name} {one.function or ''}".rstrip() for one in (pair.left, pair.right))
            say(f"copied {pair.copied:.2f} alike {tell_alike(pair)} {'  '.join(names)}")
    share = COPIED if copied is None else copied
    return any(pair.copied >= share or pair.similarity >= least for pair in found)
