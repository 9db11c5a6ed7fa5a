"""What the preparation chose and what became of every row: for people and as JSON."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from inference.data.preparation.modality import Modality
from inference.data.preparation.prepare import Plan, Prepared
from inference.results.text import printable, shorten

__all__ = ["as_json", "join_table", "roles_table"]

_NAME_WIDTH = 26
_HALF = 20
_WHY_WIDTH = 150
_MOST_LISTED = 8
_ROLES = {
    "id": "names of the samples",
    "images": "image",
    "curves": "curve",
    "scalars": "scalar",
    "vectors": "vector",
    "labels": "label",
    "covariates": "covariate",
    "group": "group",
    "ignore": "left out",
}


def roles_table(plan: Plan) -> str:
    """The columns, what each is for and why, and the flags that change it."""
    rows = []
    for role in plan.roles:
        if not role.vector:
            rows.append((shorten(role.column.header, _NAME_WIDTH), _ROLES[role.kind], role.why))
        elif (first := next(r for r in plan.roles if r.vector == role.vector)) is role:
            last = [r for r in plan.roles if r.vector == role.vector][-1]
            ends = f"{shorten(first.column.header, _HALF)} to {shorten(last.column.header, _HALF)}"
            rows.append((ends, _ROLES[role.kind], f"{role.why}: {shorten(role.vector, _NAME_WIDTH)}"))
    numbered = all(role.kind != "id" for role in plan.roles)
    return "\n".join(
        [
            f"{printable(plan.manifest.path)}: {_count(plan.manifest.n_rows, 'row')}",
            *_aligned([("column", "taken as", "because of"), *rows]),
            *plan.manifest.notes,
            *(["no column names the samples: they are numbered; --id names one"] if numbered else []),
            "other roles: --id, --images, --curves, --scalars, --labels, --covariates, --group, --ignore COLUMN,...",
        ]
    )


def join_table(done: Prepared) -> str:
    """The variables of the file, what is missing, and the first of the reasons."""
    n_samples = len(done.names)
    head = ("variable", "shape", "units", "samples", "missing there", "positions")
    lines = _aligned([head, *(_variable(done, i, modality) for i, modality in enumerate(done.modalities))])
    notes = [f"{modality.name}: {note}" for modality in done.modalities for note in modality.notes]
    left_out = [f"row {row.row}{_named(row.sample)}: {row.why}" for row in done.omitted]
    lacking = [f"row {a.row}{_named(a.sample)}, {a.modality}: {a.why}: {a.entry}" for a in done.absent if a.entry]
    n_empty = len(done.absent) - len(lacking)
    return "\n".join(
        [
            f"{printable(done.output)}: {_count(n_samples, 'sample')} of {_count(done.plan.manifest.n_rows, 'row')}",
            *lines,
            *map(printable, notes),
            *_listed(f"left out: {_count(len(left_out), 'row')}", left_out),
            *_listed(f"not usable, the sample kept: {_count(len(lacking), 'measurement')}", lacking),
            *([f"without an entry in the manifest: {_count(n_empty, 'measurement')}"] if n_empty else []),
        ]
    )


def as_json(done: Prepared) -> dict[str, Any]:
    """All that `join_table` says and all that it cuts short."""
    return {
        "manifest": str(done.plan.manifest.path),
        "output": str(done.output),
        "n_rows": done.plan.manifest.n_rows,
        "n_samples": len(done.names),
        "columns": [
            {"header": r.column.header, "name": r.column.name, "role": r.kind, "because": r.why}
            for r in done.plan.roles
        ],
        "modalities": {m.name: _modality_json(done, i, m) for i, m in enumerate(done.modalities)},
        "dropped": [vars(omission) for omission in done.omitted],
        "absent": [vars(absence) for absence in done.absent],
    }


def _modality_json(done: Prepared, index: int, modality: Modality) -> dict[str, Any]:
    return {
        "kind": modality.kind,
        "dims": list(modality.dims),
        "shape": list(modality.shape),
        "units": modality.units,
        "rule": modality.rule,
        "matched": int((done.observed[:, index] > 0).sum()),
        "observed_share_where_matched": _share_where_there(done.observed[:, index]),
        "reasons": dict(Counter(absence.why for absence in done.absent if absence.modality == modality.name)),
        "notes": list(modality.notes),
    }


def _variable(done: Prepared, index: int, modality: Modality) -> tuple[str, ...]:
    observed = done.observed[:, index]
    shape = " x ".join(map(str, modality.shape)) or "1"
    share = 1 - _share_where_there(observed)
    there = f"{int((observed > 0).sum())} of {len(observed)}"
    elements = f"{share:.1%}" if share else "-"
    return shorten(modality.name, _NAME_WIDTH), shape, modality.units or "-", there, elements, _positions(modality)


def _share_where_there(observed: np.ndarray) -> float:
    return float(observed[observed > 0].mean(dtype=float))


def _positions(modality: Modality) -> str:
    return ", ".join(
        f"{shorten(c.title, _NAME_WIDTH)} {c.values[0]:g} to {c.values[-1]:g} {c.units}".rstrip()
        for c in modality.coordinates.values()
    )


def _named(sample: str) -> str:
    return f" ({shorten(sample, _NAME_WIDTH)})" if sample else ""


def _listed(title: str, lines: Sequence[str]) -> list[str]:
    if not lines:
        return []
    more = [f"  and {len(lines) - _MOST_LISTED} more; --json FILE lists all"] if len(lines) > _MOST_LISTED else []
    return [title, *(f"  {shorten(line, _WHY_WIDTH)}" for line in lines[:_MOST_LISTED]), *more]


def _aligned(rows: Iterable[Sequence[str]]) -> list[str]:
    table = [list(map(printable, row)) for row in rows]
    widths = [max(map(len, column)) + 2 for column in zip(*table, strict=True)]
    return [
        "  " + "".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in table
    ]


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
