"""What would have become of one sample: bounds for its nodes, and what the model would draw in every modality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from causalpima.inference.analyses.predict import PredictionOptions, predict, read_samples
from causalpima.inference.analyses.query_sampling import decoded_at
from causalpima.inference.analyses.scenarios import CellShares, GraphSet, QuerySource
from causalpima.inference.data.reading import DataLike
from causalpima.inference.graphs.interventions import Setting, counterfactual_bounds, counterfactual_cell_bounds
from causalpima.inference.store.text import format_number, printable
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.state import surroundings
from causalpima.models.latent_priors import LinearSCM

__all__ = [
    "NOTABLE",
    "Counterfactual",
    "DrawnCell",
    "LinearCounterfactual",
    "Sample",
    "counterfactual_of",
    "find_sample",
    "linear_counterfactual",
    "predicted_sample",
]


# Counterfactuals of a linear structural equation model on Z (`model.prior=linear_scm`), and what they rest on.


_LEAST_SAMPLES = 0.5


@dataclass(frozen=True)
class LinearCounterfactual:
    """What would have become of a sample by the linear model; pairs are as it is, and as it would have been.

    Attributes:
        edges: Cause, effect, and weight of the claimed edges, the heaviest first.
        levels: Per node, where its block says that it stands between its outcomes 0, 1, ..., by the labels that were
            learned; of nodes that are set, too, for which it tells how well their block follows the labels.
        means: Per modality the decoded mean in its units, `[*event]`.
        set_to: Number of the outcome of every node that is set.
    """

    edges: tuple[tuple[str, str, float], ...]
    levels: dict[str, tuple[float, float]]
    means: dict[str, tuple[np.ndarray, np.ndarray]]
    set_to: dict[str, int]

    @property
    def sentence(self) -> str:
        """What it rests on."""
        edges = ", ".join(f"{printable(a)} -> {printable(b)} {format_number(w, 2)}" for a, b, w in self.edges)
        return (
            f"linear model, in addition: nodes act linearly upon each other along the edges of model.prior=linear_scm "
            f"({edges or 'none'}), which were fitted under that assumption and are no evidence of causes; the sample "
            "keeps its noise"
        )

    def to_plain(self) -> dict[str, Any]:
        """Nested dicts, lists and numbers (docs/query.md)."""
        return {
            "prior": "linear_scm",
            "edges": [{"cause": a, "effect": b, "weight": weight} for a, b, weight in self.edges],
            "set_to": dict(self.set_to),
            "levels": {node: _pair(*found) for node, found in self.levels.items()},
            "means": {name: _pair(*(mean.tolist() for mean in found)) for name, found in self.means.items()},
        }


def _pair(factual: Any, counterfactual: Any) -> dict[str, Any]:
    return {"factual": factual, "counterfactual": counterfactual}


def linear_counterfactual(
    source: QuerySource, latent: np.ndarray, responsibilities: np.ndarray, do: Setting
) -> LinearCounterfactual | None:
    """What the linear model of a run says of a sample; None where the run has none.

    The noise of every node is that of the mean of q(Z|X). A node that is set gets the mean of its block over the
    training samples with that outcome, or keeps its place if it has that outcome: setting what is the case changes
    nothing. Effects follow along the claimed edges, and Z is decoded.

    Args:
        source: The fit.
        latent: Mean of q(Z|X), `[J]`.
        responsibilities: q(N|X), `[C]`.
        do: Outcome by node that would have been set.

    Raises:
        ValueError: No training sample has an outcome that would have been set.
    """
    fitted = source.fitted
    prior = fitted.model.latent_prior
    if not isinstance(prior, LinearSCM):
        return None
    with surroundings(fitted.device), torch.no_grad():
        as_it_is = torch.as_tensor(latent).to(prior.weight)
        factual = np.unravel_index(int(responsibilities.argmax()), source.sizes)
        values = {
            node: prior.blocks(as_it_is)[node]
            if outcome == factual[node]
            else _level_mean(source, prior, node, outcome)
            for node, outcome in do.items()
        }
        would_be = prior.counterfactual(as_it_is, values)
        levels = torch.stack([prior.level(as_it_is), prior.level(would_be)], dim=-1).double().tolist()
        means = [decoded_at(fitted, z, 0) for z in (as_it_is, would_be)]
    return LinearCounterfactual(
        _edges(source, prior),
        {node: (before, after) for node, (before, after) in zip(source.nodes, levels, strict=True)},
        {name: (means[0][name], means[1][name]) for name in fitted.modalities},
        {source.nodes[node]: int(outcome) for node, outcome in do.items()},
    )


def _level_mean(source: QuerySource, prior: LinearSCM, node: int, outcome: int) -> Tensor:
    """Mean of a node's block over the training samples, by q(N|X) that the node has an outcome, `[d]`."""
    joint = source.responsibilities[source.rows].reshape(-1, *source.sizes)
    weight = np.take(joint, outcome, axis=1 + node).reshape(len(joint), -1).sum(1)
    if weight.sum() < _LEAST_SAMPLES:
        name = source.nodes[node]
        raise ValueError(
            f"do: expected an outcome that some training sample has, for where the linear model puts it, got "
            f"{printable(name)}={printable(source.outcomes[name][outcome])}; set another one"
        )
    mean = torch.as_tensor(weight @ source.latent[source.rows] / weight.sum()).to(prior.weight)
    return prior.blocks(mean)[node]


def _edges(source: QuerySource, prior: LinearSCM) -> tuple[tuple[str, str, float], ...]:
    weight = prior.claimed_weight().detach().double().cpu().numpy()
    places = sorted(np.argwhere(weight != 0).tolist(), key=lambda place: -abs(weight[tuple(place)]))
    return tuple((source.nodes[cause], source.nodes[effect], float(weight[cause, effect])) for cause, effect in places)


NOTABLE = 0.01
"""Cells that a sample has with less probability than this, or would have for certain, are left out."""


class Sample(NamedTuple):
    """One sample.

    Attributes:
        number: Its number.
        name: Its name, or its number.
        responsibilities: q(N|X), `[C]`.
        latent: Mean of q(Z|X), `[J]`.
    """

    number: int
    name: str
    responsibilities: np.ndarray
    latent: np.ndarray


@dataclass(frozen=True)
class DrawnCell:
    """A cell that the sample might have been in.

    Attributes:
        cell: Its outcomes.
        lower: Lower bound of its probability.
        upper: Upper bound.
        means: Per modality, what the model would draw there with the sample's own residual, `[*event]`.
    """

    cell: tuple[str, ...]
    lower: float
    upper: float
    means: dict[str, np.ndarray]


@dataclass(frozen=True)
class Counterfactual:
    """What would have become of a sample.

    Attributes:
        sample: Its number.
        name: Its name, or its number.
        factual: Its nodes as they are: q(N|X) of every cell that counts, by outcomes.
        nodes: Bounds per node, lower and upper of every outcome.
        is_sharp: Whether the bounds are known to be as narrow as the graph allows.
        cells: Cells that it might have been in, the likeliest first.
        factual_means: Per modality, the decoded mean of the sample as it is.
        linear: What the linear model of the run says (`model.prior=linear_scm`); None without one.
    """

    sample: int
    name: str
    factual: dict[tuple[str, ...], float]
    nodes: dict[str, tuple[np.ndarray, np.ndarray]]
    is_sharp: bool
    cells: tuple[DrawnCell, ...]
    factual_means: dict[str, np.ndarray]
    linear: LinearCounterfactual | None = None


def find_sample(source: QuerySource, sample: str | int) -> Sample:
    """A sample of the run, from its name or its number.

    Raises:
        ValueError: There is none such.
    """
    row = sample_row(sample, source.sample_names, len(source.responsibilities))
    name = str(row) if source.sample_names is None else source.sample_names[row]
    return Sample(row, name, source.responsibilities[row], source.latent[row])


def predicted_sample(fitted: FittedRun, data: DataLike, sample: str | int, draws: int, seed: int) -> Sample:
    """A new sample, from its name or its number among others.

    Args:
        fitted: The run.
        data: New samples, in whatever form `fit` takes.
        sample: Name or number.
        draws: Draws of Z for q(N|X).
        seed: Of these draws.

    Raises:
        ValueError: Samples that the run cannot take, or no such sample.
    """
    found = predict(fitted, read_samples(fitted, data), PredictionOptions(draws, seed))
    names = tuple(map(str, found["sample"].to_numpy()))
    row = sample_row(sample, names, len(names))
    one = found.isel(sample=row)
    r = one["responsibilities"].to_numpy().astype(np.float64)
    return Sample(row, names[row], r / r.sum(), one["latent_loc"].to_numpy())


def sample_row(sample: str | int, names: Sequence[str] | None, n_samples: int) -> int:
    """Number of a sample; a name comes before a number.

    Raises:
        ValueError: There is none such.
    """
    if names is not None and str(sample) in names:
        return list(names).index(str(sample))
    if str(sample).isdecimal() and int(sample) < n_samples:
        return int(sample)
    known = f"a name or a number below {n_samples}" if names is not None else f"a number below {n_samples}"
    raise ValueError(f"counterfactual: expected a sample of these, {known}, got {printable(sample)}")


def counterfactual_of(
    source: QuerySource, sample: Sample, do: Setting, graphs: GraphSet, shares: CellShares
) -> Counterfactual:
    """Bounds over couplings of the response functions, over the graphs, and over the cells that the sample may have.

    Args:
        source: The fit.
        sample: The sample.
        do: What would have been set.
        graphs: The graphs.
        shares: p(N) of each.
    """
    factual = _factual(sample.responsibilities)
    lower, upper = _over_graphs(_cell_bounds, source, factual, do, graphs, shares)
    nodes_lower, nodes_upper = _over_graphs(_node_bounds, source, factual, do, graphs, shares)
    edges, names = np.cumsum(source.sizes)[:-1], list(_cell_names(source))
    bounds = zip(np.split(nodes_lower, edges), np.split(nodes_upper, edges), strict=True)
    likely = [int(cell) for cell in np.argsort(-upper, kind="stable") if upper[cell] >= NOTABLE]
    residual = _Residual(source.fitted, sample)
    return Counterfactual(
        sample.number,
        sample.name,
        {names[cell]: weight for cell, weight in factual.items()},
        dict(zip(source.nodes, bounds, strict=True)),
        all(_is_tree(dag) for dag in graphs.dags) and len(factual) == 1,
        tuple(DrawnCell(names[cell], float(lower[cell]), float(upper[cell]), residual.means(cell)) for cell in likely),
        residual.means(residual.cell),
        linear_counterfactual(source, sample.latent, sample.responsibilities, do),
    )


def _factual(responsibilities: np.ndarray) -> dict[int, float]:
    """Cells that the sample has with notable probability, which then sum to one."""
    r = np.where(responsibilities >= NOTABLE, responsibilities, 0.0)
    return {int(cell): float(r[cell] / r.sum()) for cell in np.flatnonzero(r)}


def _cell_names(source: QuerySource) -> Iterator[tuple[str, ...]]:
    for cell in np.ndindex(*source.sizes):
        yield tuple(names[outcome] for names, outcome in zip(source.outcomes.values(), cell, strict=True))


def _over_graphs(
    bounds: Any, source: QuerySource, factual: dict[int, float], do: Setting, graphs: GraphSet, shares: CellShares
) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and highest over the graphs of the average over the cells that the sample may have."""
    found = []
    for dag, number in zip(graphs.dags, graphs.class_of, strict=True):
        parts = [
            weight * np.stack(bounds(shares.best[number], dag, np.unravel_index(cell, source.sizes), do))
            for cell, weight in factual.items()
        ]
        found.append(np.sum(parts, axis=0))
    return np.min([lower for lower, _ in found], axis=0), np.max([upper for _, upper in found], axis=0)


def _cell_bounds(joint: np.ndarray, dag: np.ndarray, cell: Any, do: Setting) -> tuple[np.ndarray, np.ndarray]:
    return counterfactual_cell_bounds(joint, dag, tuple(map(int, cell)), do)


def _node_bounds(joint: np.ndarray, dag: np.ndarray, cell: Any, do: Setting) -> tuple[np.ndarray, np.ndarray]:
    found = counterfactual_bounds(joint, dag, tuple(map(int, cell)), do)
    return np.concatenate([lower for lower, _ in found]), np.concatenate([upper for _, upper in found])


def _is_tree(dag: np.ndarray) -> bool:
    """At most one parent each: no two paths meet, and bounds along the order are sharp."""
    return bool((dag.sum(axis=0) <= 1).all())


class _Residual:
    """The sample's latent position within its cell, kept while the cell changes."""

    def __init__(self, fitted: FittedRun, sample: Sample) -> None:
        self.fitted, mixture = fitted, fitted.model.mixture
        self.cell = int(sample.responsibilities.argmax())
        with surroundings(self.fitted.device), torch.no_grad():
            latent = torch.as_tensor(sample.latent).to(mixture.component_loc)
            self.component = self._nearest(latent)
            scale = mixture.component_scale[self.component]
            self.epsilon = _divided(latent - mixture.component_loc[self.component], scale)

    def _nearest(self, latent: Tensor) -> int:
        """The Gaussian of the cell that explains the position best."""
        mixture = self.fitted.model.mixture
        density = mixture.log_density(latent) + mixture.component_log_share
        return int(torch.where(mixture.component_cell == self.cell, density, -torch.inf).argmax())

    def _heaviest(self, cell: int) -> int:
        mixture = self.fitted.model.mixture
        return int(mixture.cell_components[cell, mixture.cell_log_share[cell].argmax()])

    def means(self, cell: int) -> dict[str, np.ndarray]:
        """Decoded centre of every modality in a cell, `[*event]`; of categories the most probable code."""
        mixture = self.fitted.model.mixture
        with surroundings(self.fitted.device), torch.no_grad():
            component = self.component if cell == self.cell else self._heaviest(cell)
            loc, scale = mixture.component_loc[component], mixture.component_scale[component]
            latent = loc + (scale * self.epsilon if scale.dim() == 1 else scale @ self.epsilon)
            return decoded_at(self.fitted, latent, cell)


def _divided(step: Tensor, scale: Tensor) -> Tensor:
    """By standard deviations, or by a Cholesky factor."""
    if scale.dim() == 1:
        return step / scale
    return torch.linalg.solve_triangular(scale, step.unsqueeze(1), upper=False).squeeze(1)
