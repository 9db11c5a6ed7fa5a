"""Clusters of samples that were taken under interventions, drawn from known graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import norm

from causalpima.inference.clusters.labels import Clusters

__all__ = ["TREES", "Drawn", "draw", "joint"]

Tables = Mapping[str, tuple[tuple[str, ...], ArrayLike]]

# p(node = 1 | parents), one axis per parent: the trees of the circles (SCIENCE.md, section 7).
TREES: Mapping[str, Tables] = {
    "chain": {"h": ((), 0.5), "r": (("h",), [0.3, 0.75]), "s": (("r",), [0.2, 0.7])},
    "fork": {"h": (("r",), [0.35, 0.8]), "r": ((), 0.45), "s": (("r",), [0.75, 0.3])},
    "collider": {"h": ((), 0.5), "r": ((), 0.4), "s": (("h", "r"), [[0.15, 0.5], [0.4, 0.85]])},
    "edge": {"h": ((), 0.6), "r": (("h",), [0.25, 0.7]), "s": ((), 0.35)},
}


class Drawn(NamedTuple):
    """Clusters, the environment of every sample, and the labelling and graph behind them."""

    clusters: Clusters
    codes: np.ndarray
    labelling: np.ndarray
    graph: np.ndarray


def joint(tree: Tables, do: Mapping[str, float] | None = None) -> np.ndarray:
    """p(h, r, s), `[2, 2, 2]`; under `do` a node is 1 with that probability, whatever its parents."""
    factors = []
    for axis, (node, (parents, probability)) in enumerate(tree.items()):
        by, value = ((), do[node]) if do and node in do else (parents, probability)
        one = np.reshape(np.asarray(value), [2 if name in by else 1 for name in tree])
        factors.append(np.concatenate([1.0 - one, one], axis))
    found: np.ndarray = np.prod(np.broadcast_arrays(*factors), axis=0)
    return found


def draw(
    tree: Tables, interventions: Sequence[Mapping[str, float]], n: int = 4096, confusion: float = 0.0, seed: int = 0
) -> Drawn:
    """n samples of the observational environment and of each other one, clusters numbered at random.

    Args:
        tree: p(N) without interventions.
        interventions: Per environment, the nodes that are set, and the probability of 1.
        n: Samples per environment.
        confusion: Share of the samples that the best classifier gives to another cluster, which is always the same
            one: clusters 0 and 1, 2 and 3, and so on overlap.
        seed: Seed.
    """
    rng = np.random.default_rng(seed)
    number = rng.permutation(8)
    joints = [joint(tree), *(joint(tree, do) for do in interventions)]
    cluster = number[np.concatenate([rng.choice(8, n, p=table.ravel()) for table in joints])]
    codes = np.repeat(np.arange(len(joints)), n)
    graph = np.array([[int(cause in tree[effect][0]) for effect in tree] for cause in tree])
    return Drawn(
        Clusters(_posterior(cluster, confusion, rng), np.zeros((len(cluster), 1))), codes, np.argsort(number), graph
    )


def _posterior(cluster: np.ndarray, confusion: float, rng: np.random.Generator) -> np.ndarray:
    if not confusion:
        return np.eye(8)[cluster]
    distance = -norm.ppf(confusion)
    x = rng.standard_normal(len(cluster)) + np.where(cluster % 2, distance, -distance)
    density = np.stack([norm.pdf(x + distance), norm.pdf(x - distance)], axis=1)
    share = np.bincount(cluster, minlength=8) / len(cluster)
    weight = np.where(cluster[:, None] // 2 == np.arange(8) // 2, density[:, np.arange(8) % 2] * share, 0.0)
    found: np.ndarray = weight / weight.sum(1, keepdims=True)
    return found
