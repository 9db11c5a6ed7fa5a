"""Effects of designed nodes in the exported file: a group of its own."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import xarray as xr

from inference.design.effects import DesignedEffect
from inference.results.arrays import FitArrays
from inference.results.arviz_modalities import position_coords, unit_attributes
from inference.results.arviz_names import axis_names, outcome_dimensions, variable_names

__all__ = ["designed_group"]

_NOTE = "difference of means of an outcome to that of the first, with 95 % intervals element by element"


def designed_group(fit: FitArrays) -> xr.Dataset:
    """`mean_NODE_MODALITY` and its standard error by outcome, `difference_...` with `lower_...` and `upper_...`.

    Empty without designed nodes whose outcomes are known.
    """
    parts = list(_parts(fit))
    return xr.merge(parts, join="exact", compat="equals") if parts else xr.Dataset()


def _parts(fit: FitArrays) -> Iterator[xr.Dataset]:
    nodes, modalities = variable_names(fit.graph.node_names), variable_names(fit.modalities)
    dimensions = dict(zip(fit.graph.node_names, outcome_dimensions(fit.graph), strict=True))
    for node, found in fit.designed.items():
        for name, effect in found.effects.items():
            yield _dataset(fit, name, modalities[name], nodes[node], dimensions[node], found.outcomes, effect)


def _dataset(
    fit: FitArrays,
    name: str,
    variable: str,
    node: str,
    dimension: str,
    outcomes: tuple[str, ...],
    effect: DesignedEffect,
) -> xr.Dataset:
    modality, other = fit.modalities[name], f"other_{dimension}"
    axes = axis_names(variable, modality)
    axes += (f"category_{variable}",) if effect.mean.ndim > 1 + len(axes) else ()
    attributes = unit_attributes(modality.unit) | {"note": _NOTE}
    by_outcome = {"mean": effect.mean, "standard_error": effect.standard_error}
    by_difference = {"difference": effect.difference, "lower": effect.lower, "upper": effect.upper}
    variables = {
        **{f"{key}_{node}_{variable}": ((dimension, *axes), value, attributes) for key, value in by_outcome.items()},
        **{f"{key}_{node}_{variable}": ((other, *axes), value, attributes) for key, value in by_difference.items()},
    }
    names = {dimension: _strings(outcomes), other: _strings(outcomes[1:])}
    return xr.Dataset(variables, coords={**names, **position_coords(variable, modality)})


def _strings(names: tuple[str, ...]) -> np.ndarray:
    return np.array(list(names), dtype=object)
