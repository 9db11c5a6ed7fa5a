"""The table of names: a CSV file with a row per cluster and a column per node."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path

from inference.labelling.cell_names import CellNames, cell_names
from inference.results.files import write_text
from inference.results.input_files import read_text

__all__ = ["read_names", "write_template"]

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
