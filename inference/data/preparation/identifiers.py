"""Names of the samples, rows that repeat them, and the group that each sample belongs to."""

from __future__ import annotations

from collections.abc import Sequence

from inference.data.preparation.manifest import Column, Manifest
from inference.data.preparation.problems import Omission
from inference.data.preparation.roles import Role

__all__ = ["distinct_rows", "group_entries", "sample_names"]


def sample_names(manifest: Manifest, roles: Sequence[Role]) -> tuple[str, ...]:
    """The entries of the identifier; row numbers from 1 where no column is one."""
    for role in roles:
        if role.kind == "id":
            return role.column.written
    return tuple(str(row + 1) for row in range(manifest.n_rows))


def distinct_rows(names: Sequence[str]) -> tuple[list[int], list[Omission]]:
    """Rows to use, from 0: those with a name; of rows with the same name, the first."""
    first: dict[str, int] = {}
    omitted = []
    for row, name in enumerate(names):
        if name and name not in first:
            first[name] = row
        else:
            why = f"duplicate id, row {first[name] + 1} has it" if name else "no id"
            omitted.append(Omission(row + 1, name, why))
    return list(first.values()), omitted


def group_entries(column: Column, names: Sequence[str], rows: Sequence[int]) -> tuple[str, ...]:
    """The group of every row; a row without an entry is a group of its own.

    In a column `replicate_of`, entries are names of samples: the group is named after the sample at the end of the
    chain of replicates, so that S3, a replicate of S2, which is one of S1, is in the group S1 with both.

    Args:
        column: The column.
        names: Name of every row's sample.
        rows: Rows in use, of different names.

    Raises:
        ValueError: Samples are replicates of each other.
    """
    if column.name.lower() != "replicate_of":
        return tuple(entry or f"only {name}" for entry, name in zip(column.entries, names, strict=True))
    known = {names[row] for row in rows}
    pairs = ((names[row], column.written[row] if column.written[row] in known else column.entries[row]) for row in rows)
    origin = {name: entry for name, entry in pairs if entry and entry != name}
    return tuple(_root(name, origin) for name in names)


def _root(name: str, origin: dict[str, str]) -> str:
    seen = [name]
    while seen[-1] in origin:
        seen.append(origin[seen[-1]])
        if seen[-1] in seen[:-1]:
            raise ValueError(
                f"replicate_of: expected chains that end, got {' -> '.join(seen[:6])}; leave the original's entry empty"
            )
    return seen[-1]
