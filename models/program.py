"""The generative model as a Pyro program: N from the graph, Z from the mixture, every modality from its decoder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Literal, cast

import pyro
import pyro.distributions as dist
import torch
from pyro import poutine
from pyro.distributions import TorchDistribution
from pyro.ops.indexing import Vindex
from torch import Tensor, nn
from torch.distributions import Distribution

from causalpima.models.batch import Batch
from causalpima.models.block_mixture import BlockMixture, Mixture
from causalpima.models.decoders.base import Decoder
from causalpima.models.distributions import ElementDistribution
from causalpima.models.environments import EnvironmentTables
from causalpima.models.graph.base import NodeGraph
from causalpima.models.latent_priors import LatentPrior
from causalpima.models.tempering import tempered

__all__ = [
    "CausalPIMA",
    "CellSites",
    "cell_index",
    "data_plate",
    "normalised_categorical",
    "observed_where",
    "register_parameters",
    "sample_cell",
    "sample_nodes",
    "sample_nodes_jointly",
]


# Pyro sites for N: one site over all cells, or one site per node in causal order.


CellSites = Literal["cells", "nodes"]

_ENUMERATE = {"enumerate": "parallel"}


def cell_index(values: Sequence[Tensor], outcomes: Sequence[int]) -> Tensor:
    """Row-major index of the cell with these node values."""
    strides = [math.prod(outcomes[node + 1 :]) for node in range(len(outcomes))]
    terms = [value * stride for value, stride in zip(values, strides, strict=True)]
    return torch.stack(torch.broadcast_tensors(*terms)).sum(0) if len(terms) > 1 else terms[0]


def normalised_categorical(log_probs: Tensor) -> dist.Categorical:
    """`dist.Categorical(logits=log_probs)` for `log_probs` `[*batch, C]` that are normalised: not done once more."""
    made = dist.Categorical.__new__(dist.Categorical)
    made.logits = made._param = log_probs
    made._num_events = log_probs.shape[-1]
    Distribution.__init__(made, log_probs.shape[:-1], validate_args=False)
    return made


def sample_cell(logits: Tensor, are_normalised: bool = False) -> Tensor:
    """One enumerated site `N` over cells; `logits` is `[*batch, C]`."""
    cells = normalised_categorical(logits) if are_normalised else dist.Categorical(logits=logits)
    return pyro.sample("N", cells, infer=dict(_ENUMERATE))


def sample_nodes(
    names: Sequence[str], log_tables: Tensor, order: Sequence[int], log_allowed: Tensor | None = None
) -> Tensor:
    """One enumerated site `N_NAME` per node, causes first; returns the index of the cell.

    Args:
        names: Names of the nodes.
        log_tables: log p(N_l | parents), `[L, C_1, ..., C_L]`, or one for each sample, `[batch, L, C_1, ..., C_L]`.
        order: A causal order: table l may depend on the nodes before l in it only.
        log_allowed: log 1[cell is possible] per sample, `[batch, C]`; a factor of the last site. None: all are.
    """
    values = [torch.zeros((), dtype=torch.long, device=log_tables.device) for _ in names]
    outcomes = log_tables.shape[-len(names) :]
    for node in order:
        others = tuple(value for k, value in enumerate(values) if k != node)
        logits = _given(log_tables.select(-1 - len(names), node), node, others)
        if log_allowed is not None and node == order[-1]:
            logits = logits + _given(log_allowed.unflatten(-1, outcomes), node, others)
        values[node] = pyro.sample(f"N_{names[node]}", normalised_categorical(logits), infer=dict(_ENUMERATE))
    return cell_index(values, outcomes)


def _given(table: Tensor, node: int, others: tuple[Tensor, ...]) -> Tensor:
    """The part of a table `[C_1, ..., C_L]`, or `[batch, C_1, ..., C_L]`, at values of all nodes but one."""
    if table.dim() == len(others) + 1:
        return Vindex(table.movedim(node, -1))[(*others, slice(None))]
    rows = torch.arange(len(table), device=table.device)
    return Vindex(table.movedim(node + 1, -1))[(rows, *others, slice(None))]


def sample_nodes_jointly(names: Sequence[str], logits: Tensor) -> Tensor:
    """The sites of `sample_nodes` for any joint distribution, by the chain rule in the given order.

    Args:
        names: Names of the nodes.
        logits: Joint logits per sample, `[batch, C_1, ..., C_L]`.
    """
    rows = torch.arange(len(logits), device=logits.device)
    values: list[Tensor] = []
    for node, name in enumerate(names):
        later = list(range(node + 2, logits.dim()))
        marginal = torch.logsumexp(logits, dim=later) if later else logits
        conditional = Vindex(marginal)[(rows, *values, slice(None))]
        values.append(pyro.sample(f"N_{name}", dist.Categorical(logits=conditional), infer=dict(_ENUMERATE)))
    return cell_index(values, logits.shape[1:])


class CausalPIMA(nn.Module):
    r"""p(N) p(Z | N) ∏_m p(X_m | Z, N) (paper, section 2).

    Sites: `N` (or `N_NAME` per node), `component` where a cell has several Gaussians, `Z`, and `X_NAME` per modality.
    N and `component` are marked for parallel enumeration; use `max_plate_nesting=1`.

    Samples of an environment that intervenes upon a node have p(N | e) for p(N), once `environments` has tables.

    Before them, where the graph is random (`BayesianGraph`), its own sites, once for the data set.

    With a `BlockMixture`, in place of `Z` a site `Z_NAME` per modality, masked where the modality is absent:
    p(N) ∏_m p(Z_m | N_S) p(X_m | Z_m, N_S), N_S being the nodes that the modality sees.

    While a `LatentPrior` is in force there is no N: p(Z) ∏_m p(X_m | Z), sites `Z`, those of its own, and `X_NAME`.

    Attributes:
        kl_weight: β of a bound E log p(X | Z) - β KL. Programs raise every likelihood to the power 1 / β; β times that
            bound is meant. 1 in a finished fit: what is reported is a bound.

    Args:
        graph: The graph over the nodes; gives p(N).
        mixture: p(Z | N).
        decoders: Per modality, p(X_m | Z, N).
        node_names: Names of the nodes; default N1, N2, ...
        sites: `cells`: one site over all cells; `nodes`: one site per node in causal order. Equal distributions.
        weights: Per modality, the power that its likelihood is raised to; default 1.
        mean_covariates: Shares of the levels of the covariates `[V]`, seen where a sample's own are not given; None
            where decoders see no covariates.
        latent_prior: p(Z) without cells, in force until clusters are read out; None: there is none.

    Raises:
        ValueError: The mixture has another number of cells than the graph, not every node has a name of its own, a
            decoder depends on N beside a prior that has none, or that prior has another dimension of Z.
    """

    mean_covariates: Tensor | None

    def __init__(
        self,
        graph: NodeGraph,
        mixture: Mixture,
        decoders: Mapping[str, Decoder],
        node_names: Sequence[str] | None = None,
        sites: CellSites = "cells",
        weights: Mapping[str, float] | None = None,
        mean_covariates: Tensor | None = None,
        latent_prior: LatentPrior | None = None,
    ) -> None:
        super().__init__()
        if graph.n_cells != mixture.n_cells:
            raise ValueError(f"mixture: expected {graph.n_cells} cells as the graph has, got {mixture.n_cells}")
        self.graph, self.mixture = graph, mixture
        self.decoders = nn.ModuleDict(decoders)
        self.node_names = tuple(node_names or (f"N{node + 1}" for node in range(graph.n_nodes)))
        if len(set(self.node_names)) != graph.n_nodes:
            raise ValueError(f"node_names: expected {graph.n_nodes} different names, got {list(self.node_names)}")
        self.sites: CellSites = sites
        self.weights = dict.fromkeys(decoders, 1.0) | dict(weights or {})
        self.kl_weight = 1.0
        self.environments = EnvironmentTables()
        self.register_buffer("mean_covariates", mean_covariates)
        self.latent_prior = latent_prior
        if latent_prior is not None:
            _refuse_cells(decoders)
            _check_size(latent_prior, mixture)

    def with_decoders(self, decoders: Mapping[str, Decoder]) -> CausalPIMA:
        """The same graph and mixture, not copies, with other decoders."""
        parts = (self.graph, self.mixture, decoders, self.node_names, self.sites)
        covariates, prior = self.mean_covariates, self.latent_prior
        other = CausalPIMA(*parts, weights=self.weights, mean_covariates=covariates, latent_prior=prior)
        other.environments = self.environments
        return other

    @property
    def prior_in_force(self) -> LatentPrior | None:
        """What stands in the place of graph and mixture; None where N is there."""
        return self.latent_prior if self.latent_prior is not None and bool(self.latent_prior.in_force) else None

    def log_prior(self) -> Tensor:
        """Declared log-prior of the parameters of p(N, Z), or of p(Z) while that has no N, once for the data set."""
        prior = self.prior_in_force
        return self.graph.log_prior() + self.mixture.log_prior() if prior is None else prior.log_prior()

    def relabel(self, permutation: Tensor) -> None:
        """Give the clusters other cells: what belonged to cell c now belongs to cell `permutation[c]`, `[C]`.

        p(Z | N) and p(X_m | Z, N) are renumbered; p(N) is not: it is to be fitted to the new cells. Tables of
        environments are dropped.

        Raises:
            ValueError: A decoder that depends on the cell cannot be renumbered, or the permutation does not keep the
                mask of a `BlockMixture`.
        """
        for name, decoder in self.decoders.items():
            cast(Decoder, decoder).relabel(self.mixture.level_permutation(name, permutation))
        self.mixture.relabel(permutation)
        self.environments.clear()

    def log_weight(self, batch: Batch | None = None) -> Tensor:
        """log(p(N = cell of k) π_{k|cell}) of every component, `[K]`.

        Args:
            batch: With p(N | e) of the environment of each of these samples, `[batch, K]`, where the model has such
                tables and the batch has environments.
        """
        log_tables = self.graph.conditional_log_tables()
        weight = self.mixture.log_weight(log_tables.sum(0))
        shift = None if batch is None else self.environments.log_shift(log_tables, batch.environment)
        return weight if shift is None else weight + shift[:, self.mixture.component_cell]

    def forward(self, batch: Batch) -> None:
        """Run the program on a batch; the modalities are observed where they are present."""
        register_parameters("causal_pima", self)
        log_tables = None if self.prior_in_force is not None else self.graph.sample_log_tables()
        with data_plate(batch):
            cell, latent = self._sample_prior(log_tables, batch)
            for name in self.decoders:
                with observed_where(batch.present[name]):
                    pyro.sample(f"X_{name}", self.likelihood(name, latent, cell, batch), obs=batch.values[name])

    def _sample_prior(self, log_tables: Tensor | None, batch: Batch) -> tuple[Tensor, Tensor]:
        """N and Z; without tables Z alone, and a cell that no decoder looks at."""
        if log_tables is None:
            return batch.index.new_zeros(()), cast(LatentPrior, self.latent_prior).sample(batch, 1 / self.kl_weight)
        of_samples = self.environments.log_tables(log_tables, batch.environment)
        cell = self._sample_cell(of_samples, batch.log_allowed(log_tables))
        return cell, self._sample_latent(cell, batch)

    def _sample_latent(self, cell: Tensor, batch: Batch) -> Tensor:
        if not isinstance(self.mixture, BlockMixture):
            return pyro.sample("Z", self.mixture.component(self._sample_component(cell)))
        parts = []
        for name in self.mixture.visible:
            with observed_where(batch.present[name]):
                gaussian = self.mixture.block(name).component(self.mixture.level(name, cell))
                parts.append(pyro.sample(f"Z_{name}", gaussian))
        return torch.cat(parts, dim=-1)

    def decode(self, name: str, latent: Tensor, cell: Tensor, covariates: Tensor | None = None) -> TorchDistribution:
        """p(X_m | Z, N, covariates) as it is reported; see `Decoder.reported`.

        Args:
            name: The modality.
            latent: Z, `[*b, J]`.
            cell: Index of the cell; its shape broadcasts with `*b`.
            covariates: `[*b, V]` or `[V]`; None: the average over the training samples.
        """
        return cast(Decoder, self.decoders[name]).reported(self._decode(name, latent, cell, covariates))

    def _decode(self, name: str, latent: Tensor, cell: Tensor, covariates: Tensor | None) -> TorchDistribution:
        latent, cell = self.mixture.part(name, latent), self.mixture.level(name, cell)
        covariates = self.mean_covariates if covariates is None else covariates
        if covariates is not None:
            latent = torch.cat([latent, covariates.to(latent).expand(*latent.shape[:-1], -1)], dim=-1)
        return cast(TorchDistribution, self.decoders[name](latent, cell))

    def likelihood(
        self, name: str, latent: Tensor, cell: Tensor, batch: Batch, reported: bool = False
    ) -> TorchDistribution:
        """p(X_m | Z, N) of the measured elements of a batch, raised to the weight of the modality.

        Args:
            name: The modality.
            latent: Z, `[*b, J]`.
            cell: Index of the cell; its shape broadcasts with `*b`.
            batch: The samples.
            reported: As log-likelihoods report it, rather than as the objective and q(N|X) have it.

        Raises:
            ValueError: Single elements are missing, and the decoder's distribution cannot leave them out.
        """
        decode = self.decode if reported else self._decode
        distribution = decode(name, latent, cell, batch.covariates)
        if name in batch.observed:
            if not isinstance(distribution, ElementDistribution):
                raise ValueError(
                    f"modality {name}: expected an ElementDistribution from its decoder, since single elements are "
                    f"missing, got {type(distribution).__name__}; wrap it in models.distributions.Elementwise"
                )
            distribution = distribution.restricted(batch.observed[name])
        return tempered(distribution, self.weights[name] / self.kl_weight)

    def _sample_cell(self, log_tables: Tensor, log_allowed: Tensor | None = None) -> Tensor:
        """N; where labels tell it, with log p(N) + log 1[N agrees with the labels] in place of log p(N)."""
        if self.sites == "cells":
            log_joint = log_tables.sum(-1 - self.graph.n_nodes).flatten(-self.graph.n_nodes)
            return sample_cell(log_joint if log_allowed is None else log_joint + log_allowed, are_normalised=True)
        return sample_nodes(self.node_names, log_tables, self.graph.causal_order(), log_allowed)

    def _sample_component(self, cell: Tensor) -> Tensor:
        """Index of the Gaussian, drawn within the cell where there is a choice."""
        candidates = self.mixture.cell_components
        if candidates.shape[1] == 1:
            return candidates[cell, 0]
        share = normalised_categorical(self.mixture.cell_log_share[cell])
        return candidates[cell, pyro.sample("component", share, infer={"enumerate": "parallel"})]


def _refuse_cells(decoders: Mapping[str, Decoder]) -> None:
    for name, decoder in decoders.items():
        if decoder.depends_on_cell:
            raise ValueError(
                "decoders: expected ones that depend on Z alone beside a prior without cells, got one that depends on "
                f"N for {name}; let it depend on Z"
            )


def _check_size(prior: LatentPrior, mixture: Mixture) -> None:
    found = prior.distribution().event_shape[-1]
    if found != mixture.latent_dim:
        raise ValueError(
            f"latent_prior: expected Z of {mixture.latent_dim} dimensions, as the mixture has, got {found}; make it of "
            "the same dimension"
        )


def data_plate(batch: Batch) -> AbstractContextManager[Tensor]:
    """The plate over samples that model and guide share; scales sums over the batch to the data set."""
    return pyro.plate("data", batch.n_samples, subsample=batch.index, dim=-1, device=batch.index.device)


def observed_where(present: Tensor | None) -> AbstractContextManager[object]:
    """Mask a site by presence; no mask where the modality is complete."""
    return nullcontext() if present is None else poutine.mask(mask=present)


def register_parameters(name: str, module: nn.Module) -> None:
    """Register a module in Pyro's global parameter store, unless parameters are module-local.

    With `pyro.settings.context(module_local_params=True)`, as training here uses, parameters live in their modules and
    a torch optimiser moves them; without it, `pyro.infer.SVI` finds them in the store.
    """
    if not pyro.settings.get("module_local_params"):
        pyro.module(name, module)
