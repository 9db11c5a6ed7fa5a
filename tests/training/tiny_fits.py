"""Samples and settings that train in a fraction of a second, and a table of settings that covers every pair."""

from __future__ import annotations

import dataclasses
import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.config import DecoderConfig, EncoderConfig, FitConfig, ModalityConfig

__all__ = ["pairs", "pairwise", "settings", "tiny_samples", "with_settings"]


def tiny_samples(
    n: int = 41, seed: int = 0, missing: bool = False, factor: float = 1.0, gaps: bool = False
) -> MultimodalData:
    """Four clusters, seen in a spectrum of six values and a curve of eight.

    Args:
        n: Number of samples.
        seed: Seed of the noise.
        missing: The first two samples have no spectrum, and only the first three have a curve.
        factor: All values are multiplied by it.
        gaps: A fifth of the elements of the curves are missing.
    """
    rng = np.random.default_rng(seed)
    cluster = rng.integers(0, 4, n)
    spectrum = 3.0 * np.eye(6)[cluster] + 0.2 * rng.standard_normal((n, 6)) + 5.0
    curve = np.linspace(0, 1, 8) * (1.0 + cluster)[:, None] + 0.1 * rng.standard_normal((n, 8))
    values = {"spectrum": factor * spectrum, "curve": factor * curve}
    present = {name: np.ones(n, dtype=bool) for name in values}
    if missing:
        present["spectrum"][:2] = False
        present["curve"][3:] = False
    measured = {m: np.broadcast_to(present[m][:, None], v.shape) for m, v in values.items()}
    if gaps:
        measured["curve"] = measured["curve"] & (rng.random((n, 8)) > 0.2)
        measured["curve"][:, 0] = present["curve"]  # a sample without any element would be absent
    return MultimodalData(
        name="tiny",
        modalities={m: np.where(measured[m], v, 0).astype(np.float32) for m, v in values.items()},
        present=present,
        kinds={"spectrum": "vector", "curve": "curve"},
        factors={"cluster": cluster},
        factor_levels={"cluster": ("a", "b", "c", "d")},
        observed={"curve": measured["curve"]} if gaps else {},
    )


def settings(**changes: Any) -> FitConfig:
    """One epoch of pretraining and two of joint training; `changes` are by dotted name, `__` for the dot.

    `decoder__NAME` changes the decoders of both modalities.
    """
    decoder = {
        name.removeprefix("decoder__"): changes.pop(name) for name in list(changes) if name.startswith("decoder")
    }
    entry = ModalityConfig(EncoderConfig(sizes=(8,)), dataclasses.replace(DecoderConfig(sizes=(8,)), **decoder))
    base = FitConfig(nodes={"A": 2, "B": 2}, modality={"spectrum": entry, "curve": entry})
    quick = {
        "pretraining__epochs": 1,
        "training__epochs": 2,
        "training__batch_size": 16,
        "training__learning_rate": 1e-2,
        "training__validation_fraction": 0.2,
        "graph__start_steps": 5,
        "graph__extra_steps": 2,
        "read_out__n_init": 1,
        "read_out__shape": "curved",
    }
    return with_settings(base, {**quick, **changes})


def with_settings(config: FitConfig, changes: Mapping[str, Any]) -> FitConfig:
    """A copy with other values, by names such as `training__epochs`."""
    parts: dict[str, Any] = {}
    for name, value in changes.items():
        first, _, rest = name.partition("__")
        part = parts.get(first, getattr(config, first))
        parts[first] = dataclasses.replace(part, **{rest: value}) if rest else value
    return dataclasses.replace(config, **parts)


def pairwise(levels: Mapping[str, Sequence[Any]], seed: int = 0) -> list[dict[str, Any]]:
    """Rows that hold every pair of levels of any two settings at least once: greedy, of 50 random candidates each."""
    rng, missing = random.Random(seed), set(pairs(levels))
    rows = []
    while missing:
        candidates = [{name: rng.choice(values) for name, values in levels.items()} for _ in range(50)]
        rows.append(max(candidates, key=lambda row: len(missing & set(_pairs_of(row)))))
        missing -= set(_pairs_of(rows[-1]))
    return rows


def pairs(levels: Mapping[str, Sequence[Any]]) -> Iterator[tuple[tuple[str, Any], tuple[str, Any]]]:
    """All pairs of levels of two different settings."""
    for one, other in itertools.combinations(levels, 2):
        yield from (((one, a), (other, b)) for a in levels[one] for b in levels[other])


def _pairs_of(row: Mapping[str, Any]) -> Iterator[tuple[tuple[str, Any], tuple[str, Any]]]:
    return itertools.combinations(row.items(), 2)
