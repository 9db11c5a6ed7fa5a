"""What each column of the manifest is for: as flags say, else as its name and its entries suggest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Literal

import h5netcdf
import h5py
import numpy as np

from causalpima.inference.data.preparation.fields import clean_name, is_number, split_limit, whole_numbers
from causalpima.inference.data.preparation.manifest import Column, Manifest
from causalpima.inference.data.preparation.modality import FEWEST_COLUMNS, Modality, vector_of
from causalpima.inference.data.preparation.options import Omission, Options
from causalpima.inference.store.hdf5 import FailureTakingFile

__all__ = [
    "NOT_RECORDED",
    "SAMPLE",
    "Kind",
    "Known",
    "Role",
    "SampleFile",
    "distinct_rows",
    "find_roles",
    "find_samples",
    "group_entries",
    "known_of",
    "sample_names",
]


Kind = Literal["id", "images", "curves", "scalars", "vectors", "labels", "covariates", "group", "ignore"]

_IMAGE_SUFFIXES = {".png", ".jpg", ".jpeg", ".tif", ".tiff"}
_CURVE_SUFFIXES = {".csv", ".txt", ".xy", ".tsv", ".dat", ".asc", ".jdx", ".dx", ".jcm"}
_BY_NAME: Mapping[str, Kind] = {
    "replicate_of": "group",
    "group": "group",
    "batch": "covariates",
    "instrument": "covariates",
    "machine": "covariates",
    "operator": "covariates",
    "plate": "covariates",
    "label": "labels",
    "class": "labels",
}
_ID_NAMES = ("id", "sample", "sample_id", "sample_name", "name")
_MODALITIES = {"images", "curves", "scalars", "vectors"}
_NUMBERS = "numbers"
_MOST_SCALARS = 30
_SHOWN = 3
_ENOUGH_PATHS = 0.5
_ENOUGH_NUMBERS = 0.9


@dataclass(frozen=True)
class Role:
    """What a column is for, and why; of an element of a vector, the name of that."""

    column: Column
    kind: Kind
    why: str
    vector: str = ""


def find_roles(manifest: Manifest, options: Options) -> tuple[Role, ...]:
    """A role for every column, in the order of the manifest.

    A flag names all columns of its role: what else looks like one is ignored, and said so. At most one column is the
    identifier and one the group.

    Raises:
        ValueError: A flag names no column, two flags name one, or no column holds a measurement.
    """
    named = _named_roles(manifest, options)
    given = {role.kind for role in named.values() if role.kind != "ignore"} | _emptied(options)
    found = {**named}
    _find_id(manifest, found, given)
    for column in manifest.columns:
        if column.header not in found:
            is_curve = column.header in manifest.curves and "curves" not in given
            role = Role(column, "curves", "points of a sample in rows") if is_curve else _suggested(column)
            found[column.header] = _once(role, given)
    if "scalars" not in given:
        found |= _vectors(manifest, found)
    if not any(role.kind in _MODALITIES for role in found.values()):
        raise ValueError(
            f"{manifest.path}: expected a column with paths of images or curves, or with numbers, got none; "
            "name one with --images, --curves or --scalars"
        )
    return tuple(found[column.header] for column in manifest.columns)


def find_samples(manifest: Manifest, options: Options) -> Column | None:
    """The column that names the samples by a flag or its own name."""
    if options.id is not None:
        return manifest.find(options.id, "id")
    by_name = [column for column in manifest.columns if column.name.lower() in _ID_NAMES]
    return min(by_name, key=lambda column: _ID_NAMES.index(column.name.lower()), default=None)


def _vectors(manifest: Manifest, found: Mapping[str, Role]) -> dict[str, Role]:
    """Roles of columns of numbers that have a common name and a number each: one vector.

    Raises:
        ValueError: So many columns of numbers are left that they can hardly be measurements of their own.
    """
    free = [role for role in found.values() if role.kind == "scalars" and role.why == _NUMBERS]
    groups: dict[tuple[str, str], list[Role]] = {}
    for role in sorted(free, key=lambda role: manifest.columns.index(role.column)):
        element = vector_of(role.column)
        if element is not None:
            groups.setdefault((element[0], role.column.units), []).append(role)
    taken = {column.name for column in manifest.columns}
    vectors: dict[str, Role] = {}
    for (name, _), roles in groups.items():
        if len(roles) < FEWEST_COLUMNS:
            continue
        variable = clean_name(name)
        while variable in taken:
            variable += "_values"
        taken.add(variable)
        for role in roles:
            vectors[role.column.header] = Role(role.column, "vectors", f"numbers of {len(roles)} columns", variable)
    left = [role.column.header for role in free if role.column.header not in vectors]
    if len(left) > _MOST_SCALARS:
        raise ValueError(
            f"{manifest.path}: expected at most {_MOST_SCALARS} columns of numbers that are measurements of their own, "
            f"got {len(left)} ({', '.join(left[:_SHOWN])}, ...); call those that belong together NAME_1, NAME_2 and so "
            "on, or name those to use with --scalars"
        )
    return vectors


def _words(options: Options) -> dict[Kind, tuple[str, ...] | None]:
    """The words that each flag gives; None for one that is not given."""
    return {
        "id": None if options.id is None else (options.id,),
        "images": options.images,
        "curves": options.curves,
        "scalars": options.scalars,
        "labels": options.labels,
        "covariates": options.covariates,
        "group": None if options.group is None else (options.group,),
        "ignore": options.ignore,
    }


def _emptied(options: Options) -> set[Kind]:
    return {kind for kind, words in _words(options).items() if words == () and kind != "ignore"}


def _named_roles(manifest: Manifest, options: Options) -> dict[str, Role]:
    found: dict[str, Role] = {}
    for kind, words in _words(options).items():
        for word in words or ():
            column = manifest.find(word, kind)
            if column.header in found:
                other = found[column.header].kind
                raise ValueError(f"{kind}: expected a column of one role, got {word!r}, which --{other} names, too")
            found[column.header] = Role(column, kind, f"--{kind}")
    return found


def _find_id(manifest: Manifest, found: dict[str, Role], given: set[Kind]) -> None:
    """The column that is named like an identifier, else the first in which every row has its own text."""
    free = [column for column in manifest.columns if column.header not in found]
    by_name = sorted((c for c in free if c.name.lower() in _ID_NAMES), key=lambda c: _ID_NAMES.index(c.name.lower()))
    unique = [column for column in free if _identifies(column)]
    if "id" not in given and (by_name or unique):
        column = (by_name or unique)[0]
        found[column.header] = Role(column, "id", "its name" if by_name else "a text of its own in every row")
    given.add("id")


def _identifies(column: Column) -> bool:
    is_text = _suggested(column).kind == "ignore"
    return is_text and all(column.written) and len(set(column.written)) == len(column.written)


def _suggested(column: Column) -> Role:
    entries = [entry for entry in column.entries if entry]
    if not entries:
        return Role(column, "ignore", "empty")
    by_content = _paths(column, entries)
    if by_content is not None:
        return by_content
    if column.name.lower() in _BY_NAME:
        return Role(column, _BY_NAME[column.name.lower()], "its name")
    if len(set(entries)) == 1:
        return Role(column, "ignore", "the same in every row")
    return _numbers_or_text(column, entries)


def _paths(column: Column, entries: list[str]) -> Role | None:
    suffixes = [PurePosixPath(entry.replace("\\", "/").lower().removesuffix(".gz")).suffix for entry in entries]
    if sum(suffix in _IMAGE_SUFFIXES for suffix in suffixes) >= _ENOUGH_PATHS * len(entries):
        return Role(column, "images", "paths of images")
    if sum(suffix in _CURVE_SUFFIXES for suffix in suffixes) >= _ENOUGH_PATHS * len(entries):
        return Role(column, "curves", "paths of tables")
    return None


def _numbers_or_text(column: Column, entries: list[str]) -> Role:
    n_numbers = sum(is_number(split_limit(entry)[1]) for entry in entries)
    if n_numbers >= _ENOUGH_NUMBERS * len(entries):
        return Role(column, "scalars", _NUMBERS)
    n_levels = len(set(entries))
    if 2 * n_levels <= len(entries):
        return Role(column, "labels", f"text with {n_levels} levels")
    return Role(column, "ignore", "text that hardly repeats")


def _once(role: Role, given: set[Kind]) -> Role:
    """The role, unless a flag has named all columns of it, or there can be one only and it is taken."""
    if role.kind in given:
        return Role(role.column, "ignore", f"looks like {role.kind} ({role.why}), but others are")
    if role.kind == "group":
        given.add("group")
    return role


# Names of the samples, rows that repeat them, and the group that each sample belongs to.


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


# A file of samples, written a block of samples at a time.


SAMPLE = "sample"
"""Name of the dimension of the samples, and of the variable with their names."""

_BLOCK_BYTES = 2**24
_MOST_ROWS = 1024
_CHUNK_BYTES = 2**18


@dataclass(frozen=True)
class Known:
    """What is known of every sample: a label, covariate or group, as whole numbers or text.

    Attributes:
        name: Name of the variable.
        values: One per row of the manifest, int64 or text.
        attributes: Of the variable.
    """

    name: str
    values: np.ndarray
    attributes: Mapping[str, str]


class SampleFile:
    """A netCDF file that grows by samples; use it in a `with` block.

    At most 16 MiB of measurements are held. The dimension of the samples is unlimited, and a chunk on disk is as many
    samples as fit into 256 KiB, so that batches can be read in any order.

    Args:
        path: New file.
        modalities: Its variables.
        attributes: Of the file.
    """

    def __init__(self, path: Path, modalities: Sequence[Modality], attributes: Mapping[str, str | int]) -> None:
        self.n_samples = 0
        self._modalities = modalities
        row_bytes = sum(_row_bytes(modality) for modality in modalities)
        self._block_rows = max(1, min(_MOST_ROWS, _BLOCK_BYTES // row_bytes))
        self._block: list[Mapping[str, np.ndarray]] = []
        self._raw = FailureTakingFile(path)
        self._file = h5netcdf.File(self._raw, "w")
        self._file.attrs.update(attributes)
        self._file.dimensions = {SAMPLE: None}
        for modality in modalities:
            self._create(modality)

    def __enter__(self) -> SampleFile:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._raw.close()
        if error is None:
            self._raw.check()

    def append(self, measured: Mapping[str, np.ndarray]) -> None:
        """Add a sample; what it lacks becomes NaN."""
        self._block.append(measured)
        self.n_samples += 1
        if len(self._block) == self._block_rows:
            self.flush()

    def flush(self) -> None:
        """Write the samples that are held."""
        begin = self.n_samples - len(self._block)
        self._file.resize_dimension(SAMPLE, self.n_samples)
        for modality in self._modalities:
            absent = np.full(modality.shape, np.nan, dtype=modality.dtype)
            rows = [measured.get(modality.name, absent) for measured in self._block]
            if rows:
                self._file[modality.name][begin : self.n_samples] = np.stack(rows)
        self._block = []
        self._raw.check()

    def finish(self, names: Sequence[str], known: Sequence[Known], rows: Sequence[int]) -> None:
        """Write what is held, the names of the samples, and what is known of them.

        Args:
            names: Name of every row of the manifest.
            known: What is known of every row.
            rows: Rows of the samples, in the order in which they were added.
        """
        self.flush()
        named = Known(SAMPLE, np.array(names, dtype=object), {"long_name": "name of the sample"})
        for variable in (named, *known):
            dtype = variable.values.dtype if variable.values.dtype.kind == "i" else h5py.string_dtype()
            created = self._file.create_variable(variable.name, (SAMPLE,), dtype=dtype, chunks=(_MOST_ROWS,))
            created[:] = variable.values[list(rows)]
            created.attrs.update(variable.attributes)

    def _create(self, modality: Modality) -> None:
        for name, size in zip(modality.dims, modality.shape, strict=True):
            self._file.dimensions[name] = size
        for name, coordinate in modality.coordinates.items():
            variable = self._file.create_variable(name, (name,), data=np.asarray(coordinate.values, dtype=float))
            variable.attrs.update(_attributes(long_name=coordinate.title, units=coordinate.units))
        rows = max(1, min(_MOST_ROWS, _CHUNK_BYTES // _row_bytes(modality)))
        variable = self._file.create_variable(
            modality.name,
            (SAMPLE, *modality.dims),
            dtype=modality.dtype,
            fillvalue=np.dtype(modality.dtype).type(np.nan),
            chunks=(rows, *modality.shape),
        )
        variable.attrs.update(
            _attributes(
                kind=modality.kind, long_name=modality.column.title, units=modality.units, comment=modality.rule
            )
        )


def _row_bytes(modality: Modality) -> int:
    return int(np.prod(modality.shape)) * np.dtype(modality.dtype).itemsize


def _attributes(**attributes: str) -> dict[str, str]:
    """Those that say something: netCDF tools read empty units as a unit."""
    return {name: text for name, text in attributes.items() if text}


# Labels, covariates and groups from the columns of the manifest.


NOT_RECORDED = "not recorded"

_ATTRIBUTE = {"labels": "label", "covariates": "covariate", "group": "group"}


def known_of(roles: Sequence[Role], names: Sequence[str], rows: Sequence[int]) -> list[Known]:
    """A variable for every column of labels, covariates and the group.

    Whole numbers without a gap stay numbers, all else is text. No entry in a label or covariate is a level of its own,
    `NOT_RECORDED`.

    Args:
        roles: Role of every column.
        names: Name of every row's sample.
        rows: Rows in use; the others do not matter.

    Raises:
        ValueError: Samples are replicates of each other.
    """
    return [_known(role, names, rows) for role in roles if role.kind in _ATTRIBUTE]


def _known(role: Role, names: Sequence[str], rows: Sequence[int]) -> Known:
    column = role.column
    entries = group_entries(column, names, rows) if role.kind == "group" else column.entries
    numbers = whole_numbers([entries[row] for row in rows])
    values = np.array([entry or NOT_RECORDED for entry in entries], dtype=object)
    if numbers is not None:
        values = np.zeros(len(entries), dtype=np.int64)
        values[list(rows)] = numbers
    attributes = {"role": _ATTRIBUTE[role.kind], "long_name": column.title}
    return Known(column.name, values, {**attributes, **({"units": column.units} if column.units else {})})
