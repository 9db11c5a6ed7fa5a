"""From a fitted model and its data to the arrays that export, figures and reports use."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, cast

import numpy as np
import torch
from pyro.distributions import TorchDistribution
from torch import Tensor

from causalpima.guides.guide import Guide
from causalpima.inference.clusters.design import DesignedNode
from causalpima.inference.clusters.identify import SideInformation, identification
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.stored import row_blocks
from causalpima.inference.data.tensors import TensorData, in_order
from causalpima.inference.findings.arrays import (
    CurveArrays,
    FitArrays,
    GraphArrays,
    MixtureArrays,
    ModalityArrays,
    PosteriorDraws,
)
from causalpima.inference.findings.explained_variance import (
    CellMoments,
    VarianceExplained,
    WeightedValues,
    variance_explained,
)
from causalpima.inference.findings.linear_model import linear_model_arrays
from causalpima.inference.findings.physics import physical_estimates
from causalpima.inference.objectives.responsibilities import (
    GivenLatent,
    ObjectiveName,
    given_latent,
    log_responsibilities,
)
from causalpima.models.batch import Batch
from causalpima.models.block_mixture import BlockMixture
from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.latent_priors import LatentPrior
from causalpima.models.program import CausalPIMA

__all__ = [
    "DrawBounds",
    "Fitted",
    "central_value",
    "choose_samples",
    "collect",
    "curve_arrays",
    "draw_posterior",
    "explained_variances",
    "graph_arrays",
    "held_out_log_likelihood",
    "predictive_deviation",
    "predictive_interval",
    "responsibilities",
    "standard_error",
]


# Measured curves of each cell, and where the model expects new curves and vectors.


_MOST_CURVES = 40
_MOST_ELEMENTS = 2**22
_DRAWS = 256
_WITHOUT_SCALE = ("bernoulli", "categorical")
_COUNTS = ("poisson", "negative_binomial")


def curve_arrays(fitted: Fitted, name: str, r: np.ndarray, mean: Tensor) -> CurveArrays:
    """Measured curves and predictive band of every cell, in the units of the data.

    Args:
        fitted: The fit.
        name: A modality that is a curve.
        r: q(N|X), `[n, C]`.
        mean: Decoded mean of each cell on the scale of the model, `[C, position]`.
    """
    examples = _examples(fitted, name, r)
    return CurveArrays(examples, *(predictive_interval(fitted, name, mean) or (None, None)))


def predictive_interval(fitted: Fitted, name: str, mean: Tensor) -> tuple[np.ndarray, np.ndarray] | None:
    """Two predictive standard deviations below and above the mean of every cell, in the units of the data.

    Args:
        fitted: The fit.
        name: The modality.
        mean: Decoded mean of each cell on the scale of the model, `[C, *shape]`.

    Returns:
        `[C, *shape]` each; None where the likelihood has no scale.
    """
    likelihood = fitted.likelihoods.get(name, "normal")
    deviation = None if likelihood in _WITHOUT_SCALE else predictive_deviation(fitted.model, name, mean)
    if deviation is None:
        return None
    lower, upper = mean - 2 * deviation, mean + 2 * deviation
    invert = fitted.tensors.standardisation[name].invert
    return _array(invert(lower.clamp(min=0) if likelihood in _COUNTS else lower)), _array(invert(upper))


@torch.no_grad()
def predictive_deviation(model: CausalPIMA, name: str, mean: Tensor) -> Tensor | None:
    r"""Root mean square distance of X_m from a curve per cell, given the cell, on the scale of the model.

    $\sqrt{E_{p(z|c)}[(\mu(z, c) - m_c)^2 + \sigma^2(z, c)]}$, over 256 draws of z where the decoder depends on it,
    from torch's global generator. None for a decoder that has no variance.

    Args:
        model: The fitted model.
        name: The modality.
        mean: The curves m, `[C, position]`.

    Returns:
        `[C, position]`.
    """
    deviations = [_deviation(model, name, cell, of_cell) for cell, of_cell in enumerate(mean)]
    known = [deviation for deviation in deviations if deviation is not None]
    return torch.stack(known) if len(known) == len(deviations) else None


def _deviation(model: CausalPIMA, name: str, cell: int, mean: Tensor) -> Tensor | None:
    mixture = model.mixture
    share = torch.distributions.Categorical(logits=mixture.cell_log_share[cell], validate_args=False)
    latent = mixture.component(mixture.cell_components[cell, share.sample((_DRAWS,))]).sample()
    distribution = model.decode(name, latent, torch.full((_DRAWS,), cell, device=latent.device))
    variance = _variance(model.decoders[name], distribution)
    if variance is None:
        return None
    return ((distribution.mean - mean).square() + variance).mean(0).sqrt()


def _variance(decoder: Any, distribution: TorchDistribution) -> Tensor | None:
    """The re-estimated variance of a Gaussian decoder, else that of the distribution, where there is one."""
    if hasattr(decoder, "variance"):
        return cast(DecoderVariance, decoder.variance).reported_variance()
    try:
        return distribution.variance
    except NotImplementedError:
        return None


def _examples(fitted: Fitted, name: str, r: np.ndarray) -> np.ndarray:
    """At most 40 measured curves of each cell, drawn with a fixed seed, `[C, E, position]`; NaN for what is missing."""
    data = fitted.data
    values, measured, cell = data.modalities[name], data.measured(name), r.argmax(1)
    n_cells, n_positions = r.shape[1], values.shape[1]
    most = max(1, min(_MOST_CURVES, _MOST_ELEMENTS // (n_cells * n_positions)))
    rng = np.random.default_rng(0)
    chosen = [_choose(np.flatnonzero((cell == index) & data.present[name]), most, rng) for index in range(n_cells)]
    examples = np.full((n_cells, max(map(len, chosen)), n_positions), np.nan, dtype=values.dtype)
    for index, rows in enumerate(chosen):
        examples[index, : len(rows)] = np.where(measured[rows], values[rows], np.nan)
    return examples


def _choose(rows: np.ndarray, most: int, rng: np.random.Generator) -> np.ndarray:
    return rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))


def _array(value: Tensor) -> np.ndarray:
    array: np.ndarray = value.detach().cpu().numpy()
    return array


# Draws from a fitted guide and model for a bounded subset of the samples.


_ROWS_AT_ONCE = 8192


@dataclass(frozen=True)
class DrawBounds:
    """How much is drawn.

    Attributes:
        draws: Draws per sample.
        samples: At most so many samples.
        predictive_elements: At most so many predictive values per modality.
    """

    draws: int = 100
    samples: int = 512
    predictive_elements: int = 2**23


def choose_samples(split: np.ndarray, bound: int) -> np.ndarray:
    """Indices of at most `bound` samples, held-out ones first, evenly spread, in increasing order."""
    held_out, rest = np.flatnonzero(split != "train"), np.flatnonzero(split == "train")
    first = _spread(held_out, bound)
    return np.sort(np.concatenate([first, _spread(rest, bound - len(first))]))


def _spread(index: np.ndarray, bound: int) -> np.ndarray:
    if len(index) <= bound:
        return index
    return index[np.linspace(0, len(index) - 1, bound).round().astype(int)] if bound else index[:0]


class _Drawn(NamedTuple):
    """Draws for a batch.

    Attributes:
        latent: Z, `[D, B, J]`.
        cell: N, `[D, B]`.
        log_weight: log p(X, Z) - log q(Z|X), `[D, B]`.
        log_likelihood: log p(X_m | Z, N) per modality, `[D, B]`.
        log_weight_without_cells: `log_weight` under the prior without cells, or None.
    """

    latent: Tensor
    cell: Tensor
    log_weight: Tensor
    log_likelihood: dict[str, Tensor]
    log_weight_without_cells: Tensor | None


@torch.no_grad()
def draw_posterior(
    model: CausalPIMA, guide: Guide, data: TensorData, samples: np.ndarray, bounds: DrawBounds
) -> PosteriorDraws:
    """Draw Z from q(Z|X), N from p(N | Z, X), and X from p(X | Z, N), from torch's global generator.

    Args:
        model: Fitted model.
        guide: Fitted guide.
        data: All samples.
        samples: Which of them.
        bounds: How much is drawn.
    """
    subset = data.subset(samples)
    chunks = [_draw_batch(model, guide, subset, batch, bounds.draws) for batch in subset.batches(_chunk(bounds.draws))]
    latent, cell, log_weight = (torch.cat(parts, dim=1) for parts in zip(*(chunk[:3] for chunk in chunks), strict=True))
    likelihood = {m: torch.cat([chunk.log_likelihood[m] for chunk in chunks], dim=1) for m in model.decoders}
    kept = _predictive_samples(model, len(samples), bounds)
    prior_latent, prior_cell = _draw_prior(model, bounds.draws)
    return PosteriorDraws(
        samples=samples,
        latent=_array(latent),
        nodes=_nodes(model, cell),
        log_weight=_array(log_weight),
        log_likelihood={m: _array(value) for m, value in likelihood.items()},
        predictive_samples=samples[kept],
        predictive={m: _predict(model, subset, m, latent[:, kept], cell[:, kept], kept) for m in model.decoders},
        prior_latent=_array(prior_latent),
        prior_nodes=_nodes(model, prior_cell),
        log_weight_without_cells=_without_cells(chunks),
    )


def _chunk(draws: int) -> int:
    return max(1, _ROWS_AT_ONCE // draws)


def _draw_batch(model: CausalPIMA, guide: Guide, data: TensorData, batch: Batch, draws: int) -> _Drawn:
    """Draws, and densities at them.

    Z of a modality that has a block of its own and is absent is drawn given N, and no part of the densities.
    Densities are of the data in their units, without the weights of the modalities, with the
    variances that are reported; cells are drawn from q(N|X), with the weights and one variance per modality.
    Densities are float64: ratios of float32 ones underflow, and Pareto smoothing of them is NaN.
    """
    posterior = guide.encode(batch)
    latent = posterior.draw(torch.randn(draws, *posterior.loc.shape, device=posterior.loc.device))
    flat, repeated = latent.flatten(0, 1), batch.repeated(draws)
    present = model.mixture.present(repeated)
    given = given_latent(model, flat, repeated)
    cell = torch.distributions.Categorical(logits=given.cell_logits, validate_args=False).sample()
    jacobian = {m: data.log_jacobian(m, batch).double() for m in given.log_likelihood}
    likelihood = {
        m: _at(value, cell).unflatten(0, (draws, -1)) + jacobian[m] for m, value in given.log_likelihood.items()
    }
    log_q = posterior.log_density(latent, model.mixture.present(batch))
    log_weight = given.log_joint().unflatten(0, (draws, -1)) + sum(jacobian.values(), -log_q)
    likelihood = {m: value.where(batch.has(m), torch.nan) for m, value in likelihood.items()}
    if present is not None:
        latent = model.mixture.complete(flat, cell, torch.randn_like(flat), present).unflatten(0, (draws, -1))
    other = None if model.latent_prior is None else log_weight + _exchanged(model.latent_prior, flat, given, draws)
    return _Drawn(latent, cell.unflatten(0, (draws, -1)), log_weight, likelihood, other)


def _exchanged(prior: LatentPrior, flat: Tensor, given: GivenLatent, draws: int) -> Tensor:
    """log p(Z) without cells minus that of the mixture, `[D, B]`: decoders beside such a prior know no cells."""
    other = prior.distribution().log_prob(flat).double()
    return (other - torch.logsumexp(given.log_prior, dim=1)).unflatten(0, (draws, -1))


def _without_cells(chunks: list[_Drawn]) -> np.ndarray | None:
    found = [chunk.log_weight_without_cells for chunk in chunks]
    known = [weight for weight in found if weight is not None]
    return _array(torch.cat(known, dim=1)) if known else None


def _at(per_cell: Tensor, cell: Tensor) -> Tensor:
    """The value of the cell of every row, `[B]`, of values `[B, C]` or `[B, 1]`."""
    return per_cell.squeeze(1) if per_cell.shape[1] == 1 else per_cell.gather(1, cell.unsqueeze(1)).squeeze(1)


def _draw_prior(model: CausalPIMA, draws: int) -> tuple[Tensor, Tensor]:
    weight = model.mixture.log_weight(model.graph.log_joint())
    component = torch.distributions.Categorical(logits=weight, validate_args=False).sample((draws,))
    return model.mixture.component(component).rsample(), model.mixture.component_cell[component]


def _nodes(model: CausalPIMA, cell: Tensor) -> np.ndarray:
    return np.stack(np.unravel_index(_array(cell), model.graph.outcomes), axis=-1)


def _predictive_samples(model: CausalPIMA, n_samples: int, bounds: DrawBounds) -> np.ndarray:
    largest = max(_n_elements(model, name) for name in model.decoders)
    affordable = max(1, bounds.predictive_elements // (bounds.draws * largest))
    return _spread(np.arange(n_samples), min(n_samples, affordable))


def _predict(
    model: CausalPIMA, data: TensorData, name: str, latent: Tensor, cell: Tensor, samples: np.ndarray
) -> np.ndarray:
    covariates = None if data.covariates is None else data.covariates[torch.as_tensor(samples, device=latent.device)]
    drawn = model.decode(name, latent, cell, covariates).sample()
    return _array(data.standardisation[name].invert(drawn))


def _n_elements(model: CausalPIMA, name: str) -> int:
    return cast(Decoder, model.decoders[name]).event_shape.numel()


def held_out_log_likelihood(
    draws: PosteriorDraws, split: np.ndarray, groups: np.ndarray | None = None
) -> dict[str, Any] | None:
    r"""Two lower bounds of log p(x) of held-out samples, in the units of the data, nats per sample.

    `log 1/D Σ_d p(X, z_d) / q(z_d | X)` averaged over samples, N summed out: a bound in expectation that tightens with
    D. Beside it the collapsed bound, `1/D Σ_d log p(X, z_d) / q(z_d | X)`, which is never above it.
    The standard error takes groups, not their samples, as independent.

    Args:
        draws: Draws with `log_weight`.
        split: Split of all samples.
        groups: Codes of the groups of all samples; None: every sample is its own.

    Returns:
        `per_sample`, `standard_error`, `n_samples`, `n_draws`, `split`, `collapsed_bound` {per_sample, standard_error};
        None with fewer than two held-out samples, or groups.
    """
    parts = split[draws.samples]
    name = "test" if (parts == "test").any() else "validation"
    held_out = parts == name
    unit = np.flatnonzero(held_out) if groups is None else groups[draws.samples][held_out]
    if len(np.unique(unit)) < 2:
        return None
    weights = draws.log_weight[:, held_out].astype(np.float64)
    per_sample = np.logaddexp.reduce(weights, axis=0) - np.log(len(weights))
    collapsed = weights.mean(0)
    return {
        "per_sample": float(per_sample.mean()),
        "standard_error": standard_error(per_sample, unit),
        "n_samples": int(held_out.sum()),
        "n_draws": len(weights),
        "split": name,
        "collapsed_bound": {
            "per_sample": float(collapsed.mean()),
            "standard_error": standard_error(collapsed, unit),
        },
    }


def standard_error(values: np.ndarray, groups: np.ndarray) -> float:
    r"""Of the mean: `√(G / (G - 1) Σ_g (Σ_{i in g} x_i - x̄)²) / n`, s / √n where every value is its own group."""
    codes = np.unique(groups, return_inverse=True)[1]
    sums = np.bincount(codes, values - values.mean())
    return float(np.sqrt(len(sums) / (len(sums) - 1) * np.square(sums).sum()) / len(values))


# What nodes explain of the modalities, in one pass over the samples.


_PASS_SIZE = 1024


def explained_variances(
    data: TensorData,
    responsibilities: np.ndarray,
    outcomes: Sequence[int],
    categorical: Iterable[str] = (),
    seed: int = 0,
) -> dict[str, VarianceExplained]:
    """Shares of the variance of every modality, on the scale of the model.

    Args:
        data: All samples.
        responsibilities: q(N|X), `[n, C]`.
        outcomes: Number of outcomes of each node.
        categorical: Modalities whose values are codes: the variance is that of the indicators of their categories.
        seed: Seed of the random labellings.
    """
    n_categories = {name: _n_categories(data, name) for name in categorical}
    sums: dict[str, CellMoments] = {}
    for batch in data.batches(_PASS_SIZE):
        r = responsibilities[batch.index.cpu().numpy()]
        for name in batch.values:
            part = CellMoments.of(_values(batch, name, r, n_categories))
            sums[name] = sums[name] + part if name in sums else part
    generator = np.random.default_rng(seed)
    return {name: variance_explained(moments, outcomes, generator) for name, moments in sums.items()}


def _n_categories(data: TensorData, name: str) -> int:
    return 1 + int(max(batch.values[name].max() for batch in data.batches(_PASS_SIZE)))


def _values(batch: Batch, name: str, r: np.ndarray, n_categories: Mapping[str, int]) -> WeightedValues:
    values, measured = batch.values[name], batch.measured(name)
    if name in n_categories:
        values = torch.nn.functional.one_hot(values.long(), n_categories[name]).to(values)
        measured = measured.unsqueeze(-1).expand(values.shape)
    return WeightedValues(r, _array(values), _array(measured))


_RESPONSIBILITY_DRAWS = 64


@dataclass(frozen=True)
class Fitted:
    """A fitted model with what it was fitted to.

    Attributes:
        model: The generative model.
        guide: The guide.
        objective: Name of the objective.
        seed: Seed of the fit.
        status: `ok`, `collapsed` or `diverged`.
        data: The samples as they came.
        tensors: The same, standardised, on the device.
        split: `train`, `validation` or `test` per sample.
        history: One record per epoch.
        attributes: Further facts for the exported file.
        likelihoods: Per modality, the name of its likelihood.
        labelling: Where the meaning of the cells comes from; None: from nowhere.
        known: What was known of the nodes before the fit; None: nothing but their outcomes.
        outcome_names: Names of the outcomes of every node; empty: `0`, `1`, ...
        labelled: Samples whose labels named the cells, bool `[n]`, or None.
        node_labels: Outcome of each node by these labels, `[n, L]`, -1 where no label tells it, or None.
        designed: Nodes that the experimenter set, with their effects.
    """

    model: CausalPIMA
    guide: Guide
    objective: ObjectiveName
    seed: int
    status: str
    data: MultimodalData
    tensors: TensorData
    split: np.ndarray
    history: Sequence[Mapping[str, Any]]
    attributes: Mapping[str, Any]
    likelihoods: Mapping[str, str] = field(default_factory=dict)
    labelling: Mapping[str, Any] | None = None
    known: SideInformation | None = None
    outcome_names: tuple[tuple[str, ...], ...] = ()
    labelled: np.ndarray | None = None
    node_labels: np.ndarray | None = None
    designed: Mapping[str, DesignedNode] = field(default_factory=dict)


def collect(fitted: Fitted, bounds: DrawBounds | None = None) -> FitArrays:
    """All arrays of a finished fit; the draws come from torch's global generator.

    Args:
        fitted: Model, data and history.
        bounds: How much is drawn; default 100 draws for at most 512 samples.
    """
    bounds = bounds or DrawBounds()
    model, data = fitted.model, fitted.data
    r, loc, scale = responsibilities(model, fitted.guide, fitted.tensors, fitted.objective)
    samples = choose_samples(fitted.split, bounds.samples)
    draws = draw_posterior(model, fitted.guide, fitted.tensors, samples, bounds)
    return FitArrays(
        dataset=data.name,
        seed=fitted.seed,
        objective=fitted.objective,
        status=fitted.status,
        responsibilities=r,
        latent_loc=loc,
        latent_scale=scale,
        graph=replace(
            graph_arrays(model, fitted.outcome_names),
            variational_edges=_variational(fitted.guide),
            linear_model=linear_model_arrays(model, loc, fitted.node_labels),
            environment_names=() if model.environments.target is None else data.environment_names,
        ),
        mixture=_mixture_arrays(model),
        modalities={name: _modality_arrays(fitted, name, r, loc) for name in data.modalities},
        present=data.present,
        observed={name: _observed(data, name, draws.predictive_samples) for name in data.modalities},
        factors=data.factors,
        factor_levels=data.factor_levels,
        scored_factors=data.scored,
        measurements=data.measurements,
        split=fitted.split,
        bayes_ceiling=data.bayes_ceiling,
        history=fitted.history,
        draws=draws,
        attributes=fitted.attributes,
        measured_share={name: _measured_share(data, name).astype(np.float32) for name in data.observed},
        sample_names=data.sample_names,
        groups=data.groups,
        environment=data.environment,
        true_joint=data.true_joint,
        true_adjacency=data.true_adjacency,
        labelling=fitted.labelling,
        identifiability=_identifiability(fitted, r, loc),
        labelled=fitted.labelled,
        node_labels=fitted.node_labels,
        variance_explained=_explained(fitted, r),
        designed=fitted.designed,
    )


def _explained(fitted: Fitted, r: np.ndarray) -> dict[str, VarianceExplained]:
    categorical = [name for name, likelihood in fitted.likelihoods.items() if likelihood == "categorical"]
    return explained_variances(fitted.tensors, r, fitted.model.graph.outcomes, categorical, fitted.seed)


def _identifiability(fitted: Fitted, r: np.ndarray, loc: np.ndarray) -> dict[str, Any]:
    outcomes = dict(zip(fitted.model.node_names, fitted.model.graph.outcomes, strict=True))
    known = fitted.known or SideInformation(outcomes)
    return identification(known, fitted.labelling, r, _level_posteriors(fitted, loc))


@torch.no_grad()
def _level_posteriors(fitted: Fitted, loc: np.ndarray) -> list[np.ndarray]:
    """Per modality of a mask, p(level | mean of q(Z_m|X_m)) of samples that have it, `[n_m, levels]`; else empty.

    Under p(N) or, of samples of an environment, p(N | e).
    """
    model, mixture = fitted.model, fitted.model.mixture
    if not isinstance(mixture, BlockMixture):
        return []
    latent, log_tables = torch.from_numpy(loc).to(mixture.component_loc), model.graph.conditional_log_tables()
    environment = fitted.tensors.environment

    def posterior(name: str) -> np.ndarray:
        rows = torch.from_numpy(np.flatnonzero(fitted.data.present[name])).to(latent.device)
        density = mixture.block(name).log_density(mixture.part(name, latent[rows]))
        of_rows = None if environment is None else environment[rows]
        of_samples = model.environments.log_tables(log_tables, of_rows)
        share = of_samples.sum(-1 - model.graph.n_nodes).flatten(-model.graph.n_nodes).exp()
        return _array(torch.softmax(mixture.sum_to_levels(name, share).log() + density, dim=-1).double())

    return [posterior(name) for name in mixture.visible]


@torch.no_grad()
def responsibilities(
    model: CausalPIMA, guide: Guide, data: TensorData, objective: ObjectiveName
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q(N|X) per cell `[n, C]`, and mean and standard deviation of q(Z|X) `[n, J]`.

    `collapsed` and `paper`: the mean of p(N | z, X) over draws of z from q(Z|X). `meanfield`: r*. The block of Z of an
    absent modality has the moments of p(Z_m | N) under q(N|X).
    """
    # p(N | z, X), not the paper's γ(z) at one draw: the two agree when decoders depend on z alone.
    kind: ObjectiveName = "meanfield" if objective == "meanfield" else "collapsed"
    n_draws = 1 if kind == "meanfield" else _RESPONSIBILITY_DRAWS

    def of_batch(batch: Batch) -> tuple[Tensor, Tensor, Tensor]:
        posterior = guide.encode(batch)
        mean = torch.zeros((), dtype=torch.float64, device=posterior.loc.device)
        for _ in range(n_draws):
            log_r = log_responsibilities(kind, model, posterior, posterior.draw(), batch)
            mean = mean + log_r.exp().double() / n_draws
        r, present = model.mixture.sum_to_cells(mean), model.mixture.present(batch)
        return r, *model.mixture.complete_moments(r, posterior.loc, posterior.scale, present)

    found = in_order(map(of_batch, data.batches(_PASS_SIZE)), data.n_samples)
    r, loc, scale = (whole.cpu().numpy() for whole in found)
    r /= r.sum(-1, keepdims=True)
    return r, loc, scale


@torch.no_grad()
def graph_arrays(model: CausalPIMA, outcome_names: tuple[tuple[str, ...], ...] = ()) -> GraphArrays:
    """The learned graph, read without noise at the final temperature.

    Args:
        model: The model.
        outcome_names: Names of the outcomes of every node; empty: `0`, `1`, ...
    """
    graph = model.graph.eval()
    tables = graph.conditional_log_tables().double()
    strength, form = graph.edge_strength(), graph.score_form()
    of_environments = model.environments.log_joint(tables)
    return GraphArrays(
        node_names=model.node_names,
        outcome_names=outcome_names or tuple(tuple(str(value) for value in range(n)) for n in graph.outcomes),
        edge_strength=_array(strength),
        adjacency=_array((graph.adjacency() & ~strength.isnan()).to(torch.int64)),
        log_joint=_array(tables.sum(0)),
        conditional_tables=_array(tables.exp()),
        node_score=_array(form.node_score),
        edge_weight=_array(form.edge_weight),
        temperature=form.temperature,
        log_joint_environment=None if of_environments is None else _array(of_environments),
    )


def _variational(guide: Guide) -> np.ndarray | None:
    """q(i -> j) of a guide over graphs, `[L, L]`."""
    return None if guide.graph_guide is None else _array(guide.graph_guide.edge_probability())


def _mixture_arrays(model: CausalPIMA) -> MixtureArrays:
    weight = model.mixture.log_weight(model.graph.log_joint()).double().exp()
    return MixtureArrays(
        loc=_array(model.mixture.component_loc),
        covariance=_array(model.mixture.covariance()),
        weight=_array(weight / weight.sum()),
        cell=_array(model.mixture.component_cell),
    )


@torch.no_grad()
def _modality_arrays(fitted: Fitted, name: str, r: np.ndarray, latent_loc: np.ndarray) -> ModalityArrays:
    decoder = fitted.model.decoders[name]
    standardisation = fitted.tensors.standardisation[name]
    centres = _cell_centres(fitted.model)
    cells = torch.arange(len(centres), device=centres.device)
    decoded = central_value(fitted.model.decode(name, centres, cells))
    variance = getattr(decoder, "variance", None)
    is_curve = fitted.data.kinds[name] == "curve"
    return ModalityArrays(
        kind=fitted.data.kinds[name],
        exemplars=_exemplars(fitted.data, name, r, latent_loc, _array(centres)),
        decoded=_array(standardisation.invert(decoded)),
        variance_training=None if variance is None else float(variance.training_variance()) * standardisation.scale**2,
        variance=None if variance is None else float(variance.reported) * standardisation.scale**2,
        unit=fitted.data.units.get(name, ""),
        axis=fitted.data.axis(name) if is_curve else None,
        likelihood=fitted.likelihoods.get(name, "normal"),
        transform=standardisation.transform,
        physics=physical_estimates(fitted, name, r),
        missing_elements=_missing_elements(fitted.data, name),
        knee=standardisation.knee,
        curves=curve_arrays(fitted, name, r, decoded) if is_curve else None,
        noise_sd=None if variance is None else _noise_sd(variance, decoded.shape[1:]) * standardisation.scale,
        interval=predictive_interval(fitted, name, decoded) if fitted.data.kinds[name] == "vector" else None,
    )


def _noise_sd(variance: DecoderVariance, event_shape: Sequence[int]) -> np.ndarray:
    return _array(variance.reported_variance().sqrt().expand(*event_shape))


def central_value(distribution: TorchDistribution) -> Tensor:
    """The mean, `[*b, *event]`; of categories the most probable code."""
    mean = distribution.mean
    n_dims = len(distribution.batch_shape) + len(distribution.event_shape)
    return mean if mean.dim() == n_dims else mean.argmax(-1).to(mean)


def _measured_share(data: MultimodalData, name: str) -> np.ndarray:
    """Per sample, block by block, as masks may be on disk."""
    observed = data.observed[name]
    blocks = row_blocks(len(observed), observed.nbytes // len(observed))
    flat = (observed[rows].reshape(rows.stop - rows.start, -1) for rows in blocks)
    return np.concatenate([mask.mean(1) for mask in flat])


def _missing_elements(data: MultimodalData, name: str) -> float:
    if name not in data.observed:
        return 0.0
    return 1.0 - float(_measured_share(data, name)[data.present[name]].mean())


def _cell_centres(model: CausalPIMA) -> Tensor:
    """Mean of the heaviest Gaussian of every cell, `[C, J]`: a place where the cell has samples."""
    mixture = model.mixture
    heaviest = mixture.cell_log_share.argmax(1, keepdim=True)
    return mixture.component_loc[mixture.cell_components.gather(1, heaviest).squeeze(1)]


def _exemplars(
    data: MultimodalData, name: str, r: np.ndarray, latent_loc: np.ndarray, centres: np.ndarray
) -> np.ndarray:
    """Per cell, the present sample of that cell nearest to its mean; NaN where there is none."""
    values, cell = data.modalities[name], r.argmax(1)
    exemplars = np.full((len(centres), *values.shape[1:]), np.nan, dtype=values.dtype)
    for index, centre in enumerate(centres):
        members = np.flatnonzero((cell == index) & data.present[name])
        if len(members):
            distance = np.square(latent_loc[members] - centre).sum(1)
            nearest = members[distance.argmin()]
            exemplars[index] = np.where(data.measured(name)[nearest], values[nearest], np.nan)
    return exemplars


def _observed(data: MultimodalData, name: str, samples: np.ndarray) -> np.ndarray:
    values = np.array(data.modalities[name][samples])
    values[~data.measured(name)[samples]] = np.nan
    return values
