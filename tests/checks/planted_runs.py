"""Runs as the checks see them, with clusters and dependence that are known."""

from __future__ import annotations

from typing import Any

import numpy as np

from causalpima.inference.analyses.embedding import EmbeddedRun

__all__ = ["OUTCOMES", "planted", "planted_views"]

OUTCOMES = (2, 2)
_CENTRES = np.array([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0], [6.0, 6.0]])


def planted(n: int, dependence: float, spread: float, seed: int = 0, **changes: Any) -> EmbeddedRun:
    """Four Gaussians with p(N2 = N1) = 1/2 + dependence/2, and their exact responsibilities.

    Args:
        n: Number of samples.
        dependence: 0 independent, 1 equal.
        spread: Standard deviation of each cluster; centres are 6 apart.
        seed: Seed.
        changes: Fields of the run that are replaced.
    """
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 2, n)
    second = np.where(rng.random(n) < 0.5 + dependence / 2, first, 1 - first)
    loc = _CENTRES[2 * first + second] + spread * rng.normal(size=(n, 2))
    fields: dict[str, Any] = {
        "status": "ok",
        "responsibilities": _responsibilities(loc, dependence, spread),
        "loc": loc,
        "outcomes": OUTCOMES,
        "node_names": ("A", "B"),
        "named": True,
        "present": {"x": np.ones(n, dtype=bool)},
    }
    return EmbeddedRun(**{**fields, **changes})


def _responsibilities(loc: np.ndarray, dependence: float, spread: float) -> np.ndarray:
    share = np.array([1 + dependence, 1 - dependence, 1 - dependence, 1 + dependence]) / 4
    distance = np.square(loc[:, None] - _CENTRES).sum(-1)
    weight = share * np.exp(-(distance - distance.min(1, keepdims=True)) / (2 * spread**2))
    return weight / weight.sum(1, keepdims=True)


def planted_views(n: int, dependence: float, seed: int = 0) -> EmbeddedRun:
    """The same under a mask: modality `a` sees A, modality `b` sees B, one latent dimension each."""
    views = {"a": (0,), "b": (1,)}
    run = planted(n, dependence, 0.7, seed, visible=views, present={name: np.ones(n, dtype=bool) for name in views})
    return run
