"""Whatever people hand to `fit`, as `MultimodalData`."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from causalpima.inference.data.checks import find_sentinels, some_of
from causalpima.inference.data.formats import FORMATS, UNREAD_GROUPS, check_attributes, is_large, read_file
from causalpima.inference.data.modalities import Modality, arranged_names, to_modality
from causalpima.inference.data.multimodal import MASK_SUFFIX, Axis, Dimensions, MultimodalData, Variable
from causalpima.inference.data.roles import (
    Categories,
    Environment,
    ReadOptions,
    Roles,
    assign_roles,
    check_names,
    gap_like_levels,
    joint_groups,
    to_categories,
    to_environment,
)
from causalpima.inference.data.stored import StoredArray, StoredVariable, to_stored_modality
from causalpima.inference.data.validation import validate
from causalpima.inference.store.input_files import UnusableFileError, check_memory
from causalpima.models.batch import Modality as Described

__all__ = [
    "DataLike",
    "as_multimodal",
    "assemble",
    "from_dataset",
    "position_axis",
    "sample_names",
    "unit_of",
]


# Coordinates of a dataset: the positions of curves, the names of samples.


def position_axis(values: xr.DataArray, sample: Hashable) -> Axis | None:
    """The numeric coordinate of the second dimension of a variable with two, where it has one.

    Dates and durations become seconds, dates those since the first.

    Args:
        values: The variable.
        sample: Its dimension of the samples.
    """
    rest = [dimension for dimension in values.dims if dimension != sample]
    if len(rest) != 1 or rest[0] not in values.coords:
        return None
    coordinate = values.coords[rest[0]]
    positions = coordinate.to_numpy()
    if positions.dtype.kind in "mM":
        return Axis(str(rest[0]), _seconds(positions), "s")
    if positions.dtype.kind not in "iuf":
        return None
    return Axis(str(rest[0]), positions.astype(np.float64), unit_of(coordinate))


def _seconds(times: np.ndarray) -> np.ndarray:
    elapsed = times - times[0] if times.dtype.kind == "M" else times
    return np.where(np.isnat(elapsed), np.nan, elapsed / np.timedelta64(1, "s"))


def sample_names(data: xr.Dataset, sample: Hashable) -> np.ndarray | None:
    """The coordinate of the samples as text, where there is one."""
    if sample not in data.coords:
        return None
    return np.array([str(name) for name in data.coords[sample].to_numpy()], dtype=str)


def unit_of(values: xr.DataArray) -> str:
    """The attribute `units`; `1` is none."""
    unit = str(values.attrs.get("units", "")).strip()
    return "" if unit == "1" else unit


# Variables in their roles, put together as samples.


def assemble(
    name: str,
    variables: Mapping[str, Variable],
    options: ReadOptions,
    sample_names: np.ndarray | None = None,
    like: Mapping[str, Described] | None = None,
) -> MultimodalData:
    """Samples from variables that have one entry per sample each.

    Args:
        name: Name of the data set.
        variables: By name; masks, labels, groups and covariates among them.
        options: Which of them are what.
        sample_names: Names `[sample]`, or None.
        like: Modalities of a run that is to take the samples: what it holds in float64 is not rounded.

    Raises:
        ValueError: A variable that cannot be what it should be, by name.
    """
    roles = assign_roles(name, variables, options)
    exact = {key for key, known in (like or {}).items() if known.standardisation.offset is not None}
    modalities = {key: _modality(key, variables, roles, options, key in exact) for key in roles.modalities}
    n_samples = len(next(iter(modalities.values())).present) if modalities else 0
    factors = _categories(variables, roles.labels, n_samples, may_lack=True)
    covariates = _categories(variables, roles.covariates, n_samples, kind="level")
    groups = _categories(variables, roles.groups, n_samples, kind="group")
    environment = _environment(variables, roles, options, n_samples)
    told = {} if environment is None else {str(roles.environment): Categories(environment.names, environment.codes)}
    categories = factors | covariates | told
    return MultimodalData(
        name=name,
        modalities={key: modality.values for key, modality in modalities.items()},
        present={key: modality.present for key, modality in modalities.items()},
        kinds={key: modality.kind for key, modality in modalities.items()},
        factors={key: category.codes for key, category in factors.items()},
        factor_levels={key: category.levels for key, category in factors.items()},
        scored=options.scored,
        observed={key: modality.observed for key, modality in modalities.items() if modality.observed is not None},
        axes={key: axis for key in modalities if (axis := variables[key].axis) and modalities[key].kind == "curve"},
        units={key: variables[key].unit for key in modalities if variables[key].unit},
        dimensions={key: found for key in modalities if (found := _dimensions_of(variables[key]))},
        groups=joint_groups([category.codes for category in groups.values()]),
        covariates={key: category.codes for key, category in covariates.items()},
        covariate_levels={key: category.levels for key, category in covariates.items()},
        sample_names=sample_names,
        environment=None if environment is None else environment.codes,
        environment_names=() if environment is None else environment.names,
        notes=(
            *(note for key, modality in modalities.items() for note in _sentinel_notes(key, modality)),
            *(note for key, category in categories.items() for note in _level_notes(key, category)),
        ),
    )


def _dimensions_of(variable: Variable) -> Dimensions | None:
    found = variable.dimensions
    return found and replace(found, names=arranged_names(found.names, tuple(variable.values.shape)))


def _sentinel_notes(name: str, modality: Modality) -> list[str]:
    """Values that may stand for a gap and were not declared."""
    values = modality.values
    if isinstance(values, StoredArray):
        some = values.scan.some
    else:
        present = np.broadcast_to(modality.present.reshape(-1, *[1] * (values.ndim - 1)), values.shape)
        some = some_of(values, present if modality.observed is None else modality.observed)
    return [
        f"{name}: {100 * found.share:.2g} % of the values are exactly {found.value:g}, away from all others "
        f"({found.lowest:g} to {found.highest:g}); if that is no measurement, write NaN, or, in a .nc or .zarr file, "
        f"declare it as the attribute missing_value of {name}"
        for found in find_sentinels(some)
    ]


def _level_notes(name: str, category: Categories) -> list[str]:
    counts = np.bincount(category.codes[category.codes >= 0], minlength=len(category.levels))
    return [
        f"{name}: {level!r} in {counts[category.levels.index(level)]} of {len(category.codes)} samples looks like a "
        "missing entry, and counts as a level; leave it empty there (or NaN) if it is none"
        for level in gap_like_levels(category.levels)
    ]


def _environment(
    variables: Mapping[str, Variable], roles: Roles, options: ReadOptions, n_samples: int
) -> Environment | None:
    name = roles.environment
    if name is not None:
        return to_environment(name, variables[name].values, n_samples, options.observational)
    if options.observational is not None:
        raise ValueError("observational: expected a variable that tells environments, got none; name it as environment")
    return None


def _modality(
    name: str, variables: Mapping[str, Variable], roles: Roles, options: ReadOptions, exact: bool
) -> Modality:
    variable = variables[name]
    mask = variables[roles.masks[name]].values if name in roles.masks else None
    kind = options.kinds.get(name) or variable.kind or ("curve" if variable.axis is not None else None)
    if isinstance(variable.values, StoredVariable):
        return to_stored_modality(name, variable.values, kind, mask, exact)
    return to_modality(name, variable.values, kind, mask, exact)


def _categories(
    variables: Mapping[str, Variable], names: Sequence[str], n_samples: int, may_lack: bool = False, kind: str = "label"
) -> dict[str, Categories]:
    found = {name: to_categories(name, variables[name].values, may_lack, kind) for name in names}
    for name, category in found.items():
        if n_samples and len(category.codes) != n_samples:
            raise ValueError(
                f"{name}: expected {n_samples} samples, as many as the modalities have, got {len(category.codes)}; "
                "give one entry per sample"
            )
    return found


# An xarray dataset as samples: measurements, their masks, units and coordinates, and what is known about them.


_CHANNEL = "channel"


def from_dataset(
    data: xr.Dataset,
    name: str,
    options: ReadOptions | None = None,
    on_disk: bool = False,
    like: Mapping[str, Described] | None = None,
) -> MultimodalData:
    """Samples from a dataset.

    Every data variable `[sample, ...]` is a modality, unless its attribute `role` is `label`, `group`, `covariate` or
    `environment`, or it is the mask `NAME_mask` of another. Attributes `kind` (`image`, `curve` or `vector`) and
    `units` are kept. A variable with two dimensions, the second of which has a coordinate of numbers, is a curve on
    that axis. A dimension `channel` is one of channels wherever it stands. The coordinate of the samples names them.

    Args:
        data: The dataset.
        name: Name of the data set.
        options: What is read, and as what.
        on_disk: Leave variables with two or more dimensions where they are.
        like: Modalities of a run that is to take the samples: variables that have just its dimensions come in its
            order, and what it holds in float64 is not rounded. Default: dimensions as they stand, channels last.

    Raises:
        ValueError: A variable that cannot be what it should be, by name.
    """
    wanted = options or ReadOptions()
    sample = _sample_dimension(data, name, wanted.sample_dim)
    check_names(name, [str(key) for key in data.variables], wanted)
    order = {key: known.dimensions for key, known in (like or {}).items()}
    variables = {str(key): _variable(data, key, sample, on_disk, order) for key in _keys(data, sample, wanted)}
    found = assemble(name, variables, wanted, sample_names(data, sample), like)
    unread = ", ".join(f"/{group}" for group in data.encoding.get(UNREAD_GROUPS, ()))
    return replace(found, notes=(f"groups of the file that are not read: {unread}", *found.notes)) if unread else found


def _sample_dimension(data: xr.Dataset, name: str, wanted: str | None) -> Hashable:
    dimensions = [dimension for values in data.data_vars.values() for dimension in values.dims]
    if not dimensions:
        raise ValueError(f"{name}: expected a variable [sample, ...] per modality, got none with a dimension")
    if wanted is not None and wanted not in dimensions:
        there = ", ".join(dict.fromkeys(map(str, dimensions)))
        raise ValueError(
            f"sample_dim: expected a dimension of the variables of {name}, got {wanted!r}; there is {there}"
        )
    return wanted or ("sample" if "sample" in data.sizes else dimensions[0])


def _keys(data: xr.Dataset, sample: Hashable, options: ReadOptions) -> Iterator[Hashable]:
    """Variables that may matter: those that are asked for or have a role, and data variables that are no scalars."""
    asked = {name for names in options.named.values() for name in names}
    masks = {name + MASK_SUFFIX for name in options.modalities}
    for key, values in data.variables.items():
        may_be_picked = key in data.data_vars and values.dims and (key in masks or not options.modalities)
        if key in asked or "role" in values.attrs or may_be_picked:
            yield key


def _variable(
    data: xr.Dataset, key: Hashable, sample: Hashable, on_disk: bool, wanted: Mapping[str, Sequence[str]]
) -> Variable:
    values = data[key]
    if sample not in values.dims:
        raise ValueError(
            f"{key}: expected the dimension {sample!r}, got {values.dims}; drop this variable, or name the modalities"
        )
    for read in (values, *values.coords.values()):
        check_attributes(read.variable)
    if on_disk:
        _check_resident(key, values, sample)
    order = _order(data, values, sample, wanted)
    stored = StoredVariable(values, order)
    return Variable(
        values=stored if on_disk and values.ndim > 1 else stored[slice(None)],
        role=values.attrs.get("role"),
        kind=values.attrs.get("kind"),
        unit=unit_of(values),
        axis=position_axis(values, sample),
        dimensions=_named_dimensions(values, order),
    )


def _check_resident(key: Hashable, values: xr.DataArray, sample: Hashable) -> None:
    """Refuse a variable on disk of which not even one sample can be held."""
    try:
        check_memory(values.nbytes // max(values.sizes[sample], 1))
    except UnusableFileError as error:
        raise ValueError(f"{key}: expected samples that the memory can hold, got larger ones: {error}") from error


_NO_NAME = re.compile(r"(phony_)?dim_\d+")
"""What xarray and netCDF call dimensions that have no name."""


def _named_dimensions(values: xr.DataArray, order: Sequence[Hashable]) -> Dimensions | None:
    names = tuple(map(str, order[1:]))
    if not names or any(_NO_NAME.fullmatch(name) for name in names):
        return None
    places = {str(dim): values.coords[dim].to_numpy() for dim in order[1:] if dim in values.coords}
    coordinates = {
        dim: tuple(found.astype(np.float64 if found.dtype.kind in "iuf" else str).tolist())
        for dim, found in places.items()
        if found.dtype.kind in "iufUSOT"
    }
    source = tuple(str(dim) for dim in values.dims if dim != order[0])
    return Dimensions(names, source, coordinates)


def _order(
    data: xr.Dataset, values: xr.DataArray, sample: Hashable, wanted: Mapping[str, Sequence[str]]
) -> list[Hashable]:
    """Samples first, channels last, or as is wanted; a mask in the order of what it is the mask of."""
    owner = str(values.name).removesuffix(MASK_SUFFIX)
    if {sample, *wanted.get(owner, ())} == set(values.dims):
        return [sample, *wanted.get(owner, ())]
    dims = data[owner].dims if owner in data and set(data[owner].dims) == set(values.dims) else values.dims
    return sorted(dims, key=lambda dimension: (dimension != sample, dimension == _CHANNEL))


DataLike = MultimodalData | xr.Dataset | Mapping[str, Any] | np.ndarray | Tensor | str | Path

_SAMPLE = "sample"


def as_multimodal(
    data: DataLike,
    options: ReadOptions | None = None,
    for_fitting: bool = True,
    like: Mapping[str, Described] | None = None,
) -> MultimodalData:
    """Samples in the form that training takes, checked.

    Args:
        data: `MultimodalData`, returned as it is; an array or tensor `[sample, ...]`, which becomes the modality `x`; a
            mapping of names to such arrays; an `xarray.Dataset` (see `from_dataset`); or the path of an npz file (as
            a mapping) or of a netCDF or zarr file (as a dataset). Shapes, kinds and missing values: see `to_modality`.
            In a mapping, `NAME_mask` is the mask of `NAME`, and `sample` holds names of the samples.
        options: What is read, and as what.
        for_fitting: Refuse what nothing can be learned from, too: one sample, constants, absent modalities.
        like: Modalities of a run that is to take the samples (`from_dataset`).

    Raises:
        ValueError: Data that cannot be fitted; one line that names the file and the variable and says what to do.
        MemoryError: The file is too large; it is named.
    """
    wanted = options or ReadOptions()
    if isinstance(data, str | Path):
        try:
            return _from_file(Path(data).expanduser(), wanted, for_fitting, like)
        except MemoryError as error:
            raise MemoryError(f"{data}: {str(error) or 'it is too large'}") from error
    return _checked(_convert(data, wanted, like), for_fitting)


def _checked(samples: MultimodalData, for_fitting: bool) -> MultimodalData:
    validate(samples, for_fitting)
    return samples


def _convert(data: object, options: ReadOptions, like: Mapping[str, Described] | None) -> MultimodalData:
    if isinstance(data, MultimodalData):
        return _as_it_is(data, options)
    if isinstance(data, xr.Dataset):
        return from_dataset(data, "data", options, on_disk=options.in_memory == "no", like=like)
    if isinstance(data, Mapping):
        return _from_mapping(data, "data", options, like)
    if isinstance(data, np.ndarray | Tensor):
        return _from_mapping({"x": data}, "data", options, like)
    raise ValueError(
        "data: expected MultimodalData, an array, a mapping of names to arrays, an xarray.Dataset or the path of "
        f"{FORMATS} file, got {type(data).__name__}; numpy.asarray turns most things into an array"
    )


def _as_it_is(data: MultimodalData, options: ReadOptions) -> MultimodalData:
    if not options.is_default:
        raise ValueError(
            "options: expected none for MultimodalData, which say all themselves, got some; leave them out"
        )
    return data


def _from_mapping(
    arrays: Mapping[str, Any], name: str, options: ReadOptions, like: Mapping[str, Described] | None = None
) -> MultimodalData:
    if options.sample_dim is not None:
        raise ValueError(
            f"sample_dim: expected none for arrays, whose first dimension counts the samples, "
            f"got {options.sample_dim!r}"
        )
    variables = {key: Variable(values) for key, values in arrays.items() if key != _SAMPLE}
    names = np.array([str(entry) for entry in np.asarray(arrays[_SAMPLE])]) if _SAMPLE in arrays else None
    return assemble(name, variables, options, names, like)


def _from_file(
    path: Path, options: ReadOptions, for_fitting: bool, like: Mapping[str, Described] | None
) -> MultimodalData:
    content = read_file(path, options.in_memory)
    try:
        if isinstance(content, xr.Dataset):
            on_disk = is_large(content, options.in_memory)
            return _checked(from_dataset(content, path.stem, options, on_disk, like), for_fitting)
        return _checked(_from_mapping(content, path.stem, options, like), for_fitting)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
