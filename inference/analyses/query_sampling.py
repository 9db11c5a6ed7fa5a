"""Draws of N, Z and every modality under a scenario, in the ArviZ schema."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from causalpima.inference.analyses.predictive_moments import Part, category_probabilities, mixture_moments
from causalpima.inference.analyses.scenarios import GraphSet, QuerySource, Scenario
from causalpima.inference.findings.collect import central_value
from causalpima.inference.findings.names import variable_names
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.state import seed_generators, surroundings
from causalpima.models.decoders.base import Decoder

__all__ = [
    "INTERVAL",
    "Estimate",
    "cell_means",
    "decoded_at",
    "estimate",
    "sample_scenario",
]


_ELEMENTS_AT_ONCE = 2**22
_AXES = {"image": ("height", "width", "channel"), "curve": ("position",), "vector": ("feature",)}


def sample_scenario(source: QuerySource, scenario: Scenario, graphs: GraphSet, draws: int, seed: int) -> xr.Dataset:
    """Draws `N` [chain, draw, node], `Z` [chain, draw, latent] and one variable per modality, in the units of the data.

    Every draw has a graph of its own, by the weights of the graphs: `graph` is its number, along which `edges` has the
    graphs. Values of modalities hold the noise of a measurement; categories are their codes.

    Args:
        source: The fit.
        scenario: Probabilities of the cells under each graph.
        graphs: The graphs.
        draws: How many.
        seed: Of the draws.
    """
    generator = np.random.default_rng(seed)
    graph = generator.choice(len(graphs.weights), size=draws, p=graphs.weights)
    cell = _choose(scenario.cells[graph], generator)
    latent, modalities = _decoded(source.fitted, cell, seed)
    nodes = np.stack(np.unravel_index(cell, source.sizes), axis=-1).astype(np.int32)
    names = np.array(source.nodes, dtype=object)
    variables: dict[str, Any] = {
        "N": (("chain", "draw", "node"), nodes[None]),
        "Z": (("chain", "draw", "latent"), latent[None]),
        "graph": (("chain", "draw"), graph[None].astype(np.int32)),
        "edges": (("graph_number", "node_from", "node_to"), graphs.dags.astype(np.int8)),
        "graph_weight": (("graph_number",), graphs.weights),
    }
    coordinates: dict[str, Any] = {
        "chain": np.arange(1),
        "draw": np.arange(draws),
        "node": names,
        "node_from": names,
        "node_to": names,
    }
    for name, variable in variable_names(modalities).items():
        variables[variable], more = _variable(source.fitted, name, variable, modalities[name])
        coordinates |= more
    return xr.Dataset(variables, coordinates)


def _choose(probability: np.ndarray, generator: np.random.Generator) -> np.ndarray:
    """One cell per row of `[draw, C]`."""
    below = probability.cumsum(axis=1) <= generator.random((len(probability), 1)) * probability.sum(1, keepdims=True)
    chosen: np.ndarray = below.sum(axis=1).clip(max=probability.shape[1] - 1)
    return chosen


def _decoded(fitted: FittedRun, cell: np.ndarray, seed: int) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Z given N, and every modality given both."""
    with surroundings(fitted.device), torch.no_grad():
        seed_generators(seed, fitted.device)
        cells = torch.from_numpy(cell).to(fitted.device)
        latent = _latent(fitted, cells)
        found = {name: _modality(fitted, name, latent, cells) for name in fitted.modalities}
        return latent.cpu().numpy(), found


def _latent(fitted: FittedRun, cell: Tensor) -> Tensor:
    mixture = fitted.model.mixture
    shares = mixture.cell_log_share[cell]
    chosen = torch.distributions.Categorical(logits=shares, validate_args=False).sample()
    component = mixture.cell_components[cell].gather(1, chosen.unsqueeze(1)).squeeze(1)
    return mixture.component(component).sample()


def _modality(fitted: FittedRun, name: str, latent: Tensor, cell: Tensor) -> np.ndarray:
    decoder = cast(Decoder, fitted.model.decoders[name])
    size = max(1, _ELEMENTS_AT_ONCE // max(1, decoder.event_shape.numel()))
    parts = [
        fitted.model.decode(name, z, c).sample() for z, c in zip(latent.split(size), cell.split(size), strict=True)
    ]
    drawn = torch.cat([part.expand(-1, *decoder.event_shape) for part in parts])
    array: np.ndarray = fitted.modalities[name].standardisation.invert(drawn).cpu().numpy()
    return array


def _variable(fitted: FittedRun, name: str, variable: str, values: np.ndarray) -> tuple[Any, dict[str, Any]]:
    """With dimensions `height_NAME`, ... as in posterior.nc, its unit, and positions of a curve."""
    modality = fitted.modalities[name]
    axes = _AXES.get(modality.kind, ())
    if len(axes) != values.ndim - 1:
        axes = tuple(f"axis{index}" for index in range(values.ndim - 1))
    dims = tuple(f"{axis}_{variable}" for axis in axes)
    positions = {} if modality.positions is None else {dims[0]: modality.positions.double().cpu().numpy()}
    attributes = {key: text for key, text in (("units", modality.unit), ("long_name", name)) if text}
    return (("chain", "draw", *dims), values[None].astype(modality.standardisation.dtype), attributes), positions


# Mean of every modality in every cell, in the units of the data.
#
# $$E[X_m \mid N = c] = \sum_{k \in c} \pi_{k \mid c} \int E[X_m \mid z, c]\ N(z; \tilde\mu_k, \tilde\Sigma_k)\ dz$$
#
# with the integral by draws of z that are the same in all cells, so that cells differ by nothing else. Given z, the
# mean
# is exact, transforms included. With these, the mean under any distribution of the cells is their average.


_CELL_ELEMENTS_AT_ONCE = 2**20


def cell_means(fitted: FittedRun, name: str, draws: int, seed: int) -> np.ndarray:
    """`[C, *event]`; of categories their probabilities, `[C, *event, K]`. NaN where there is no mean.

    Args:
        fitted: The run.
        name: The modality.
        draws: Draws of z per Gaussian.
        seed: Of the draws.
    """
    mixture = fitted.model.mixture
    with surroundings(fitted.device), torch.no_grad():
        seed_generators(seed, fitted.device)
        noise = torch.randn(draws, mixture.latent_dim).to(mixture.component_loc)
        cells = [_of_cell(fitted, name, noise, cell) for cell in range(mixture.n_cells)]
        array: np.ndarray = torch.stack(cells).cpu().numpy()
    return array


def _of_cell(fitted: FittedRun, name: str, noise: Tensor, cell: int) -> Tensor:
    parts = _parts(fitted, name, noise, cell)
    if fitted.config.modality[name].decoder.likelihood == "categorical":
        return category_probabilities(parts)[0]
    return mixture_moments(parts, fitted.modalities[name].standardisation)[0][0]


def _parts(fitted: FittedRun, name: str, noise: Tensor, cell: int) -> Iterator[Part]:
    """p(X_m | N = c) as a mixture over the Gaussians of the cell and the draws."""
    model, mixture = fitted.model, fitted.model.mixture
    decoder = cast(Decoder, model.decoders[name])
    noise = noise if decoder.depends_on_latent else noise[:1]
    size = max(1, _CELL_ELEMENTS_AT_ONCE // max(1, decoder.event_shape.numel()))
    index = torch.tensor(cell, device=noise.device)
    for component, share in _gaussians(fitted, cell):
        loc, scale = mixture.component_loc[component], mixture.component_scale[component]
        for part in noise.split(size):
            step = scale * part if scale.dim() == 1 else part @ scale.T
            distribution = model.decode(name, (loc + step).unsqueeze(1), index, None)
            yield Part(part.new_full((len(part), 1), share / len(noise)), distribution)


def _gaussians(fitted: FittedRun, cell: int) -> list[tuple[int, float]]:
    """Number and share of the Gaussians of a cell."""
    mixture = fitted.model.mixture
    members = torch.nonzero(mixture.component_cell == cell).flatten()
    shares = torch.softmax(mixture.component_log_share[members].double(), dim=0)
    return list(zip(members.tolist(), shares.tolist(), strict=True))


# What the decoders make of one place in the latent space.


@torch.no_grad()
def decoded_at(fitted: FittedRun, latent: Tensor, cell: int) -> dict[str, np.ndarray]:
    """Decoded centre of every modality in the units of the data, `[*event]`; of categories the most probable code.

    Args:
        fitted: The run.
        latent: Z, `[J]`.
        cell: The cell.
    """
    index = torch.tensor([cell], device=latent.device)

    def centre(name: str) -> np.ndarray:
        decoded = central_value(fitted.model.decode(name, latent.unsqueeze(0), index))
        array: np.ndarray = fitted.modalities[name].standardisation.invert(decoded)[0].cpu().numpy()
        return array

    return {name: centre(name) for name in fitted.modalities}


# Expectations under scenarios: an interval over the graphs, and beside it one for the sampling of the data.


INTERVAL = 0.9
"""Probability of the intervals for the sampling of the data."""

_SAME = 1e-6


class Estimate(NamedTuple):
    """Of one or many quantities, arrays of the same shape.

    Attributes:
        low: Smallest value over the graphs, at the fitted tables.
        high: Largest.
        lower: Lower end of the 90 % interval of the sampling of the data: the smallest over the graphs of the 5 %
            quantiles of each.
        upper: Upper end: the largest of the 95 % quantiles.
        is_identified: Whether all graphs say the same: then it is a point, `low`.
    """

    low: np.ndarray
    high: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    is_identified: np.ndarray

    @property
    def value(self) -> np.ndarray:
        """The point, NaN where graphs disagree."""
        value: np.ndarray = np.where(self.is_identified, (self.low + self.high) / 2, np.nan)
        return value


def estimate(values: np.ndarray, scenario: Scenario, minus: Scenario | None = None) -> Estimate:
    """Expectation of functions of the cell under a scenario, or its difference to that under another.

    Args:
        values: `[C, *shape]`.
        scenario: Probabilities of the cells.
        minus: What is subtracted, graph by graph and draw by draw; None: nothing.
    """
    flat = values.reshape(len(values), -1)
    # About their middle: what cells differ by is not to drown in what they have in common.
    middle = 0.5 * (flat.min(0) + flat.max(0))
    flat = flat - middle
    cells = scenario.cells - (0.0 if minus is None else minus.cells)
    draws = scenario.draws - (0.0 if minus is None else minus.draws)
    parts = [_of_block(cells, draws, block) for block in _blocks(flat, draws.shape[0] * draws.shape[1])]
    low, high, lower, upper = map(np.concatenate, zip(*parts, strict=True))
    is_identified = high - low <= _SAME * _size(flat)
    moved = (part + (middle if minus is None else 0.0) for part in (low, high, lower, upper))
    return Estimate(*(part.reshape(values.shape[1:]) for part in (*moved, is_identified)))


def _size(flat: np.ndarray) -> float:
    finite = np.abs(flat[np.isfinite(flat)])
    return float(finite.max(initial=0.0))


def _blocks(flat: np.ndarray, n_rows: int) -> Iterator[np.ndarray]:
    width = max(1, _ELEMENTS_AT_ONCE // n_rows)
    yield from (flat[:, at : at + width] for at in range(0, flat.shape[1], width))


def _of_block(cells: np.ndarray, draws: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, ...]:
    of_graphs = cells @ values
    tails = np.quantile(draws @ values, [(1 - INTERVAL) / 2, (1 + INTERVAL) / 2], axis=1)
    return of_graphs.min(0), of_graphs.max(0), tails[0].min(0), tails[1].max(0)
