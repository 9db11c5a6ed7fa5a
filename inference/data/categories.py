"""Labels, groups and covariates: one integer or text per sample, as codes of sorted levels."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = [
    "ROWS_PER_CELL",
    "UNKNOWN",
    "Categories",
    "check_levels",
    "gap_like_levels",
    "is_number",
    "joint_groups",
    "to_categories",
]


UNKNOWN = -1
"""Code of a sample without a label."""

ROWS_PER_CELL = 5
"""With fewer rows for each entry of a table, on average, the table says nothing: Cochran's rule for expected counts."""

_FEW_NUMBERS, _FEW_NAMES = 10, 5
_GAP_WORDS = frozenset(
    {"-", "--", "---", ".", "?", "na", "n/a", "n.a.", "nan", "nd", "n/d", "n.d.", "null", "#n/a", "missing", "unknown"}
    | {"<lod", "<loq", "< lod", "< loq", "not measured", "not determined"}
)
_GAP_NUMBERS = (9.0, 99.0, 999.0, 9999.0, 99999.0)
_CLEARLY_LARGER = 9


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
        ValueError: Other shapes or types, samples that have none where all must, none that has one, or levels that
            `check_levels` refuses, unless these are groups.
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
    texts = tuple(str(level) for level in levels)
    if kind != "group":
        remedy = f"leave it out, or make it a group (--groups {name}) where it tells specimens apart"
        # Covariates and environments may be numbered specimens: no table of them is estimated.
        check_levels(name, texts, int(known.sum()), remedy, ROWS_PER_CELL if kind == "label" else 2)
    return Categories(texts, codes)


def check_levels(
    name: str, levels: Sequence[str], n_rows: int, remedy: str, rows_per_number: int = ROWS_PER_CELL
) -> None:
    """Refuse numbers and names of samples that are to be categories.

    Args:
        name: Of what is to be categories.
        levels: Its different entries.
        n_rows: Number of rows, or samples, that have one.
        remedy: What else to do than to put numbers into classes, for the message.
        rows_per_number: Levels that are all numbers are categories where they have so many rows each.

    Raises:
        ValueError: More than 5 levels that have fewer than 2 rows each on average, or more than 10 that are all numbers
            and have fewer than those.
    """
    are_numbers = all(map(is_number, levels))
    if are_numbers and len(levels) > _FEW_NUMBERS and rows_per_number * len(levels) > n_rows:
        raise ValueError(
            f"{name}: expected categories, got {len(levels)} different numbers in {n_rows} rows; put them into classes "
            f"(such as pandas.qcut(values, 3, labels=['low', 'middle', 'high'])), or {remedy}"
        )
    if len(levels) > _FEW_NAMES and 2 * len(levels) > n_rows:
        raise ValueError(
            f"{name}: expected categories, got {len(levels)} different entries in {n_rows} rows, as names of samples "
            f"have; {remedy}"
        )


def gap_like_levels(levels: Sequence[str]) -> list[str]:
    """Levels that look like an entry that is missing: `-` (unless there is a `+`), `NA`, `n.d.`, `<LOD`, `-999`."""
    numbers = {float(level) for level in levels if is_number(level)}
    others = [abs(number) for number in numbers if abs(number) not in _GAP_NUMBERS]
    codes = {n for n in numbers if others and abs(n) in _GAP_NUMBERS and abs(n) > _CLEARLY_LARGER * max(others)}
    if min(numbers, default=0.0) < 0 and all(-number in _GAP_NUMBERS for number in numbers if number < 0):
        codes |= {number for number in numbers if number < 0}
    words = _GAP_WORDS - {"-", "--", "---"} if any(level.startswith("+") for level in levels) else _GAP_WORDS
    is_gap = {x: x.strip().casefold() in words and x.strip() != "Na" for x in levels}  # sodium
    return [x for x in levels if is_gap[x] or (is_number(x) and float(x) in codes)]


def is_number(entry: str) -> bool:
    """Whether a text is a finite number."""
    try:
        return bool(np.isfinite(float(entry)))
    except ValueError:
        return False


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
