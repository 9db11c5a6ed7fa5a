"""Variables that stay on disk: rows are read when they are asked for."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from causalpima.inference.data.checks import check_elements, check_varies, find_outlier, outlier_error
from causalpima.inference.data.modalities import (
    Modality,
    arrange,
    check_finite,
    modality_kind,
    needs_double,
    not_real,
    to_single,
)
from causalpima.inference.data.multimodal import Axis, ModalityKind, MultimodalData, check_mask_shape, measured_elements
from causalpima.models.batch import Standardisation

__all__ = [
    "DataFingerprint",
    "RowReader",
    "Rows",
    "Scan",
    "StoredArray",
    "StoredRows",
    "StoredVariable",
    "hash_rows",
    "loaded_rows",
    "row_blocks",
    "scan",
    "standardised",
    "stored_observed",
    "stored_values",
    "to_stored_modality",
    "windows",
]


_BLOCK_BYTES = 2**23
_DENSE = 2  # one row of a slice in so many is wanted


def row_blocks(n_samples: int, bytes_per_row: int) -> Iterator[slice]:
    """Slices over all samples, of some MiB each."""
    size = max(1, _BLOCK_BYTES // max(bytes_per_row, 1))
    for start in range(0, n_samples, size):
        yield slice(start, min(start + size, n_samples))


class StoredVariable:
    """A variable of a dataset that is not loaded, as an array with the samples first.

    Args:
        values: The variable, backed by its file.
        order: Its dimensions in the order wanted, that of the samples first.
    """

    def __init__(self, values: xr.DataArray, order: Sequence[Hashable]) -> None:
        self._variable, self._order = values.variable, tuple(order)
        self.name = str(values.name)
        self.dtype = values.dtype
        self.shape = tuple(values.sizes[dimension] for dimension in self._order)
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape))

    def __getitem__(self, rows: slice | np.ndarray) -> np.ndarray:
        """Rows of a slice, or at increasing positions.

        Raises:
            ValueError: The file is damaged there.
        """
        try:
            return self._variable.isel({self._order[0]: rows}).transpose(*self._order).to_numpy()
        except MemoryError:
            raise
        except Exception as error:  # libraries raise what they like at damaged files
            reason = (str(error) or type(error).__name__).splitlines()[0]
            raise ValueError(
                f"{self.name}: expected rows that can be read, got an error ({reason}); write the file again"
            ) from error

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All of it."""
        return np.asarray(self[slice(None)], dtype=dtype)


class Rows(NamedTuple):
    """Some samples of a modality: values as the file has them, and which of them were measured; channels last."""

    values: np.ndarray
    measured: np.ndarray


class RowReader:
    """Samples of a modality, read from disk; those asked for last are kept.

    Args:
        name: Name of the modality, for messages.
        values: Its variable.
        kind: How it is shown.
        mask: Its mask, `[sample]` or of the shape of the variable, or None.
    """

    def __init__(
        self, name: str, values: StoredVariable, kind: ModalityKind, mask: StoredVariable | np.ndarray | None = None
    ) -> None:
        self.name, self.kind = name, kind
        self._values, self._mask = values, mask
        self._last: tuple[bytes, Rows] | None = None
        self.shape = (values.shape[0], *arrange(np.empty((1, *values.shape[1:]), dtype=bool), kind).shape[1:])
        self.dtype = values.dtype
        if mask is not None:
            check_mask_shape(name, mask.shape, values.shape)

    def read(self, rows: slice | np.ndarray) -> Rows:
        """Rows of a slice, or at increasing positions.

        Raises:
            ValueError: A mask with other values than 0 and 1, or a damaged file.
        """
        key = repr(rows).encode() if isinstance(rows, slice) else rows.tobytes()
        if self._last is None or self._last[0] != key:
            self._last = (key, self._read(rows))
        return self._last[1]

    def _read(self, rows: slice | np.ndarray) -> Rows:
        values = self._values[rows]
        measured = measured_elements(self.name, values, None if self._mask is None else self._mask[rows])
        return Rows(arrange(values, self.kind), arrange(measured, self.kind))

    def blocks(self) -> Iterator[tuple[slice, Rows]]:
        """All samples in order, some MiB at a time."""
        for rows in row_blocks(self.shape[0], int(np.prod(self.shape[1:])) * self.dtype.itemsize):
            yield rows, self._read(rows)


class StoredArray:
    """One entry of `MultimodalData.modalities` or `.observed` that is on disk, indexed by samples as an array is.

    An index is a slice, a position, positions in any order, or bool `[sample]`; what comes back is a NumPy array in
    memory: values with zeros where nothing was measured, in float32 or, where that loses what they vary by, in float64;
    or bool.

    Args:
        reader: Reads the samples.
        of_mask: Give what was measured instead of the values.
        scan: What one pass over it found.

    Attributes:
        scan: The same.
        count: Number of measured elements in all.
        shape: `[sample, *shape]`; also `ndim`, `size`, `dtype`, `nbytes`, of what it would be in memory.
    """

    def __init__(self, reader: RowReader, of_mask: bool, scan: Scan) -> None:
        self._reader, self._of_mask, self.scan, self.count = reader, of_mask, scan, scan.count
        self.dtype = np.dtype(bool) if of_mask else scan.dtype
        self.shape = reader.shape
        self.ndim = len(self.shape)
        self.size = int(np.prod(self.shape))
        self.nbytes = self.size * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> np.ndarray:
        """Samples by a slice, a position, positions, or a mask of them; a mask of single elements loads everything."""
        if isinstance(index, slice) and index.step in (None, 1):
            return self._converted(self._reader.read(slice(*index.indices(len(self)))))
        chosen = index if isinstance(index, slice) else np.asarray(index)
        if not isinstance(chosen, slice) and chosen.ndim > 1:
            return np.asarray(self)[chosen]
        positions = np.arange(len(self))[chosen]
        if positions.ndim == 0:
            return self._converted(self._reader.read(slice(int(positions), int(positions) + 1)))[0]
        rows, inverse = np.unique(positions, return_inverse=True)
        found = self._increasing(rows)
        return found if np.array_equal(positions, rows) else found[inverse]

    def _increasing(self, rows: np.ndarray) -> np.ndarray:
        """At increasing positions; where they are dense, out of a slice, which is several times as fast."""
        if not len(rows) or rows[-1] - rows[0] >= _DENSE * len(rows):
            return self._converted(self._reader.read(rows))
        found = self._converted(self._reader.read(slice(int(rows[0]), int(rows[-1]) + 1)))
        return found if len(found) == len(rows) else found[rows - rows[0]]

    def _converted(self, rows: Rows) -> np.ndarray:
        if self._of_mask:
            return rows.measured.copy()
        return np.ascontiguousarray(np.where(rows.measured, rows.values, 0), dtype=self.dtype)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        """All samples, in memory."""
        return np.asarray(self[:], dtype=dtype)

    def astype(self, dtype: Any) -> np.ndarray:
        """All samples, in memory, of another type."""
        return np.asarray(self).astype(dtype)

    def blocks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """All samples in order, some MiB at a time."""
        for rows in row_blocks(len(self), self.nbytes // max(len(self), 1)):
            yield rows, self[rows]


# Fingerprint of the samples of a fit: by which others are told from them, and how they differ.


_MIX = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


@dataclass(frozen=True, eq=False)
class DataFingerprint:
    """What is kept of the samples of a fit: 64 bits per sample, and a hash for everything that is said of all.

    Attributes:
        rows: Hash of the values of each sample, and of which were measured, `[sample]`.
        names: Hash of the name of each sample, `[sample]`, or None where they have none.
        modalities: Per modality, in order, hash of the values of all samples in their order.
        described: Per modality, what it looks like: shape, kind, unit, positions, as text for each.
        labels: Per factor, hash of its levels and codes.
        others: The same for covariates, groups and environments.
    """

    rows: np.ndarray
    names: np.ndarray | None
    modalities: Mapping[str, str]
    described: Mapping[str, Mapping[str, str]]
    labels: Mapping[str, str] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, data: MultimodalData) -> DataFingerprint:
        """That of samples; of values on disk, what the pass over them has found when they were opened."""
        parts = {name: _rows_of(data, name) for name in data.modalities}
        rows = np.zeros(data.n_samples, dtype=np.uint64)
        for name, part in parts.items():
            rows += _mixed(part ^ np.uint64(int(_digest(name.encode()), 16)))
        return cls(
            rows,
            None if data.sample_names is None else _hash_texts(data.sample_names),
            {name: _digest(part.tobytes()) for name, part in parts.items()},
            {name: _described(data, name) for name in data.modalities},
            {name: _coded(data.factor_levels[name], codes) for name, codes in data.factors.items()},
            dict(_others(data)),
        )

    def to_plain(self) -> dict[str, Any]:
        """Plain values and tensors, as a checkpoint holds them."""
        names = None if self.names is None else torch.from_numpy(self.names.view(np.int64).copy())
        return {
            "rows": torch.from_numpy(self.rows.view(np.int64).copy()),
            "names": names,
            "modalities": dict(self.modalities),
            "described": {name: dict(said) for name, said in self.described.items()},
            "labels": dict(self.labels),
            "others": dict(self.others),
        }

    @classmethod
    def from_plain(cls, values: Mapping[str, Any]) -> DataFingerprint:
        """The inverse of `to_plain`."""
        hashes = {name: None if values[name] is None else values[name].numpy().view(np.uint64) for name in _HASHES}
        return cls(**{**values, **hashes})

    def difference(self, data: MultimodalData, with_labels: bool = True) -> str | None:
        """In what samples differ from these, in a few words for `got ...`; None: in nothing.

        Args:
            data: The other samples.
            with_labels: Whether other labels are a difference.
        """
        return next(_differences(self, DataFingerprint.of(data), data, with_labels), None)


_HASHES = ("rows", "names")


def hash_rows(values: np.ndarray, measured: np.ndarray) -> np.ndarray:
    """Hash of each sample, uint64 `[sample]`: `Σ_i k_i w_i mod 2^64` of its words with odd numbers k; no cryptography.

    Args:
        values: Float32 or float64 `[sample, *shape]`, zero where nothing was measured.
        measured: Bool of the same shape.
    """
    flat = np.ascontiguousarray(values).reshape(len(values), -1)
    words = flat.view(np.dtype(f"u{flat.dtype.itemsize}")).astype(np.uint64)
    multipliers = _mixed(np.arange(1, 2 * flat.shape[1] + 1, dtype=np.uint64)) | np.uint64(1)
    words ^= words >> _HALF
    found: np.ndarray = words @ multipliers[: flat.shape[1]]
    gaps = ~measured.reshape(flat.shape)
    some = gaps.any(1)
    if some.any():
        found[some] += gaps[some].astype(np.uint64) @ multipliers[flat.shape[1] :]
    return found


def _mixed(numbers: np.ndarray) -> np.ndarray:
    """The finaliser of splitmix64: every bit of the result depends on every bit of the number."""
    mixed = numbers * _MIX
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=8).hexdigest()


def _hash_texts(texts: Sequence[str] | np.ndarray) -> np.ndarray:
    return np.array([int(_digest(str(text).encode()), 16) for text in texts], dtype=np.uint64)


def _rows_of(data: MultimodalData, name: str) -> np.ndarray:
    values = data.modalities[name]
    if isinstance(values, StoredArray):
        return values.scan.rows
    found = np.empty(len(values), dtype=np.uint64)
    for rows in row_blocks(len(values), values.nbytes // max(len(values), 1)):
        found[rows] = hash_rows(values[rows], data.measured_rows(name, rows))
    return found


def _described(data: MultimodalData, name: str) -> dict[str, str]:
    axis = data.axes.get(name)
    return {
        "shape": " x ".join(map(str, data.modalities[name].shape[1:])),
        "kind": data.kinds[name],
        "unit": data.units.get(name, ""),
        "positions": "" if axis is None else _axis(axis),
    }


def _axis(axis: Axis) -> str:
    positions = np.ascontiguousarray(axis.values, dtype=np.float64)
    named = f"{axis.name} [{axis.unit}]" if axis.unit else axis.name
    return f"{named} from {positions[0]:g} to {positions[-1]:g} ({_digest(positions.tobytes())})"


def _coded(levels: Sequence[str], codes: np.ndarray) -> str:
    return _digest("\n".join(levels).encode() + b"\n\n" + np.ascontiguousarray(codes, dtype=np.int64).tobytes())


def _others(data: MultimodalData) -> Iterator[tuple[str, str]]:
    for name, codes in data.covariates.items():
        yield f"covariate {name!r}", _coded(data.covariate_levels[name], codes)
    if data.groups is not None:
        yield "groups", _coded((), data.groups)
    if data.environment is not None:
        yield "environments", _coded(data.environment_names, data.environment)


def _differences(
    known: DataFingerprint, found: DataFingerprint, data: MultimodalData, with_labels: bool
) -> Iterator[str]:
    yield from _of_modalities(known, found)
    yield from _of_samples(known, found, data)
    for what in {**known.others, **found.others}:
        if known.others.get(what) != found.others.get(what):
            yield _changed(what, what in known.others, what in found.others)
    for name in {**known.labels, **found.labels} if with_labels else ():
        if known.labels.get(name) != found.labels.get(name):
            yield _changed(f"labels {name!r}", name in known.labels, name in found.labels)


def _changed(what: str, was_there: bool, is_there: bool) -> str:
    if was_there and is_there:
        return f"other {what}"
    return f"none of its {what}" if was_there else f"also {what}, of which it knows nothing"


def _of_modalities(known: DataFingerprint, found: DataFingerprint) -> Iterator[str]:
    before, now = list(known.modalities), list(found.modalities)
    if before != now:
        order = " in another order" if sorted(before) == sorted(now) else ""
        yield f"the modalities {', '.join(now)}{order} (in the run {', '.join(before)})"
        return
    for name in before:
        for part in {**known.described[name], **found.described[name]}:
            was, is_now = known.described[name].get(part, ""), found.described[name].get(part, "")
            if was != is_now:
                yield f"{name!r} with {part} {is_now or 'none'} (in the run {was or 'none'})"


def _of_samples(known: DataFingerprint, found: DataFingerprint, data: MultimodalData) -> Iterator[str]:
    def called(sample: int) -> str:
        return str(sample) if data.sample_names is None else f"{sample} ({data.sample_names[sample]})"

    if len(known.rows) != len(found.rows):
        yield f"{len(found.rows)} samples (in the run {len(known.rows)})"
        return
    if known.names is not None and found.names is not None:
        changed = known.names != found.names
        new = ~np.isin(found.names, known.names)
        if new.any():
            yield f"{new.sum()} samples that are not in the run, the first is {called(int(new.argmax()))}"
        elif changed.any():
            yield f"its samples in another order, the first that moved is {called(int(changed.argmax()))}"
    changed = known.rows != found.rows
    if not changed.any():
        return
    if np.array_equal(np.sort(known.rows), np.sort(found.rows)):
        yield f"its samples in another order, the first that moved is {called(int(changed.argmax()))}"
        return
    where = [repr(name) for name, digest in known.modalities.items() if found.modalities[name] != digest]
    yield (
        f"other values of {', '.join(where)} in {changed.sum()} of {len(changed)} samples, first in sample "
        f"{called(int(changed.argmax()))}"
    )


# One pass over a modality on disk: what is present, and everything that is checked of values in memory.


_MOST_SAMPLED = 1_000_000
_SINGLE, _DOUBLE = np.dtype(np.float32), np.dtype(np.float64)


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
    """

    def __init__(self, reader: RowReader, exact: bool = False) -> None:
        self._name, self._is_vector, self._exact = reader.name, reader.kind == "vector", exact
        self._rounds = not np.can_cast(reader.dtype, np.float32)
        n_samples, shape = reader.shape[0], reader.shape[1:]
        self.present, self.has_gaps, self.count = np.zeros(n_samples, dtype=bool), False, 0
        # In which precision they are held, is known at the end.
        self._rows = {dtype: np.zeros(n_samples, dtype=np.uint64) for dtype in (_SINGLE, _DOUBLE)}
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
            self._hash(place, np.zeros(rows.values.shape), rows.measured)

    def _hash(self, place: slice, exact: np.ndarray, measured: np.ndarray) -> None:
        self._rows[_SINGLE][place] = hash_rows(exact.astype(np.float32), measured)
        if self._rounds:
            self._rows[_DOUBLE][place] = hash_rows(exact, measured)

    def _add_values(self, place: slice, rows: Rows) -> None:
        filled, single = to_single(self._name, rows.values, rows.measured)
        exact = np.ascontiguousarray(filled, dtype=np.float64)
        self._hash(place, exact, rows.measured)
        self._all.add(exact, rows.measured, None)
        if self._is_vector:
            self._each.add(exact, rows.measured, 0)
        if self._rounds:
            self._lost = max(self._lost, float(np.abs(single - exact).max()))
        self._sampled.append(
            (exact if self._rounds else single).reshape(-1)[:: self._every][rows.measured.reshape(-1)[:: self._every]]
        )
        self._lowest = min(self._lowest, _lowest(place, exact, rows.measured))
        highest = _lowest(place, -exact, rows.measured)
        self._highest = max(self._highest, (-highest[0], highest[1]))

    @cached_property
    def dtype(self) -> np.dtype:
        """In which values are held: as in memory.

        Raises:
            ValueError: They vary by less than the smallest numbers of float32.
        """
        if not self._rounds or not self.count or self._infinite.any():
            return _SINGLE
        spread, size = float(self._all.spread), max(abs(self._lowest[0]), abs(self._highest[0]))
        return _DOUBLE if self._exact or needs_double(self._name, spread, self._lost, size) else _SINGLE

    @property
    def rows(self) -> np.ndarray:
        """Hash of each sample (`hash_rows`), `[sample]`."""
        return self._rows[self.dtype]

    @property
    def some(self) -> np.ndarray:
        """Measured values, about a million of them at most, evenly from all."""
        return np.concatenate([np.empty(0, dtype=self.dtype), *self._sampled]).astype(self.dtype, copy=False)

    def check(self, for_fitting: bool = True) -> None:
        """Refuse what would be refused in memory.

        Args:
            for_fitting: Refuse also values that nothing can be learned from.

        Raises:
            ValueError: Infinite values, the same everywhere, or on scales too far apart.
        """
        check_finite(self._name, self._infinite)
        if self.count and for_fitting:
            self._check_scale()

    def _check_scale(self) -> None:
        (lowest, low_at), (highest, high_at) = self._lowest, self._highest
        check_varies(self._name, float(self.dtype.type(lowest)), float(self.dtype.type(highest)))
        outlier = find_outlier(self.some, lowest, highest)
        if outlier is not None:
            raise outlier_error(self._name, outlier, high_at if outlier[0] == highest else low_at)
        if self._is_vector:
            check_elements(self._name, self._each.spread)


def _lowest(place: slice, values: np.ndarray, measured: np.ndarray) -> tuple[float, int]:
    """The smallest measured value of a block, and its sample."""
    filled = np.where(measured, values, np.inf).reshape(len(values), -1).min(1)
    return float(filled.min()), place.start + int(filled.argmin())


def scan(reader: RowReader, exact: bool = False) -> Scan:
    """Read all samples once; `exact` as in `to_modality`.

    Raises:
        ValueError: A file that is damaged, a mask with other values than 0 and 1, or values beyond float32.
    """
    found = Scan(reader, exact)
    for place, rows in reader.blocks():
        found.add(place, rows)
    return found


# Columns of a data set that stay on disk: rows are read, standardised and moved to the device when asked for.


@dataclass(frozen=True, eq=False)
class StoredRows:
    """Rows of a column on disk, indexed by positions as a tensor is.

    Attributes:
        fetch: From positions in the file to a tensor `[len(positions), *shape]`.
        rows: Position in the file of each row of this column.
        shape: `[rows, *shape]`.
        device: Where the tensors go.
        bytes_per_row: Of the tensors.
    """

    fetch: Callable[[np.ndarray], Tensor]
    rows: np.ndarray
    shape: torch.Size
    device: torch.device
    bytes_per_row: int

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: Tensor) -> Tensor:
        """The rows at these positions."""
        return self.fetch(self.rows[np.atleast_1d(index.cpu().numpy())]).to(self.device)

    def at(self, rows: np.ndarray) -> StoredRows:
        """The same column at these positions in the file; nothing is read."""
        shape = torch.Size((len(rows), *self.shape[1:]))
        return StoredRows(self.fetch, rows, shape, self.device, self.bytes_per_row)


def loaded_rows(columns: Sequence[StoredRows], index: np.ndarray) -> list[Tensor]:
    """Rows of several columns, in memory: block by block, so that what reading takes besides them stays small.

    Args:
        columns: Columns of the same rows.
        index: Increasing positions.
    """
    size = max(1, _BLOCK_BYTES // sum(column.bytes_per_row for column in columns))
    filled: list[Tensor] = []
    for start in range(0, len(index), size):
        # Block by block for all columns, not column by column: values and masks of a block are read once.
        parts = [column.fetch(column.rows[index[start : start + size]]) for column in columns]
        filled = filled or [part.new_empty(len(index), *part.shape[1:]) for part in parts]
        for whole, part in zip(filled, parts, strict=True):
            whole[start : start + size] = part
    return [whole.to(column.device) for whole, column in zip(filled, columns, strict=True)]


def stored_values(
    data: MultimodalData, name: str, standardisation: Standardisation, rows: np.ndarray, device: torch.device
) -> StoredRows:
    """The values of a modality on disk, standardised; zero where nothing was measured."""
    values = data.modalities[name]

    def fetch(rows: np.ndarray) -> Tensor:
        return standardised(values[rows], data.measured_rows(name, rows), standardisation)

    return StoredRows(fetch, rows, torch.Size(values.shape), device, values.nbytes // len(values))


def stored_observed(mask: StoredArray, rows: np.ndarray, device: torch.device) -> StoredRows:
    """Which elements were measured, on disk."""
    per_row = mask.nbytes // len(mask)
    return StoredRows(lambda rows: torch.from_numpy(mask[rows]), rows, torch.Size(mask.shape), device, per_row)


def standardised(values: np.ndarray, measured: np.ndarray, standardisation: Standardisation) -> Tensor:
    """In float32, computed in float64; zero where nothing was measured."""
    filled = np.where(measured, values.astype(np.float64), 1.0)
    return torch.from_numpy(np.where(measured, standardisation.apply(filled), 0.0).astype(np.float32))


# A variable on disk as a modality.


def to_stored_modality(
    name: str, values: StoredVariable, kind: str | None = None, mask: Any = None, exact: bool = False
) -> Modality:
    """What `to_modality` makes of an array, without loading it: the variable is read through once.

    Args:
        name: Name for messages.
        values: The variable.
        kind: Default by shape.
        mask: What was measured, on disk or an array.
        exact: As in `to_modality`.

    Raises:
        ValueError: Values, a shape or a mask that `to_modality` or `check_values` would refuse.
    """
    shown = modality_kind(name, kind, values.shape)
    if values.dtype.kind not in "biuf":
        raise not_real(name, values.dtype)
    reader = RowReader(name, values, shown, mask)
    found = scan(reader, exact)
    observed = StoredArray(reader, True, found) if found.has_gaps else None
    # They are indexed as arrays are, and that is all that data are used for.
    stored = cast(np.ndarray, StoredArray(reader, False, found))
    return Modality(stored, found.present, shown, cast(np.ndarray | None, observed))


# The order in which samples on disk are read: neighbouring samples together, from places drawn at random.


_NEIGHBOURS = 64


def windows(n_samples: int, batch_size: int, most: int) -> Iterator[Tensor]:
    """Positions of the samples in random order, by torch's global generator, a window at a time; each sample once.

    If all fit into one window it is the order of samples in memory, `torch.randperm`. Else blocks of 64 neighbours are
    drawn in random order, and the samples of each window are shuffled: batches mix samples of many places, and reading
    touches a fraction of the places that single random rows would.

    Args:
        n_samples: Number of samples, n.
        batch_size: A window is a whole number of batches.
        most: About so many samples per window, at least one batch.
    """
    size = max(most // batch_size, 1) * batch_size
    if n_samples <= size:
        yield torch.randperm(n_samples)
        return
    first = torch.randperm(-(-n_samples // _NEIGHBOURS)) * _NEIGHBOURS
    drawn = (first.unsqueeze(1) + torch.arange(_NEIGHBOURS)).reshape(-1)
    for window in drawn[drawn < n_samples].split(size):
        yield window[torch.randperm(len(window))]
