"""One chain of the No-U-Turn sampler (Hoffman and Gelman 2014) on a Pyro program, with its energies."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyro
from pyro.infer import MCMC, NUTS
from pyro.infer.autoguide.initialization import init_to_sample
from torch import Tensor

from models.torch_state import own_generators

__all__ = ["Chain", "Settings", "run_chain"]

StepDone = Callable[[], object]


@dataclass(frozen=True)
class Settings:
    """How long a chain is, and how it moves.

    Attributes:
        warmup: Steps that adapt step size and masses, and are dropped.
        draws: Steps that are kept.
        target_accept: Mean acceptance that the step size is adapted to.
        max_tree_depth: A step takes at most 2 to this power gradients.
        full_mass: Adapt a full mass matrix, for posteriors with ridges.
    """

    warmup: int = 500
    draws: int = 500
    target_accept: float = 0.8
    max_tree_depth: int = 6
    full_mass: bool = False


@dataclass(frozen=True)
class Chain:
    """What a chain visited, after warm-up.

    Attributes:
        draws: By site, `[draw, *event]`, constrained.
        log_density: log of the joint density in unconstrained coordinates, up to a constant, `[draw]`.
        energy: Hamiltonian at the beginning of each trajectory, `[draw]`.
        diverging: Whether the trajectory diverged, bool `[draw]`.
        step_size: Adapted step size.
    """

    draws: dict[str, Tensor]
    log_density: np.ndarray
    energy: np.ndarray
    diverging: np.ndarray
    step_size: float


class _RecordingNUTS(NUTS):
    """NUTS that keeps the energy of every trajectory: Pyro forgets it."""

    def __init__(self, program: Callable[[], None], settings: Settings) -> None:
        super().__init__(
            program,
            target_accept_prob=settings.target_accept,
            max_tree_depth=settings.max_tree_depth,
            max_plate_nesting=0,
            init_strategy=init_to_sample,
            full_mass=settings.full_mass,
            jit_compile=True,
            ignore_jit_warnings=True,
        )
        self.energies: list[float] = []
        self.potentials: list[float] = []
        self._begins = False

    def sample(self, params: Any) -> Any:
        self._begins = True
        moved = super().sample(params)
        self.potentials.append(float(self._potential_energy_last))
        return moved

    def _kinetic_energy(self, r_unscaled: Any) -> Any:
        kinetic = super()._kinetic_energy(r_unscaled)
        if self._begins and self._potential_energy_last is not None:
            self.energies.append(float(kinetic) + float(self._potential_energy_last))
            self._begins = False
        return kinetic


def run_chain(program: Callable[[], None], settings: Settings, seed: int, step_done: StepDone = lambda: None) -> Chain:
    """Run a chain from a draw of the prior, in float64.

    Args:
        program: Takes no arguments; discrete sites are marked for enumeration.
        settings: Length and adaptation.
        seed: Of the start and of all moves.
        step_done: Called after every step.
    """
    kernel = _RecordingNUTS(program, settings)
    diverged: list[int] = []

    def after_step(kernel: Any, _: Any, stage: str, __: int) -> None:
        diverged[:] = kernel._divergences
        step_done()

    with own_generators(), pyro.validation_enabled(False), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of traces: that torch.jit is old, that shapes are taken for constant
        pyro.set_rng_seed(seed)
        sampler = MCMC(kernel, settings.draws, settings.warmup, disable_progbar=True, hook_fn=after_step)
        sampler.run()
    diverging = np.zeros(settings.draws, dtype=bool)
    diverging[[step for step in diverged if 0 <= step < settings.draws]] = True
    kept = slice(settings.warmup, None)
    log_density, energy = -np.array(kernel.potentials[kept]), np.array(kernel.energies[kept])
    return Chain(sampler.get_samples(), log_density, energy, diverging, float(kernel.step_size))
