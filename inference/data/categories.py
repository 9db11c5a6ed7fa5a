"""Labels, groups and covariates: one integer or text per sample, as codes of sorted levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["UNKNOWN", "Categories", "joint_groups", "to_categories"]


UNKNOWN = -1
"""Code of a sample without a label."""


class Categories(NamedTuple):
    """The levels as text, in order, and the code of each sample `[sample]`, `UNKNOWN` where it has none."""

    levels: tuple[str, ...]
    codes: np.ndarray


def to_categories(name: str, values: Any, may_lack: bool = False, kind: str = "label") -> Categories:
    """Codes of the sorted levels.

    Args:
        name: Name for messages.
        values: Integers (also as floats, as files with a missing value mark have them), booleans or texts `[sample]`.
        may_lack: Whether some samples may have none: NaN, None, or an empty text.
        kind: What the values are, for messages.

    Raises:
        ValueError: Other shapes or types, samples that have none where all must, or none that has one.
    """
    array = np.asarray(values)
    if array.ndim != 1:
        raise _unusable(name, f"{array.dtype} of shape {array.shape}")
    comparable, known = _comparable(name, array)
    if not may_lack or (len(known) and not known.any()):
        _check_complete(name, ~known, kind)
    levels, found = np.unique(comparable[known], return_inverse=True)
    codes = np.full(len(array), UNKNOWN, dtype=np.int64)
    codes[known] = found
    return Categories(tuple(str(level) for level in levels), codes)


def _comparable(name: str, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values of one type that sorts, and which of them there are, bool `[sample]`."""
    if array.dtype.kind in "biu":
        return array, np.ones(len(array), dtype=bool)
    if array.dtype.kind == "f":
        known = ~np.isnan(array)
        if (array[known] != np.round(array[known])).any() or np.isinf(array).any():
            raise _unusable(name, f"{array.dtype}")
        return np.where(known, array, 0).astype(np.int64), known
    return _texts(name, array)


def _texts(name: str, array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if array.dtype.kind not in "UTSO":
        raise _unusable(name, f"{array.dtype}")
    labels = [label.decode() if isinstance(label, bytes) else label for label in array.astype(object)]
    known = np.array([not (label is None or label == "" or label != label) for label in labels], dtype=bool)
    texts = [label if there else "" for label, there in zip(labels, known, strict=True)]
    odd = next((text for text in texts if not isinstance(text, str)), None)
    if odd is not None:
        raise _unusable(name, f"{type(odd).__name__} among them")
    return np.array(texts, dtype=str), known


def _check_complete(name: str, missing: np.ndarray, kind: str) -> None:
    if missing.any():
        raise ValueError(
            f"{name}: expected a {kind} for every sample, got none for {missing.sum()} of {len(missing)}, first sample "
            f"{missing.argmax()}; give these samples a {kind} of their own, or leave the variable out"
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
