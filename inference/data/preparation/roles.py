"""What each column of the manifest is for: as flags say, else as its name and its entries suggest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Literal

from inference.data.preparation.headers import clean_name
from inference.data.preparation.manifest import Column, Manifest
from inference.data.preparation.numbers import is_number, split_limit
from inference.data.preparation.options import Options
from inference.data.preparation.vectors import FEWEST_COLUMNS, vector_of

__all__ = ["Kind", "Role", "find_roles", "find_samples"]

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
