"""``treecaps clones``."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from treecaps.cli.inputs import open_index
from treecaps.cli.options import (
    embedding_model_option,
    json_option,
    max_bytes_option,
    workers_option,
)
from treecaps.cli.output import (
    fail,
    note,
    note_passed_over,
    progress,
    say,
    say_json,
    tell_alike,
)
from treecaps.errors import ProgramError, UsageError

if TYPE_CHECKING:
    from treecaps.inference.embed import Embedder
    from treecaps.search.clones import Group
    from treecaps.search.collection import Collection
    from treecaps.search.copies import Work
    from treecaps.search.units import Unit


@click.command("clones")
@click.argument("place", metavar="DIR", type=click.Path(path_type=Path))
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
    type=click.Path(path_type=Path),
    help="List pairs of DIR with this folder, or the folder of this index, only.",
)
@click.option("--all", "everything", is_flag=True, help="Also tests, generated and ignored files.")
@click.option(
    "--min-lines",
    type=click.IntRange(min=1),
    default=5,
    show_default=True,
    help="Leave shorter functions out.",
)
@max_bytes_option
@workers_option
@json_option
def command(
    place: Path,
    folder: Path,
    threshold: float | None,
    copied: float | None,
    files: bool,
    submissions: bool,
    pairs: bool,
    templates: tuple[Path, ...],
    against: Path | None,
    everything: bool,
    min_lines: int,
    max_bytes: int,
    workers: int | None,
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

    set_num_threads(1)  # the other cores parse
    tune_malloc()
    if files and submissions:
        raise UsageError("choose files or submissions, not both")
    if place.is_file():
        if files or submissions or pairs or templates or against or copied is not None:
            raise UsageError(f"{place} is an index, which has no syntax trees; name its folder")
        return _show_index(place, threshold, min_lines, as_json)
    from treecaps.inference.embed import Embedder
    from treecaps.search.collection import Collection

    embedder = Embedder(folder)
    what = "files" if files else "submissions" if submissions else "functions"
    reader = _Reader(embedder, what, everything, min_lines, max_bytes, workers)
    new = reader.read(place)
    old = reader.read(_folder_of(against)) if against else []
    collection = Collection(embedder, new, old, reader.read_templates(templates))
    if len(new) < 2 and not old:
        note(f"{place}: {len(new)} {what} to compare: nothing to compare with")
        return 1 if reader.failed else 0
    if pairs or against:
        least = embedder.alike if threshold is None else threshold
        found = _show_pairs(collection, threshold, copied, least, as_json)
    else:
        found = _show_groups(collection, threshold, copied, as_json)
    if not found and not as_json:
        note(f"none of {len(new):,} {what} are copied or alike")
    return 1 if found or reader.failed else 0


@dataclass
class _Reader:
    """Reads folders as the options say, and tells what fails or is left out."""

    embedder: "Embedder"
    what: str
    everything: bool
    min_lines: int
    max_bytes: int
    workers: int | None
    failed: bool = False

    def read(self, folder: Path) -> "list[Unit]":
        """Return what of a folder is compared."""
        from treecaps.search.leave_out import leave_out
        from treecaps.search.units import join_submissions, read_units
        from treecaps.syntax.sources import list_sources

        if not folder.is_dir():
            raise UsageError(f"{folder} is no folder; name the folder whose programs to compare")
        sources = list_sources(folder)
        note_passed_over(folder, sources)
        files = sources.files
        if not self.everything:
            files, left = leave_out(folder, files)
            if left:
                reasons = ", ".join(f"{count:,} {reason}" for reason, count in left.most_common())
                note(f"{folder}: left out {left.total():,} files ({reasons}); --all takes them")
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
            self.failed = True
            fail(str(folder / failure.id), failure.message, failure.arguments)
        if self.what == "submissions":
            return join_submissions(units)
        return [unit for unit in units if not functions or self._is_long(unit)]

    def _is_long(self, unit: "Unit") -> bool:
        return (unit.last_line or 0) - (unit.line or 0) + 1 >= self.min_lines

    def read_templates(self, files: Iterable[Path]) -> "list[Work]":
        """Return what everybody was given, as what is compared: all together, or by function."""
        from treecaps.search.copies import Work
        from treecaps.syntax.functions import find_functions
        from treecaps.syntax.parse import parse_file

        frontend = self.embedder.model.frontend
        trees = []
        for file in files:
            try:
                trees.append(parse_file(file, frontend=frontend, max_bytes=self.max_bytes))
            except ProgramError as error:
                raise UsageError(f"the template {file} cannot be used: {error}") from None
        if not trees:
            return []
        works = [Work.from_trees(trees)]
        if self.what == "functions":
            works += [Work.from_tree(one.tree) for tree in trees for one in find_functions(tree)]
        return works


def _folder_of(place: Path) -> Path:
    return open_index(place).folder if place.is_file() else place


def _show_index(place: Path, threshold: float | None, min_lines: int, as_json: bool) -> int:
    from treecaps.search.clones import find_clones

    index = open_index(place)
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
    as_json: bool,
) -> bool:
    from treecaps.search.collection import COPIED

    if not as_json:
        copied = COPIED if copied is None else copied
    with progress("comparing") as advance:
        found = collection.pairs(
            threshold,
            copied,
            step=lambda share: advance(share, f"{len(collection):,} programs"),
        )
    for pair in found:
        if as_json:
            say_json(pair.to_dict())
            continue
        names = (f"{one.name} {one.function or ''}".rstrip() for one in (pair.left, pair.right))
        say(f"copied {pair.copied:.2f} alike {tell_alike(pair)} {'  '.join(names)}")
    share = COPIED if copied is None else copied
    return any(pair.copied >= share or pair.similarity >= least for pair in found)
