"""``WindowsAndBags``: programs as windows of their trees, and as counts of their tokens."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Generic

from treecaps.data.vocabulary import Vocabulary
from treecaps.inputs.bags import Bags, BagTable, BagTensors, Feature
from treecaps.inputs.base import Array, Convert, InputDropout, Programs
from treecaps.inputs.distinct import Longs
from treecaps.inputs.windows import Windows, WindowTable, WindowTensors
from treecaps.syntax.joined import join_trees
from treecaps.syntax.tree import Tree


@dataclass(frozen=True)
class WindowsAndBagsTensors(Generic[Array]):
    """``WindowsAndBags`` as a network takes them."""

    windows: WindowTensors[Array]
    bags: BagTensors[Array] | None

    def __len__(self) -> int:
        return len(self.windows)


@dataclass(frozen=True)
class WindowsAndBags:
    """B programs in two forms.

    Args:
        windows: Their windows.
        bags: Their features; ``None`` where none are asked for.
    """

    windows: Windows
    bags: Bags | None = None

    @classmethod
    def from_trees(
        cls,
        trees: Iterable[Tree],
        vocabulary: Vocabulary,
        depths: Sequence[int] = (2,),
        feature: Feature | None = None,
    ) -> "WindowsAndBags":
        """Share the windows of trees, and count their features; the trees are read once.

        Args:
            trees: The trees.
            vocabulary: Numbers of the kinds and sub-tokens.
            depths: The window depth of each convolution layer.
            feature: What is counted; nothing by default.
        """
        windows = WindowTable(vocabulary, depths)
        bags = BagTable(feature) if feature else None
        for joined in join_trees(trees):
            windows.add(joined)
            if bags:
                bags.add(joined)
        return cls(windows.windows(), bags.bags() if bags else None)

    @classmethod
    def with_rows(
        cls,
        tree: Tree,
        vocabulary: Vocabulary,
        depths: Sequence[int] = (2,),
        feature: Feature | None = None,
    ) -> tuple["WindowsAndBags", Longs]:
        """Read one tree, and tell of each node which row of the windows is its."""
        windows, rows = Windows.with_rows(tree, vocabulary, depths)
        return cls(windows, Bags.from_trees([tree], feature) if feature else None), rows

    @classmethod
    def node_by_node(
        cls,
        tree: Tree,
        vocabulary: Vocabulary,
        depths: Sequence[int] = (2,),
        feature: Feature | None = None,
    ) -> "WindowsAndBags":
        """Read one tree with windows for every node; see ``Windows.node_by_node``."""
        windows = Windows.node_by_node(tree, vocabulary, depths)
        return cls(windows, Bags.from_trees([tree], feature) if feature else None)

    def __len__(self) -> int:
        return len(self.windows)

    @property
    def sizes(self) -> Longs:
        """``[B]``, how many distinct windows each program has."""
        return self.windows.sizes

    def select(self, programs: Programs, dropout: InputDropout | None = None) -> "WindowsAndBags":
        """Return some of the programs, in the order given.

        Args:
            programs: Which.
            dropout: Leaves out windows and features, and of some programs all features.
        """
        keep = dropout.keep_tokens() if dropout and self.bags else None
        windows = self.windows.select(programs, dropout)
        bags = self.bags.select(programs, dropout, keep) if self.bags else None
        return WindowsAndBags(windows, bags)

    def features(self, programs: Longs | None = None) -> Iterator[Longs]:
        """Yield the features of all programs, or of some."""
        if self.bags:
            yield (self.bags if programs is None else self.bags.select(programs)).feature

    def to_tensors(self, convert: Convert[Array]) -> WindowsAndBagsTensors[Array]:
        """Convert the arrays."""
        bags = self.bags.to_tensors(convert) if self.bags else None
        return WindowsAndBagsTensors(self.windows.to_tensors(convert), bags)
