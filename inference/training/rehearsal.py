"""Components of a user's own at work on a few samples before the run begins: what they do wrong is said in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from traceback import walk_tb
from types import FrameType, TracebackType
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from guides.encoders import GaussianParameters
from guides.mixture_parameters import MixtureParameters
from inference.data.tensors import TensorData
from inference.objectives.enumerated import CollapsedELBO
from inference.training.components import Components
from inference.training.config import FitConfig
from inference.training.divergence import DivergedError, no_singular_matrices
from inference.training.epochs import pretraining_epoch, training_epoch
from inference.training.own_code import own_names
from inference.training.state import TrainingState
from models.graph import NodeGraph
from models.user_code import one_line

__all__ = ["OwnPart", "own_parts", "rehearse", "telling"]

_SHIPPED = ("models", "guides", "inference")
_N_SAMPLES = 64


class OwnPart(NamedTuple):
    """A component of a user's own.

    Attributes:
        setting: The setting that it takes the place of, for example `guide.fusion`.
        subject: Beginning of messages: `guide.fusion mylab:Mine`, or `components.fusion`.
        module: Module of the class or function.
        name: Name of the class or function.
    """

    setting: str
    subject: str
    module: str
    name: str


def own_parts(config: FitConfig, components: Components) -> tuple[OwnPart, ...]:
    """The components of a user's own: those that settings name, and objects of classes that are not shipped."""
    named = [OwnPart(s, f"{s} {value}", *value.split(":", 1)) for s, value in own_names(config.to_dict()).items()]
    objects = [_of_object(setting, part) for setting, part in components.by_setting().items()]
    return (*named, *(part for part in objects if part.module.partition(".")[0] not in _SHIPPED))


def _of_object(setting: str, given: Any) -> OwnPart:
    made_of = given if hasattr(given, "__name__") else type(given)
    modality = setting.removeprefix("modality.").removesuffix(".encoder")
    place = f"encoders {modality}" if setting.startswith("modality.") else setting.partition(".")[2]
    return OwnPart(setting, f"components.{place}", made_of.__module__, made_of.__name__)


@contextmanager
def telling(parts: Sequence[OwnPart]) -> Iterator[None]:
    """Errors that come out of a user's own code are one line that names the setting, function and line of the file.

    Numbers that are not finite, lack of memory, and Ctrl-C pass, as do errors that come from elsewhere.

    Raises:
        ValueError: Such an error.
    """
    try:
        yield
    except (KeyboardInterrupt, MemoryError, DivergedError):
        raise
    except BaseException as error:
        found = _culprit(parts, error.__traceback__)
        if found is None or _is_lack_of_memory(error):
            raise
        part, frame, line = found
        place = f"{frame.f_code.co_name}() fails in line {line} of {Path(frame.f_code.co_filename).name}"
        raise ValueError(f"{part.subject}: {place}: {one_line(error)}") from error


def _is_lack_of_memory(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and "memory" in str(error)


def _culprit(parts: Sequence[OwnPart], traceback: TracebackType | None) -> tuple[OwnPart, FrameType, int] | None:
    """The innermost frame of a user's module, with the component whose class it is in, or else one of that module."""
    for frame, line in reversed(list(walk_tb(traceback))):
        there = [part for part in parts if part.module == frame.f_globals.get("__name__")]
        if there:
            owner = type(frame.f_locals.get("self")).__name__
            return next((part for part in there if part.name in (owner, frame.f_code.co_name)), there[0]), frame, line
    return None


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
    _watch(state, subjects)
    with telling(parts), _telling_of_all(parts):
        _check_interfaces(state, subjects)
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
        of_one = isinstance(error, _BrokenInterfaceError) or _culprit(parts, error.__traceback__) is not None
        if of_one or isinstance(error, MemoryError) or _is_lack_of_memory(error):
            raise
        every = ", ".join(part.subject for part in parts)
        raise ValueError(f"{every}: the first steps of training fail: {one_line(error)}") from error


class _BrokenInterfaceError(ValueError):
    """What a component gives is not what its interface says."""


def _epochs(state: TrainingState, elbo: CollapsedELBO, few: TensorData, config: FitConfig) -> None:
    if config.pretraining_epochs:
        pretraining_epoch(state, few, config, _nothing)
    state.epoch = config.pretraining_epochs
    training_epoch(state, elbo, few, config, _nothing)


def _nothing() -> None:
    """No progress is shown."""


def _watch(state: TrainingState, subjects: Mapping[str, str]) -> None:
    """Look at everything that encoders and fusion return."""
    if "guide.fusion" in subjects:
        _hook(state.guide.fusion, subjects["guide.fusion"], (GaussianParameters, MixtureParameters))
    for name, encoder in state.guide.encoders.items():
        for setting in (f"modality.{name}.encoder.kind", f"modality.{name}.encoder"):
            if setting in subjects:
                _hook(encoder, subjects[setting], (GaussianParameters,))


def _hook(module: nn.Module, subject: str, kinds: tuple[type, ...]) -> None:
    module.register_forward_hook(lambda module, arguments, result: _check_posterior(subject, result, kinds))


def _check_posterior(subject: str, result: Any, kinds: tuple[type, ...]) -> None:
    if not isinstance(result, kinds):
        expected = " or ".join(kind.__name__ for kind in kinds)
        raise _BrokenInterfaceError(f"{subject}: expected forward() to return {expected}, got {_kind(result)}")


def _kind(value: Any) -> str:
    return f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


def _check_interfaces(state: TrainingState, subjects: Mapping[str, str]) -> None:
    """A graph has more methods than the first steps need, and would fail after hours."""
    if "model.graph" in subjects:
        with torch.no_grad():
            _check_graph(state.model.graph, subjects["model.graph"])


def _check_graph(graph: NodeGraph, subject: str) -> None:
    n, outcomes = graph.n_nodes, list(graph.outcomes)
    shapes: Mapping[str, tuple[Callable[[], Any], list[int]]] = {
        "edge_strength": (graph.edge_strength, [n, n]),
        "adjacency": (graph.adjacency, [n, n]),
        "conditional_log_tables": (graph.conditional_log_tables, [n, *outcomes]),
        "log_joint": (graph.log_joint, outcomes),
        "log_prior": (graph.log_prior, []),
    }
    for name, (method, shape) in shapes.items():
        found = method()
        if not isinstance(found, Tensor) or list(found.shape) != shape:
            raise _BrokenInterfaceError(
                f"{subject}: expected {name}() to return a tensor {shape}, got {_kind(found)}; nodes have {outcomes} "
                "outcomes"
            )
    _check_order(graph, subject)


def _check_order(graph: NodeGraph, subject: str) -> None:
    order = graph.causal_order()
    if not isinstance(order, list) or sorted(order) != list(range(graph.n_nodes)):
        raise _BrokenInterfaceError(
            f"{subject}: expected causal_order() to return every node from 0 to {graph.n_nodes - 1} once, got {order!r}"
        )
