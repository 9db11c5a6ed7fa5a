"""Bounds and sums of one model and guide as pure functions of the noise, to be evaluated over a stack.

Their values are those of the Pyro programs (docs/objectives.md): the closed forms of `inference.objectives`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import reduce
from itertools import chain
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn
from torch.func import functional_call, vmap

from causalpima.guides.guide import Guide
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.objectives import closed_form
from causalpima.inference.objectives.closed_form import ELBOTerms
from causalpima.inference.objectives.responsibilities import (
    ObjectiveName,
    components,
    latent_free_log_likelihood,
    log_likelihood,
)
from causalpima.inference.training.clustering import PASS_SIZE, batch_moments, move_components
from causalpima.inference.training.components import RELAXED, Components
from causalpima.inference.training.config import FitConfig, ModalityConfig
from causalpima.inference.training.loop import (
    Tally,
    effective_cells,
    hide_modalities,
    pretraining_terms,
    pretraining_weight,
    set_schedules,
    update_steps,
)
from causalpima.inference.training.mixture_updates import MixtureSums
from causalpima.inference.training.state import Adam, DivergedError, TrainingState, check_finite, no_singular_matrices
from causalpima.models.batch import Batch, Modality
from causalpima.models.decoders.base import Decoder
from causalpima.models.decoders.networks import NETWORKS
from causalpima.models.mixture import GaussianMixture
from causalpima.models.parallel import with_stackable_layers
from causalpima.models.program import CausalPIMA
from causalpima.models.user_code import names_user_code

__all__ = [
    "Group",
    "Named",
    "Noise",
    "Records",
    "Stack",
    "batched_support",
    "cell_counts",
    "evaluate",
    "fit_graphs",
    "joint_bound",
    "joint_terms",
    "mixture_sums",
    "noting_divergence",
    "padded_mixtures",
    "pretraining_bound",
    "pretraining_epoch",
    "pretraining_step",
    "seed_of_order",
    "training_epoch",
    "training_step",
    "update_mixtures",
]


Named = dict[str, Tensor]
"""Terms of a bound by name, `[batch]` each."""


def pretraining_bound(batch: Batch) -> Callable[[CausalPIMA, Guide, Tensor], Named]:
    """The program of `pretraining_terms` on a batch."""
    return lambda model, guide, noise: pretraining_terms(model, guide, batch, noise).parts()


def joint_bound(objective: ObjectiveName, batch: Batch) -> Callable[[CausalPIMA, Guide, Tensor], tuple[Named, Tensor]]:
    """The program of `joint_terms` on a batch, with the log-prior of the graph."""

    def program(model: CausalPIMA, guide: Guide, noise: Tensor) -> tuple[Named, Tensor]:
        return joint_terms(objective, model, guide, batch, noise).parts(), model.graph.log_prior()

    return program


def joint_terms(objective: ObjectiveName, model: CausalPIMA, guide: Guide, batch: Batch, noise: Tensor) -> ELBOTerms:
    """The bound that joint training maximises, at `z = μ + σ ε`.

    Args:
        objective: Its name.
        model: The model.
        guide: The guide.
        batch: The samples.
        noise: ε, `[batch, J]`.
    """
    posterior = guide.encode(batch)
    sample, mixture = posterior.draw(noise), components(model, batch)
    log_likelihoods = {name: log_likelihood(model, name, sample, batch) for name in model.decoders}
    if objective == "meanfield":
        free = latent_free_log_likelihood(model, sample, batch)
        return closed_form.meanfield(posterior.loc, posterior.scale, mixture, log_likelihoods, free)
    bound = closed_form.collapsed if objective == "collapsed" else closed_form.paper
    return bound(sample, posterior.loc, posterior.scale, mixture, log_likelihoods)


# Where the random numbers of starts that are trained together come from.
#
# Every epoch has seeds of its own, derived from those of the configuration: a run that was stopped goes on as if it had
# not been. The order of the samples, and what is hidden of them, is the same for all starts; noise is each start's own.
# What a start draws does not depend on which others there are.


_ORDER, _NOISE = 1, 2


def seed_of_order(config: FitConfig, epoch: int) -> int:
    """Seed of what all starts share in an epoch: minibatches and hidden modalities."""
    return _seed(config.seed, _ORDER, epoch)


class Noise:
    """Standard normal noise of each start in an epoch.

    Args:
        configs: The configurations of the starts.
        epoch: Finished epochs before it.
        like: Its type and device are those of the noise; drawn on the CPU, so that devices agree.
    """

    def __init__(self, configs: Sequence[FitConfig], epoch: int, like: Tensor) -> None:
        seeds = [_seed(config.start_seed, _NOISE, epoch) for config in configs]
        self._generators = [torch.Generator().manual_seed(seed) for seed in seeds]
        self._like = like

    def normal(self, *shape: int) -> Tensor:
        """Draws, `[K, *shape]`."""
        draws = [torch.randn(shape, generator=generator, dtype=self._like.dtype) for generator in self._generators]
        return torch.stack(draws).to(self._like.device)


def _seed(seed: int, stream: int, epoch: int) -> int:
    return int(np.random.SeedSequence((seed, stream, epoch)).generate_state(1)[0])


# Parameters, buffers and Adam moments of several training states as one tensor each.


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

    def _join_optimizers(self) -> Adam:
        names = {id(parameter): name for name, parameter in self._own[0].items()}
        groups = [
            {**group, "params": [self.parameters[names[id(p)]] for p in group["params"]]}
            for group in self.states[0].optimizer.param_groups
        ]
        optimizer = Adam(groups, fused=True)
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


# The starts that are trained together in an epoch: their stack, their noise, what each adds up.


@contextmanager
def noting_divergence(state: TrainingState) -> Iterator[None]:
    """A divergence in here is noted in the state, as the training loop does it."""
    try:
        with no_singular_matrices():
            yield
    except DivergedError as error:
        state.diverged = f"{error}, in epoch {state.epoch + 1}"


@dataclass
class Group:
    """K starts, of which those that diverged meanwhile are left as they were; their rows of the stack mean nothing.

    Attributes:
        configs: Configuration of each; they differ in `restart`.
        stack: Their states.
        noise: Their noise in this epoch.
        tallies: Sums of each over the epoch.
        reseeded: Components of each that were re-seeded in the epoch.
    """

    configs: Sequence[FitConfig]
    stack: Stack
    noise: Noise = field(init=False)
    tallies: list[Tally] = field(init=False)
    reseeded: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.begin()

    @property
    def states(self) -> list[TrainingState]:
        """Their states."""
        return self.stack.states

    @property
    def config(self) -> FitConfig:
        """What their configurations have in common."""
        return self.configs[0]

    @property
    def alive(self) -> list[int]:
        """Those that did not diverge."""
        return [k for k, state in enumerate(self.states) if state.diverged is None]

    def begin(self) -> None:
        """A new epoch."""
        like = next(iter(self.stack.parameters.values()))
        self.noise = Noise(self.configs, self.states[0].epoch, like)
        self.tallies = [Tally() for _ in self.states]
        self.reseeded = [0 for _ in self.states]

    @contextmanager
    def may_diverge(self, k: int) -> Iterator[None]:
        """What goes wrong in here is the end of one start and of no other."""
        with noting_divergence(self.states[k]):
            yield
        if self.states[k].diverged is not None:
            self.stack.release(k)

    def for_each(self, action: Callable[[int, TrainingState], None]) -> None:
        """Call `action(k, state)` for every start that did not diverge."""
        for k in self.alive:
            with self.may_diverge(k):
                action(k, self.states[k])

    def check_finite(self, name: str, values: Tensor) -> None:
        """Give up the starts whose value `[K]` is not finite."""
        for value, k in zip(values.detach().tolist(), range(len(self.states)), strict=True):
            if self.states[k].diverged is None:
                with self.may_diverge(k):
                    check_finite(name, value)

    def step(self, losses: Tensor, name: str) -> None:
        """One gradient step of every start; of those whose loss `[K]` is finite."""
        self.check_finite(name, -losses)
        self.stack.optimizer.zero_grad(set_to_none=True)
        losses.sum().backward()
        self.stack.optimizer.step()

    def add(self, terms: Mapping[str, Tensor], tallies: Sequence[Tally]) -> Mapping[str, Tensor]:
        """Add terms `[K, batch]` to the tallies; returns their sums over the batch, `[K]` each."""
        sums = {name: value.detach().sum(-1) for name, value in terms.items()}
        n_samples = next(iter(terms.values())).shape[-1]
        for tally, values in zip(tallies, torch.stack(list(sums.values()), dim=-1).tolist(), strict=True):
            tally.add_sums(dict(zip(sums, values, strict=True)), n_samples)
        return sums


# Closed-form updates of the mixtures of a group, and p(N) after them.


@torch.no_grad()
def mixture_sums(group: Group, data: TensorData) -> list[MixtureSums]:
    """Of every start over all samples, from one pass over the data; see `clustering.batch_moments`."""
    joint = reduce(MixtureSums.plus, _passes(group, data))
    sizes = [state.model.mixture.n_components for state in group.states]
    return [MixtureSums(*(part[k, :size] for part in joint)) for k, size in enumerate(sizes)]


def _passes(group: Group, data: TensorData) -> Iterator[MixtureSums]:
    objective, latent_dim = group.config.objective, group.config.model.latent_dim
    for batch in data.batches(PASS_SIZE):

        def program(model: CausalPIMA, guide: Guide, noise: Tensor, batch: Batch = batch) -> MixtureSums:
            return cast(MixtureSums, batch_moments(objective, model, guide, batch, noise))

        yield group.stack.evaluate(program, group.noise.normal(len(batch), latent_dim))


def cell_counts(group: Group, data: TensorData) -> dict[int, Tensor]:
    """Expected number of samples per cell of every start that did not diverge, `[C]`."""
    sums, counts = mixture_sums(group, data), dict[int, Tensor]()

    def count(k: int, state: TrainingState) -> None:
        check_finite("mass of the clusters", sums[k].count)
        counts[k] = state.model.mixture.sum_to_cells(sums[k].count)

    group.for_each(count)
    return counts


def update_mixtures(group: Group, data: TensorData) -> None:
    """One update of every mixture, as `clustering.update_mixture` does it for one."""
    sums = mixture_sums(group, data)
    shape = len(group.states), group.states[0].model.graph.n_cells
    cell_count = torch.ones(shape, dtype=torch.float64, device=data.device)

    @torch.no_grad()
    def update(k: int, state: TrainingState) -> None:
        check_finite("mass of the clusters", sums[k].count)
        moved, cell_count[k] = move_components(state.model.mixture, sums[k], group.config)
        group.reseeded[k] += len(moved)

    group.for_each(update)
    fit_graphs(group, cell_count, group.config.graph.extra_steps)


def fit_graphs(group: Group, cell_count: Tensor, n_steps: int) -> None:
    """Gradient steps on p(N) alone, as `clustering.fit_graph` takes them for one start.

    Args:
        group: The starts.
        cell_count: Samples per cell, `[K, C]`.
        n_steps: Number of steps.
    """
    n_samples = cell_count.sum(-1, keepdim=True)
    weight = (cell_count / n_samples).to(group.stack.parameters["model.graph.conditional_logits"])

    def loss(model: CausalPIMA, guide: Guide, weight: Tensor, n_samples: Tensor) -> Tensor:
        return -(weight * model.graph.log_joint().reshape(-1)).sum() - model.graph.log_prior() / n_samples

    for _ in range(n_steps):
        losses = group.stack.evaluate(loss, weight, n_samples.squeeze(-1).to(weight))
        group.step(losses, "objective of the graph")
        group.stack.project()


# One epoch of pretraining or of joint training of a group, and evaluation on held-out samples.
#
# What `inference.training.loop` does for one start, with the same records.


Records = dict[int, dict[str, Any]]
"""Of every start that did not diverge, what the epoch is remembered by."""


def pretraining_step(group: Group, batch: Batch, prior_weight: float, noise: Tensor) -> None:
    """One gradient step of pretraining of every start.

    Args:
        group: The starts.
        batch: The samples, the same for all.
        prior_weight: Weight of the prior term.
        noise: That of the draws of z, `[K, batch, J]`.
    """
    terms = group.stack.evaluate(pretraining_bound(batch), noise)
    prior = terms["latent"] + terms["latent_entropy"]
    group.step(-sum(_reconstruction(terms).values(), prior_weight * prior).mean(-1), "objective")
    _observe(group, batch, group.add(terms, group.tallies))


def training_step(group: Group, batch: Batch, noise: Tensor) -> None:
    """One gradient step of joint training of every start; arguments as for `pretraining_step`."""
    terms, log_prior = group.stack.evaluate(joint_bound(group.config.objective, batch), noise)
    bound = sum(terms.values(), torch.zeros_like(noise[..., 0]))
    group.step(-bound.mean(-1) - log_prior / batch.n_samples, "objective")
    group.stack.project()
    _observe(group, batch, group.add(terms, group.tallies))


def _reconstruction(terms: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: value for name, value in terms.items() if name.startswith("reconstruction/")}


def _observe(group: Group, batch: Batch, sums: Mapping[str, Tensor]) -> None:
    for name, weight in group.states[0].model.weights.items():
        group.stack.observe(name, sums[f"reconstruction/{name}"] / weight, batch.n_elements(name))


def pretraining_epoch(group: Group, data: TensorData, step_done: Callable[[], None]) -> Records:
    """One epoch without clusters; torch's global generator gives the order of the samples."""
    config = group.config
    weight = pretraining_weight(group.states[0].epoch, config)
    group.stack.train()
    for batch in data.batches(config.training.batch_size, shuffle=True):
        shown = hide_modalities(batch, config.training.modality_dropout)
        pretraining_step(group, shown, weight, group.noise.normal(len(batch), config.model.latent_dim))
        step_done()
    return {k: {"phase": "pretraining", **_means(group.tallies[k]), "kl_weight": weight} for k in group.alive}


def training_epoch(group: Group, data: TensorData, step_done: Callable[[], None]) -> Records:
    """One epoch of joint training; torch's global generator gives the order of the samples."""
    config = group.config
    for state in group.states:
        schedule = set_schedules(state, config)
    n_steps = -(-data.n_samples // config.training.batch_size)
    updates = update_steps(n_steps, config.mixture.updates_per_epoch)
    group.stack.train()
    for step, batch in enumerate(data.batches(config.training.batch_size, shuffle=True), start=1):
        group.stack.set_node_noise(schedule["node_noise"] * group.noise.normal(len(config.outcomes)))
        shown = hide_modalities(batch, config.training.modality_dropout)
        training_step(group, shown, group.noise.normal(len(batch), config.model.latent_dim))
        if step in updates:
            update_mixtures(group, data)
        step_done()
    return _training_records(group, data, schedule)


def _training_records(group: Group, data: TensorData, schedule: Mapping[str, float]) -> Records:
    return {
        k: {
            "phase": "training",
            **_means(group.tallies[k]),
            "reseeded": group.reseeded[k],
            **schedule,
            **effective_cells(count),
        }
        for k, count in cell_counts(group, data).items()
    }


def _means(tally: Tally) -> dict[str, Any]:
    return {"objective": tally.objective(), "terms": tally.means()}


@torch.no_grad()
def evaluate(group: Group, data: TensorData, joint: bool) -> Records:
    """Terms on held-out samples, without noise on the graph, of the bound of joint training or of pretraining."""
    group.stack.train(False)
    tallies, config = [Tally() for _ in group.states], group.config
    for batch in data.batches(1024):
        noise = group.noise.normal(len(batch), config.model.latent_dim)
        if joint:
            terms = group.stack.evaluate(joint_bound(config.objective, batch), noise)[0]
        else:
            terms = group.stack.evaluate(pretraining_bound(batch), noise)
        group.add(terms, tallies)
    group.check_finite("held-out objective", torch.tensor([tally.objective() for tally in tallies]))
    return {k: {"validation_objective": tallies[k].objective(), "terms": tallies[k].means()} for k in group.alive}


# Which configurations the batched path can compute, and why others not.


def batched_support(
    config: FitConfig,
    modalities: Mapping[str, Modality],
    supplied: Collection[str] = (),
    components: Components | None = None,
) -> str | None:
    """Why starts of this configuration can't be trained as one computation; None if they can.

    What can't is what `torch.vmap` can't evaluate, or not faster than one start after the other: other encoders and
    decoders than perceptrons, other likelihoods than the normal one, and latent blocks under a mask.

    Args:
        config: The configuration, with an entry for every modality.
        modalities: What is known of every modality.
        supplied: Modalities whose decoder was handed over.
        components: Objects in place of configured components.
    """
    own = _of_the_user(config, components or Components())
    general = (reason(config) for is_so, reason in _NOT_BATCHED if is_so(config))
    of_modalities = (
        reason for name in modalities for reason in _reasons(name, config.modality[name], name in supplied)
    )
    return next(chain([own] if own is not None else [], general, of_modalities), None)


_NOT_BATCHED: tuple[tuple[Callable[[FitConfig], bool], Callable[[FitConfig], str]], ...] = (
    (
        lambda config: config.model.graph in RELAXED,
        lambda config: (
            f"the graph {config.model.graph} has a schedule of its own for every start, which is not batched"
        ),
    ),
    (
        lambda config: config.model.graph != "hodge",
        lambda config: f"the graph {config.model.graph} has tables in closed form, which are not batched",
    ),
    (
        lambda config: config.model.prior in ("mixture", "standard"),
        lambda config: f"the prior {config.model.prior} has no graph to be trained, and is not batched",
    ),
    (
        lambda config: (config.kl_weight, config.training.kl_warmup) != (1, 0),
        lambda _: "a bound with kl_weight or kl_warmup is not batched",
    ),
    (
        lambda config: config.guide.graph != "point",
        lambda _: "a guide over graphs draws from Pyro programs, which are not batched",
    ),
    (
        lambda config: config.model.prior == "nodewise",
        lambda _: "a block of Z per node is not batched",
    ),
    (
        lambda config: config.mixture.updates == "gradient",
        lambda _: "components of the mixture that gradients move are not batched",
    ),
    (
        lambda config: config.guide.fusion in ("moe", "mopoe"),
        lambda config: f"guide.fusion {config.guide.fusion} chooses a Gaussian for every draw, which is not batched",
    ),
    (
        lambda config: bool(config.mask),
        lambda _: "a mask gives every modality a latent block of its own, which is not batched",
    ),
    (
        lambda config: bool(config.observe.variables) and config.observe.use == "training",
        lambda _: "labels tell N during training, which is not batched",
    ),
)
"""Whether a configuration is of a kind, and why that kind is not batched."""


def _of_the_user(config: FitConfig, components: Components) -> str | None:
    """What of the model or the guide is a user's own."""
    objects = components.by_setting()
    if objects:
        return f"{next(iter(objects))} is an object of your own, which is not batched"
    model = config.model
    named = {"model.graph": model.graph, "model.prior": model.prior, "guide.fusion": config.guide.fusion}
    own = next((name for name, value in named.items() if names_user_code(value)), None)
    return None if own is None else f"{own} is {named[own]}, of your own, which is not batched"


def _reasons(name: str, entry: ModalityConfig, is_supplied: bool) -> Iterator[str]:
    if is_supplied:
        yield f"modality {name} has a decoder of your own"
    if entry.encoder.kind != "mlp":
        yield f"modality {name} has the encoder {entry.encoder.kind}, and only mlp is batched"
    if names_user_code(entry.decoder.kind):
        yield f"modality {name} has the decoder {entry.decoder.kind} of your own, and only mlp is batched"
    elif entry.decoder.kind not in NETWORKS:
        yield f"modality {name} has the physics law {entry.decoder.kind}, and only the decoder mlp is batched"
    elif entry.decoder.kind != "mlp":
        yield f"modality {name} has the decoder {entry.decoder.kind}, and only mlp is batched"
    if entry.decoder.likelihood != "normal":
        yield f"modality {name} has the likelihood {entry.decoder.likelihood}, and only normal is batched"
