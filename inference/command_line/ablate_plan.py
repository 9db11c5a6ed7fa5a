"""From the options of an ablation to its plan, and whether a folder holds the same one."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Annotated, Any

from causalpima.guides.encoders import ENCODERS
from causalpima.guides.fusion import FUSIONS
from causalpima.inference.ablation.plan import (
    OF_ONE_FIT,
    Cell,
    Check,
    Fit,
    NoSettingError,
    Plan,
    PlannedCell,
    assignment,
    cells_of,
    check_code,
    planned,
    read_arms,
    refuse_flag,
    varied,
)
from causalpima.inference.ablation.records import DEFAULT_METRICS, Metric, metric_named
from causalpima.inference.ablation.sweep import DEFAULT, Range, check_direction, check_optuna, corners, range_from_text
from causalpima.inference.command_line.command import NO_FLAG, Count, File, Folder
from causalpima.inference.command_line.svi_parser import UnparsableError, parse_settings
from causalpima.inference.command_line.svi_parser import parse as parse_fit
from causalpima.inference.command_line.words import whole_number
from causalpima.inference.store.files import OutputError, to_json
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.components import GRAPHS, PRIORS
from causalpima.inference.training.user_code import own_names
from causalpima.models.decoders.networks import NETWORKS
from causalpima.models.decoders.physics.laws import LAWS
from causalpima.models.user_code import names_user_code, on_word_of_files

__all__ = [
    "Options",
    "cannot_begin",
    "check_unchanged",
    "no_setting",
    "none_can_run",
    "other_baseline",
    "plan_of",
    "plan_of_cells",
    "settings_of",
    "split_words",
    "unknown_component",
]


# The two kinds of flags of `python -m inference.ablate`: its own, and those of `inference.svi` for all fits.


_REPEATED = ("vary", "set", "metrics", "sweep")
_VALUES = ("arms", "baseline", "seeds", "jobs", "json", "output_dir", "trials", "metric")
_SWITCHES = ("table_only", "dry_run", "quiet", "force", "help")


def split_words(argv: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words of the ablation, each flag in one word with its value, and those of every fit.

    Args:
        argv: The command line. Several values may follow `--vary`, `--set`, `--metrics` and `--sweep`.

    Raises:
        ValueError: A flag of `inference.svi` that makes no sense for several fits.

    >>> split_words(["--dataset", "circles", "--vary", "a=1,2", "b=3,4", "--quiet"])
    (['--vary=a=1,2', '--vary=b=3,4', '--quiet'], ['--dataset', 'circles'])
    """
    own: list[str] = []
    fits: list[str] = []
    for flag, values in _groups(argv):
        name, equals, _ = flag.removeprefix("--").partition("=")
        if name in OF_ONE_FIT:
            refuse_flag(name)
        if name not in (*_REPEATED, *_VALUES, *_SWITCHES) and flag != "-h":
            fits += [flag, *values]
        elif name in _REPEATED and values and not equals:
            own += [f"{flag}={value}" for value in values]
        else:
            own += [f"{flag}={values[0]}", *values[1:]] if values and not equals else [flag, *values]
    return own, fits


def _groups(argv: Sequence[str]) -> list[tuple[str, list[str]]]:
    """Each word that begins with a dash and what follows it; a negative number is a value."""
    groups: list[tuple[str, list[str]]] = []
    for word in argv:
        if not groups or word.startswith("--") or word == "-h":
            groups.append((word, []))
        else:
            groups[-1][1].append(word)
    return groups


# Options of `python -m inference.ablate`, checked as far as they go without data.


_TRIALS = 20
_MOST_SEEDS = 10_000
_METRIC = "held_out_log_likelihood"


def read_seeds(text: str) -> tuple[int, ...]:
    """`10`: 0 to 9; `3,5,7`: these; `3,`: one; `10..19`: ten of them."""
    try:
        found = _seeds_in(text.strip())
    except ValueError:
        found = ()
    if not found or len(set(found)) < len(found):
        raise ValueError(
            f"expected how many seeds, or different seeds, at most {_MOST_SEEDS} of them, got {text!r}; for example "
            "--seeds 10, 3,5,7 or 10..19"
        )
    return found


def _seeds_in(text: str) -> tuple[int, ...]:
    if ".." in text:
        first, _, last = text.partition("..")
        return _listed(range(whole_number(first), whole_number(last) + 1))
    if "," in text:
        return tuple(whole_number(word.strip()) for word in text.split(",") if word.strip())
    return _listed(range(whole_number(text)))


def _listed(seeds: range) -> tuple[int, ...]:
    if seeds.stop - seeds.start > _MOST_SEEDS:
        raise ValueError
    return tuple(seeds)


_SEVERAL = {"action": "append"}


@dataclass(frozen=True, kw_only=True)
class Searching:
    """A sweep in the place of --vary and --arms.

    Attributes:
        sweep: What Optuna searches.
        trials: Trials of a sweep; default 20.
        metric: What is to be good in a sweep; default held_out_log_likelihood.
    """

    sweep: Annotated[tuple[Range, ...], range_from_text, "FLAG=LOW..HIGH[:log]", _SEVERAL] = ()
    trials: Count | None = None
    metric: Annotated[str, "NAME"] | None = None


@dataclass(frozen=True, kw_only=True)
class Running:
    """How it runs.

    Attributes:
        table_only: Run nothing: write the table of what is finished so far.
        quiet: No line per fit.
        threads: Threads of the process of each fit.
        common: Words of `inference.svi` for all fits.
        typed: The whole command line.
    """

    table_only: bool = False
    quiet: bool = False
    threads: Count = 1
    common: tuple[str, ...] = field(default=(), metadata=NO_FLAG)
    typed: tuple[str, ...] = field(default=(), metadata=NO_FLAG)


@dataclass(frozen=True, kw_only=True)
class Options(Searching, Running):
    """Fit several settings to the same data with the same seeds, and compare them.

    A table with mean, standard deviation and paired differences from a baseline, and a figure per metric. Fits that
    fail are counted.

    Every flag of inference.svi that stands here holds for all fits. The same command again goes on with what is
    unfinished.

    Attributes:
        vary: Values of a flag of inference.svi to compare.
        arms: Named settings to compare: values by flag below each name.
        set: A setting of all fits; modality.*. is all.
        baseline: Cell that the others are compared with; default the first.
        seeds: How many seeds (10), or which: 3,5,7 or 10..19; default 1.
        metrics: What is compared; docs/ablate.md has the names, and paths into summary.json and evaluate.json will do.
        jobs: Fits at once.
        output_dir: Folder for the ablation; the same again goes on in it.
        dry_run: Print cells, number of fits and time, and stop.
        json: Write the table to this file, too.
    """

    vary: Annotated[tuple[tuple[str, tuple[str, ...]], ...], varied, "FLAG=A,B", _SEVERAL] = ()
    arms: Annotated[Path, "FILE.yaml"] | None = None
    set: Annotated[tuple[tuple[str, str], ...], assignment, "FLAG=VALUE", _SEVERAL] = ()
    baseline: Annotated[str, "NAME"] | None = None
    seeds: Annotated[tuple[int, ...], read_seeds, "SEEDS"] = (0,)
    metrics: Annotated[tuple[str, ...], "A,B", _SEVERAL] = ()
    jobs: Count = 1
    output_dir: Folder
    dry_run: bool = False
    json: File | None = None

    def __post_init__(self) -> None:
        of_sweep = [name for name in ("trials", "metric") if getattr(self, name) is not None]
        if of_sweep and not self.sweep:
            raise ValueError(f"{of_sweep[0]}: expected it with --sweep, got no sweep; say what is searched")
        others = [name for name in ("vary", "arms", "baseline") if getattr(self, name)]
        if others and self.sweep:
            raise ValueError(
                f"{others[0]}: expected no other cells beside those of a sweep, got some; "
                "settings of all fits go behind --set"
            )
        flags = [found.flag for found in self.sweep]
        if len(set(flags)) < len(flags):
            raise ValueError(f"sweep: expected every flag once, got {', '.join(flags)}; give one range of each")
        goal, _ = self.goal(), self.compared()
        if goal is not None:
            check_direction(goal)
            check_optuna()

    @property
    def together(self) -> dict[str, str]:
        """Settings of all fits, by flag."""
        return dict(self.set)

    @property
    def n_trials(self) -> int:
        """Trials of a sweep."""
        return self.trials or _TRIALS

    def goal(self) -> Metric | None:
        """What is to be good in a sweep; None: no sweep."""
        return metric_named(self.metric or _METRIC) if self.sweep else None

    def asked(self) -> list[Metric]:
        """The metrics that the command line names."""
        names = [name.strip() for text in self.metrics for name in text.split(",")]
        return [metric_named(name) for name in dict.fromkeys(names)]

    def compared(self) -> tuple[Metric, ...]:
        """What is compared."""
        found, goal = self.asked() or [metric_named(name) for name in DEFAULT_METRICS], self.goal()
        return (*([] if goal is None or goal in found else [goal]), *found)


# Names of components that there are not: a mistake in the command line, and no outcome of an ablation.
#
# Components are no closed choice, since a user may name code of his own, so that the parser takes every word for one.


_TABLES: Sequence[tuple[str, Collection[str], str]] = (
    ("model.prior", PRIORS, "module:Class"),
    ("model.graph", GRAPHS, "fixed:FILE or module:Class"),
    ("guide.fusion", FUSIONS, "module:Class"),
    ("modality.*.encoder.kind", ENCODERS, "module:function"),
    ("modality.*.decoder.kind", (*NETWORKS, *LAWS), "module:Class"),
)
_FILE = "fixed:"


def unknown_component(words: Sequence[str]) -> str | None:
    """What is said of the first word that names a component which there is not; None where all are there.

    Args:
        words: `--FLAG=VALUE`, of `inference.svi`; others are not looked at.
    """
    for word in words:
        flag, equals, value = word.removeprefix("--").partition("=")
        for pattern, names, own in _TABLES:
            if equals and fnmatchcase(flag, pattern) and not _is_known(value, names):
                return _told(flag, value, names, own)
    return None


def _is_known(value: str, names: Collection[str]) -> bool:
    return value in names or names_user_code(value) or value.startswith(_FILE)


def _told(flag: str, value: str, names: Collection[str], own: str) -> str:
    alike = get_close_matches(value, names)
    suggestion = f"; did you mean {', '.join(alike)}?" if alike else ""
    return f"{flag}: expected {', '.join(names)}, or {own}, got {value}{suggestion}"


# What is said where cells of an ablation cannot run: whose fault it is, the cell, and the file that it stands in.


_MOST_REASONS = 3


def no_setting(options: Options, error: NoSettingError, check: Check) -> ValueError:
    """A misspelled flag or value: of a cell, with its name; of all fits, as `inference.svi` says it.

    Args:
        options: The command line.
        error: What is said of the first cell that has it.
        check: From words to settings.
    """
    if _refusal_of_all(options, check) == str(error):
        return ValueError(str(error))
    return ValueError(
        f"{_source(options)}: expected settings of inference.svi, got one in {error.cell} that is none; {error}"
    )


def cannot_begin(options: Options, cell: str, error: ValueError) -> ValueError:
    """The data or the user's own code are found not to suit a cell when its fit begins.

    Args:
        options: The command line.
        cell: Name of the cell.
        error: What its fit says.
    """
    return ValueError(f"{_source(options)}: expected fits that can begin, got one of {cell} that cannot; {error}")


def none_can_run(options: Options, cells: Sequence[PlannedCell], check: Check) -> ValueError:
    """No cell can run: the reason that holds for all settings, or else the different ones with their cells.

    Args:
        options: The command line.
        cells: The cells, all of them refused.
        check: From words to settings.
    """
    of_all = _refusal_of_all(options, check)
    if of_all is not None and all(planned.refusal == of_all for planned in cells):
        return ValueError(of_all)
    reasons: dict[str, str] = {}
    for planned_cell in cells:
        reasons.setdefault(planned_cell.refusal or "", planned_cell.cell.name)
    told = [f"{name}: {reason}" for reason, name in reasons.items()][:_MOST_REASONS]
    more = [f"{len(reasons) - len(told)} more reasons"] if len(reasons) > len(told) else []
    return ValueError(f"{_source(options)}: expected a cell that can run, got none; {' | '.join([*told, *more])}")


def other_baseline(options: Options, cells: Sequence[PlannedCell], baseline: str) -> str | None:
    """A warning where the first cell cannot be the baseline, and nobody said which one is; else None.

    Args:
        options: The command line.
        cells: All cells.
        baseline: Name of the one that is the baseline instead.
    """
    first = cells[0]
    if options.baseline is not None or first.refusal is None:
        return None
    return (
        f"{first.cell.name} is refused, so differences are from {baseline}, the first cell that can run; "
        "name another with --baseline"
    )


def _refusal_of_all(options: Options, check: Check) -> str | None:
    """Why the settings that all cells share are refused on their own, or None."""
    try:
        (found,) = planned([Cell("", {})], options.common, options.together, options.seeds[0], check)
    except NoSettingError as error:
        return str(error)
    return found.refusal


def _source(options: Options) -> str:
    """Where the cells come from."""
    if options.arms is not None:
        return f"arms: {options.arms}"
    return "sweep" if options.sweep else "vary"


Settings = Mapping[str, Any]

# How the starts of a fit run is settled when it begins, and changes no result.
_NO_SETTINGS = ("jobs", "restart_mode")


def settings_of(words: Sequence[str]) -> Settings:
    """All settings of a fit, as its `config.yaml` has them.

    Raises:
        ValueError: They do not go together.
        NoSettingError: One of them is none.
    """
    try:
        plain: Settings = json.loads(to_json(parse_fit(words).to_config()))
    except UnparsableError as error:
        raise NoSettingError(str(error)) from error
    except ValueError as error:
        unknown = unknown_component(words)
        if unknown is not None:
            raise NoSettingError(unknown) from error
        raise
    return plain


def plan_of(options: Options) -> Plan:
    """The cells with their settings, or the reason why they are refused.

    Raises:
        ValueError: There is nothing that could run, the baseline can't, or a cell has what is no setting.
    """
    if options.sweep:
        _check_trials(options)
        return plan_of_cells(options, [Cell(DEFAULT, {})])
    arms = () if options.arms is None else read_arms(options.arms)
    return plan_of_cells(options, cells_of(arms, options.vary))


def plan_of_cells(options: Options, cells: Sequence[Cell]) -> Plan:
    """The same of given cells."""
    found = _planned(options, cells)
    return Plan(options.output_dir, found, options.seeds, _baseline(options, found))


def _planned(options: Options, cells: Sequence[Cell]) -> tuple[PlannedCell, ...]:
    try:
        return planned(cells, options.common, options.together, options.seeds[0], settings_of)
    except NoSettingError as error:
        raise no_setting(options, error, settings_of) from error


def _check_trials(options: Options) -> None:
    """Refuse a sweep no trial of which can run, before the default is fitted."""
    refusal = None
    for corner in corners(options.sweep):
        (found,) = _planned(options, [corner])
        if found.refusal is None:
            return
        refusal = found.refusal
    raise ValueError(f"sweep: expected values that can run, got none; {refusal}")


def _baseline(options: Options, cells: Sequence[PlannedCell]) -> str:
    name = options.baseline
    names = [planned.cell.name for planned in cells]
    able = [planned.cell.name for planned in cells if planned.refusal is None]
    if not able:
        raise none_can_run(options, cells, settings_of)
    if name is not None and name not in names:
        raise ValueError(f"baseline: expected one of {' | '.join(names)}, got {name!r}; name one of them")
    if name is not None and name not in able:
        raise ValueError(f"baseline: expected a cell that can run, got {name}; {cells[names.index(name)].refusal}")
    return able[0] if name is None else name


def check_unchanged(plan: Plan) -> None:
    """Refuse a folder with fits of other settings or code under the same names, and one that holds something else.

    More cells and more seeds are no change; settings that are new in the program count with their defaults.

    Raises:
        OutputError: Such a folder.
    """
    if not RunFolder(plan.folder).is_empty and not (plan.folder / "ablation.json").is_file():
        raise OutputError(
            f"output_dir: expected a new folder or that of an ablation, got {plan.folder} with other files; "
            "name another"
        )
    settings = {planned.cell.name: planned.settings or {} for planned in plan.cells}
    for fit in plan.fits:
        folder = RunFolder(fit.folder)
        if folder.config.is_file() or folder.is_complete:
            _check_fit(fit, {**settings[fit.cell], "seed": fit.seed})
    check_code(plan)


def _check_fit(fit: Fit, now: Settings) -> None:
    before = RunFolder(fit.folder).read_config()
    flag = None if before == now else _difference(_settings_again(before, own_names(now).values()), now)
    if flag is not None:
        raise OutputError(
            f"output_dir: expected the settings of the earlier fits in {fit.folder}, got others for {flag}; "
            "name another folder for another ablation"
        )


def _settings_again(settings: Settings, typed: Collection[str]) -> Settings:
    """Settings of an earlier version with the defaults of what is new; no other code is imported than was typed."""
    with on_word_of_files(allowed=False, typed=[name.partition(":")[0] for name in typed]):
        plain: Settings = json.loads(to_json(parse_settings(settings).to_config()))
    return plain


def _difference(one: Settings, other: Settings, prefix: str = "") -> str | None:
    """Name of the first setting that differs."""
    for name in dict.fromkeys([*one, *other]):
        a, b = one.get(name), other.get(name)
        if isinstance(a, Mapping) and isinstance(b, Mapping):
            inner = _difference(a, b, f"{prefix}{name}.")
            if inner is not None:
                return inner
        elif a != b and name not in _NO_SETTINGS:
            return f"{prefix}{name}"
    return None
