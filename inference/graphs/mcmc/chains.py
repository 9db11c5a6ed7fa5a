"""Several chains of one program, one after the other or in processes of their own, and what they say of the graph."""

from __future__ import annotations

import multiprocessing
import signal
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from inference.graphs.mcmc.chain import Chain, Settings, run_chain
from inference.graphs.mcmc.dag_program import DagProgram
from inference.graphs.mcmc.hodge_program import HodgeProgram

__all__ = ["Chains", "Program", "run_chains"]

Program = DagProgram | HodgeProgram
Progress = Callable[[int], object]


@dataclass(frozen=True)
class Chains:
    """What several chains say of what does not depend on names and parametrisation.

    Attributes:
        cell_probability: p(N) of every draw, `[chain, draw, C]`.
        edge: Of `HodgeProgram` E, of `DagProgram` p(i -> j | tables, X), `[chain, draw, L, L]`.
        log_density: `[chain, draw]`.
        energy: `[chain, draw]`.
        diverging: bool `[chain, draw]`.
        step_size: `[chain]`.
        draws: The sites, `[chain, draw, *event]`.
    """

    cell_probability: np.ndarray
    edge: np.ndarray
    log_density: np.ndarray
    energy: np.ndarray
    diverging: np.ndarray
    step_size: np.ndarray
    draws: dict[str, np.ndarray]

    @classmethod
    def of(cls, program: Program, chains: Sequence[Chain]) -> Chains:
        """Put chains of a program together."""
        seen = [_invariants(program, chain) for chain in chains]
        return cls(
            np.stack([cells for cells, _ in seen]),
            np.stack([edges for _, edges in seen]),
            np.stack([chain.log_density for chain in chains]),
            np.stack([chain.energy for chain in chains]),
            np.stack([chain.diverging for chain in chains]),
            np.array([chain.step_size for chain in chains]),
            {name: np.stack([chain.draws[name].numpy() for chain in chains]) for name in chains[0].draws},
        )


def run_chains(
    program: Program, settings: Settings, n_chains: int, seed: int = 0, jobs: int = 1, progress: Progress | None = None
) -> Chains:
    """Run chains; each begins at a draw of the prior, and the result does not depend on `jobs`.

    Args:
        program: The program.
        settings: Length and adaptation.
        n_chains: Number of chains.
        seed: Chain k takes the k-th number that follows from it.
        jobs: Processes side by side, one thread each; Ctrl-C ends them.
        progress: Called with the number of steps that were done.
    """
    seeds = [int(s) for s in np.random.SeedSequence(seed).generate_state(n_chains)]
    done = progress or (lambda _: None)
    if jobs == 1:
        return Chains.of(program, [run_chain(program, settings, s, lambda: done(1)) for s in seeds])
    chains = []
    context = multiprocessing.get_context("spawn")
    with context.Pool(min(jobs, n_chains), initializer=_prepare_process) as pool:  # ends its processes, come what may
        for chain in pool.imap(_run, [(program, settings, s) for s in seeds]):
            chains.append(chain)
            done(settings.warmup + settings.draws)
    return Chains.of(program, chains)


def _prepare_process() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    torch.set_num_threads(1)


def _run(work: tuple[Program, Settings, int]) -> Chain:
    return run_chain(*work)


@torch.no_grad()
def _invariants(program: Program, chain: Chain) -> tuple[np.ndarray, np.ndarray]:
    """Cell probabilities `[draw, C]` and edges `[draw, L, L]`."""
    draws = [{name: value[i] for name, value in chain.draws.items()} for i in range(len(chain.energy))]
    seen = [_of_draw(program, draw) for draw in draws]
    return torch.stack([cells for cells, _ in seen]).numpy(), torch.stack([edges for _, edges in seen]).numpy()


def _of_draw(program: Program, draw: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
    if isinstance(program, HodgeProgram):
        return program.log_joint(draw).exp(), program.edge_strength(draw)
    tables = program.tables_of(draw)
    weight = program.graph_probability(tables)
    return program.cell_probability(tables, weight), program.edge_probability(weight)
