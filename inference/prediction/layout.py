"""Names, dimensions and attributes of what is predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from inference.data.categories import Categories
from inference.data.multimodal import MultimodalData
from inference.prediction.samples import RunSamples
from inference.training.fitted_run import FittedRun
from models.modality import Modality

__all__ = ["SAMPLE", "Layout", "Variable", "make_layout"]

SAMPLE = "sample"
_AXES = {"image": ("height", "width", "channel"), "curve": ("position",), "vector": ("element",)}


@dataclass(frozen=True)
class Variable:
    """A variable of the result.

    Attributes:
        name: Its name.
        dims: Its dimensions.
        dtype: `float32`, `float64`, or `str`.
        attributes: Its attributes.
        values: All of it, where it is known beforehand; else it comes in blocks of samples.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str = "float32"
    attributes: Mapping[str, Any] | None = None
    values: np.ndarray | None = None


@dataclass(frozen=True)
class Layout:
    """All of a result but its numbers.

    Attributes:
        sizes: Of the dimensions.
        coordinates: Variables that name the places along a dimension.
        variables: The others.
        attributes: Of the whole.
    """

    sizes: Mapping[str, int]
    coordinates: tuple[Variable, ...]
    variables: tuple[Variable, ...]
    attributes: Mapping[str, Any]


def make_layout(fitted: FittedRun, samples: RunSamples, attributes: Mapping[str, Any]) -> Layout:
    """What is predicted for these samples.

    Args:
        fitted: The run.
        samples: The samples.
        attributes: Of the whole.
    """
    mixture = fitted.model.mixture
    sizes = {SAMPLE: samples.n_samples, "cell": mixture.n_cells, "latent": mixture.latent_dim}
    coordinates = [_sample_names(samples.data), Variable("cell", ("cell",), "str", {}, _cell_names(fitted))]
    variables = [
        Variable("responsibilities", (SAMPLE, "cell"), attributes={"long_name": "q(N | X)"}),
        Variable("latent_loc", (SAMPLE, "latent"), attributes={"long_name": "mean of q(Z | X)"}),
        Variable("latent_scale", (SAMPLE, "latent"), attributes={"long_name": "standard deviation of q(Z | X)"}),
        Variable("log_likelihood", (SAMPLE,), "float64", {"long_name": "log p(x)", "units_of_density": "of the data"}),
    ]
    for modality in fitted.modalities.values():
        dims = _dimensions(modality, sizes)
        sizes |= dict(zip(dims, modality.event_shape, strict=True))
        coordinates += _positions(modality, dims, {coordinate.name for coordinate in coordinates})
        is_categorical = fitted.config.modality[modality.name].decoder.likelihood == "categorical"
        if is_categorical:
            sizes[f"{modality.name}_category"] = max(modality.n_categories, 2)
        variables += _variables(modality, dims, is_categorical)
    variables += _known(samples.data, fitted, {variable.name for variable in (*variables, *coordinates)} | set(sizes))
    return Layout(sizes, tuple(coordinates), tuple(variables), attributes)


def _sample_names(data: MultimodalData) -> Variable:
    if data.sample_names is None:
        return Variable(SAMPLE, (SAMPLE,), "int64", {}, np.arange(data.n_samples))
    return Variable(SAMPLE, (SAMPLE,), "str", {}, data.sample_names.astype(object))


def _cell_names(fitted: FittedRun) -> np.ndarray:
    cells = product(*fitted.outcome_names)
    return np.array([",".join(map(str, cell)) for cell in cells], dtype=object)


def _dimensions(modality: Modality, sizes: Mapping[str, int]) -> tuple[str, ...]:
    """Own dimensions: `image_height`, ...; a curve has the name of its positions, unless that is taken."""
    name = modality.position_name
    if modality.kind == "curve" and name not in ("", "position", *sizes):
        return (name,)
    axes = _AXES[modality.kind]
    if len(axes) != len(modality.event_shape):
        axes = tuple(f"axis{index}" for index in range(len(modality.event_shape)))
    return tuple(f"{modality.name}_{axis}" for axis in axes)


def _positions(modality: Modality, dims: tuple[str, ...], taken: set[str]) -> list[Variable]:
    if modality.positions is None or dims[0] in taken:
        return []
    attributes = _said(units=modality.position_unit, long_name=modality.position_name)
    return [Variable(dims[0], dims, "float64", attributes, modality.positions.double().cpu().numpy())]


def _variables(modality: Modality, dims: tuple[str, ...], is_categorical: bool) -> Iterator[Variable]:
    name, units, all_dims = modality.name, modality.unit, (SAMPLE, *dims)
    if is_categorical:
        attributes = {"long_name": f"predicted probability of the categories of {name}"}
        yield Variable(f"{name}_probability", (*all_dims, f"{name}_category"), attributes=attributes)
    else:
        for part, words in _PARTS.items():
            attributes = _said(long_name=f"{words} of {name}", units=units, kind=modality.kind)
            yield Variable(f"{name}_{part}", all_dims, attributes=attributes)
    long_name = f"log p({name} | the other modalities)"
    yield Variable(f"{name}_log_likelihood", (SAMPLE,), "float64", {"long_name": long_name})


_PARTS = {
    "mean": "predictive mean",
    "std": "predictive standard deviation",
    "lower": "lower end of the predictive interval",
    "upper": "upper end of the predictive interval",
}


def _known(data: MultimodalData, fitted: FittedRun, taken: set[str]) -> Iterator[Variable]:
    """Labels and covariates, carried through."""
    for role, codes, levels in (
        ("label", data.factors, data.factor_levels),
        ("covariate", data.covariates, data.covariate_levels),
    ):
        for name in codes:
            if role == "label" or name in fitted.description.covariate_levels:
                values = np.array(Categories(levels[name], codes[name]).levels, dtype=object)[codes[name]]
                free = name if name not in taken else f"{name}_{role}"
                yield Variable(free, (SAMPLE,), "str", {"role": role}, values)


def _said(**attributes: str) -> dict[str, str]:
    """Those that say something: netCDF tools read empty units as a unit."""
    return {name: text for name, text in attributes.items() if text}
