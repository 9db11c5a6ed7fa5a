r"""The paper's own parametrisation as a Pyro program: node scores ξ, edge weights B, tables W; N summed out.

$$\xi_\ell \sim \mathrm{Normal}(0, 1), \qquad B_{ij} \sim \mathrm{Exponential}(\text{rate}), \qquad
  W^\ell(\cdot \mid c_{-\ell}) \sim \mathrm{Dirichlet}(a), \qquad
  \log p(X \mid \xi, B, W) = \sum_n \log \sum_c A_c(\xi, B, W)\, l_{nc}$$

with $E_{ij} = \mathrm{ReLU}(\tanh(B_{ij} (\xi_j - \xi_i) / \beta))$ at a fixed temperature β, and A as in `models.dag`.
What is known of the graph fixes edges at 0 or 1 and lifts ξ so that required causes come first (`EdgeConstraints`).
This is another prior over graphs than the uniform one: docs/mcmc.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from inference.graphs.mcmc.evidence import CellEvidence
from models import dag
from models.graph.constraints import EdgeConstraints

__all__ = ["HodgePrior", "HodgeProgram"]


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
