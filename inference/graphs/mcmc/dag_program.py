r"""A Pyro program over all graphs of a few nodes: the graph enumerated, tables sampled, N summed out.

$$G \sim \mathrm{Uniform}(\text{DAGs}), \qquad \theta_{\ell \mid S}(\cdot \mid c_S) \sim
  \mathrm{Dirichlet}\Bigl(\frac{s}{C_\ell \prod_{k \in S} C_k}\Bigr), \qquad
  \log p(X \mid G, \theta) = \sum_n \log \sum_c p_G(c)\, l_{nc}$$

which is the model behind BDeu with equivalent sample size s, here for nodes that are seen through a mixture.

**One table per family, and a pseudo-prior.** The prior of a table depends on the parents alone, so graphs share it; a
table that G does not use integrates out. Under its prior such a table would wander far from the data, and no chain
would find the way back to a graph that needs it. As in Carlin and Chib (1995), tables that G does not use are
therefore drawn from a pseudo-prior near their posterior, Dirichlet(α + ρ m), with expected counts m and the share ρ of
information that uncertain cells leave. It integrates to one, so that p(G, used tables | X) is not changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pyro
import pyro.distributions as dist
import torch
from torch import Tensor

from inference.graphs.dags import all_dags
from inference.graphs.mcmc.evidence import CellEvidence
from models.families import FamilyTables, log_beta

__all__ = ["DagProgram", "pseudo_counts"]


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
