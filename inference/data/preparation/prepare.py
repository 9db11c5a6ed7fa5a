"""From a manifest to a file of samples."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from inference.data.preparation.curves import curve_modality
from inference.data.preparation.identifiers import distinct_rows, sample_names
from inference.data.preparation.images import image_modality
from inference.data.preparation.known import known_of
from inference.data.preparation.long_table import gather_points
from inference.data.preparation.manifest import Manifest, read_manifest
from inference.data.preparation.modality import Modality, check_usable, with_progress
from inference.data.preparation.options import Options
from inference.data.preparation.problems import Absence, Omission, UnusableError
from inference.data.preparation.roles import Role, find_roles, find_samples
from inference.data.preparation.sample_file import SAMPLE, SampleFile
from inference.data.preparation.scalars import scalar_modality
from inference.data.preparation.vectors import vector_modality
from inference.results.files import write_atomically
from inference.results.versions import FORMAT, FORMAT_KEY

__all__ = ["Plan", "Prepared", "make_plan", "write_samples"]


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
