"""Draws of N, Z and every modality under a scenario, in the ArviZ schema."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from inference.queries.graph_set import GraphSet
from inference.queries.scenarios import Scenario
from inference.queries.source import QuerySource
from inference.results.arviz_names import variable_names
from inference.training.fitted_run import FittedRun
from inference.training.surroundings import seed_generators, surroundings
from models.decoders.base import Decoder

__all__ = ["sample_scenario"]

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
    return (("chain", "draw", *dims), values[None].astype(np.float32), attributes), positions
