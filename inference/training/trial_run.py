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

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.graph import MixtureParameters
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.objectives.enumerated import CollapsedELBO
from causalpima.inference.store.files import is_out_of_memory
from causalpima.inference.training.build import latent_size
from causalpima.inference.training.components import Components
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.loop import pretraining_epoch, training_epoch
from causalpima.inference.training.state import DivergedError, TrainingState, no_singular_matrices
from causalpima.inference.training.user_code import own_names
from causalpima.models.graph.base import NodeGraph
from causalpima.models.user_code import one_line

__all__ = [
    "BrokenInterfaceError",
    "OwnPart",
    "check_graph",
    "is_of_user",
    "own_parts",
    "rehearse",
    "telling",
    "watch",
]


# What encoders, fusions and graphs of a user's own give, compared with what their interfaces say.


# Rounding of single precision is far below it.
_CLOSE = 1e-3


class BrokenInterfaceError(ValueError):
    """What a component gives is not what its interface says."""


def watch(state: TrainingState, config: FitConfig, subjects: Mapping[str, str]) -> None:
    """Look, from now on, at everything that encoders and fusion of a user's own return.

    Args:
        state: With model and guide.
        config: The configuration.
        subjects: Beginning of messages of every component of a user's own, by setting.
    """
    if "guide.fusion" in subjects:
        subject, n_taught = subjects["guide.fusion"], config.distillation.epochs
        _hook(state.guide.fusion, lambda arguments, result: _check_fused(subject, arguments[0][0], result, n_taught))
    for name, encoder in state.guide.encoders.items():
        for setting in (f"modality.{name}.encoder.kind", f"modality.{name}.encoder"):
            if setting in subjects:
                _watch_encoder(encoder, subjects[setting], latent_size(state.model.mixture, name))


def _watch_encoder(encoder: nn.Module, subject: str, latent_dim: int) -> None:
    def check(arguments: tuple[Any, ...], result: Any) -> None:
        if not isinstance(result, GaussianParameters):
            _refuse(subject, "forward() to return GaussianParameters", _kind(result))
        _check_tensors(subject, result, [len(arguments[0]), latent_dim])

    _hook(encoder, check)


def _hook(module: nn.Module, check: Callable[[tuple[Any, ...], Any], None]) -> None:
    module.register_forward_hook(lambda _module, arguments, result: check(arguments, result))


def _check_fused(subject: str, expert: GaussianParameters, result: Any, n_taught: int) -> None:
    """A Gaussian, or a mixture of them whose weights are given."""
    shape = list(expert.loc.shape)
    if isinstance(result, GaussianParameters):
        _check_tensors(subject, result, shape)
        return
    if not isinstance(result, MixtureParameters):
        _refuse(subject, "forward() to return GaussianParameters or MixtureParameters", _kind(result))
    if n_taught:
        raise BrokenInterfaceError(
            f"{subject}: expected forward() to return GaussianParameters with distillation.epochs {n_taught}, got "
            "MixtureParameters, which no encoder of one Gaussian can be taught; set its attribute teaches_alone to "
            "True, and distillation.epochs to 0"
        )
    _check_mixture(subject, result, shape)


def _check_mixture(subject: str, result: MixtureParameters, shape: list[int]) -> None:
    n_parts = result.locs.shape[-2] if isinstance(result.locs, Tensor) and result.locs.dim() > 1 else 1
    _check_tensors(subject, result, [*shape[:-1], n_parts, shape[-1]], log_weights=[*shape[:-1], n_parts])
    if result.log_weights.requires_grad:
        _refuse(subject, "log_weights without gradient, which draws cannot follow", "learned ones; detach them")
    total = result.log_weights.logsumexp(-1).exp()
    if bool((total - 1).abs().max() > _CLOSE):
        _refuse(subject, "weights that sum to 1 for every sample", f"a sum of {float(total.max()):.4g}")


def _check_tensors(subject: str, result: tuple[Any, ...], shape: list[int], **shapes: list[int]) -> None:
    """Refuse parts of q(Z | X) of other shapes or another precision: `shape`, or that of their name."""
    dtype = torch.get_default_dtype()
    for name, value in result._asdict().items():  # type: ignore[attr-defined]
        expected = shapes.get(name, shape)
        if not isinstance(value, Tensor) or list(value.shape) != expected or value.dtype != dtype:
            said = f"forward() to return {name} as a tensor {expected} of {dtype}, a row per sample"
            of = f" of {value.dtype}" if isinstance(value, Tensor) else ""
            _refuse(subject, said, _kind(value) + of)


def _refuse(subject: str, expected: str, got: str) -> None:
    raise BrokenInterfaceError(f"{subject}: expected {expected}, got {got}")


def _kind(value: Any) -> str:
    return f"a tensor {list(value.shape)}" if isinstance(value, Tensor) else type(value).__name__


@torch.no_grad()
def check_graph(graph: NodeGraph, subject: str) -> None:
    """A graph has more methods than the first steps need, and would fail after hours.

    Args:
        graph: The graph.
        subject: Beginning of messages.

    Raises:
        BrokenInterfaceError: A method that gives something else than `NodeGraph` says.
    """
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
            said = f"{name}() to return a tensor {shape}"
            _refuse(subject, said, f"{_kind(found)}; nodes have {outcomes} outcomes")
    _check_probabilities(graph, subject)
    _check_order(graph, subject)
    _check_scores(graph, subject)


def _check_probabilities(graph: NodeGraph, subject: str) -> None:
    """Tables whose product is no distribution would be fitted without a word."""
    joint = graph.log_joint().exp()
    if not bool((joint.sum() - 1).abs() < _CLOSE):
        _refuse(subject, "log_joint() with probabilities that sum to 1", f"a sum of {float(joint.sum()):.4g}")
    product = graph.conditional_log_tables().sum(0).exp()
    if not bool((product - joint).abs().max() < _CLOSE):
        said = "conditional_log_tables() to sum to log_joint() over the nodes"
        _refuse(subject, said, f"probabilities up to {float((product - joint).abs().max()):.4g} apart")


def _check_order(graph: NodeGraph, subject: str) -> None:
    order = graph.causal_order()
    if not isinstance(order, list) or sorted(order) != list(range(graph.n_nodes)):
        _refuse(subject, f"causal_order() to return every node from 0 to {graph.n_nodes - 1} once", repr(order))


def _check_scores(graph: NodeGraph, subject: str) -> None:
    """Results tell them: a fit would fail at its very end."""
    form, n = graph.score_form(), graph.n_nodes
    shapes = [list(part.shape) if isinstance(part, Tensor) else None for part in form[:2]]
    if shapes != [[n], [n, n]]:
        said = f"score_form() to return a ScoreForm of tensors [{n}] and [{n}, {n}]"
        _refuse(subject, said, f"{_kind(form[0])} and {_kind(form[1])}")


# Components of a user's own: which of them a run has, and errors of their code told in one line.


class OwnPart(NamedTuple):
    """A component of a user's own.

    Attributes:
        setting: The setting that it takes the place of, for example `guide.fusion`.
        subject: Beginning of messages: `guide.fusion mylab:Mine`, or `components.fusion`.
        module: Module of the class or function; that of an object may be a shipped one.
        name: Name of the class or function.
    """

    setting: str
    subject: str
    module: str
    name: str


def own_parts(config: FitConfig, components: Components) -> tuple[OwnPart, ...]:
    """The components of a user's own: those that settings name, and all objects.

    An object of a shipped class is one, too: it was made by hand, of another size than this fit needs, say.
    """
    named = [OwnPart(s, f"{s} {value}", *value.split(":", 1)) for s, value in own_names(config.to_dict()).items()]
    return (*named, *(_of_object(setting, part) for setting, part in components.by_setting().items()))


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
        if found is None or is_out_of_memory(error):
            raise
        part, frame, line = found
        place = f"{frame.f_code.co_name}() fails in line {line} of {Path(frame.f_code.co_filename).name}"
        raise ValueError(f"{part.subject}: {place}: {one_line(error)}") from error


def is_of_user(parts: Sequence[OwnPart], error: BaseException) -> bool:
    """Whether an error comes out of a user's own code."""
    return _culprit(parts, error.__traceback__) is not None


def _culprit(parts: Sequence[OwnPart], traceback: TracebackType | None) -> tuple[OwnPart, FrameType, int] | None:
    """The innermost frame of a user's module, with the component whose class it is in, or else one of that module."""
    written = [part for part in parts if part.module.partition(".")[0] != "causalpima"]
    for frame, line in reversed(list(walk_tb(traceback))):
        there = [part for part in written if part.module == frame.f_globals.get("__name__")]
        if there:
            owner = type(frame.f_locals.get("self")).__name__
            return next((part for part in there if part.name in (owner, frame.f_code.co_name)), there[0]), frame, line
    return None


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
