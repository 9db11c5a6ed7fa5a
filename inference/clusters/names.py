"""Names that a person gave to clusters, checked to be a bijection of clusters and cells."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from math import prod
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.clusters.labels import (
    UNKNOWN,
    Labelling,
    allowed_cells,
    assign_cells,
    node_outcomes,
    partition_codes,
)
from causalpima.inference.store.files import write_text
from causalpima.inference.store.input_files import read_text

__all__ = [
    "CellNames",
    "cell_names",
    "check_mask",
    "order_of_nodes",
    "outcome_names",
    "read_names",
    "under_names",
    "write_template",
]


# What the outcomes of nodes are called.


_UNNAMED = "unnamed"


def outcome_names(nodes: Mapping[str, int], levels: Mapping[str, Sequence[str]]) -> tuple[tuple[str, ...], ...]:
    """Names of the outcomes of every node: its levels, where it has some, else `0`, `1`, ...

    Outcomes beyond the levels are called `unnamed`, with a number where there are several.

    Args:
        nodes: Outcomes per node.
        levels: Per node that has them, the names of its first outcomes.

    >>> outcome_names({"type": 2, "response": 3}, {"response": ("soft", "stiff")})
    (('0', '1'), ('soft', 'stiff', 'unnamed'))
    """
    return tuple(_padded(levels[name], count) if name in levels else _numbers(count) for name, count in nodes.items())


def _numbers(count: int) -> tuple[str, ...]:
    return tuple(str(outcome) for outcome in range(count))


def _padded(levels: Sequence[str], count: int) -> tuple[str, ...]:
    n_more = count - len(levels)
    more = [_UNNAMED] if n_more == 1 else [f"{_UNNAMED}_{number}" for number in range(1, n_more + 1)]
    return (*levels, *more)


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


# Names of clusters that contradict a mask: a modality sees some nodes alone, and tells no other clusters apart.


def check_mask(
    permutation: np.ndarray, outcomes: Sequence[int], visible: Mapping[str, Sequence[int]], names: Sequence[str]
) -> None:
    """Refuse names that differ, in a node that a modality sees, for clusters that are alike in this modality.

    Args:
        permutation: Cluster c is to become cell `permutation[c]`, `[C]`.
        outcomes: Outcomes per node.
        visible: Positions of the nodes that each modality sees.
        names: Names of the nodes.

    Raises:
        ValueError: The first two such clusters, in the words of whoever gave the names.
    """
    before = np.stack(np.unravel_index(np.arange(len(permutation)), tuple(outcomes)), axis=1)
    after = np.stack(np.unravel_index(permutation, tuple(outcomes)), axis=1)
    for modality, nodes in visible.items():
        seen = list(nodes)
        _, first, level = np.unique(before[:, seen], axis=0, return_index=True, return_inverse=True)
        like = first[level.reshape(-1)]
        differs = np.argwhere(after[:, seen] != after[like][:, seen])
        if len(differs):
            cluster, column = map(int, differs[0])
            raise ValueError(
                f"{modality} looks alike in clusters {like[cluster]} and {cluster}; give them one name of "
                f"{names[seen[column]]}"
            )


# What environments told of clusters, kept under the names that a person gives to them afterwards.


_OF_ENVIRONMENTS = ("kind", "known_targets", "samples", "graph_gap", "labelling_gap", "n_searched")
_OF_PAIRS = ("graph", "class", "edge_probability", "compelled_probability")


def under_names(before: Mapping[str, Any] | None, names: CellNames, nodes: Sequence[str]) -> Labelling:
    """The names, with p(N) and, where the names keep the nodes, the graph that environments told before.

    Samples of several environments have no one p(N) that could be fitted to them: that without interventions moves to
    the new numbers of the cells. The graph, and which environment is upon which node, follow the nodes; names by which
    the clusters of a node are those of no node before leave both without meaning, and they are dropped.

    Args:
        before: Where the meaning of the cells came from so far (`Labelling.to_plain`), or None.
        names: The names that a person gave.
        nodes: What the nodes were called so far.
    """
    given = names.labelling()
    if before is None or "joint" not in before:
        return given
    outcomes = tuple(names.nodes.values())

    def moved(joint: Any) -> np.ndarray:
        return np.ravel(joint)[np.argsort(names.permutation)].reshape(outcomes)

    told = {name: moved(joint) for name, joint in before.get("environment_joint", {}).items()}
    given = replace(given, joint=moved(before["joint"]), environment_joint=told)
    order = order_of_nodes(names.permutation, outcomes)
    if order is None or "graph" not in before["details"]:
        return given
    called = {nodes[old]: new for old, new in zip(order, names.nodes, strict=True)}
    return _with_graph(given, before, order, called)


def order_of_nodes(permutation: np.ndarray, outcomes: Sequence[int]) -> tuple[int, ...] | None:
    """Which old node every new one is, up to the numbers of its outcomes; None where one is none of them.

    Args:
        permutation: Cell c becomes cell `permutation[c]`, `[C]`.
        outcomes: Outcomes per node.
    """
    old, new = (partition_codes(node_outcomes(cells, outcomes)) for cells in (np.arange(len(permutation)), permutation))
    same = (new[:, None] == old).all(-1)
    return tuple(same.argmax(1).tolist()) if same.any(1).all() else None


def _with_graph(
    given: Labelling, before: Mapping[str, Any], order: Sequence[int], called: Mapping[str, str]
) -> Labelling:
    """Graph, weights of edges, targets and named nodes in the new order of nodes, by what each is `called` now."""
    told = before["details"]
    known = {*given.named_nodes, *(called[node] for node in before["named_nodes"])}
    named = [node for node in called.values() if node in known]
    details = {
        **given.details,
        **{key: told[key] for key in _OF_ENVIRONMENTS if key in told},
        **{key: np.array(told[key])[np.ix_(order, order)].tolist() for key in _OF_PAIRS if key in told},
        "targets": {name: called[node] for name, node in told["targets"].items()},
    }
    if "n_remaining" in told:  # soft interventions leave the number of labellings as it is
        details["n_remaining"] = 1 if len(named) == len(called) else told["n_remaining"]
    return replace(given, named_nodes=named, details=details)


# The table of names: a CSV file with a row per cluster and a column per node.


_CLUSTER, _SIZE = "cluster", "size"


def write_template(
    path: Path, nodes: Sequence[str], sizes: Sequence[int], filled: Sequence[Sequence[str]] | None = None
) -> None:
    """Write a table to be filled in: columns `cluster`, `size`, and one per node.

    Args:
        path: The file; replaced if it is there.
        nodes: Names of the nodes.
        sizes: Samples of every cluster.
        filled: Outcomes of every cluster that are known already, `[C][L]`; default none.
    """
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow([_CLUSTER, _SIZE, *nodes])
    blank = [""] * len(nodes)
    for cluster, size in enumerate(sizes):
        writer.writerow([cluster, size, *(blank if filled is None else filled[cluster])])
    write_text(path, text.getvalue())


def read_names(path: Path, nodes: Mapping[str, int], sizes: Sequence[int]) -> CellNames:
    """Read a table that was filled in.

    The heads of the nodes' columns may be changed, which renames the nodes; columns that are renamed stay in their
    places. Semicolons or tabs in place of commas are understood, since spreadsheets write them.

    Args:
        path: The file.
        nodes: Outcomes per node of the run.
        sizes: Samples of every cluster.

    Raises:
        ValueError: The file cannot be read, or its names are no bijection of clusters and cells.
    """
    try:
        head, *lines = _lines(path)
        names = _names(head, nodes)
        rows = [_row(dict(zip(head, line, strict=False)), list(names.values())) for line in lines]
        found = dict(rows)
        if len(found) < len(rows):
            raise ValueError("names: expected one row per cluster, got two for one; remove one of them")
        return cell_names(found, {names[node]: count for node, count in nodes.items()}, sizes)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _lines(path: Path) -> list[list[str]]:
    """Lines that are not blank, split at the delimiter that the first one has most of."""
    try:
        text = read_text(path, encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no UTF-8 text; save it as CSV UTF-8"
        raise ValueError(f"names: expected a readable CSV file, got none ({reason})") from error
    delimiter = max(",;\t", key=text.partition("\n")[0].count)
    table = [[cell.strip() for cell in line] for line in csv.reader(io.StringIO(text), delimiter=delimiter)]
    lines = [line for line in table if any(line)]
    if not lines:
        raise ValueError("names: expected a table with a head, got an empty file; write the template anew")
    return lines


def _names(head: Sequence[str], nodes: Mapping[str, int]) -> dict[str, str]:
    """The new name of every node, by its present one."""
    given = [name for name in head if name not in (_CLUSTER, _SIZE)]
    if _CLUSTER not in head or len(given) != len(nodes) or len(set(head)) != len(head):
        raise ValueError(
            f"names: expected the columns {_CLUSTER}, {_SIZE} and one for each of {', '.join(nodes)} under different "
            f"names, got {', '.join(head)}"
        )
    odd = next((name for name in given if not name.isidentifier()), None)
    if odd is not None:
        raise ValueError(f"names: expected names of nodes that are one word, got {odd!r}; rename the column")
    if set(given) == set(nodes):
        return {node: node for node in nodes}
    moved = [name for name, node in zip(given, nodes, strict=True) if name in nodes and name != node]
    if moved:
        raise ValueError(
            f"names: expected renamed columns in their places ({', '.join(nodes)}), got {moved[0]!r} in the place of "
            "another; put it back"
        )
    return dict(zip(nodes, given, strict=True))


def _row(line: Mapping[str, str], names: Sequence[str]) -> tuple[int, dict[str, str]]:
    number = line.get(_CLUSTER, "")
    if not number.isdecimal():
        raise ValueError(f"names: expected the number of a cluster in the column {_CLUSTER}, got {number!r}")
    return int(number), {name: line.get(name, "") for name in names}
