"""Parameters, buffers and Adam moments of several training states as one tensor each."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from guides.guide import Guide
from inference.training.state import TrainingState
from models.causal_pima import CausalPIMA
from models.decoders.base import Decoder
from models.mixture import GaussianMixture
from models.stacked import with_stackable_layers

__all__ = ["Stack", "padded_mixtures"]

Program = Callable[..., Any]

_TRAINED = ("model.decoders.", "model.graph.")
_MOMENTS = ("exp_avg", "exp_avg_sq")


class Stack:
    """K training states whose parameters lie in one tensor `[K, ...]` each.

    While the stack lasts, the modules of every state hold views of it: what is written into a state's own parameters
    and buffers is written into the stack, and the other way round. `release` gives a state memory of its own again.
    Adam works element by element, so one step of `optimizer` is one step of each state's own; `hand_back_moments`
    tells these of it. Mixtures, which may differ in their number of components, stay with the states.

    Args:
        states: Of equal architecture, with as many steps of their optimisers behind them.

    Attributes:
        states: The states, in the order of the stack.
        parameters: By name, `[K, ...]`.
        buffers: What training changes of decoders and graph, by name, `[K, ...]`.
        optimizer: Adam over `parameters`.
    """

    def __init__(self, states: Sequence[TrainingState]) -> None:
        self.states = list(states)
        self._released: set[int] = set()
        self._own = [dict(_parameters(state)) for state in states]
        self.parameters = {name: _joined([own[name] for own in self._own]) for name in self._own[0]}
        buffers = [dict(_buffers(state)) for state in states]
        self.buffers = {name: _joined([own[name] for own in buffers]) for name in buffers[0]}
        for value in self.parameters.values():
            value.requires_grad_()
        self._views = [{**parameters, **own} for parameters, own in zip(self._own, buffers, strict=True)]
        self._point_at(lambda value, k: value[k])
        self._template = self._make_template()
        self._mixtures: tuple[list[Tensor], dict[str, Tensor]] = ([], {})
        self.optimizer = self._join_optimizers()

    def __len__(self) -> int:
        return len(self.states)

    def _point_at(self, place: Callable[[Tensor, int], Tensor]) -> None:
        for k in range(len(self)):
            self._place(k, place)

    def _place(self, k: int, place: Callable[[Tensor, int], Tensor]) -> None:
        for name, value in {**self.parameters, **self.buffers}.items():
            self._views[k][name].data = place(value.detach(), k)

    def _make_template(self) -> _Programs:
        """Copies of the first state's modules, with buffers of the stack."""
        template = _Programs(*copy.deepcopy((self.states[0].model, self.states[0].guide)))
        for name, value in self.buffers.items():
            module, _, own = name.rpartition(".")
            setattr(template.get_submodule(module), own, value)
        with_stackable_layers(template)
        return template

    def _join_optimizers(self) -> torch.optim.Adam:
        names = {id(parameter): name for name, parameter in self._own[0].items()}
        groups = [
            {**group, "params": [self.parameters[names[id(p)]] for p in group["params"]]}
            for group in self.states[0].optimizer.param_groups
        ]
        optimizer = torch.optim.Adam(groups, fused=True)
        for name, parameter in self.parameters.items():
            moments = [state.optimizer.state.get(own[name]) for state, own in self._with_own()]
            if moments[0]:
                optimizer.state[parameter] = _joined_moments([cast(dict[str, Tensor], found) for found in moments])
        return optimizer

    def _with_own(self) -> Iterator[tuple[TrainingState, dict[str, nn.Parameter]]]:
        return zip(self.states, self._own, strict=True)

    def hand_back_moments(self) -> None:
        """Let the optimiser of every state know of the steps that were taken."""
        for k in range(len(self)):
            self._hand_back(k, lambda value, k: value[k])

    def _hand_back(self, k: int, place: Callable[[Tensor, int], Tensor]) -> None:
        if k in self._released:
            return
        for name, own in self._own[k].items():
            joint = self.optimizer.state.get(self.parameters[name])
            if joint:
                moments = {moment: place(joint[moment], k) for moment in _MOMENTS}
                self.states[k].optimizer.state[own] = {"step": joint["step"].clone(), **moments}

    def release(self, k: int) -> None:
        """Leave state k as it is now, whatever becomes of its row of the stack."""
        self._hand_back(k, _copy_of_row)
        if k not in self._released:
            self._place(k, _copy_of_row)
        self._released.add(k)

    def release_all(self) -> None:
        """End of the stack."""
        for k in range(len(self)):
            self.release(k)

    def train(self, mode: bool = True) -> None:
        """Put the modules of the states, and those that are evaluated, in training or evaluation mode."""
        for module in (self._template, *(state.modules for state in self.states)):
            module.train(mode)

    @torch.no_grad()
    def project(self) -> None:
        """Put the edge weights back to their range after a gradient step; see `HodgeGraph.project`."""
        self.parameters["model.graph.pair_weight"].clamp_(min=0)

    @torch.no_grad()
    def set_node_noise(self, noise: Tensor) -> None:
        """Noise on the node scores that every use of the graphs sees until the next draw, `[K, L]`."""
        self.buffers["model.graph.node_noise"].copy_(noise)

    def evaluate(self, program: Program, *stacked: Tensor) -> Any:
        """`program(model, guide, *own)` for every state at once, by `torch.vmap`.

        Args:
            program: A function of a model, a guide, and a row of each of `stacked`; it returns tensors, in tuples or
                dicts if there are several.
            *stacked: `[K, ...]` each.

        Returns:
            What the program returns, every tensor with K in front.
        """

        def of_one(weights: dict[str, Tensor], *own: Tensor) -> Any:
            return functional_call(self._template, weights, (program, *own))

        weights = {**self.parameters, **self.buffers, **self._joined_mixtures()}
        return vmap(of_one)(weights, *stacked)

    def _joined_mixtures(self) -> dict[str, Tensor]:
        mixtures = [state.model.mixture for state in self.states]
        known, joined = self._mixtures
        if len(known) != len(mixtures) or any(m.component_loc is not k for m, k in zip(mixtures, known, strict=True)):
            joined = padded_mixtures(
                [cast(GaussianMixture, mixture) for mixture in mixtures]
            )  # every change of a mixture replaces its tensors
            self._mixtures = [mixture.component_loc for mixture in mixtures], joined
        return joined

    def observe(self, name: str, log_likelihood: Tensor, n_elements: Tensor) -> None:
        """Take note of a training batch, as `Decoder.observe` does; what decoders do there is element by element.

        Args:
            name: The modality.
            log_likelihood: Summed over the measured elements of the batch, `[K]`.
            n_elements: Their number.
        """
        cast(Decoder, self._template.model.decoders[name]).observe(log_likelihood, n_elements)


class _Programs(nn.Module):
    """Model and guide as one module, whose forward runs any program on them."""

    def __init__(self, model: CausalPIMA, guide: Guide) -> None:
        super().__init__()
        self.model, self.guide = model, guide

    def forward(self, program: Program, *own: Tensor) -> Any:
        return program(self.model, self.guide, *own)


def padded_mixtures(mixtures: Sequence[GaussianMixture]) -> dict[str, Tensor]:
    """Components of all mixtures, with components of weight zero where a mixture has fewer than another.

    Returns:
        By the name that the buffer has below a model: `[K, M, ...]`, M components each.
    """
    size = max(mixture.n_components for mixture in mixtures)
    return {
        f"model.mixture.component_{name}": torch.stack(
            [
                _padded(getattr(mixture, f"component_{name}"), size, is_weight=name == "log_share")
                for mixture in mixtures
            ]
        )
        for name in ("loc", "scale", "cell", "log_share")
    }


def _padded(value: Tensor, size: int, is_weight: bool) -> Tensor:
    """The first component over again, without weight."""
    missing = (size - len(value), *value.shape[1:])
    return torch.cat([value, value.new_full(missing, -torch.inf) if is_weight else value[:1].expand(missing)])


def _copy_of_row(value: Tensor, k: int) -> Tensor:
    return value[k].clone()


def _parameters(state: TrainingState) -> Iterator[tuple[str, nn.Parameter]]:
    return _Programs(state.model, state.guide).named_parameters()


def _buffers(state: TrainingState) -> Iterator[tuple[str, Tensor]]:
    """Of decoders and graph, without tables of indices."""
    for name, value in _Programs(state.model, state.guide).named_buffers():
        if name.startswith(_TRAINED) and (value.is_floating_point() or value.dtype == torch.bool):
            yield name, value


def _joined(tensors: Sequence[Tensor]) -> Tensor:
    return torch.stack([tensor.detach() for tensor in tensors])


def _joined_moments(found: Sequence[dict[str, Tensor]]) -> dict[str, Tensor]:
    return {"step": found[0]["step"].clone(), **{name: _joined([own[name] for own in found]) for name in _MOMENTS}}
