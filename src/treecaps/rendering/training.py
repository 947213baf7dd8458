"""Training that writes its report, as ``treecaps.train`` does."""

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from treecaps.models.trained import TrainedModel
from treecaps.rendering.report import to_html
from treecaps.training.train import train as train_models

_Options = ParamSpec("_Options")


def _with_report(function: Callable[_Options, TrainedModel]) -> Callable[_Options, TrainedModel]:
    @wraps(function)
    def train(*args: _Options.args, **options: _Options.kwargs) -> TrainedModel:
        options.setdefault("report", to_html)
        return function(*args, **options)

    return train


train = _with_report(train_models)
