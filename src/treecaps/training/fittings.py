"""Which fitting a preset asks for."""

from treecaps.models.linear import LinearConfig
from treecaps.models.trained import TrainedModel
from treecaps.training.fitting import Fitting, LinearFitting
from treecaps.training.prepare import Data
from treecaps.training.presets import Preset


def new_fitting(
    preset: Preset, data: Data, seed: int, init_from: TrainedModel | None = None
) -> Fitting:
    """Return what fits the network of a preset."""
    linear = isinstance(preset.network, LinearConfig)
    return (LinearFitting if linear else Fitting)(preset, data, seed, init_from)
