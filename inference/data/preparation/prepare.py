"""From a manifest to a file of samples."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from causalpima.inference.data.preparation.curves import curve_modality
from causalpima.inference.data.preparation.images import image_modality
from causalpima.inference.data.preparation.manifest import Manifest, gather_points, read_manifest
from causalpima.inference.data.preparation.modality import (
    Modality,
    check_usable,
    scalar_modality,
    vector_modality,
    with_progress,
)
from causalpima.inference.data.preparation.options import Absence, Omission, Options, UnusableError
from causalpima.inference.data.preparation.roles import (
    SAMPLE,
    Role,
    SampleFile,
    distinct_rows,
    find_roles,
    find_samples,
    known_of,
    sample_names,
)
from causalpima.inference.store.files import FORMAT, FORMAT_KEY, write_atomically
from causalpima.inference.store.text import printable, shorten

__all__ = [
    "Plan",
    "Prepared",
    "as_json",
    "join_table",
    "make_plan",
    "roles_table",
    "write_samples",
]


@dataclass(frozen=True)
class Plan:
    """The manifest and what its columns are for."""

    options: Options
    manifest: Manifest
    roles: tuple[Role, ...]


@dataclass(frozen=True)
class Prepared:
    """What became of the manifest's rows.

    Attributes:
        plan: What was asked for.
        output: The file.
        names: Names of the samples in it.
        modalities: Its modalities.
        observed: Share of each measurement that is there, `[sample, modality]`.
        omitted: Rows that are in no sample.
        absent: What samples lack as a whole, and why.
    """

    plan: Plan
    output: Path
    names: tuple[str, ...]
    modalities: tuple[Modality, ...]
    observed: np.ndarray
    omitted: tuple[Omission, ...]
    absent: tuple[Absence, ...]


def make_plan(options: Options) -> Plan:
    """Read the manifest and find the role of every column.

    Raises:
        ValueError: As `read_manifest` and `find_roles`, or names that can't stand side by side in one file.
    """
    manifest = read_manifest(options.manifest, options.decimal)
    samples = find_samples(manifest, options)
    if samples is not None:
        manifest = gather_points(manifest, samples, options.curve_x, options.curve_y)
    roles = find_roles(manifest, options)
    _check_names(roles)
    return Plan(options, manifest, roles)


def write_samples(plan: Plan, output: Path) -> Prepared:
    """Read every file and write the samples; whoever looks at `output` finds the old file or the whole new one.

    A sample is a row with an identifier of its own and at least one measurement. Images are read one by one, curves are
    held.

    Raises:
        ValueError: A column without a usable entry, or no sample.
        OutputError: The file can't be written.
    """
    names = sample_names(plan.manifest, plan.roles)
    rows, duplicates = distinct_rows(names)
    known = known_of(plan.roles, names, rows)
    modalities = _distinct_dims(list(_modalities(plan, rows)), {role.column.name for role in plan.roles})
    title = f"samples of {plan.manifest.path.name}"
    attributes: dict[str, str | int] = {"title": title, "Conventions": "CF-1.11", FORMAT_KEY: FORMAT}
    joined = _Join(modalities, names)

    def write(path: Path) -> None:
        with SampleFile(path, modalities, attributes) as file:
            for row in with_progress(rows, "writing"):
                joined.add(row, file)
            joined.check()
            file.finish(names, known, joined.rows)

    write_atomically(output, write)
    omitted = sorted([*duplicates, *joined.omitted], key=lambda omission: omission.row)
    observed = np.array(joined.observed, dtype=np.float32)
    kept = tuple(names[row] for row in joined.rows)
    return Prepared(plan, output, kept, tuple(modalities), observed, tuple(omitted), tuple(joined.absent))


class _Join:
    """Puts together what belongs to one sample, and keeps account."""

    def __init__(self, modalities: Sequence[Modality], names: Sequence[str]) -> None:
        self._modalities, self._names = modalities, names
        self.rows: list[int] = []
        self.observed: list[list[float]] = []
        self.omitted: list[Omission] = []
        self.absent: list[Absence] = []
        self._problems: dict[str, dict[int, UnusableError]] = {modality.name: {} for modality in modalities}

    def add(self, row: int, file: SampleFile) -> None:
        """Read a row's measurements and append them, if there are any."""
        measured, problems = _attempt(self._modalities, row)
        absent = [self._absence(modality, row, problems) for modality in self._modalities if modality.name in problems]
        for name, error in problems.items():
            self._problems[name][row] = error
        if not measured:
            why = "; ".join(f"{lack.modality}: {lack.why} {lack.entry}".rstrip() for lack in absent)
            self.omitted.append(Omission(row + 1, self._names[row], f"no measurement ({why})"))
            return
        file.append(measured)
        self.rows.append(row)
        self.absent += absent
        self.observed.append([_share(measured.get(modality.name)) for modality in self._modalities])

    def _absence(self, modality: Modality, row: int, problems: Mapping[str, UnusableError]) -> Absence:
        entry, why = modality.column.entries[row], str(problems[modality.name])
        return Absence(row + 1, self._names[row], modality.name, entry, why)

    def check(self) -> None:
        """Refuse a modality that no sample has, or few of those that should: damaged images show only now."""
        for modality in self._modalities:
            check_usable(modality.column, self._problems[modality.name], len(self.rows) + len(self.omitted))


def _attempt(modalities: Sequence[Modality], row: int) -> tuple[dict[str, np.ndarray], dict[str, UnusableError]]:
    """What can be read of a row, and what can't, by modality."""
    measured: dict[str, np.ndarray] = {}
    problems: dict[str, UnusableError] = {}
    for modality in modalities:
        try:
            measured[modality.name] = modality.read(row)
        except UnusableError as error:
            problems[modality.name] = error
    return measured, problems


def _share(values: np.ndarray | None) -> float:
    return 0.0 if values is None else float(np.isfinite(values).mean())


def _modalities(plan: Plan, rows: Sequence[int]) -> Iterator[Modality]:
    vectors: set[str] = set()
    for role in plan.roles:
        if role.kind == "images":
            yield image_modality(role.column, plan.manifest, plan.options, rows)
        elif role.kind == "curves":
            yield curve_modality(role.column, plan.manifest, plan.options, rows)
        elif role.kind == "scalars":
            yield scalar_modality(role.column, rows)
        elif role.vector and role.vector not in vectors:
            vectors.add(role.vector)
            columns = [other.column for other in plan.roles if other.vector == role.vector]
            yield vector_modality(role.vector, columns, rows)


def _distinct_dims(modalities: Sequence[Modality], taken: set[str]) -> list[Modality]:
    """Dimensions that two modalities would share, or that are named like a variable, are named after their modality."""
    counts = Counter(name for modality in modalities for name in modality.dims)
    clash = {name for name, count in counts.items() if count > 1 or name in taken | {SAMPLE}}
    return [_renamed(modality, clash) for modality in modalities]


def _renamed(modality: Modality, clash: set[str]) -> Modality:
    new = {name: f"{modality.name}_{name}" if name in clash else name for name in modality.dims}
    coordinates = {new[name]: coordinate for name, coordinate in modality.coordinates.items()}
    return dataclasses.replace(modality, dims=tuple(new.values()), coordinates=coordinates)


def _check_names(roles: Sequence[Role]) -> None:
    used = [role.column for role in roles if role.kind not in ("id", "ignore")]
    names = {column.name for column in used}
    for column in used:
        if column.name == SAMPLE:
            raise ValueError(
                f"{column.header}: expected another name, since {SAMPLE} names the samples; rename the column"
            )
        if column.name.endswith("_mask") and column.name.removesuffix("_mask") in names:
            raise ValueError(
                f"{column.header}: expected another name, since it would mean what is there of "
                f"{column.name.removesuffix('_mask')}; rename the column"
            )


# What the preparation chose and what became of every row: for people and as JSON.


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
