"""Small discrete networks of the literature with their own tables, and with random ones that can be learned."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any, Literal

import numpy as np

from causalpima.examples.discrete_network import DiscreteNetwork

__all__ = ["NETS", "Net", "with_random_tables"]

Net = Literal["earthquake", "cancer", "survey", "asia"]

_LEAST_SHARE = 0.4
_LEAST_EFFECT = 0.25
_MOST_DRAWS = 20_000


def _network(nodes: Mapping[str, tuple[tuple[str, ...], tuple[str, ...], Any]]) -> DiscreteNetwork:
    """Per node its levels, its parents, and p(node | parents) for all levels, or for the first of two."""
    return DiscreteNetwork(
        levels={name: levels for name, (levels, _, _) in nodes.items()},
        parents={name: parents for name, (_, parents, _) in nodes.items()},
        tables={name: _table(len(levels), len(parents), entries) for name, (levels, parents, entries) in nodes.items()},
    )


def _table(n_levels: int, n_parents: int, entries: Any) -> np.ndarray:
    table = np.asarray(entries, dtype=float)
    if table.ndim > n_parents:
        return table
    assert n_levels == 2, "only of two levels can the second be left out"
    return np.stack([table, 1 - table], axis=-1)


_TRUE = ("True", "False")
_YES = ("yes", "no")

NETS: Mapping[Net, DiscreteNetwork] = {
    "earthquake": _network(
        {
            "Burglary": (_TRUE, (), 0.01),
            "Earthquake": (_TRUE, (), 0.02),
            "Alarm": (_TRUE, ("Burglary", "Earthquake"), [[0.95, 0.94], [0.29, 0.001]]),
            "JohnCalls": (_TRUE, ("Alarm",), [0.9, 0.05]),
            "MaryCalls": (_TRUE, ("Alarm",), [0.7, 0.01]),
        }
    ),
    "cancer": _network(
        {
            "Pollution": (("low", "high"), (), 0.9),
            "Smoker": (_TRUE, (), 0.3),
            "Cancer": (_TRUE, ("Pollution", "Smoker"), [[0.03, 0.001], [0.05, 0.02]]),
            "Xray": (("positive", "negative"), ("Cancer",), [0.9, 0.2]),
            "Dyspnoea": (_TRUE, ("Cancer",), [0.65, 0.3]),
        }
    ),
    "survey": _network(
        {
            "A": (("young", "adult", "old"), (), [0.3, 0.5, 0.2]),
            "S": (("M", "F"), (), 0.6),
            "E": (("high", "uni"), ("A", "S"), [[0.75, 0.64], [0.72, 0.7], [0.88, 0.9]]),
            "O": (("emp", "self"), ("E",), [0.96, 0.92]),
            "R": (("small", "big"), ("E",), [0.25, 0.2]),
            "T": (
                ("car", "train", "other"),
                ("O", "R"),
                [[[0.48, 0.42, 0.1], [0.58, 0.24, 0.18]], [[0.56, 0.36, 0.08], [0.7, 0.21, 0.09]]],
            ),
        }
    ),
    "asia": _network(
        {
            "asia": (_YES, (), 0.01),
            "tub": (_YES, ("asia",), [0.05, 0.01]),
            "smoke": (_YES, (), 0.5),
            "lung": (_YES, ("smoke",), [0.1, 0.01]),
            "bronc": (_YES, ("smoke",), [0.6, 0.3]),
            "either": (_YES, ("lung", "tub"), [[1.0, 1.0], [1.0, 0.0]]),
            "xray": (_YES, ("either",), [0.98, 0.05]),
            "dysp": (_YES, ("bronc", "either"), [[0.9, 0.8], [0.7, 0.1]]),
        }
    ),
}
"""Networks of the bnlearn repository.

Earthquake and cancer: Korb and Nicholson, Bayesian Artificial Intelligence, 2010; survey: Scutari and Denis, Bayesian
Networks, 2014; asia: Lauritzen and Spiegelhalter, JRSS B, 1988. Some of their states have probabilities of 0.01 and
less, and `either` of asia is a function of its parents.
"""


def with_random_tables(network: DiscreteNetwork, seed: int = 0) -> DiscreteNetwork:
    """The same graph with tables under which every edge shows in a few thousand samples.

    Rows are drawn from flat Dirichlet distributions until every probability is at least 0.4 of that of a fair die (0.2
    of two levels), and every parent matters whatever the others are: some two of its levels give rows that are at least
    0.25 apart in total variation.

    Args:
        network: The graph and the levels.
        seed: Seed of the tables; the names of the nodes enter it, so that networks differ, and each has its stream.
    """
    names = zlib.crc32(" ".join(network.levels).encode())
    streams = np.random.default_rng((seed, names)).spawn(len(network.levels))
    tables = {
        node: _random_table(network.tables[node].shape, stream)
        for node, stream in zip(network.levels, streams, strict=True)
    }
    return replace(network, tables=tables)


def _random_table(shape: tuple[int, ...], generator: np.random.Generator) -> np.ndarray:
    for _ in range(_MOST_DRAWS):
        table = generator.dirichlet(np.ones(shape[-1]), size=shape[:-1])
        if table.min() >= _LEAST_SHARE / shape[-1] and all(
            _least_effect(table, a) >= _LEAST_EFFECT for a in _parent_axes(shape)
        ):
            return table
    raise ValueError(f"tables: expected that a table {shape} can be drawn, got none; the node has too many parents")


def _parent_axes(shape: tuple[int, ...]) -> range:
    """Axes of the parents in a table of this shape."""
    return range(len(shape) - 1)


def _least_effect(table: np.ndarray, parent: int) -> float:
    """Largest total variation between two levels of a parent, at the configuration of the others where it is least."""
    rows = np.moveaxis(table, parent, 0)
    distances = [0.5 * np.abs(rows[a] - rows[b]).sum(-1) for a, b in combinations(range(len(rows)), 2)]
    return float(np.max(distances, axis=0).min())
