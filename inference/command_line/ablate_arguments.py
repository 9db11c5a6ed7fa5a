"""Arguments of `python -m inference.ablate`, checked as far as they go without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser, Namespace

from inference.ablation.assignments import assignment, varied
from inference.ablation.metrics import DEFAULT_METRICS, METRICS, Metric, metric_named
from inference.ablation.ranges import Range, range_from_text
from inference.ablation.sweep import check_direction, check_optuna
from inference.command_line.ablate_words import split_words
from inference.command_line.flag_types import count, optional_path, whole_number
from inference.command_line.parsing import command_parser, parse_in_plain_words

__all__ = ["Arguments", "parse"]

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
