"""The starts that are trained together in an epoch: their stack, their noise, what each adds up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

import torch
from torch import Tensor

from inference.training.batched.draws import Noise
from inference.training.batched.stack import Stack
from inference.training.config import FitConfig
from inference.training.divergence import DivergedError, check_finite, no_singular_matrices
from inference.training.epochs import Tally
from inference.training.state import TrainingState

__all__ = ["Group", "noting_divergence"]


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
