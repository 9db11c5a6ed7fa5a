"""Whatever people hand to `fit`, as `MultimodalData`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr
from torch import Tensor

from inference.data.assembly import assemble
from inference.data.dataset import from_dataset
from inference.data.formats import FORMATS, is_large, read_file
from inference.data.multimodal import MultimodalData
from inference.data.options import ReadOptions
from inference.data.validation import validate
from inference.data.variables import Variable

__all__ = ["DataLike", "as_multimodal"]

DataLike = MultimodalData | xr.Dataset | Mapping[str, Any] | np.ndarray | Tensor | str | Path

_SAMPLE = "sample"


def as_multimodal(
    data: DataLike,
    options: ReadOptions | None = None,
    for_fitting: bool = True,
    order: Mapping[str, Sequence[str]] | None = None,
) -> MultimodalData:
    """Samples in the form that training takes, checked.

    Args:
        data: `MultimodalData`, returned as it is; an array or tensor `[sample, ...]`, which becomes the modality `x`; a
            mapping of names to such arrays; an `xarray.Dataset` (see `from_dataset`); or the path of an npz file (as
            a mapping) or of a netCDF or zarr file (as a dataset). Shapes, kinds and missing values: see `to_modality`.
            In a mapping, `NAME_mask` is the mask of `NAME`, and `sample` holds names of the samples.
        options: What is read, and as what.
        for_fitting: Refuse what nothing can be learned from, too: one sample, constants, absent modalities.
        order: Per modality of a dataset, the order of the dimensions of a sample, by name (`from_dataset`).

    Raises:
        ValueError: Data that cannot be fitted; one line that names the file and the variable and says what to do.
    """
    wanted = options or ReadOptions()
    if isinstance(data, str | Path):
        return _from_file(Path(data).expanduser(), wanted, for_fitting)
    return _checked(_convert(data, wanted, order), for_fitting)


def _checked(samples: MultimodalData, for_fitting: bool) -> MultimodalData:
    validate(samples, for_fitting)
    return samples


def _convert(data: object, options: ReadOptions, order: Mapping[str, Sequence[str]] | None) -> MultimodalData:
    if isinstance(data, MultimodalData):
        return _as_it_is(data, options)
    if isinstance(data, xr.Dataset):
        return from_dataset(data, "data", options, on_disk=options.in_memory == "no", order=order)
    if isinstance(data, Mapping):
        return _from_mapping(data, "data", options)
    if isinstance(data, np.ndarray | Tensor):
        return _from_mapping({"x": data}, "data", options)
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


def _from_mapping(arrays: Mapping[str, Any], name: str, options: ReadOptions) -> MultimodalData:
    if options.sample_dim is not None:
        raise ValueError(
            f"sample_dim: expected none for arrays, whose first dimension counts the samples, "
            f"got {options.sample_dim!r}"
        )
    variables = {key: Variable(values) for key, values in arrays.items() if key != _SAMPLE}
    names = np.array([str(entry) for entry in np.asarray(arrays[_SAMPLE])]) if _SAMPLE in arrays else None
    return assemble(name, variables, options, names)


def _from_file(path: Path, options: ReadOptions, for_fitting: bool) -> MultimodalData:
    content = read_file(path, options.in_memory)
    try:
        if isinstance(content, xr.Dataset):
            samples = from_dataset(content, path.stem, options, on_disk=is_large(content, options.in_memory))
            return _checked(samples, for_fitting)
        return _checked(_from_mapping(content, path.stem, options), for_fitting)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error
