"""An xarray dataset as samples: one modality per variable, and the factors among its labels."""

from __future__ import annotations

import dataclasses
from collections.abc import Hashable

import numpy as np
import xarray as xr

from inference.data.modalities import assemble, to_modality
from inference.data.multimodal import MultimodalData

__all__ = ["from_dataset"]


def from_dataset(data: xr.Dataset, name: str) -> MultimodalData:
    """Samples from a dataset.

    The dimension of the samples is `sample` if there is one, else the first of the first variable. A variable whose
    attribute `role` is `label` is a known factor: integers or strings, one per sample. Every other data variable is a
    modality, shown as its attribute `kind` says (`image`, `curve` or `vector`).

    Args:
        data: The dataset.
        name: Name of the data set.

    Raises:
        ValueError: A variable without the dimension of the samples, a role or a label of another type, or values that
            `to_modality` refuses.
    """
    sample = _sample_dimension(data, name)
    labels = {str(key): _labels(str(key), data[key], sample) for key in data.variables if _is_label(key, data[key])}
    modalities = {
        str(key): to_modality(str(key), _values(str(key), values, sample), values.attrs.get("kind"))
        for key, values in data.data_vars.items()
        if key not in labels
    }
    return dataclasses.replace(
        assemble(name, modalities),
        factors={key: codes for key, (_, codes) in labels.items()},
        factor_levels={key: tuple(str(level) for level in levels) for key, (levels, _) in labels.items()},
    )


def _sample_dimension(data: xr.Dataset, name: str) -> Hashable:
    if "sample" in data.sizes:
        return "sample"
    dimensions = [dimension for values in data.data_vars.values() for dimension in values.dims]
    if not dimensions:
        raise ValueError(f"{name}: expected a variable [sample, ...] per modality, got none with a dimension")
    return dimensions[0]


def _is_label(key: Hashable, values: xr.DataArray) -> bool:
    role = values.attrs.get("role")
    if role not in (None, "label"):
        raise ValueError(f"{key}: expected the attribute role 'label' for a known factor, else none, got {role!r}")
    return role is not None


def _values(name: str, values: xr.DataArray, sample: Hashable) -> np.ndarray:
    if sample not in values.dims:
        raise ValueError(f"{name}: expected the dimension {sample!r}, got {values.dims}; drop this variable")
    return values.transpose(sample, ...).to_numpy()


def _labels(name: str, values: xr.DataArray, sample: Hashable) -> tuple[np.ndarray, np.ndarray]:
    """Levels in order, and the code of each sample."""
    labels = values.to_numpy()
    is_text = labels.dtype.kind == "U" or all(isinstance(label, str) for label in labels.flat)
    if values.dims != (sample,) or not (is_text or labels.dtype.kind in "biu"):
        raise ValueError(
            f"{name}: expected a label per sample, integers or strings [{sample}], "
            f"got {labels.dtype} {list(values.dims)}; give samples without a label one of their own"
        )
    levels, codes = np.unique(labels.astype(str) if is_text else labels, return_inverse=True)
    return levels, codes.astype(np.int64)
