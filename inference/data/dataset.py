"""An xarray dataset as samples: measurements, their masks, units and coordinates, and what is known about them."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import xarray as xr

from inference.data.assembly import assemble
from inference.data.axes import position_axis, sample_names, unit_of
from inference.data.cf_conventions import check_attributes
from inference.data.formats import UNREAD_GROUPS
from inference.data.multimodal import Dimensions, MultimodalData
from inference.data.options import ReadOptions
from inference.data.roles import check_names
from inference.data.stored import StoredVariable
from inference.data.variables import MASK_SUFFIX, Variable

__all__ = ["from_dataset"]

_CHANNEL = "channel"


def from_dataset(
    data: xr.Dataset,
    name: str,
    options: ReadOptions | None = None,
    on_disk: bool = False,
    order: Mapping[str, Sequence[str]] | None = None,
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
        order: Per modality, the order of the dimensions of a sample, by name; it holds for variables that have just
            these. Default: as they stand, channels last.

    Raises:
        ValueError: A variable that cannot be what it should be, by name.
    """
    wanted = options or ReadOptions()
    sample = _sample_dimension(data, name, wanted.sample_dim)
    check_names(name, [str(key) for key in data.variables], wanted)
    variables = {str(key): _variable(data, key, sample, on_disk, order or {}) for key in _keys(data, sample, wanted)}
    found = assemble(name, variables, wanted, sample_names(data, sample))
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
    order = _order(data, values, sample, wanted)
    stored = StoredVariable(values, order)
    return Variable(
        values=stored if on_disk and values.ndim > 1 else stored[slice(None)],
        role=values.attrs.get("role"),
        kind=values.attrs.get("kind"),
        unit=unit_of(values),
        axis=position_axis(values, sample),
        dimensions=_dimensions(values, order),
    )


_NO_NAME = re.compile(r"(phony_)?dim_\d+")
"""What xarray and netCDF call dimensions that have no name."""


def _dimensions(values: xr.DataArray, order: Sequence[Hashable]) -> Dimensions | None:
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
