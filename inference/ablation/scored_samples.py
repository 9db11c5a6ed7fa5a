"""Which samples the scores of a fit are of, so that two fits are compared on the same ones alone.

What a fit says in words, `60 unlabelled samples`, is the same of different samples of the same number: a hash of their
places and known factors tells these apart.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from inference.results.arviz_export import read_posterior

__all__ = ["HELD_OUT", "LABELS", "MEASURE", "samples_of", "scored_in_words"]

LABELS, HELD_OUT, MEASURE = "labels", "held_out", "measure"
"""What scores are of: samples with known factors; held-out samples; of a log-density, the measure it is taken in."""

_OF_COUNTS = ("bernoulli", "categorical", "poisson", "negative_binomial")
_DIGITS = 12


def scored_in_words(summary: Mapping[str, Any]) -> str:
    """`60 unlabelled samples`: how many are scored against known factors; empty where none are.

    Args:
        summary: That of the run.
    """
    found = summary.get("evaluation") or {}
    split = {"all": "samples"}.get(found.get("split", ""), f"{found.get('split')} samples")
    return f"{found['n_samples']} {split}" if "n_samples" in found else ""


def samples_of(folder: Path, summary: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of the samples that are scored, `LABELS` and `HELD_OUT`, and `MEASURE` in words; each where it is known.

    Args:
        folder: The run folder, with `posterior.nc`.
        summary: Its summary.
    """
    path = folder / "posterior.nc"
    parts = {
        LABELS: (summary.get("evaluation") or {}).get("split"),
        HELD_OUT: (summary.get("held_out_log_likelihood") or {}).get("split"),
    }
    found = _hashes(path, path.stat().st_mtime_ns, *parts.values()) if path.is_file() else ("", "")
    hashes = {name: text for name, text in zip(parts, found, strict=True) if text}
    return hashes | {MEASURE: _measure(summary)}


def _measure(summary: Mapping[str, Any]) -> str:
    likelihoods = {name: entry.get("likelihood") for name, entry in summary["modalities"].items()}
    return ", ".join(f"{name} {'mass' if each in _OF_COUNTS else 'density'}" for name, each in likelihoods.items())


@lru_cache(maxsize=4096)
def _hashes(path: Path, changed: int, labels: str | None, held_out: str | None) -> tuple[str, str]:
    """Of the samples with labels and of those that are held out; `changed` tells a file from an earlier one."""
    try:
        constant = read_posterior(path, path.parent, ("constant_data",))["constant_data"].to_dataset()
        return _hash(constant, _scored(constant, labels)), _hash(constant, _in_split(constant, held_out))
    except (OSError, ValueError, KeyError):
        return "", ""


def _scored(constant: xr.Dataset, part: str | None) -> np.ndarray:
    """As `inference.evaluation.scores.scored_samples` chooses them, bool `[n]`."""
    known = np.all([codes >= 0 for codes in _factors(constant).values()] or [np.zeros(1, dtype=bool)], axis=0)
    if part == "unlabelled":
        return known & ~constant["labelled"].to_numpy().astype(bool)
    return known if part in ("all", "labelled") else known & _in_split(constant, part)


def _in_split(constant: xr.Dataset, part: str | None) -> np.ndarray:
    found: np.ndarray = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()] == part
    return found


def _factors(constant: xr.Dataset) -> dict[str, np.ndarray]:
    return {str(name): constant[name].to_numpy() for name in constant.data_vars if str(name).startswith("factor_")}


def _hash(constant: xr.Dataset, rows: np.ndarray) -> str:
    """Of names and places of the samples, and of their factors; empty where there are no samples."""
    if not rows.any():
        return ""
    digest = hashlib.sha256(repr([*map(str, constant["sample"].to_numpy()[rows])]).encode())
    digest.update(np.flatnonzero(rows).astype(np.int64).tobytes())
    for name, codes in sorted(_factors(constant).items()):
        digest.update(repr([name, *_levels(constant, name, codes[rows])]).encode())
    return digest.hexdigest()[:_DIGITS]


def _levels(constant: xr.Dataset, factor: str, codes: np.ndarray) -> list[str]:
    """By their names: a file may number the levels in another order than a generator does."""
    names = constant.get(f"level_{factor.removeprefix('factor_')}")
    return [str(code) if names is None or code < 0 else str(names.to_numpy()[code]) for code in codes.tolist()]
