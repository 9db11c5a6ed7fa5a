"""Components of a user's own at work on a few samples before the run begins: what they do wrong is said in one line."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from inference.data.tensors import TensorData
from inference.objectives.enumerated import CollapsedELBO
from inference.results.shortage import is_out_of_memory
from inference.training.config import FitConfig
from inference.training.divergence import DivergedError, no_singular_matrices
from inference.training.epochs import pretraining_epoch, training_epoch
from inference.training.interfaces import BrokenInterfaceError, check_graph, watch
from inference.training.own_parts import OwnPart, is_of_user, telling
from inference.training.state import TrainingState
from models.user_code import one_line

__all__ = ["rehearse"]

_N_SAMPLES = 64


def rehearse(
    state: TrainingState,
    elbo: CollapsedELBO,
    data: TensorData,
    config: FitConfig,
    parts: Sequence[OwnPart],
) -> None:
    """Let a model with components of a user's own see a few samples, as it does in every phase.

    Args:
        state: Model, guide and optimiser; no more good for training after it.
        elbo: The objective.
        data: The training samples.
        config: The configuration.
        parts: The components.

    Raises:
        ValueError: They fail, or give something else than what their interface says.
    """
    few = data.subset(np.arange(min(data.n_samples, _N_SAMPLES)))
    subjects = {part.setting: part.subject for part in parts}
    watch(state, config, subjects)
    with telling(parts), _telling_of_all(parts):
        if "model.graph" in subjects:
            check_graph(state.model.graph, subjects["model.graph"])
        _epochs(state, elbo, few, config)


@contextmanager
def _telling_of_all(parts: Sequence[OwnPart]) -> Iterator[None]:
    """Errors of what is made of the components, which say of none of them that it is to blame; divergence is left."""
    try:
        with no_singular_matrices():
            yield
    except DivergedError:
        return
    except Exception as error:
        if isinstance(error, BrokenInterfaceError) or is_of_user(parts, error) or is_out_of_memory(error):
            raise
        every = ", ".join(part.subject for part in parts)
        raise ValueError(f"{every}: the first steps of training fail: {one_line(error)}") from error


def _epochs(state: TrainingState, elbo: CollapsedELBO, few: TensorData, config: FitConfig) -> None:
    if config.pretraining_epochs:
        pretraining_epoch(state, few, config, _nothing)
    state.epoch = config.pretraining_epochs
    training_epoch(state, elbo, few, config, _nothing)


def _nothing() -> None:
    """No progress is shown."""
