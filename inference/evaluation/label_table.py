"""Labels of one's own, from a table: what to score a fit against."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from inference.data.categories import check_levels
from inference.data.preparation.manifest import Column, read_manifest
from inference.evaluation.scores import Known

__all__ = ["read_labels"]

_SAMPLE = "sample"
_MOST_LEVELS = 200


def read_labels(path: Path, n_samples: int, sample_names: Sequence[str] | None = None) -> Known:
    """Read a table with a header and a column per factor; empty entries are not known.

    With a column `sample` the rows are matched by the names of the samples (by their numbers from 0 where they have no
    names), and samples without a row are not known. Without it, there must be a row for every sample, in order.

    Args:
        path: CSV, semicolon- or tab-separated.
        n_samples: Number of samples of the run.
        sample_names: Their names, or None.

    Raises:
        ValueError: The table cannot be read or does not fit the run.
    """
    columns = read_manifest(path).columns
    names = next((column.written for column in columns if column.name.lower() == _SAMPLE), None)
    factors = [column for column in columns if column.name.lower() != _SAMPLE]
    if not factors:
        raise ValueError(f"{path}: expected a column of labels, got {_SAMPLE} alone; add one")
    rows = _rows(path, len(factors[0].entries), names, n_samples, sample_names)
    coded = {column.name: _codes(path, column) for column in factors}
    return Known(
        {name: _placed(codes, rows, n_samples) for name, (codes, _) in coded.items()},
        {name: levels for name, (_, levels) in coded.items()},
    )


def _rows(
    path: Path, n_rows: int, names: Sequence[str] | None, n_samples: int, sample_names: Sequence[str] | None
) -> np.ndarray:
    """The sample that each row is about."""
    if names is None:
        if n_rows != n_samples:
            raise ValueError(
                f"{path}: expected {n_samples} rows as the run has samples, or a column {_SAMPLE}, got {n_rows} rows"
            )
        return np.arange(n_samples)
    known = list(map(str, range(n_samples))) if sample_names is None else list(map(str, sample_names))
    position = {name: index for index, name in enumerate(known)}
    unknown = [name for name in names if name not in position]
    if unknown:
        raise ValueError(f"{path}: expected samples of the run, such as {known[0]}, got {unknown[0]!r}; correct it")
    if len(set(names)) < len(names):
        twice = next(name for name in names if list(names).count(name) > 1)
        raise ValueError(f"{path}: expected one row per sample, got two of {twice!r}; remove one")
    return np.array([position[name] for name in names])


def _codes(path: Path, column: Column) -> tuple[np.ndarray, tuple[str, ...]]:
    levels = tuple(sorted({entry for entry in column.entries if entry}, key=_by_number))
    if not 2 <= len(levels) <= _MOST_LEVELS:
        raise ValueError(
            f"{path}: {column.header}: expected 2 to {_MOST_LEVELS} different labels, got {len(levels)}; "
            "leave the column out"
        )
    n_known = sum(map(bool, column.entries))
    check_levels(f"{path}: {column.header}", levels, n_known, "leave the column out")
    code = {level: index for index, level in enumerate(levels)}
    return np.array([code.get(entry, -1) for entry in column.entries]), levels


def _by_number(entry: str) -> tuple[float, str]:
    """Numbers in their order, before words in theirs."""
    try:
        return float(entry), entry
    except ValueError:
        return np.inf, entry


def _placed(codes: np.ndarray, rows: np.ndarray, n_samples: int) -> np.ndarray:
    placed = np.full(n_samples, -1)
    placed[rows] = codes
    return placed
