"""One pass over a modality on disk: what is present, and everything that is checked of values in memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from inference.data.fingerprint import hash_rows
from inference.data.modalities import check_finite, check_rounding, to_single
from inference.data.value_checks import check_elements, check_varies, find_outlier, outlier_error

if TYPE_CHECKING:
    from inference.data.stored import RowReader, Rows

__all__ = ["Scan", "scan"]

_MOST_SAMPLED = 1_000_000


class _Moments:
    """Number, mean and sum of squared deviations, element by element, updated block by block (Chan et al. 1979)."""

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.count, self.mean, self.squares = np.zeros(shape), np.zeros(shape), np.zeros(shape)

    def add(self, values: np.ndarray, measured: np.ndarray, axis: int | None) -> None:
        count = measured.sum(axis)
        mean = values.sum(axis, where=measured) / np.maximum(count, 1)
        squares = np.square(values - mean).sum(axis, where=measured)
        total = np.maximum(self.count + count, 1)
        shift = mean - self.mean
        self.squares = self.squares + squares + shift**2 * self.count * count / total
        self.mean = self.mean + shift * count / total
        self.count = self.count + count

    @property
    def spread(self) -> np.ndarray:
        return np.sqrt(self.squares / np.maximum(self.count, 1))


class Scan:
    """What a pass found.

    Attributes:
        present: Bool `[sample]`: was any element measured?
        has_gaps: Whether a present sample lacks an element.
        count: Number of measured elements.
        rows: Hash of each sample (`hash_rows`), `[sample]`.
    """

    def __init__(self, reader: RowReader) -> None:
        self._name, self._is_vector = reader.name, reader.kind == "vector"
        self._rounds = not np.can_cast(reader.dtype, np.float32)
        n_samples, shape = reader.shape[0], reader.shape[1:]
        self.present, self.has_gaps, self.count = np.zeros(n_samples, dtype=bool), False, 0
        self.rows = np.zeros(n_samples, dtype=np.uint64)
        self._infinite = np.zeros(n_samples, dtype=bool)
        self._lowest, self._highest = (np.inf, 0), (-np.inf, 0)
        self._lost = 0.0
        self._all, self._each = _Moments(()), _Moments(shape)
        self._sampled: list[np.ndarray] = []
        self._every = max(1, n_samples * int(np.prod(shape)) // _MOST_SAMPLED)

    def add(self, place: slice, rows: Rows) -> None:
        """Take a block in."""
        flat = rows.measured.reshape(len(rows.measured), -1)
        self.present[place] = flat.any(1)
        self.has_gaps |= bool((flat.any(1) & ~flat.all(1)).any())
        self.count += int(flat.sum())
        self._infinite[place] = (np.isinf(rows.values) & rows.measured).reshape(flat.shape).any(1)
        if self._infinite.any():
            return
        if flat.any():
            self._add_values(place, rows)
        else:
            self.rows[place] = hash_rows(np.zeros(rows.values.shape, dtype=np.float32), rows.measured)

    def _add_values(self, place: slice, rows: Rows) -> None:
        filled, single = to_single(self._name, rows.values, rows.measured)
        self.rows[place] = hash_rows(single, rows.measured)
        exact = filled.astype(np.float64)
        self._all.add(exact, rows.measured, None)
        if self._is_vector:
            self._each.add(exact, rows.measured, 0)
        if self._rounds:
            self._lost = max(self._lost, float(np.abs(single - exact).max()))
        self._sampled.append(single.reshape(-1)[:: self._every][rows.measured.reshape(-1)[:: self._every]])
        self._lowest = min(self._lowest, _lowest(place, exact, rows.measured))
        highest = _lowest(place, -exact, rows.measured)
        self._highest = max(self._highest, (-highest[0], highest[1]))

    @property
    def some(self) -> np.ndarray:
        """Measured values, about a million of them at most, evenly from all."""
        return np.concatenate([np.empty(0, dtype=np.float32), *self._sampled])

    def check(self, for_fitting: bool = True) -> None:
        """Refuse what would be refused in memory.

        Args:
            for_fitting: Refuse also values that nothing can be learned from.

        Raises:
            ValueError: Infinite values, the same everywhere, rounded away in float32, or on scales too far apart.
        """
        check_finite(self._name, self._infinite)
        if self.count and self._lowest[0] < self._highest[0]:
            check_rounding(self._name, float(self._all.spread), self._lost, float(self._all.mean))
        if self.count and for_fitting:
            self._check_scale()

    def _check_scale(self) -> None:
        (lowest, low_at), (highest, high_at) = self._lowest, self._highest
        check_varies(self._name, lowest, highest)
        outlier = find_outlier(self.some, lowest, highest)
        if outlier is not None:
            raise outlier_error(self._name, outlier, high_at if outlier[0] == highest else low_at)
        if self._is_vector:
            check_elements(self._name, self._each.spread)


def _lowest(place: slice, values: np.ndarray, measured: np.ndarray) -> tuple[float, int]:
    """The smallest measured value of a block, and its sample."""
    filled = np.where(measured, values, np.inf).reshape(len(values), -1).min(1)
    return float(filled.min()), place.start + int(filled.argmin())


def scan(reader: RowReader) -> Scan:
    """Read all samples once.

    Raises:
        ValueError: A file that is damaged, a mask with other values than 0 and 1, or values beyond float32.
    """
    found = Scan(reader)
    for place, rows in reader.blocks():
        found.add(place, rows)
    return found
