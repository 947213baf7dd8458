"""Which fitting a preset asks for."""

from treecaps.models.linear import LinearConfig
from treecaps.models.trained import TrainedModel
from treecaps.training.examples import Data
from treecaps.training.fitting import Fitting, LinearFitting
from treecaps.training.presets import Preset
from treecaps.training.similarity import SimilarityFitting


def new_fitting(
    preset: Preset, data: Data, seed: int, start: TrainedModel | None = None
) -> Fitting:
    """Return what fits the network of a preset."""
    if preset.training.task == "similarity":
        return SimilarityFitting(preset, data, seed, start)
    linear = isinstance(preset.network, LinearConfig)
    return (LinearFitting if linear else Fitting)(preset, data, seed, start)
