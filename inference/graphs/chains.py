"""Several chains of one program, one after the other or in processes of their own, and what they say of the graph."""

from __future__ import annotations

import multiprocessing
import signal
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from pyro.infer import MCMC, NUTS
from pyro.infer.autoguide.initialization import init_to_sample
from torch import Tensor

from causalpima.inference.graphs.dags import all_dags
from causalpima.models import dag
from causalpima.models.dag import FamilyTables, log_beta
from causalpima.models.gaussian import own_generators
from causalpima.models.graph.base import EdgeConstraints

__all__ = [
    "CellEvidence",
    "Chain",
    "Chains",
    "DagProgram",
    "HodgePrior",
    "HodgeProgram",
    "Program",
    "Settings",
    "pseudo_counts",
    "run_chain",
    "run_chains",
]


# One chain of the No-U-Turn sampler (Hoffman and Gelman 2014) on a Pyro program, with its energies.


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
        torch.manual_seed(seed)  # Pyro's own function seeds NumPy and Python, too
        sampler = MCMC(kernel, settings.draws, settings.warmup, disable_progbar=True, hook_fn=after_step)
        sampler.run()
    diverging = np.zeros(settings.draws, dtype=bool)
    diverging[[step for step in diverged if 0 <= step < settings.draws]] = True
    kept = slice(settings.warmup, None)
    log_density, energy = -np.array(kernel.potentials[kept]), np.array(kernel.energies[kept])
    return Chain(sampler.get_samples(), log_density, energy, diverging, float(kernel.step_size))


# Likelihood of p(N) for samples that are seen through a mixture with fixed components, N summed out.
#
# $\log L(A) = \sum_n \log \sum_c A_c\, l_{nc}$. Rows that are equal, as most are where clusters are clear, are counted
# once.


# Shares of a row below this are rounding errors of float64 beside the rest.
_NEGLIGIBLE = 1e-17


class CellEvidence:
    """The data as a function of p(N).

    Args:
        log_likelihood: l, log p(x_n | c) up to a constant per sample, `[n, C]`.
        sample_weight: How much each sample counts, `[n]`; default 1.

    Attributes:
        weight: exp l of each distinct row, relative to its largest entry, `[R, C]`.
        multiplicity: How many samples have this row, `[R]`, or the sum of their weights.

    Raises:
        ValueError: A sample that belongs to no cell.
    """

    def __init__(self, log_likelihood: np.ndarray, sample_weight: np.ndarray | None = None) -> None:
        highest = log_likelihood.max(1, keepdims=True)
        if log_likelihood.ndim != 2 or not np.isfinite(highest).all():
            raise ValueError("log_likelihood: expected [sample, cell] with a finite entry in every row, got none")
        weight = np.exp(log_likelihood - highest, dtype=np.float64)
        weight[weight < _NEGLIGIBLE] = 0.0
        counted = np.ones(len(weight)) if sample_weight is None else sample_weight
        rows, row = np.unique(weight, axis=0, return_inverse=True)
        self.weight = torch.from_numpy(rows)
        self.multiplicity = torch.from_numpy(np.bincount(row.reshape(-1), counted))
        self.offset = float(counted @ highest[:, 0])

    @property
    def n_samples(self) -> float:
        """Number of samples, or the sum of their weights."""
        return float(self.multiplicity.sum())

    def log_likelihood(self, log_joint: Tensor) -> Tensor:
        """log L, `[*b]`, of log p(N) over the cells, `[*b, C]`."""
        evidence = log_joint.exp() @ self.weight.T
        return evidence.log() @ self.multiplicity + self.offset

    def responsibilities(self, joint: Tensor) -> Tensor:
        """p(c | x_n) of each distinct row, `[R, C]`, under p(N) `[C]`."""
        r = joint * self.weight
        return r / r.sum(1, keepdim=True)

    def mean_joint(self, n_steps: int = 500) -> Tensor:
        """p(N) without a graph, `[C]`: EM from the uniform one, with one sample's worth of uniform cells added."""
        n_cells = self.weight.shape[1]
        joint = torch.full((n_cells,), 1 / n_cells, dtype=torch.float64)
        for _ in range(n_steps):
            counts = self.multiplicity @ self.responsibilities(joint)
            before, joint = joint, (counts + 1 / n_cells) / (self.n_samples + 1)
            if float((joint - before).abs().max()) < 1e-9:
                break
        return joint


# A Pyro program over all graphs of a few nodes: the graph enumerated, tables sampled, N summed out.
#
# $$G \sim \mathrm{Uniform}(\text{DAGs}), \qquad \theta_{\ell \mid S}(\cdot \mid c_S) \sim
#   \mathrm{Dirichlet}\Bigl(\frac{s}{C_\ell \prod_{k \in S} C_k}\Bigr), \qquad
#   \log p(X \mid G, \theta) = \sum_n \log \sum_c p_G(c)\, l_{nc}$$
#
# which is the model behind BDeu with equivalent sample size s, here for nodes that are seen through a mixture.
#
# **One table per family, and a pseudo-prior.** The prior of a table depends on the parents alone, so graphs share it; a
# table that G does not use integrates out. Under its prior such a table would wander far from the data, and no chain
# would find the way back to a graph that needs it. As in Carlin and Chib (1995), tables that G does not use are
# therefore drawn from a pseudo-prior near their posterior, Dirichlet(α + ρ m), with expected counts m and the share ρ
# of
# information that uncertain cells leave. It integrates to one, so that p(G, used tables | X) is not changed.


@dataclass(frozen=True)
class DagProgram:
    """The program, callable as Pyro's NUTS takes it.

    Attributes:
        evidence: The data.
        families: Layout of the tables.
        dags: Graphs `[G, L, L]`, row = cause, column = effect.
        prior: Dirichlet parameters per node, `[K_l, C_l]`.
        pseudo_prior: Those of tables that a graph does not use, `[K_l, C_l]`.
    """

    evidence: CellEvidence
    families: FamilyTables
    dags: Tensor
    members: Tensor
    prior: list[Tensor]
    pseudo_prior: list[Tensor]

    @classmethod
    def of(
        cls,
        evidence: CellEvidence,
        outcomes: Sequence[int],
        equivalent_sample_size: float = 1.0,
        dags: np.ndarray | None = None,
    ) -> DagProgram:
        """The program of these samples.

        Args:
            evidence: The data.
            outcomes: Outcomes of each node.
            equivalent_sample_size: s of BDeu.
            dags: The graphs that are possible, equally likely beforehand; default all.

        Raises:
            ValueError: More nodes than graphs can be listed of.
        """
        families = FamilyTables(outcomes)
        graphs = torch.from_numpy(np.asarray(all_dags(len(outcomes)) if dags is None else dags)).long()
        prior = [part.to(torch.float64) for part in families.concentration(equivalent_sample_size)]
        pseudo = [a + m for a, m in zip(prior, pseudo_counts(evidence, families), strict=True)]
        return cls(evidence, families, graphs, families.members(graphs), prior, pseudo)

    def __call__(self) -> None:
        """Run the program."""
        tables = [self._sample(node, concentration) for node, concentration in enumerate(self.pseudo_prior)]
        log_weight = self.log_weights(tables)
        graph = pyro.sample("graph", dist.Categorical(logits=self._log_prior()), infer={"enumerate": "parallel"})
        pyro.factor("data", log_weight[graph])

    def log_weights(self, tables: Sequence[Tensor]) -> Tensor:
        """log p(X | G, θ) + log prior - log pseudo-prior of the tables that G uses, `[G]`."""
        log_tables = [table.log() for table in tables]
        used = self.families.family_sums([self._log_ratio(node, table) for node, table in enumerate(log_tables)])
        nodes = torch.arange(self.families.n_nodes)
        ratio = used[nodes, self.members].sum(-1)
        return ratio + self.evidence.log_likelihood(self.families.log_joints(log_tables, self.members))

    def graph_probability(self, tables: Sequence[Tensor]) -> Tensor:
        """p(G | θ, X), `[G]`: what a draw of the tables says of the graphs."""
        return torch.softmax(self.log_weights(tables) + self._log_prior(), dim=-1)

    def cell_probability(self, tables: Sequence[Tensor], graph_probability: Tensor) -> Tensor:
        """p(N) averaged over the graphs, `[C]`."""
        return graph_probability @ self.families.log_joints([t.log() for t in tables], self.members).exp()

    def edge_probability(self, graph_probability: Tensor) -> Tensor:
        """p(i -> j), `[L, L]`."""
        return torch.einsum("g,gij->ij", graph_probability, self.dags.to(graph_probability))

    def tables_of(self, draw: dict[str, Tensor]) -> list[Tensor]:
        """The tables of a draw, per node `[K_l, C_l]`."""
        return [draw[f"tables_{node}"] for node in range(self.families.n_nodes)]

    def _sample(self, node: int, concentration: Tensor) -> Tensor:
        return pyro.sample(f"tables_{node}", dist.Dirichlet(concentration).to_event(1))

    def _log_prior(self) -> Tensor:
        return torch.full((len(self.dags),), -float(np.log(len(self.dags))), dtype=torch.float64)

    def _log_ratio(self, node: int, log_table: Tensor) -> Tensor:
        """log Dirichlet(α) - log Dirichlet(α + ρ m) of every row, `[K_l]`."""
        prior, pseudo = self.prior[node], self.pseudo_prior[node]
        return ((prior - pseudo) * log_table).sum(-1) + log_beta(pseudo) - log_beta(prior)


def pseudo_counts(evidence: CellEvidence, families: FamilyTables) -> list[Tensor]:
    r"""ρ m per node `[K_l, C_l]`: expected counts of p(N) without a graph, less what uncertain cells take away.

    ρ is the diagonal of the observed over that of the complete information, $\sum_n r_n^2 / \sum_n r_n$, of each entry
    of a table, averaged over its row.
    """
    r = evidence.responsibilities(evidence.mean_joint())
    total = families.counts(evidence.multiplicity @ r)
    squares = [torch.zeros_like(part) for part in total]
    for row, multiplicity in zip(r, evidence.multiplicity, strict=True):
        for node, part in enumerate(families.counts(row)):
            squares[node] += multiplicity * part.square()
    return [m * (s.sum(-1) / m.sum(-1))[:, None] for m, s in zip(total, squares, strict=True)]


# The paper's own parametrisation as a Pyro program: node scores ξ, edge weights B, tables W; N summed out.
#
# $$\xi_\ell \sim \mathrm{Normal}(0, 1), \qquad B_{ij} \sim \mathrm{Exponential}(\text{rate}), \qquad
#   W^\ell(\cdot \mid c_{-\ell}) \sim \mathrm{Dirichlet}(a), \qquad
#   \log p(X \mid \xi, B, W) = \sum_n \log \sum_c A_c(\xi, B, W)\, l_{nc}$$
#
# with $E_{ij} = \mathrm{ReLU}(\tanh(B_{ij} (\xi_j - \xi_i) / \beta))$ at a fixed temperature β, and A as in
# `models.dag`.
# What is known of the graph fixes edges at 0 or 1 and lifts ξ so that required causes come first (`EdgeConstraints`).
# This is another prior over graphs than the uniform one: docs/mcmc.md.


@dataclass(frozen=True)
class HodgePrior:
    """What is believed before the data.

    Attributes:
        temperature: β, that of the end of training.
        edge_rate: Rate of the exponential prior on every edge weight.
        concentration: a of the Dirichlet prior on every column of W.
    """

    temperature: float = 0.05
    edge_rate: float = 1.0
    concentration: float = 1.0


@dataclass(frozen=True)
class HodgeProgram:
    """The program, callable as Pyro's NUTS takes it.

    Attributes:
        evidence: The data.
        outcomes: Outcomes of each node.
        prior: The prior.
        constraints: What is known of the graph; None: nothing.
    """

    evidence: CellEvidence
    outcomes: tuple[int, ...]
    prior: HodgePrior = HodgePrior()
    constraints: EdgeConstraints | None = None

    def __call__(self) -> None:
        """Run the program."""
        draw = {"node_score": pyro.sample("node_score", self._scores())}
        if len(self.outcomes) > 1:
            draw["edge_weight"] = pyro.sample("edge_weight", self._weights())
        for node in range(len(self.outcomes)):
            draw[f"table_{node}"] = pyro.sample(f"table_{node}", self._columns(node))
        pyro.factor("data", self.evidence.log_likelihood(self.log_joint(draw)))

    def log_joint(self, draw: dict[str, Tensor]) -> Tensor:
        """log p(N) over the cells, `[C]`."""
        tables = [draw[f"table_{node}"].log().movedim(-1, node) for node in range(len(self.outcomes))]
        return dag.log_joint(torch.stack(tables), self.edge_strength(draw)).flatten()

    def edge_strength(self, draw: dict[str, Tensor]) -> Tensor:
        """E, `[L, L]`."""
        n_nodes = len(self.outcomes)
        weight = draw["node_score"].new_zeros(n_nodes, n_nodes)
        if n_nodes > 1:
            rows, columns = torch.triu_indices(n_nodes, n_nodes, offset=1)
            weight = weight.index_put((rows, columns), draw["edge_weight"])
        known = self.constraints or EdgeConstraints.none(n_nodes)
        score = known.ordered(draw["node_score"])
        return known.applied(dag.edge_strength(score, weight + weight.T, self.prior.temperature))

    def _scores(self) -> dist.TorchDistribution:
        return dist.Normal(_zeros(len(self.outcomes)), 1.0).to_event(1)

    def _weights(self) -> dist.TorchDistribution:
        n_nodes = len(self.outcomes)
        rate = torch.full((n_nodes * (n_nodes - 1) // 2,), self.prior.edge_rate, dtype=torch.float64)
        return dist.Exponential(rate).to_event(1)

    def _columns(self, node: int) -> dist.TorchDistribution:
        others: Sequence[int] = [size for k, size in enumerate(self.outcomes) if k != node]
        shape = (*others, self.outcomes[node])
        return dist.Dirichlet(torch.full(shape, self.prior.concentration, dtype=torch.float64)).to_event(len(others))


def _zeros(size: int) -> Tensor:
    return torch.zeros(size, dtype=torch.float64)


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
