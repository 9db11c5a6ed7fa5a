"""New samples in the form of a run: its modalities and covariates, in its order, with what is missing marked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from causalpima.inference.data.checks import check_support
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.roles import Categories
from causalpima.inference.data.stored import row_blocks, standardised
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.models.batch import Batch, Modality

__all__ = [
    "SAMPLE",
    "Layout",
    "RunSamples",
    "Variable",
    "fit_to_run",
    "make_layout",
]


_LARGEST = 1e6


@dataclass(frozen=True)
class RunSamples:
    """Samples that a run can take.

    Attributes:
        data: The samples as they came; modalities that the run does not know play no part.
        modalities: What the run knows of its modalities.
        present: Per modality of the run, bool `[sample]`.
        covariates: Indicators of the levels of the run's covariates `[sample, V]`, or None: their average is used.
        notes: What was left out, or is assumed; one line each.
        environment: Codes of the environments of the run, `[sample]`, 0 = without intervention; None: all are without.
    """

    data: MultimodalData
    modalities: Mapping[str, Modality]
    present: Mapping[str, np.ndarray]
    covariates: np.ndarray | None
    notes: tuple[str, ...] = ()
    environment: np.ndarray | None = None

    @property
    def n_samples(self) -> int:
        """Number of samples."""
        return self.data.n_samples

    def batches(self, size: int, like: Tensor) -> Iterator[tuple[slice, Batch]]:
        """The samples, `size` at a time, and where they stand.

        Args:
            size: Number of samples.
            like: Their tensors get its type and go to its device.
        """
        for begin in range(0, self.n_samples, size):
            rows = slice(begin, min(begin + size, self.n_samples))
            yield rows, self._batch(rows, like)

    def _batch(self, rows: slice, like: Tensor) -> Batch:
        n = rows.stop - rows.start
        observed = {name: mask[rows] for name, mask in self.data.observed.items() if name in self.modalities}
        return Batch(
            {name: self._values(modality, rows).to(like) for name, modality in self.modalities.items()},
            {name: torch.from_numpy(mask[rows].copy()).to(like.device) for name, mask in self.present.items()},
            torch.arange(n, device=like.device),
            n,
            {name: torch.from_numpy(mask.copy()).to(like.device) for name, mask in observed.items()},
            None if self.covariates is None else torch.from_numpy(self.covariates[rows].copy()).to(like),
            environment=None if self.environment is None else torch.from_numpy(self.environment[rows]).to(like.device),
        )

    def _values(self, modality: Modality, rows: slice) -> Tensor:
        if modality.name not in self.data.modalities:
            return torch.zeros(rows.stop - rows.start, *modality.event_shape)
        values, measured = self.data.modalities[modality.name][rows], self.data.measured_rows(modality.name, rows)
        return standardised(values, measured, modality.standardisation)


def fit_to_run(data: MultimodalData, fitted: FittedRun) -> RunSamples:
    """Check new samples against what a run was fitted to.

    Args:
        data: The samples, in the units of the data of the run.
        fitted: The run.

    Raises:
        ValueError: Another shape, unit or position, values that the run cannot take, levels of a covariate that it
            does not know, or a sample without any modality where the run has no prior expert.
    """
    for name, modality in fitted.modalities.items():
        if name in data.modalities:
            _check_modality(data, modality)
            _check_values(data, modality, fitted)
    absent = np.zeros(data.n_samples, dtype=bool)
    present = {name: np.asarray(data.present.get(name, absent)) for name in fitted.modalities}
    if not (fitted.guide.prior_expert or fitted.guide.blocks):
        _check_presence(data, present)
    covariates = _covariates(data, fitted.description.covariate_levels, _trained_levels(fitted))
    notes = tuple(_notes(data, fitted, present))
    return RunSamples(data, fitted.modalities, present, covariates, notes, _environment(data, fitted))


def _check_modality(data: MultimodalData, modality: Modality) -> None:
    name, unit = modality.name, data.units.get(modality.name, "")
    _check_dimensions(data, modality)
    shape = data.modalities[name].shape[1:]
    if tuple(shape) != tuple(modality.event_shape):
        raise ValueError(
            f"{name}: expected samples of shape {tuple(modality.event_shape)} as the run was fitted to, got {shape}; "
            "bring them to that shape (docs/predict.md says how for curves)"
        )
    if unit and modality.unit and unit != modality.unit:
        raise ValueError(f"{name}: expected the unit {modality.unit} of the run, got {unit}; convert the values")
    if name in data.axes and modality.positions is not None:
        _check_positions(data, modality)


def _check_dimensions(data: MultimodalData, modality: Modality) -> None:
    """By name; of a single dimension its name does not matter, and one that has none is taken at its place."""
    named = data.dimensions.get(modality.name)
    if named is None or not modality.dimensions:
        return
    if len(modality.dimensions) > 1 and named.names != modality.dimensions:
        raise ValueError(
            f"{modality.name}: expected the dimensions {', '.join(modality.dimensions)} of the run, got "
            f"{', '.join(named.names)}; give them these names, by which they are put into the order of the run"
        )
    for ours, theirs in zip(modality.dimensions, named.names, strict=False):
        if ours in modality.coordinates and theirs in named.coordinates:
            _check_places(modality, theirs, modality.coordinates[ours], named.coordinates[theirs])


def _check_places(
    modality: Modality, dim: str, expected: tuple[float | str, ...], got: tuple[float | str, ...]
) -> None:
    """Places along a dimension, numbers or names; another number of them is for the shape to refuse."""
    ours, theirs = np.array(expected), np.array(got)
    if ours.shape != theirs.shape:
        return
    if ours.dtype.kind == theirs.dtype.kind == "f":
        differ = ~np.isclose(ours, theirs, rtol=0, atol=1e-5 * np.ptp(ours))
    else:
        differ = ours.astype(str) != theirs.astype(str)
    if differ.any():
        first = int(differ.argmax())
        raise ValueError(
            f"{modality.name}: expected {expected[first]!r} at index {first} of {dim} as in the run, got "
            f"{got[first]!r}; select the places of the run, in its order"
        )


def _check_positions(data: MultimodalData, modality: Modality) -> None:
    axis, name, unit = data.axes[modality.name], modality.position_name, modality.position_unit
    if axis.unit and unit and axis.unit != unit:
        raise ValueError(
            f"{axis.name}: expected the positions of {modality.name!r} in {unit} as in the run, got {axis.unit}; "
            "convert them"
        )
    expected, got = modality.positions.double().numpy(), np.asarray(axis.values, dtype=np.float64)  # type: ignore[union-attr]
    with np.errstate(over="ignore"):  # one of them may come from a file, or from a run of old, that has float32
        pairs = ((got, expected), (got.astype(np.float32), expected), (got, expected.astype(np.float32)))
    # Of the range, not of the size: far from zero, quite other positions differ by little of their size.
    differ = np.min([np.abs(a - b) for a, b in pairs], axis=0) > 1e-5 * np.ptp(expected)
    if differ.any():
        first = int(differ.argmax())
        raise ValueError(
            f"{axis.name}: expected the positions {name} of {modality.name!r} in the run, {expected[first]:g} at index "
            f"{first}, got {got[first]:g}; interpolate the curves to these positions"
        )


def _check_values(data: MultimodalData, modality: Modality, fitted: FittedRun) -> None:
    name = modality.name
    likelihood = fitted.config.modality[name].decoder.likelihood
    found = (check_support(name, likelihood, part, known, rows.start) for rows, part, known in _blocks(data, name))
    n_categories = max(found, default=1)
    if likelihood == "categorical" and n_categories > max(modality.n_categories, 2):
        raise ValueError(
            f"{name}: expected codes below {modality.n_categories}, those of the run, got {n_categories - 1}; set "
            "what the run never saw to NaN"
        )
    if modality.standardisation.transform == "log":
        _check_positive(data, name)
    if likelihood in ("normal", "student_t"):
        _check_size(data, modality)


def _check_positive(data: MultimodalData, name: str) -> None:
    lowest = min((float(part[known].min(initial=np.inf)) for _, part, known in _blocks(data, name)), default=np.inf)
    if lowest <= 0:
        raise ValueError(
            f"{name}: expected positive values, whose logarithm the run takes, got {lowest:g}; set these to NaN"
        )


def _check_size(data: MultimodalData, modality: Modality) -> None:
    """Values so far off that networks overflow would come out as NaN, which means that something was not measured."""
    for rows, part, known in _blocks(data, modality.name):
        size = np.abs(modality.standardisation.apply(np.where(known, part.astype(np.float64), 1.0))) * known
        if size.size and size.max() > _LARGEST:
            first = np.unravel_index(size.argmax(), size.shape)
            raise ValueError(
                f"{modality.name}: expected values within {_LARGEST:.0e} standard deviations of those of the run, got "
                f"{part[first]:g} in sample {rows.start + int(first[0])}; correct it, or set it to NaN"
            )


def _blocks(data: MultimodalData, name: str) -> Iterator[tuple[slice, np.ndarray, np.ndarray]]:
    """Values of a modality and what of them was measured, some MiB at a time."""
    values = data.modalities[name]
    for rows in row_blocks(len(values), values.nbytes // max(len(values), 1)):
        yield rows, values[rows], data.measured_rows(name, rows)


def _check_presence(data: MultimodalData, present: Mapping[str, np.ndarray]) -> None:
    empty = ~np.any(list(present.values()), axis=0)
    if empty.any():
        first = int(empty.argmax())
        known = "" if data.sample_names is None else f" ({data.sample_names[first]})"
        raise ValueError(
            f"{data.name}: expected one of {', '.join(present)} in every sample, got none in {empty.sum()} of "
            f"{len(empty)}, first in sample {first}{known}; leave these out, or fit with the prior expert"
        )


def _trained_levels(fitted: FittedRun) -> dict[str, tuple[str, ...]]:
    """Per covariate, the levels that training samples had."""
    shares = fitted.model.mean_covariates
    if shares is None:
        return {}
    levels = [(name, level) for name, known in fitted.description.covariate_levels.items() for level in known]
    trained = [pair for pair, share in zip(levels, shares.tolist(), strict=True) if share > 0]
    return {name: tuple(level for of, level in trained if of == name) for name in fitted.description.covariate_levels}


def _covariates(
    data: MultimodalData, levels: Mapping[str, tuple[str, ...]], trained: Mapping[str, tuple[str, ...]]
) -> np.ndarray | None:
    """Indicators in the order of the run."""
    given = [name for name in levels if name in data.covariates]
    if not given:
        return None
    if len(given) < len(levels):
        missing = next(name for name in levels if name not in given)
        raise ValueError(
            f"{missing}: expected this covariate next to {', '.join(given)}, got none; give all covariates of the "
            "run, or none for their average"
        )
    return np.concatenate([_indicators(data, name, known, trained[name]) for name, known in levels.items()], axis=1)


def _indicators(data: MultimodalData, name: str, known: tuple[str, ...], trained: tuple[str, ...]) -> np.ndarray:
    used = np.unique(data.covariates[name])
    new = [level for code in used if (level := data.covariate_levels[name][code]) not in trained]
    if new:
        raise ValueError(
            f"{name}: expected levels that the run was fitted with ({', '.join(trained)}), got {', '.join(new)}; "
            "leave the covariate out for the average over its levels, or fit with these"
        )
    column = {level: index for index, level in enumerate(known)}
    codes = np.array([column.get(level, -1) for level in data.covariate_levels[name]])
    return np.eye(len(known), dtype=np.float32)[codes[data.covariates[name]]]


def _environment(data: MultimodalData, fitted: FittedRun) -> np.ndarray | None:
    """Environments by the codes of the run; those that it does not tell apart are taken as without intervention."""
    known = fitted.description.environment_names
    if data.environment is None or not known:
        return None
    codes = np.array([known.index(name) if name in known else 0 for name in data.environment_names], dtype=np.int64)
    return codes[data.environment]


def _unknown_environments(data: MultimodalData, fitted: FittedRun) -> list[str]:
    """Those of some sample, by name; none where the run tells no environments apart."""
    known = fitted.description.environment_names
    if data.environment is None or not known:
        return []
    return [name for code in np.unique(data.environment) if (name := data.environment_names[code]) not in known]


def _notes(data: MultimodalData, fitted: FittedRun, present: Mapping[str, np.ndarray]) -> Iterator[str]:
    n_empty = int((~np.any(list(present.values()), axis=0)).sum())
    if n_empty:
        yield f"{n_empty} of {data.n_samples} samples have no modality of the run: they get what is true of all samples"
    ignored = [name for name in data.modalities if name not in fitted.modalities]
    if ignored:
        yield f"left out, since the run does not know them: {', '.join(ignored)}"
    lacking = [name for name in fitted.modalities if name not in data.modalities]
    if lacking:
        yield f"absent in all samples: {', '.join(lacking)}"
    if _is_unprepared(fitted) and not all(_is_complete(data, name) for name in fitted.modalities):
        yield (
            "the run learned neither by distillation nor by modality dropout: what it says of samples that lack "
            "modalities is often wrong and too sure; fit again with --distillation.epochs 20 (docs/missing.md)"
        )
    for name, modality in fitted.modalities.items():
        sizes = modality.event_shape[: len(modality.dimensions)]
        if name in data.modalities and name not in data.dimensions and len(set(sizes)) < len(sizes):
            yield f"the dimensions of {name} have no names, and are taken as {', '.join(modality.dimensions)}"
    levels = fitted.description.covariate_levels
    if levels and not set(levels) & set(data.covariates):
        yield f"no {', '.join(levels)}: the average over the training samples is used"
    unknown = _unknown_environments(data, fitted)
    if unknown:
        yield f"environments that the run does not know are taken as without intervention: {', '.join(unknown)}"
    new = [
        name
        for name in data.observed
        if name in fitted.modalities and not fitted.modalities[name].has_gaps and data.observed[name].any()
    ]
    if new:
        yield f"single elements are missing, other than in the run; encoders see zeros in their place: {', '.join(new)}"


def _is_unprepared(fitted: FittedRun) -> bool:
    """Whether nothing taught the encoders to do without each other; under a mask none needs the others."""
    guide = fitted.guide
    is_taught = guide.blocks or guide.fusion.teaches_alone or guide.unimodal or fitted.config.training.modality_dropout
    return len(fitted.modalities) > 1 and not is_taught


def _is_complete(data: MultimodalData, name: str) -> bool:
    return name in data.present and bool(np.all(data.present[name]))


# Names, dimensions and attributes of what is predicted.


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
            yield Variable(f"{name}_{part}", all_dims, modality.standardisation.dtype, attributes, order=order)
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
