"""From a fitted model and its data to the arrays that export, figures and reports use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from pyro.distributions import TorchDistribution
from torch import Tensor

from guides.guide import Guide
from inference.data.in_order import in_order
from inference.data.multimodal import MultimodalData
from inference.data.stored import row_blocks
from inference.data.tensors import TensorData
from inference.design.effects import DesignedNode
from inference.evaluation.variance_explained import VarianceExplained
from inference.identifiability import SideInformation
from inference.identifiability.found import identification
from inference.objectives.responsibilities import ObjectiveName, log_responsibilities
from inference.results.arrays import FitArrays, GraphArrays, MixtureArrays, ModalityArrays
from inference.results.curves import curve_arrays, predictive_interval
from inference.results.explained_variances import explained_variances
from inference.results.linear_model import linear_model_arrays
from inference.results.physics import physical_estimates
from inference.results.posterior_draws import DrawBounds, choose_samples, draw_posterior
from models.batch import Batch
from models.block_mixture import BlockMixture
from models.causal_pima import CausalPIMA
from models.decoders.variance import DecoderVariance

__all__ = ["Fitted", "central_value", "collect", "graph_arrays", "responsibilities"]

_RESPONSIBILITY_DRAWS = 64
_PASS_SIZE = 1024


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
    exemplars = np.full((len(centres), *values.shape[1:]), np.nan, dtype=np.float32)
    for index, centre in enumerate(centres):
        members = np.flatnonzero((cell == index) & data.present[name])
        if len(members):
            distance = np.square(latent_loc[members] - centre).sum(1)
            nearest = members[distance.argmin()]
            exemplars[index] = np.where(data.measured(name)[nearest], values[nearest], np.nan)
    return exemplars


def _observed(data: MultimodalData, name: str, samples: np.ndarray) -> np.ndarray:
    values = data.modalities[name][samples].astype(np.float32)
    values[~data.measured(name)[samples]] = np.nan
    return values


def _array(value: Tensor) -> np.ndarray:
    array: np.ndarray = value.detach().cpu().numpy()
    return array
