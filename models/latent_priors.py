"""p(Z) without cells: what stands in the place of the mixture until clusters are read out."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import pyro
import torch
from jaxtyping import Bool, Float, Int
from pyro import poutine
from torch import Tensor, nn

from causalpima.models.batch import Batch
from causalpima.models.dag import AugmentedLagrangian, acyclic_edges, trace_exponential
from causalpima.models.distributions import ComponentNormal
from causalpima.models.graph.base import EdgeConstraints
from causalpima.models.tempering import tempered

__all__ = [
    "EDGE_THRESHOLD",
    "LABEL_NOISE",
    "LatentPrior",
    "LinearSCM",
    "StandardNormal",
    "abducted",
    "counterfactual",
    "mixing",
    "propagated",
    "told_outcomes",
]


class LatentPrior(nn.Module, ABC):
    """A Gaussian p(Z) that has no N: of a variational autoencoder, or of a structural equation model.

    It is in force during joint training. Then clusters are read out of the embedding and the mixture takes its place
    (density estimation after the fact, Ghosh et al. 2020), so that everything that works with cells works.

    Attributes:
        in_force: Bool, a scalar, saved with the weights: whether it stands in the place of graph and mixture.
    """

    in_force: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("in_force", torch.tensor(True))

    def retire(self) -> None:
        """Let graph and mixture take its place, for good."""
        self.in_force.fill_(False)

    @abstractmethod
    def distribution(self) -> ComponentNormal:
        """p(Z), of empty batch shape."""

    def sample(self, batch: Batch, power: float = 1.0) -> Tensor:
        """The sites `Z` and those of `observe`, inside of the plate over samples; returns Z, `[batch, J]`.

        Args:
            batch: The samples.
            power: Likelihoods are raised to it (`CausalPIMA.kl_weight`).
        """
        latent: Tensor = pyro.sample("Z", self.distribution())
        self.observe(latent, batch, power)
        return latent

    def observe(self, latent: Tensor, batch: Batch, power: float) -> None:
        """Pyro sites of what is seen of Z beside the modalities: none by default, labels in `LinearSCM`.

        Args:
            latent: Z, `[batch, J]`, inside of the plate over samples.
            batch: The samples.
            power: What the likelihoods of such sites are raised to (`models.tempering.tempered`).
        """

    def log_prior(self) -> Tensor:
        """Declared log-prior of its parameters, and what keeps them in their range, a scalar once for the data set."""
        return torch.zeros(())

    def end_epoch(self) -> None:
        """What changes once an epoch: multipliers of a constraint, say. Nothing by default."""


# The standard normal on Z: the prior of a variational autoencoder.


class StandardNormal(LatentPrior):
    """p(Z) = N(0, I) (Kingma and Welling 2014); with `kl_weight` the β-VAE (Higgins et al. 2017).

    Args:
        latent_dim: Dimension of Z, J.
    """

    loc: Tensor
    scale: Tensor

    def __init__(self, latent_dim: int) -> None:
        super().__init__()
        self.register_buffer("loc", torch.zeros(latent_dim), persistent=False)
        self.register_buffer("scale", torch.ones(latent_dim), persistent=False)

    def distribution(self) -> ComponentNormal:
        """N(0, I)."""
        return ComponentNormal(self.loc, self.scale, validate_args=False)


# A linear structural equation model on blocks of Z, $z_l = \sum_k A_{kl} z_k + \varepsilon_l$: pure functions.
#
# Source: Pearl 2009, section 7.1 (abduction, action, prediction); Yang et al. 2021 (CausalVAE), section 3.


Weight = Float[Tensor, "nodes nodes"]
Blocks = Float[Tensor, "*batch nodes block"]


def mixing(weight: Weight) -> Weight:
    r"""$(I - A^T)^{-1}$, which takes $\varepsilon$ to z; the total effect of cause k on l stands in row l, column k."""
    return torch.linalg.inv(torch.eye(len(weight), dtype=weight.dtype, device=weight.device) - weight.T)


def abducted(latent: Blocks, weight: Weight) -> Blocks:
    r"""$\varepsilon = z - A^T z$: what the causes of every node leave unexplained."""
    return latent - weight.T @ latent


def propagated(noise: Blocks, weight: Weight, do: Mapping[int, Tensor]) -> Blocks:
    r"""z of $\varepsilon$, with some nodes set: these have no causes any more.

    Args:
        noise: $\varepsilon$.
        weight: A.
        do: By node, the value that its block is set to, `[block]`.
    """
    kept, forced = weight.clone(), noise.clone()
    for node, value in do.items():
        kept[:, node] = 0.0
        forced[..., node, :] = value
    return mixing(kept) @ forced


def counterfactual(latent: Blocks, weight: Weight, do: Mapping[int, Tensor]) -> Blocks:
    r"""z as it would have been, had some nodes been set: $\varepsilon$ from z, action, prediction.

    Args:
        latent: z as it is.
        weight: A, without cycles.
        do: By node, the value that its block is set to, `[block]`.
    """
    return propagated(abducted(latent, weight), weight, do)


# A linear structural equation model as the prior on Z, with labels of its nodes (after CausalVAE).


EDGE_THRESHOLD = 0.3
"""Weights below it are no edges, as in NOTEARS and CausalVAE."""

LABEL_NOISE = 0.1
"""Standard deviation of labels about where their block says, in standard deviations of labels. A noise that is learned
grows before the blocks have turned towards the labels, and lets them be (docs/linear_scm.md)."""

_FIRST_WEIGHT = 0.01


class LinearSCM(LatentPrior):
    r"""$z_l = \sum_k A_{kl} z_k + \varepsilon_l$, $\varepsilon \sim N(0, I)$, a block $z_l$ of d dimensions per node.

    So $p(Z) = N(0, (I - A^T)^{-1} (I - A)^{-1} \otimes I_d)$, whether A has cycles or not. A is free but for its
    diagonal and what is known of edges, and driven to have no cycle by $h(A) = 0$ (`trace_exponential`). Where labels
    tell the outcome $n_l$ of a node,

    $$p(u_l | z_l) = N(u_l; w_l^T z_l + b_l, \tau_l^2), \quad u_l = (n_l - (C_l - 1) / 2) / \sqrt{(C_l^2 - 1) / 12}:$$

    levels are equidistant numbers in their order. With labels, $-KL(q \| p(Z)) + E_q \log p(u | z)$ is
    $-KL(q \| p(Z | u)) + \log p(u)$, CausalVAE's prior given labels; with a weight β of the KL, labels are data and
    have, like the modalities, the power 1 / β. $\tau$ is 0.1; w and b are learned, so that a scale of labels makes no
    direction.

    Source: Yang et al. 2021 (CausalVAE), section 3; docs/linear_scm.md lists where this departs from it.

    Args:
        node_names: Names of the nodes.
        outcomes: Outcomes per node, C_l.
        latent_dim: Dimension of every block, d.
        edge_rate: Rate of a Laplace prior on every entry of A (0: flat).
        constraints: Edges that are known; None: none.
    """

    n_samples: Tensor
    level_value: Tensor

    def __init__(
        self,
        node_names: Sequence[str],
        outcomes: Sequence[int],
        latent_dim: int,
        edge_rate: float = 0.0,
        constraints: EdgeConstraints | None = None,
    ) -> None:
        super().__init__()
        n = len(outcomes)
        self.node_names, self.outcomes, self.block_dim = tuple(node_names), tuple(outcomes), latent_dim
        self.edge_rate = edge_rate
        self.constraints = EdgeConstraints.none(n) if constraints is None else constraints
        self.weight = nn.Parameter(_FIRST_WEIGHT * torch.randn(n, n))
        self.label_loading = nn.Parameter(torch.eye(1, latent_dim).repeat(n, 1))
        self.label_offset = nn.Parameter(torch.zeros(n))
        self.constraint = AugmentedLagrangian()
        self.register_buffer("n_samples", torch.tensor(0.0))
        self.register_buffer("level_value", _level_values(self.outcomes), persistent=False)

    @property
    def n_nodes(self) -> int:
        """Number of nodes, L."""
        return len(self.outcomes)

    def adjacency_weight(self) -> Tensor:
        """A `[L, L]`, row = cause, column = effect: 0 on the diagonal and where an edge is known not to be there."""
        nothing = self.constraints.forbidden | torch.eye(self.n_nodes, dtype=torch.bool, device=self.weight.device)
        return self.weight.masked_fill(nothing, 0.0)

    def edges(self) -> Tensor:
        """Edges as they are claimed, bool `[L, L]`: |A| above 0.3, without cycles."""
        return acyclic_edges(self.adjacency_weight().abs(), EDGE_THRESHOLD, self.constraints.required)

    def claimed_weight(self) -> Tensor:
        """A of the claimed edges, `[L, L]`, 0 elsewhere: what counterfactuals follow."""
        return self.adjacency_weight() * self.edges()

    def violation(self) -> Tensor:
        """h(A), a scalar: 0 without cycles."""
        return trace_exponential(self.adjacency_weight())

    def distribution(self) -> ComponentNormal:
        """N(0, M Mᵀ ⊗ I_d), M = (I - Aᵀ)⁻¹."""
        m = mixing(self.adjacency_weight())
        identity = torch.eye(self.block_dim, dtype=m.dtype, device=m.device)
        scale = torch.kron(torch.linalg.cholesky(m @ m.T).contiguous(), identity)
        return ComponentNormal(scale.new_zeros(len(scale)), scale, validate_args=False)

    def observe(self, latent: Tensor, batch: Batch, power: float) -> None:
        """A site `label_NODE` per node, masked where no label tells its outcome."""
        if self.training:
            self.n_samples.fill_(batch.n_samples)
        if batch.cells is None:
            return
        outcome, is_told = told_outcomes(batch.cells, self.outcomes)
        loc = self.label_loc(latent)
        noise = torch.full_like(loc[..., :1], LABEL_NOISE)
        for node, name in enumerate(self.node_names):
            value = self.level_value[node, outcome[:, node]]
            with poutine.mask(mask=is_told[:, node]):
                seen = ComponentNormal(loc[..., node, None], noise, validate_args=False)
                pyro.sample(f"label_{name}", tempered(seen, power), obs=value.unsqueeze(-1))

    def label_loc(self, latent: Tensor) -> Tensor:
        """Mean of every node's label, `[*b, J]` -> `[*b, L]`, in standardised levels."""
        return (self.blocks(latent) * self.label_loading).sum(-1) + self.label_offset

    def level(self, latent: Tensor) -> Tensor:
        """The same in levels 0, 1, ...: where a node stands between its outcomes, `[*b, J]` -> `[*b, L]`."""
        count = torch.tensor(self.outcomes, dtype=latent.dtype, device=latent.device)
        return self.label_loc(latent) * ((count.square() - 1) / 12).sqrt() + (count - 1) / 2

    def blocks(self, latent: Tensor) -> Tensor:
        """Z by node, `[*b, J]` -> `[*b, L, d]`."""
        return latent.unflatten(-1, (self.n_nodes, self.block_dim))

    @torch.no_grad()
    def counterfactual(self, latent: Tensor, do: dict[int, Tensor]) -> Tensor:
        """Z as it would have been, had some nodes been set, by the claimed edges, `[*b, J]`.

        Args:
            latent: Z as it is, `[*b, J]`.
            do: By node, what its block is set to, `[d]`.
        """
        return counterfactual(self.blocks(latent), self.claimed_weight(), do).flatten(-2)

    def log_prior(self) -> Tensor:
        """-rate Σ |A|, and what the augmented Lagrangian takes for cycles, per sample as in NOTEARS, n times."""
        sparsity = self.edge_rate * self.adjacency_weight().abs().sum()
        return -sparsity - self.n_samples * self.constraint.cost(self.violation())

    def end_epoch(self) -> None:
        """A round of the augmented Lagrangian."""
        self.constraint.advance(self.violation())


def told_outcomes(
    allowed: Bool[Tensor, "batch cells"], outcomes: Sequence[int]
) -> tuple[Int[Tensor, "batch nodes"], Bool[Tensor, "batch nodes"]]:
    """Outcome of every node where the cells that labels allow have only one, and whether they do.

    Args:
        allowed: Cells that labels leave possible.
        outcomes: Outcomes per node.
    """
    table = allowed.reshape(-1, *outcomes)
    axes = range(1, 1 + len(outcomes))
    possible = [table.any(tuple(axis for axis in axes if axis != own)) if len(outcomes) > 1 else table for own in axes]
    outcome = torch.stack([of_node.int().argmax(-1) for of_node in possible], dim=-1)
    return outcome, torch.stack([of_node.sum(-1) == 1 for of_node in possible], dim=-1)


def _level_values(outcomes: Sequence[int]) -> Tensor:
    """Levels as numbers of mean 0 and variance 1 over equally frequent ones, `[L, most]`, zeros beyond."""
    values = torch.zeros(len(outcomes), max(outcomes))
    for row, count in zip(values, outcomes, strict=True):
        row[:count] = (torch.arange(count) - (count - 1) / 2) / math.sqrt((count**2 - 1) / 12)
    return values
