"""Names, dimensions and attributes of what is predicted."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
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
        order: Of a modality, the dimensions of a sample in the model, in the order in which they are written.
    """

    name: str
    dims: tuple[str, ...]
    dtype: str = "float32"
    attributes: Mapping[str, Any] | None = None
    values: np.ndarray | None = None
    order: tuple[int, ...] | None = None


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

    def arranged(self, block: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Values of a block of samples in the dimensions of the result."""
        variables = {variable.name: variable for variable in self.variables}
        return {name: self._arranged(variables[name], values) for name, values in block.items()}

    def _arranged(self, variable: Variable, values: np.ndarray) -> np.ndarray:
        if variable.order is None:
            return values
        n = len(variable.order)
        placed = values.transpose(0, *(axis + 1 for axis in variable.order), *range(n + 1, values.ndim))
        return placed.reshape(len(values), *(self.sizes[dim] for dim in variable.dims[1:]))  # less a channel of one


def make_layout(fitted: FittedRun, samples: RunSamples, attributes: Mapping[str, Any]) -> Layout:
    """What is predicted for these samples.

    Args:
        fitted: The run.
        samples: The samples.
        attributes: Of the whole.
    """
    mixture = fitted.model.mixture
    sizes = {SAMPLE: samples.n_samples, "cell": mixture.n_cells, "latent": mixture.latent_dim}
    coordinates: list[Variable] = [
        _sample_names(samples.data),
        Variable("cell", ("cell",), "str", {}, _cell_names(fitted)),
    ]
    variables = [
        Variable("responsibilities", (SAMPLE, "cell"), attributes={"long_name": "q(N | X)"}),
        Variable("latent_loc", (SAMPLE, "latent"), attributes={"long_name": "mean of q(Z | X)"}),
        Variable("latent_scale", (SAMPLE, "latent"), attributes={"long_name": "standard deviation of q(Z | X)"}),
        Variable("log_likelihood", (SAMPLE,), "float64", {"long_name": "log p(x)", "units_of_density": "of the data"}),
    ]
    for modality in fitted.modalities.values():
        dims, order = _dimensions(modality, samples.data, sizes, coordinates)
        sizes |= {dim: modality.event_shape[axis] for dim, axis in zip(dims, order, strict=False)}
        coordinates += _places(modality, samples.data, dims, {coordinate.name for coordinate in coordinates})
        is_categorical = fitted.config.modality[modality.name].decoder.likelihood == "categorical"
        if is_categorical:
            sizes[f"{modality.name}_category"] = max(modality.n_categories, 2)
        variables += _variables(modality, dims, order, is_categorical)
    variables += _known(samples.data, fitted, {variable.name for variable in (*variables, *coordinates)} | set(sizes))
    return Layout(sizes, tuple(coordinates), tuple(variables), attributes)


def _sample_names(data: MultimodalData) -> Variable:
    if data.sample_names is None:
        return Variable(SAMPLE, (SAMPLE,), "int64", {}, np.arange(data.n_samples))
    return Variable(SAMPLE, (SAMPLE,), "str", {}, data.sample_names.astype(object))


def _cell_names(fitted: FittedRun) -> np.ndarray:
    cells = product(*fitted.outcome_names)
    return np.array([",".join(map(str, cell)) for cell in cells], dtype=object)


def _dimensions(
    modality: Modality, data: MultimodalData, sizes: Mapping[str, int], coordinates: Sequence[Variable]
) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Names of the dimensions of a sample, and all of the model's in their order.

    They are those of the samples, else of the run. Where there are none, they are `image_height`, ..., and of a curve
    the name of its positions. One that another modality has with other places gets the name of the modality before it.
    """
    n = len(modality.event_shape)
    names, source = modality.dimensions, modality.source_dimensions
    if modality.name in data.dimensions:
        names, source = data.dimensions[modality.name].names, data.dimensions[modality.name].source
    if not names:
        return _unnamed(modality, sizes), tuple(range(n))
    order = tuple(names.index(name) for name in source)
    known = {coordinate.name: coordinate.values for coordinate in coordinates}
    dims = []
    for name, axis in zip(source, order, strict=True):
        places = _places_along(modality, data, name)
        is_free = name not in sizes
        is_shared = sizes.get(name) == modality.event_shape[axis] and _is_same(known.get(name), places)
        is_taken = name in (SAMPLE, "cell", "latent")
        dims.append(name if (is_free or is_shared) and not is_taken else f"{modality.name}_{name}")
    return tuple(dims), (*order, *range(len(order), n))


def _unnamed(modality: Modality, sizes: Mapping[str, int]) -> tuple[str, ...]:
    name = modality.position_name
    if modality.kind == "curve" and name not in ("", "position", *sizes):
        return (name,)
    axes = _AXES[modality.kind]
    if len(axes) != len(modality.event_shape):
        axes = tuple(f"axis{index}" for index in range(len(modality.event_shape)))
    return tuple(f"{modality.name}_{axis}" for axis in axes)


def _places_along(modality: Modality, data: MultimodalData, name: str) -> np.ndarray | None:
    """Places along a dimension of the samples, or of the run; positions of a curve are those of the run."""
    if modality.positions is not None:
        return modality.positions.double().cpu().numpy()
    named = data.dimensions.get(modality.name)
    found = (modality.coordinates if named is None else named.coordinates).get(name)
    if found is None:
        return None
    return np.array(found, dtype=object if isinstance(found[0], str) else np.float64)


def _is_same(one: np.ndarray | None, other: np.ndarray | None) -> bool:
    return np.array_equal(one, other) if one is not None and other is not None else one is other


def _places(modality: Modality, data: MultimodalData, dims: Sequence[str], taken: set[str]) -> Iterator[Variable]:
    named = data.dimensions.get(modality.name)
    source = (modality.source_dimensions if named is None else named.source) or dims
    for dim, name in zip(dims, source, strict=False):
        places = _places_along(modality, data, name)
        if places is None or dim in taken:
            continue
        is_curve = modality.positions is not None
        attributes = _said(units=modality.position_unit, long_name=modality.position_name) if is_curve else {}
        yield Variable(dim, (dim,), "str" if places.dtype == object else "float64", attributes, places)


def _variables(
    modality: Modality, dims: tuple[str, ...], order: tuple[int, ...], is_categorical: bool
) -> Iterator[Variable]:
    name, units, all_dims = modality.name, modality.unit, (SAMPLE, *dims)
    if is_categorical:
        attributes = {"long_name": f"predicted probability of the categories of {name}"}
        yield Variable(f"{name}_probability", (*all_dims, f"{name}_category"), attributes=attributes, order=order)
    else:
        for part, words in _PARTS.items():
            attributes = _said(long_name=f"{words} of {name}", units=units, kind=modality.kind)
            yield Variable(f"{name}_{part}", all_dims, attributes=attributes, order=order)
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
