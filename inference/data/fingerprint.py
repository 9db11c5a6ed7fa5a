"""Fingerprint of the samples of a fit: by which others are told from them, and how they differ."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from inference.data.multimodal import Axis, MultimodalData
from inference.data.stored import StoredArray, row_blocks

__all__ = ["DataFingerprint", "hash_rows"]

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
