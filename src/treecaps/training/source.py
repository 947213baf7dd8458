"""What a training begins with: trees and labels, checked before anything is done with them."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from treecaps.data.corpus import Corpus
from treecaps.data.parallel import Change
from treecaps.data.sequences import TreeTransform
from treecaps.errors import UsageError
from treecaps.models.architectures import architecture_of
from treecaps.models.trained import TrainedModel, spell_parser
from treecaps.syntax.blind import blind
from treecaps.syntax.rewrite import rewrite
from treecaps.syntax.tree import Tree
from treecaps.training.background import cut_fragment, make_background, ordinary_background
from treecaps.training.ordinary import FRONTEND
from treecaps.training.prepare import Data, Labels, OnPrepare, change_trees, prepare
from treecaps.training.presets import Preset


@dataclass(frozen=True)
class Source:
    """What a training begins with: trees, labels, what parsed them, and a pretrained model."""

    trees: Sequence[Tree]
    labels: Labels
    val: tuple[Sequence[Tree], Labels] | None
    background: Sequence[Tree] | None
    val_background: Sequence[Tree] | None
    frontend: str
    comments: bool
    pretrained: TrainedModel | None

    def prepare(self, preset: Preset, seed: int, on_prepare: OnPrepare) -> Data:
        """Turn trees into what networks learn from, also blind and rewritten as the preset says."""
        config, network = preset.training, preset.network

        def transform(name: str, change: Change, what: str) -> TreeTransform:
            return partial(
                change_trees,
                name=name,
                change=change,
                frontend=self.frontend,
                comments=self.comments,
                tell=partial(on_prepare, what),
            )

        blinds = config.rename_probability and network.sees_names
        rewrites = config.rewrite_probability
        if (blinds or rewrites) and not preset.task.takes_views:
            raise UsageError(
                f"{preset.task.name} are on lines of programs as they are: leave out"
                " rename_probability and rewrite_probability"
            )
        background = None
        if self.background is not None:
            background = make_background(
                self.background,
                self.val_background,
                config.val_share,
                seed,
                transform("fragment", cut_fragment, "cutting fragments"),
            )
        elif self.has_ordinary_background(preset):
            background = ordinary_background(languages_of(self.trees))
        return prepare(
            self.trees,
            self.labels,
            self.val,
            task=preset.task,
            read_trees=preset.read_trees,
            val_share=config.val_share,
            seed=seed,
            tokens=network.known_tokens,
            packing=preset.packing,
            blind=transform("blind", blind, "making programs blind") if blinds else None,
            rewritten=transform(
                f"rewritten with seed {seed}", partial(rewrite, seed=seed), "rewriting programs"
            )
            if rewrites
            else None,
            known=self.pretrained.vocabulary if self.pretrained else None,
            background=background,
            on_prepare=on_prepare,
        )

    def has_ordinary_background(self, preset: Preset) -> bool:
        """Whether background that comes with the package can serve and is to."""
        wanted = preset.training.ordinary_background and learns_background(preset)
        return wanted and (self.frontend, self.comments) == (FRONTEND, False)


def check_trees(trees: Any) -> None:
    """Complain of what is no list of trees, before anything is done with it."""
    if not isinstance(trees, Sequence) or isinstance(trees, str | bytes):
        raise UsageError("programs to learn from are a corpus, or a list of trees")
    if len(trees) and not isinstance(trees, Corpus) and not isinstance(trees[0], Tree):
        kind = type(trees[0]).__name__
        raise UsageError(
            f"programs to learn from are trees, not {kind}: parse them with"
            " treecaps.parse_programs, or use TreeCapsClassifier"
        )


def learns_background(preset: Preset) -> bool:
    """Whether a preset learns from programs of none of the classes."""
    return preset.task.takes_background and preset.model.LEARNS_BACKGROUND


def languages_of(trees: Sequence[Tree]) -> set[str]:
    """Return the languages of trees; those of a corpus need not be read for it."""
    if isinstance(trees, Corpus):
        return set(trees.languages)
    return {tree.language for tree in trees}


def refuse_background(preset: Preset, background: object, val: object) -> None:
    """Complain of background, if there is any, where it is not learned from."""
    if background is None:
        if val is not None:
            raise UsageError(
                "validation background goes with background", arguments=("background",)
            )
        return
    name = architecture_of(preset.network)
    if not learns_background(preset):
        what = f"the architecture {name}" if preset.task.takes_background else preset.task.name
        raise UsageError(
            f"{what} does not learn from background: leave it out", arguments=("background",)
        )


def check_background(
    background: Sequence[Tree] | None, val: Sequence[Tree] | None, frontend: str, comments: bool
) -> None:
    """Complain of background that is no list of trees, or for other trees than the programs."""
    for some in (background, val):
        check_trees(some if some is not None else [])
        if isinstance(some, Corpus):
            parser = some.about["frontend"], some.about["comments"]
            check_parser(f"{some.name} by", parser, (frontend, comments))


def validation_data(
    val: Any, frontend: str, comments: bool
) -> tuple[Sequence[Tree], Labels] | None:
    """Return validation programs and their labels, or complain of what is neither."""
    if not isinstance(val, Corpus):
        if val is None:
            return None
        if not isinstance(val, tuple | list) or len(val) != 2:
            raise UsageError("validation data are a corpus, or val=(trees, labels)")
        return val[0], val[1]
    parser = val.about["frontend"], val.about["comments"]
    check_parser(f"{val.name} by", parser, (frontend, comments))
    return val, val.labels


def check_parser(what: str, parser: tuple[str, bool], wanted: tuple[str, bool]) -> None:
    """Complain of what is for other trees than the training data are."""
    if parser != wanted:
        raise UsageError(
            f"the training data were parsed by {spell_parser(*wanted)},"
            f" but {what} {spell_parser(*parser)}"
        )
