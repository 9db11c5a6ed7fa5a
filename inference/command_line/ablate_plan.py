"""From the arguments of an ablation to its plan, and whether a folder holds the same one."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from jsonargparse import ArgumentParser, Namespace

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
from causalpima.inference.ablation.records import DEFAULT_METRICS, METRICS, Metric, metric_named
from causalpima.inference.ablation.sweep import DEFAULT, Range, check_direction, check_optuna, corners, range_from_text
from causalpima.inference.command_line.parsing import command_parser, parse_in_plain_words
from causalpima.inference.command_line.svi_parser import UnparsableError, parse_settings
from causalpima.inference.command_line.svi_parser import parse as parse_fit
from causalpima.inference.command_line.words import count, optional_path, whole_number
from causalpima.inference.store.files import OutputError, to_json
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.components import GRAPHS, PRIORS
from causalpima.inference.training.user_code import own_names
from causalpima.models.decoders.networks import NETWORKS
from causalpima.models.decoders.physics.laws import LAWS
from causalpima.models.user_code import names_user_code, on_word_of_files

__all__ = [
    "Arguments",
    "cannot_begin",
    "check_unchanged",
    "no_setting",
    "none_can_run",
    "other_baseline",
    "parse",
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


# Arguments of `python -m inference.ablate`, checked as far as they go without data.


_TRIALS = 20
_MOST_SEEDS = 10_000
_METRIC = "held_out_log_likelihood"

_USAGE = (
    "python -m inference.ablate (--dataset NAME | --data FILE --nodes NODES) --vary FLAG=A,B [--vary ...] "
    "--seeds 10 --jobs 2 --output_dir FOLDER"
)
_DESCRIPTION = """\
Fit several settings to the same data with the same seeds, and compare them: a table with mean, standard deviation and
paired differences from a baseline, and a figure per metric. Fits that fail are counted.

Every flag of inference.svi that stands here holds for all fits. The same command again goes on with what is unfinished.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        common: Words of `inference.svi` for all fits.
        together: Settings of all fits, by flag.
        grid: Values by flag: every combination is a cell.
        arms: File of named settings, or None.
        baseline: Name of the cell that the others are compared with; None: the first one.
        seeds: Seeds of every cell.
        metrics: What is compared.
        asked: Names of the metrics that the command line names; none: those by default.
        jobs: Most fits at once.
        output_dir: Folder of the ablation.
        sweep: What a sweep searches; empty: no sweep.
        trials: Number of trials of a sweep.
        metric: What is to be good in a sweep; None: no sweep.
        json: File for a copy of the table, or None.
        table_only: Run nothing: the table of what is finished.
        dry_run: Only print what would be run.
        quiet: No line per fit.
    """

    common: tuple[str, ...]
    together: dict[str, str]
    grid: tuple[tuple[str, tuple[str, ...]], ...]
    arms: Path | None
    baseline: str | None
    seeds: tuple[int, ...]
    metrics: tuple[Metric, ...]
    asked: frozenset[str]
    jobs: int
    output_dir: Path
    sweep: tuple[Range, ...]
    trials: int
    metric: Metric | None
    json: Path | None
    table_only: bool
    dry_run: bool
    quiet: bool


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    own, common = split_words(argv)
    found = parse_in_plain_words(_build_parser(), own, lambda _: _NO_FOLDER, others=common)
    arms, json, output_dir = optional_path(found.arms), optional_path(found.json), Path(found.output_dir)
    _check_sweep(found)
    metric = metric_named(found.metric or _METRIC) if found.sweep else None
    if metric is not None:
        check_direction(metric)
        check_optuna()
    return Arguments(
        tuple(common),
        dict(assignment(text) for text in found.set or ()),
        tuple(varied(text) for text in found.vary or ()),
        arms,
        found.baseline,
        _seeds(found.seeds),
        _metrics(found.metrics or (), metric),
        frozenset(metric_named(name).name for name in _names(found.metrics or ())),
        found.jobs,
        output_dir,
        _ranges(found.sweep or ()),
        found.trials or _TRIALS,
        metric,
        json,
        found.table_only,
        found.dry_run,
        found.quiet,
    )


_NO_FOLDER = f"output_dir: expected a folder for the ablation, got none; {_USAGE}"


def _check_sweep(found: Namespace) -> None:
    """Flags of a sweep go with one, and one with no other cells."""
    of_sweep = [name for name in ("trials", "metric") if found[name] is not None]
    if of_sweep and not found.sweep:
        raise ValueError(f"{of_sweep[0]}: expected it with --sweep, got no sweep; say what is searched")
    others = [name for name in ("vary", "arms", "baseline") if found[name]]
    if others and found.sweep:
        raise ValueError(
            f"{others[0]}: expected no other cells beside those of a sweep, got some; "
            "settings of all fits go behind --set"
        )


def _metrics(texts: Sequence[str], of_sweep: Metric | None) -> tuple[Metric, ...]:
    found = [metric_named(name) for name in dict.fromkeys(_names(texts) or DEFAULT_METRICS)]
    return (*([] if of_sweep is None or of_sweep in found else [of_sweep]), *found)


def _names(texts: Sequence[str]) -> list[str]:
    return [name.strip() for text in texts for name in text.split(",")]


def _ranges(texts: Sequence[str]) -> tuple[Range, ...]:
    ranges = tuple(range_from_text(text) for text in texts)
    flags = [found.flag for found in ranges]
    if len(set(flags)) < len(flags):
        raise ValueError(f"sweep: expected every flag once, got {', '.join(flags)}; give one range of each")
    return ranges


def _seeds(text: str) -> tuple[int, ...]:
    """`10`: 0 to 9; `3,5,7`: these; `3,`: one; `10..19`: ten of them."""
    try:
        found = _seeds_in(text.strip())
    except ValueError:
        found = ()
    if not found or len(set(found)) < len(found):
        raise ValueError(
            f"seeds: expected how many seeds, or different seeds, at most {_MOST_SEEDS} of them, got {text!r}; for "
            "example --seeds 10, 3,5,7 or 10..19"
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


def _build_parser() -> ArgumentParser:
    parser = command_parser("ablate", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("--vary", type=str, action="append", metavar="FLAG=A,B", help="Values of a flag of inference.svi to compare.")
    add("--arms", type=str, metavar="FILE.yaml", help="Named settings to compare: values by flag below each name.")
    add("--set", type=str, action="append", metavar="FLAG=VALUE", help="A setting of all fits; modality.*. is all.")
    add("--baseline", type=str, metavar="NAME", help="Cell that the others are compared with; default the first.")
    add("--seeds", type=str, default="1", metavar="SEEDS", help="How many seeds (10), or which: 3,5,7 or 10..19.")
    add(
        "--metrics",
        type=str,
        action="append",
        metavar="A,B",
        help=f"What is compared, of {', '.join(METRICS)}, or paths into summary.json or evaluate.json.",
    )
    add("--sweep", type=str, action="append", metavar="FLAG=LOW..HIGH[:log]", help="What Optuna searches.")
    add("--trials", type=count, metavar="N", help=f"Trials of a sweep (default {_TRIALS}).")
    add("--metric", type=str, metavar="NAME", help=f"What is to be good in a sweep (default {_METRIC}).")
    add("--jobs", type=count, default=1, metavar="N", help="Fits at once (default 1).")
    # For --help: the word goes to the fits.
    add("--threads", type=count, default=1, metavar="N", help="Threads of the process of each fit (default 1).")
    add("--output_dir", type=str, required=True, metavar="FOLDER", help="Folder; the same again goes on in it.")
    add("--json", type=str, metavar="FILE", help="Write the table to this file, too.")
    add("--table_only", action="store_true", help="Run nothing: write the table of what is finished so far.")
    add("--dry_run", action="store_true", help="Print cells, number of fits and time, and stop.")
    add("--quiet", action="store_true", help="No line per fit.")
    return parser


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


def no_setting(arguments: Arguments, error: NoSettingError, check: Check) -> ValueError:
    """A misspelled flag or value: of a cell, with its name; of all fits, as `inference.svi` says it.

    Args:
        arguments: The command line.
        error: What is said of the first cell that has it.
        check: From words to settings.
    """
    if _refusal_of_all(arguments, check) == str(error):
        return ValueError(str(error))
    return ValueError(
        f"{_source(arguments)}: expected settings of inference.svi, got one in {error.cell} that is none; {error}"
    )


def cannot_begin(arguments: Arguments, cell: str, error: ValueError) -> ValueError:
    """The data or the user's own code are found not to suit a cell when its fit begins.

    Args:
        arguments: The command line.
        cell: Name of the cell.
        error: What its fit says.
    """
    return ValueError(f"{_source(arguments)}: expected fits that can begin, got one of {cell} that cannot; {error}")


def none_can_run(arguments: Arguments, cells: Sequence[PlannedCell], check: Check) -> ValueError:
    """No cell can run: the reason that holds for all settings, or else the different ones with their cells.

    Args:
        arguments: The command line.
        cells: The cells, all of them refused.
        check: From words to settings.
    """
    of_all = _refusal_of_all(arguments, check)
    if of_all is not None and all(planned.refusal == of_all for planned in cells):
        return ValueError(of_all)
    reasons: dict[str, str] = {}
    for planned_cell in cells:
        reasons.setdefault(planned_cell.refusal or "", planned_cell.cell.name)
    told = [f"{name}: {reason}" for reason, name in reasons.items()][:_MOST_REASONS]
    more = [f"{len(reasons) - len(told)} more reasons"] if len(reasons) > len(told) else []
    return ValueError(f"{_source(arguments)}: expected a cell that can run, got none; {' | '.join([*told, *more])}")


def other_baseline(arguments: Arguments, cells: Sequence[PlannedCell], baseline: str) -> str | None:
    """A warning where the first cell cannot be the baseline, and nobody said which one is; else None.

    Args:
        arguments: The command line.
        cells: All cells.
        baseline: Name of the one that is the baseline instead.
    """
    first = cells[0]
    if arguments.baseline is not None or first.refusal is None:
        return None
    return (
        f"{first.cell.name} is refused, so differences are from {baseline}, the first cell that can run; "
        "name another with --baseline"
    )


def _refusal_of_all(arguments: Arguments, check: Check) -> str | None:
    """Why the settings that all cells share are refused on their own, or None."""
    try:
        (found,) = planned([Cell("", {})], arguments.common, arguments.together, arguments.seeds[0], check)
    except NoSettingError as error:
        return str(error)
    return found.refusal


def _source(arguments: Arguments) -> str:
    """Where the cells come from."""
    if arguments.arms is not None:
        return f"arms: {arguments.arms}"
    return "sweep" if arguments.sweep else "vary"


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


def plan_of(arguments: Arguments) -> Plan:
    """The cells with their settings, or the reason why they are refused.

    Raises:
        ValueError: There is nothing that could run, the baseline can't, or a cell has what is no setting.
    """
    if arguments.sweep:
        _check_trials(arguments)
        return plan_of_cells(arguments, [Cell(DEFAULT, {})])
    arms = () if arguments.arms is None else read_arms(arguments.arms)
    return plan_of_cells(arguments, cells_of(arms, arguments.grid))


def plan_of_cells(arguments: Arguments, cells: Sequence[Cell]) -> Plan:
    """The same of given cells."""
    found = _planned(arguments, cells)
    return Plan(arguments.output_dir, found, arguments.seeds, _baseline(arguments, found))


def _planned(arguments: Arguments, cells: Sequence[Cell]) -> tuple[PlannedCell, ...]:
    try:
        return planned(cells, arguments.common, arguments.together, arguments.seeds[0], settings_of)
    except NoSettingError as error:
        raise no_setting(arguments, error, settings_of) from error


def _check_trials(arguments: Arguments) -> None:
    """Refuse a sweep no trial of which can run, before the default is fitted."""
    refusal = None
    for corner in corners(arguments.sweep):
        (found,) = _planned(arguments, [corner])
        if found.refusal is None:
            return
        refusal = found.refusal
    raise ValueError(f"sweep: expected values that can run, got none; {refusal}")


def _baseline(arguments: Arguments, cells: Sequence[PlannedCell]) -> str:
    name = arguments.baseline
    names = [planned.cell.name for planned in cells]
    able = [planned.cell.name for planned in cells if planned.refusal is None]
    if not able:
        raise none_can_run(arguments, cells, settings_of)
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
