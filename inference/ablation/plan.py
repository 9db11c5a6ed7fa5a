"""What an ablation runs: every cell with every seed, in folders of their own; what cannot run, and why."""

from __future__ import annotations

import hashlib
import itertools
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, NoReturn

from causalpima.inference.store.files import OutputError, write_json
from causalpima.inference.store.input_files import read_json, reason_of
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.store.yaml_text import read_yaml
from causalpima.inference.training.user_code import own_names, source_hashes

__all__ = [
    "CODE",
    "OF_ONE_FIT",
    "OF_THE_ABLATION",
    "Cell",
    "Check",
    "Fit",
    "NoSettingError",
    "Plan",
    "PlannedCell",
    "as_words",
    "assignment",
    "cells_of",
    "check_code",
    "is_for_all_modalities",
    "keep_code",
    "planned",
    "read_arms",
    "refuse_flag",
    "silent_differences",
    "spread_over_modalities",
    "value_text",
    "varied",
]


# Cells of an ablation: named settings, from a grid of values, arms, or both.


# In bytes, as file systems count: letters outside of ASCII have up to four.
_LONGEST_FOLDER = 80


@dataclass(frozen=True)
class Cell:
    """One setting under which every seed is fitted.

    Attributes:
        name: How it is called in tables.
        flags: What distinguishes it: values by flag of `inference.svi`.
    """

    name: str
    flags: Mapping[str, str]

    @property
    def folder(self) -> str:
        """A name for its folder; what no file system minds stays as it is."""
        plain = re.sub(r"[^\w.,=+-]", "_", self.name).lstrip(".")
        start = plain.encode()[:_LONGEST_FOLDER].decode(errors="ignore")
        if start == self.name:
            return start
        return f"{start}-{hashlib.sha256(self.name.encode()).hexdigest()[:6]}"


def cells_of(arms: Sequence[Cell], grid: Sequence[tuple[str, Sequence[str]]]) -> tuple[Cell, ...]:
    """Every arm with every combination of the grid's values; the last flag changes fastest.

    Args:
        arms: Named settings; none: the grid alone.
        grid: Values by flag, in order.

    Raises:
        ValueError: There is nothing to compare, a flag is varied twice, or an arm sets a flag that is varied.
    """
    names = [name for name, _ in grid]
    if len(set(names)) < len(names):
        raise ValueError(f"vary: expected every flag once, got {', '.join(names)}; give all its values at once")
    points = [dict(zip(names, values, strict=True)) for values in itertools.product(*(values for _, values in grid))]
    cells = tuple(_joined(arm, point) for arm in arms or (Cell("", {}),) for point in points)
    if not arms and not grid:
        raise ValueError(
            "vary: expected something to compare, got nothing; for example --vary objective=collapsed,meanfield, "
            "or --arms FILE.yaml"
        )
    return cells


def _joined(arm: Cell, point: Mapping[str, str]) -> Cell:
    both = next((name for name in point if name in arm.flags), None)
    if both is not None:
        raise ValueError(
            f"vary: expected flags that no arm sets, got {both}, which {arm.name} sets; leave it out of one of the two"
        )
    words = [arm.name] if arm.name else []
    return Cell(",".join([*words, *(f"{name}={value}" for name, value in point.items())]), {**arm.flags, **point})


# `FLAG=VALUE` and `FLAG=VALUE,VALUE`: settings of a fit as they stand in the flags of an ablation.


_EVERY_MODALITY = "modality.*."
_SWITCHES = ("paper_settings",)

OF_ONE_FIT = {
    "seed": "give --seeds",
    "resume": "the same command again goes on with what is unfinished",
    "stop_after": "Ctrl-C stops, and the same command again goes on",
    "print_config": "every run folder holds its config.yaml",
}
"""Flags of `inference.svi` that make no sense for several fits, and what does."""

OF_THE_ABLATION = dict.fromkeys(
    ("output_dir", "json", "quiet", "dry_run", "force", "help"), "give it to the ablation itself"
)
"""Flags of `inference.svi` that the ablation has as well: no setting of a fit."""


def refuse_flag(name: str) -> NoReturn:
    """Refuse a flag that distinguishes no cell.

    Raises:
        ValueError: Always; it says what to do.
    """
    advice = {**OF_ONE_FIT, **OF_THE_ABLATION}[name]
    raise ValueError(f"{name}: expected no such flag, since there are several fits; {advice}")


def assignment(text: str, flag: str = "set") -> tuple[str, str]:
    """Name and value of `training.epochs=5`.

    Args:
        text: The text.
        flag: Flag that it stands behind, for messages.

    Raises:
        ValueError: There is no `=`, or nothing before it.

    >>> assignment("modality.image.decoder.sizes=[64,32]")
    ('modality.image.decoder.sizes', '[64,32]')
    """
    name, equals, value = text.partition("=")
    name = name.strip().removeprefix("--")
    if not name or not equals:
        raise ValueError(f"{flag}: expected FLAG=VALUE with a flag of inference.svi, got {text!r}; write it so")
    return name, value.strip()


def varied(text: str) -> tuple[str, tuple[str, ...]]:
    """Name and values of `model.prior=dag,mixture`.

    Commas within brackets do not part values; values that hold commas are parted by semicolons: `nodes=2,2;4`.

    Raises:
        ValueError: No `=`, no value, or one that is given twice.

    >>> varied("modality.image.decoder.sizes=[64,32],[128]")
    ('modality.image.decoder.sizes', ('[64,32]', '[128]'))
    """
    name, rest = assignment(text, "vary")
    parts = rest.split(";") if ";" in rest else _outside_brackets(rest)
    values = tuple(part.strip() for part in parts)
    if not all(values) or len(set(values)) < len(values):
        raise ValueError(
            f"vary: expected different values of {name} with commas between them, got {rest!r}; "
            "part values that hold commas by semicolons"
        )
    return name, values


def _outside_brackets(text: str) -> list[str]:
    """Parts between commas; what stands in brackets or braces is one part."""
    depths, depth = [], 0
    for character in text:
        depth += (character in "[{(") - (character in "]})")
        depths.append(depth)
    cuts = [i for i, character in enumerate(text) if character == "," and depths[i] <= 0]
    return [text[start + 1 : end] for start, end in zip([-1, *cuts], [*cuts, len(text)], strict=True)]


def value_text(value: Any) -> str:
    """A value of a YAML file as it stands on a command line: `true`, `null`, `[64, 32]`.

    >>> value_text(True), value_text([64, 32]), value_text("dag")
    ('true', '[64, 32]', 'dag')
    """
    return value if isinstance(value, str) else json.dumps(value)


def is_for_all_modalities(name: str) -> bool:
    """Whether a flag is one of `modality.*.REST`."""
    return name.startswith(_EVERY_MODALITY)


def spread_over_modalities(flags: Mapping[str, str], modalities: Sequence[str]) -> dict[str, str]:
    """The flags with `modality.*.REST` written out for every modality.

    What is said of a single one goes over what is said of all.

    Args:
        flags: Values by name.
        modalities: Words of the modalities, as in flags.
    """
    found: dict[str, str] = {}
    for name, value in flags.items():
        if is_for_all_modalities(name):
            rest = name.removeprefix(_EVERY_MODALITY)
            found |= {f"modality.{word}.{rest}": value for word in modalities}
    return found | {name: value for name, value in flags.items() if not is_for_all_modalities(name)}


def as_words(flags: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The settings as words of a command line; a switch stands alone, or not at all."""
    return tuple(word for name, value in flags for word in _word(name, value))


def _word(name: str, value: str) -> tuple[str, ...]:
    if name not in _SWITCHES:
        return (f"--{name}={value}",)
    if not re.fullmatch("true|false", value):
        raise ValueError(f"{name}: expected true or false, got {value!r}; it is a switch")
    return (f"--{name}",) if value == "true" else ()


Check = Callable[[Sequence[str]], Mapping[str, Any]]
"""From words of `inference.svi` to all settings of the fit.

It raises ValueError where these do not go together, and `NoSettingError` where one of them is no setting of any fit.
"""


class NoSettingError(ValueError):
    """A misspelled flag or a value that no fit takes: nothing that can be compared, and no outcome of an ablation.

    Attributes:
        cell: Name of the cell that has it.
    """

    cell: str = ""


@dataclass(frozen=True)
class Fit:
    """One cell with one seed.

    Attributes:
        cell: Name of the cell.
        seed: Seed of the fit, and of the data where these are generated.
        words: Words for `inference.svi`, without the folder.
        folder: Run folder.
    """

    cell: str
    seed: int
    words: tuple[str, ...]
    folder: Path

    @property
    def log(self) -> Path:
        """What the fit prints."""
        return self.folder.with_name(f"{self.folder.name}.log")


@dataclass(frozen=True)
class PlannedCell:
    """A cell, and whether it may run.

    Attributes:
        cell: The cell.
        words: Words for `inference.svi`, without seed and folder.
        settings: All settings of its fits, with the first seed; None where they are refused.
        refusal: Why they are refused, or None.
    """

    cell: Cell
    words: tuple[str, ...]
    settings: Mapping[str, Any] | None
    refusal: str | None = None

    @property
    def n_modalities(self) -> int:
        """Number of modalities of its data; 0 of a refused cell."""
        return len((self.settings or {}).get("modality", {}))


@dataclass(frozen=True)
class Plan:
    """All cells and seeds.

    Attributes:
        folder: Folder of the ablation.
        cells: The cells, those that are refused, too.
        seeds: Seeds, the same for every cell: differences are paired by them.
        baseline: Name of the cell that the others are compared with.
    """

    folder: Path
    cells: tuple[PlannedCell, ...]
    seeds: tuple[int, ...]
    baseline: str

    @property
    def names(self) -> tuple[str, ...]:
        """Names of all cells, in order."""
        return tuple(planned.cell.name for planned in self.cells)

    @property
    def fits(self) -> tuple[Fit, ...]:
        """All fits that may run, seed by seed: an ablation that is stopped early has the same seeds of all cells."""
        able = [planned for planned in self.cells if planned.refusal is None]
        return tuple(self.fit(planned, seed) for seed in self.seeds for planned in able)

    def fit(self, planned: PlannedCell, seed: int) -> Fit:
        """The fit of a cell with a seed."""
        folder = self.folder / "runs" / planned.cell.folder / f"seed-{seed}"
        return Fit(planned.cell.name, seed, (*planned.words, f"--seed={seed}"), folder)


def planned(
    cells: Sequence[Cell], common: Sequence[str], together: Mapping[str, str], first_seed: int, check: Check
) -> tuple[PlannedCell, ...]:
    """The cells with all their settings; those that are refused with the reason.

    Args:
        cells: The cells.
        common: Words of `inference.svi` that hold for all cells: they name the data.
        together: Settings of all cells, by flag; those of a cell go over them.
        first_seed: Seed for the check.
        check: Finds the settings.

    Raises:
        ValueError: Two cells have one name, or a flag is no setting of a fit.
        NoSettingError: A flag that there is not, or a value that is none of its flag.
    """
    for name in dict.fromkeys(name for flags in (together, *(cell.flags for cell in cells)) for name in flags):
        if name in OF_ONE_FIT or name in OF_THE_ABLATION:
            refuse_flag(name)
    names = [cell.name for cell in cells]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise ValueError(f"vary: expected cells with different names, got two of {twice}; rename an arm")
    words = (*common, f"--seed={first_seed}")
    return tuple(_planned(cell, words, {**together, **cell.flags}, check) for cell in cells)


def _planned(cell: Cell, common: Sequence[str], flags: Mapping[str, str], check: Check) -> PlannedCell:
    try:
        words = as_words(spread_over_modalities(flags, _modalities(common, flags, check)).items())
        settings = check([*common, *words])
    except NoSettingError as error:
        error.cell = cell.name
        raise
    except ValueError as error:
        return PlannedCell(cell, (), None, " ".join(str(error).split()))
    return PlannedCell(cell, (*common[:-1], *words, *_one_at_a_time(settings)), settings)


def _modalities(common: Sequence[str], flags: Mapping[str, str], check: Check) -> tuple[str, ...]:
    """Words of the modalities of the data, where a flag is for all of them."""
    single = {name: value for name, value in flags.items() if not is_for_all_modalities(name)}
    return () if len(single) == len(flags) else tuple(check([*common, *as_words(single.items())])["modality"])


def _one_at_a_time(settings: Mapping[str, Any]) -> tuple[str, ...]:
    """Several starts of one fit run one after the other: the processes are those of the ablation."""
    is_free = settings.get("restarts", 1) > 1 and settings.get("restart_mode") != "batched" and "jobs" not in settings
    return ("--jobs=1",) if is_free else ()


# Arms of an ablation: named settings in a YAML file.


def read_arms(path: Path) -> tuple[Cell, ...]:
    """The arms of a YAML file: settings by flag, below the name of each arm.

    Raises:
        ValueError: The file cannot be read, or holds something else.
    """
    try:
        content = read_yaml(path)
    except (OSError, ValueError) as error:
        raise ValueError(f"arms: expected a readable YAML file, got {path} ({reason_of(error)}); mend it") from error
    if not isinstance(content, dict) or not content:
        raise ValueError(f"arms: expected settings below the name of each arm in {path}, got none; see docs/ablate.md")
    return tuple(_arm(path, name, flags) for name, flags in content.items())


def _arm(path: Path, name: object, flags: object) -> Cell:
    if not str(name).strip() or not str(name).isprintable():
        raise ValueError(
            f"arms: expected a name on one line for every arm in {path}, got {str(name)!r}; rename the arm"
        )
    if not isinstance(flags, dict | None):
        raise ValueError(
            f"arms: expected values by flag for {name} in {path}, got {flags!r}; write {name}: {{training.epochs: 5}}"
        )
    return Cell(str(name), {flag.removeprefix("--"): value_text(value) for flag, value in (flags or {}).items()})


# Code of a user's own that cells name as `module:NAME`: fits of one cell are of one and the same file.


CODE = "code.json"
"""File with the hashes of a cell's code, by cell and setting."""


def check_code(plan: Plan) -> None:
    """Refuse a cell whose code changed after fits of it had begun, of whatever seeds.

    Raises:
        OutputError: Such a cell, by name, with the setting.
    """
    before = _kept(plan)
    folders = {fit.cell: fit.folder.parent for fit in plan.fits}
    begun = {cell for cell, folder in folders.items() if any(RunFolder(f).config.is_file() for f in folder.glob("*"))}
    for planned in plan.cells:
        name = planned.cell.name
        if name in begun and name in before:
            _check_cell(planned, before[name])


def _check_cell(planned: PlannedCell, before: Mapping[str, str]) -> None:
    now = _hashes(planned)
    changed = next((setting for setting in now if now[setting] != before.get(setting)), None)
    if changed is not None:
        what = own_names(planned.settings or {})[changed]
        raise OutputError(
            f"output_dir: expected the code of the earlier fits of {planned.cell.name}, got another file for "
            f"{changed} {what}; put it back, name another folder, or remove the fits in runs/{planned.cell.folder}"
        )


def keep_code(plan: Plan) -> None:
    """Leave the hashes of the code that cells name in the folder of the ablation; nothing where none names any."""
    now = {planned.cell.name: _hashes(planned) for planned in plan.cells}
    kept = {**_kept(plan), **{name: hashes for name, hashes in now.items() if hashes}}
    if kept:
        write_json(plan.folder / CODE, kept)


def _hashes(planned: PlannedCell) -> dict[str, str]:
    """Code that is not there, or fails, is told by the fit, which is refused."""
    try:
        return source_hashes(planned.settings or {})
    except ValueError:
        return {}


def _kept(plan: Plan) -> dict[str, Any]:
    try:
        content = read_json(plan.folder / CODE, plan.folder)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


# Settings in which a cell differs from the baseline although nobody said so: defaults that follow another setting.


_FOR_SCORES = ("labels",)
"""Columns that scores are taken against: they follow `observe`, and change no fit."""


def silent_differences(plan: Plan) -> tuple[str, ...]:
    """A sentence per cell that has such settings.

    Args:
        plan: The plan, with all settings of every cell.
    """
    baseline = next((planned for planned in plan.cells if planned.cell.name == plan.baseline), None)
    if baseline is None or baseline.settings is None:
        return ()
    return tuple(_sentences(plan, baseline))


def _sentences(plan: Plan, baseline: PlannedCell) -> Iterator[str]:
    usual = dict(_leaves("", baseline.settings))
    for planned in plan.cells:
        if planned.settings is None:
            continue
        own = dict(_leaves("", planned.settings))
        said = (*planned.cell.flags, *baseline.cell.flags)
        changed = [name for name in {**usual, **own} if usual.get(name) != own.get(name) and name not in _FOR_SCORES]
        names = [name for name in changed if not _is_said(name, said)]
        if names:
            told = ", ".join(f"{name} {_shown(usual.get(name))} -> {_shown(own.get(name))}" for name in names)
            yield f"{planned.cell.name} also differs from {plan.baseline} by defaults that follow: {told}."


def _is_said(name: str, flags: tuple[str, ...]) -> bool:
    """A flag is said itself, or a group that it is in, `modality.*.decoder` of every modality, too."""
    return any(fnmatchcase(name, flag) or fnmatchcase(name, f"{flag}.*") for flag in flags)


def _leaves(prefix: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, Mapping) and value:
        for key, entry in value.items():
            yield from _leaves(f"{prefix}.{key}" if prefix else str(key), entry)
    else:
        yield prefix, value


def _shown(value: Any) -> str:
    """As on the command line: `[64,32]`, `true`; what is empty is none."""
    if value is None or value in ([], {}, ()):
        return "none"
    if isinstance(value, Mapping):
        return f"{{{','.join(f'{key}: {_shown(entry)}' for key, entry in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(map(_shown, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
