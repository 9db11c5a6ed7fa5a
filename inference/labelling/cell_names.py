"""Names that a person gave to clusters, checked to be a bijection of clusters and cells."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from inference.labelling.labelling import Labelling
from inference.labelling.labels import UNKNOWN, allowed_cells, assign_cells
from inference.labelling.outcome_names import outcome_names

__all__ = ["CellNames", "cell_names"]

_MOST_NAMED = 4

Rows = Mapping[int, Mapping[str, str]]


@dataclass(frozen=True)
class CellNames:
    """Which cell every cluster is, and what nodes and outcomes are called.

    Attributes:
        permutation: Cluster c is cell `permutation[c]`, `[C]`.
        nodes: Outcomes per node by its new name.
        outcomes: Names of the outcomes of every node.
        named: The nodes that were named; the outcomes of the others are arbitrary.
    """

    permutation: np.ndarray
    nodes: Mapping[str, int]
    outcomes: tuple[tuple[str, ...], ...]
    named: tuple[str, ...]

    def labelling(self) -> Labelling:
        """The same as where the meaning of the cells comes from; `details` has the number of every cell's cluster."""
        return Labelling(self.permutation, "names", self.named, {"clusters": np.argsort(self.permutation).tolist()})


def cell_names(rows: Rows, nodes: Mapping[str, int], sizes: Sequence[int]) -> CellNames:
    """Read names of clusters as a bijection of clusters and joint outcomes.

    Every combination of outcomes must stand as often as the nodes without names leave room for it: once, where all are
    named. Clusters without samples may be left blank; they take the combinations that are left.

    Args:
        rows: Per cluster, the name of its outcome by node; empty or not there: none.
        nodes: Outcomes per node, by the names that `rows` uses.
        sizes: Samples of every cluster, `[C]`.

    Returns:
        The names. Outcomes are in the order of their first cluster, or in that of their numbers where all are numbers.

    Raises:
        ValueError: Names that are no such bijection; the message says which cluster, and what to do.
    """
    _check_clusters(rows, nodes, len(sizes))
    texts = {cluster: {node: str(row.get(node, "") or "").strip() for node in nodes} for cluster, row in rows.items()}
    levels = {node: _levels(row[node] for row in texts.values()) for node in nodes}
    named = tuple(node for node in nodes if levels[node])
    if not named:
        raise ValueError("names: expected a name in some column, got none; fill in the outcomes of the nodes")
    for node in named:
        _check_levels(node, levels[node], nodes[node])
    codes = np.full((len(sizes), len(nodes)), UNKNOWN, dtype=np.int64)
    for cluster, size in enumerate(sizes):
        row = texts.get(cluster, dict.fromkeys(nodes, ""))
        if _is_filled(cluster, row, named, int(size)):
            codes[cluster] = [levels[node].index(row[node]) if node in named else UNKNOWN for node in nodes]
    _check_combinations(codes, nodes, levels, named)
    permutation = assign_cells(allowed_cells(codes, tuple(nodes.values())).astype(np.float64))
    return CellNames(permutation, dict(nodes), outcome_names(nodes, {node: levels[node] for node in named}), named)


def _check_clusters(rows: Rows, nodes: Mapping[str, int], n_clusters: int) -> None:
    odd = sorted(cluster for cluster in rows if cluster not in range(n_clusters))
    if odd:
        raise ValueError(f"names: expected clusters from 0 to {n_clusters - 1}, got {odd[0]}; see the contact sheet")
    for cluster, row in rows.items():
        unknown = [name for name in row if name not in nodes]
        if unknown:
            raise ValueError(
                f"names: expected the nodes {', '.join(nodes)} for cluster {cluster}, got {unknown[0]!r}; rename it"
            )


def _levels(values: Iterable[str]) -> list[str]:
    found = list(dict.fromkeys(value for value in values if value))
    return sorted(found, key=float) if all(map(_is_number, found)) else found


def _is_number(text: str) -> bool:
    try:
        return float(text) == float(text)
    except ValueError:
        return False


def _check_levels(node: str, levels: Sequence[str], n_outcomes: int) -> None:
    if len(levels) > n_outcomes:
        raise ValueError(
            f"{node}: expected at most {n_outcomes} different names, as many as the node has outcomes, got "
            f"{len(levels)} ({', '.join(levels)}); write equal outcomes alike"
        )


def _is_filled(cluster: int, row: Mapping[str, str], named: Sequence[str], size: int) -> bool:
    missing = [node for node in named if not row[node]]
    if not missing:
        return True
    if len(missing) < len(named):
        raise ValueError(
            f"cluster {cluster}: expected a name for each of {', '.join(named)}, got none for {', '.join(missing)}; "
            "fill it in"
        )
    if size:
        raise ValueError(
            f"cluster {cluster}: expected names, for it has {size} samples, got none; only empty clusters may be blank"
        )
    return False


def _check_combinations(
    codes: np.ndarray, nodes: Mapping[str, int], levels: Mapping[str, Sequence[str]], named: Sequence[str]
) -> None:
    columns = [position for position, node in enumerate(nodes) if node in named]
    slots = prod(count for node, count in nodes.items() if node not in named)
    filled = {cluster: tuple(map(int, row[columns])) for cluster, row in enumerate(codes) if row[columns[0]] != UNKNOWN}
    counts = Counter(filled.values())
    twice = [combination for combination, count in counts.items() if count > slots]
    if not twice:
        return
    clusters = [str(cluster) for cluster, combination in filled.items() if combination == twice[0]]
    every = product(*(range(nodes[node]) for node in named))
    missing = [combination for combination in every if counts[combination] < slots]
    often = "once" if slots == 1 else f"{slots} times"
    raise ValueError(
        f"names: expected every combination of {', '.join(named)} {often}, got "
        f"{_written(twice[0], named, levels)} for clusters {', '.join(clusters)}, while "
        f"{'; '.join(_written(combination, named, levels) for combination in missing[:_MOST_NAMED])} "
        f"{'is' if len(missing) == 1 else 'are'} left; name every cluster differently"
    )


def _written(combination: Sequence[int], named: Sequence[str], levels: Mapping[str, Sequence[str]]) -> str:
    words = (
        levels[node][code] if code < len(levels[node]) else f"another {node}"
        for node, code in zip(named, combination, strict=True)
    )
    return f"({', '.join(words)})"
