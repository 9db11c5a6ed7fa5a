"""Labels, groups and covariates: one integer or text per sample, as codes of sorted levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["Categories", "joint_groups", "to_categories"]


class Categories(NamedTuple):
    """The levels as text, in order, and the code of each sample `[sample]`."""

    levels: tuple[str, ...]
    codes: np.ndarray


def to_categories(name: str, values: Any) -> Categories:
    """Codes of the sorted levels.

    Args:
        name: Name for messages.
        values: Integers (also as floats, as files with a missing value mark have them), booleans or texts `[sample]`.

    Raises:
        ValueError: Other shapes or types, or samples that have none: NaN, None, or an empty text.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise _unusable(name, f"{array.dtype} of shape {array.shape}")
    levels, codes = np.unique(_comparable(name, array), return_inverse=True)
    return Categories(tuple(str(level) for level in levels), codes.astype(np.int64))


def _comparable(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind in "biu":
        return array
    if array.dtype.kind == "f":
        _check_complete(name, np.isnan(array))
        if (array != np.round(array)).any() or np.isinf(array).any():
            raise _unusable(name, f"{array.dtype}")
        return array.astype(np.int64)
    return _texts(name, array)


def _texts(name: str, array: np.ndarray) -> np.ndarray:
    if array.dtype.kind not in "UTSO":
        raise _unusable(name, f"{array.dtype}")
    labels = [label.decode() if isinstance(label, bytes) else label for label in array.astype(object)]
    _check_complete(name, np.array([label is None or label == "" or label != label for label in labels], dtype=bool))
    if not all(isinstance(label, str) for label in labels):
        odd = next(label for label in labels if not isinstance(label, str))
        raise _unusable(name, f"{type(odd).__name__} among them")
    return np.array(labels, dtype=str)


def _check_complete(name: str, missing: np.ndarray) -> None:
    if missing.any():
        raise ValueError(
            f"{name}: expected a label for every sample, got none for {missing.sum()} of {len(missing)}, first sample "
            f"{missing.argmax()}; give these samples a label of their own, or leave the variable out"
        )


def _unusable(name: str, got: str) -> ValueError:
    return ValueError(
        f"{name}: expected a label per sample, integers or texts [sample], got {got}; number its levels, or "
        "leave it out"
    )


def joint_groups(codes: Sequence[np.ndarray]) -> np.ndarray | None:
    """Samples that share a group of any grouping, directly or by way of others, are in one group; None without any.

    Args:
        codes: Codes `[sample]` of each grouping.
    """
    if not codes:
        return None
    sample = np.tile(np.arange(len(codes[0])), len(codes))
    first = np.cumsum([len(codes[0]), *(int(grouping.max(initial=-1)) + 1 for grouping in codes)])
    group = np.concatenate([grouping + start for grouping, start in zip(codes, first[:-1], strict=True)])
    n = int(first[-1])
    links = coo_array((np.ones(len(sample)), (sample, group)), shape=(n, n))
    component: np.ndarray = connected_components(links, directed=False)[1][: len(codes[0])]
    return np.unique(component, return_inverse=True)[1].astype(np.int64)
