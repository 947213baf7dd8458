"""The architectures, by name."""

from typing import NamedTuple

from treecaps.errors import UsageError
from treecaps.models.astnn import ASTNN, ASTNNConfig
from treecaps.models.bi_dtbcnn import BiDTBCNN, BiDTBCNNConfig
from treecaps.models.capsgnn import CapsGNN, CapsGNNConfig
from treecaps.models.config import NetworkConfig
from treecaps.models.dtbcnn import DTBCNN, DTBCNNConfig
from treecaps.models.ggnn import GGNN, GGNNConfig
from treecaps.models.linear import LinearSVM, TokensSVMConfig, WindowsSVMConfig
from treecaps.models.network import Network
from treecaps.models.tbcnn import TBCNN, TBCNNConfig
from treecaps.models.tree_lstm import TreeLSTM, TreeLSTMConfig
from treecaps.models.treecaps import TreeCaps, TreeCapsConfig


class Architecture(NamedTuple):
    """What a network is made of, and the network."""

    config: type[NetworkConfig]
    network: type[Network]


ARCHITECTURES = {
    "treecaps": Architecture(TreeCapsConfig, TreeCaps),
    "tbcnn": Architecture(TBCNNConfig, TBCNN),
    "ggnn": Architecture(GGNNConfig, GGNN),
    "astnn": Architecture(ASTNNConfig, ASTNN),
    "tree-lstm": Architecture(TreeLSTMConfig, TreeLSTM),
    "dtbcnn": Architecture(DTBCNNConfig, DTBCNN),
    "bi-dtbcnn": Architecture(BiDTBCNNConfig, BiDTBCNN),
    "capsgnn": Architecture(CapsGNNConfig, CapsGNN),
    "svm-tokens": Architecture(TokensSVMConfig, LinearSVM),
    "svm-windows": Architecture(WindowsSVMConfig, LinearSVM),
}


def architecture_of(config: NetworkConfig) -> str:
    """Return the name of the architecture that a configuration is for."""
    return next(name for name, (kind, _) in ARCHITECTURES.items() if type(config) is kind)


def get_architecture(name: str) -> Architecture:
    """Return the architecture of a name."""
    if name not in ARCHITECTURES:
        raise UsageError(f"there is no model {name!r}; there are {', '.join(ARCHITECTURES)}")
    return ARCHITECTURES[name]


def new_network(config: NetworkConfig, kinds: int, classes: int, tokens: int = 0) -> Network:
    """Make a network with weights drawn by chance."""
    return ARCHITECTURES[architecture_of(config)].network(config, kinds, classes, tokens)
