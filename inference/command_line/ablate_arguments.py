"""Arguments of `python -m inference.ablate`, checked as far as they go without data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser

from inference.ablation.assignments import assignment, varied
from inference.ablation.metrics import DEFAULT_METRICS, METRICS, Metric, metric_named
from inference.command_line.ablate_words import split_words
from inference.command_line.flag_types import count, optional_path, whole_number
from inference.command_line.output_files import check_output_files, check_output_folder
from inference.command_line.parsing import command_parser, parse_in_plain_words

__all__ = ["Arguments", "parse"]

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
        jobs: Most fits at once.
        output_dir: Folder of the ablation.
        json: File for a copy of the table, or None.
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
    jobs: int
    output_dir: Path
    json: Path | None
    dry_run: bool
    quiet: bool


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    own, common = split_words(argv)
    found = parse_in_plain_words(_build_parser(), own, lambda _: _NO_FOLDER)
    arms, json, output_dir = optional_path(found.arms), optional_path(found.json), Path(found.output_dir)
    check_output_folder(output_dir=output_dir)
    check_output_files(json=json)
    return Arguments(
        tuple(common),
        dict(assignment(text) for text in found.set or ()),
        tuple(varied(text) for text in found.vary or ()),
        arms,
        found.baseline,
        _seeds(found.seeds),
        _metrics(found.metrics or ()),
        found.jobs,
        output_dir,
        json,
        found.dry_run,
        found.quiet,
    )


_NO_FOLDER = f"output_dir: expected a folder for the ablation, got none; {_USAGE}"


def _metrics(texts: Sequence[str]) -> tuple[Metric, ...]:
    names = [name.strip() for text in texts for name in text.split(",")]
    return tuple(metric_named(name) for name in dict.fromkeys(names or DEFAULT_METRICS))


def _seeds(text: str) -> tuple[int, ...]:
    """`10`: 0 to 9; `3,5,7`: these; `3,`: one; `10..19`: ten of them."""
    try:
        found = _seeds_in(text.strip())
    except ValueError:
        found = ()
    if not found or len(set(found)) < len(found):
        raise ValueError(
            f"seeds: expected how many seeds, or different seeds, got {text!r}; for example --seeds 10, 3,5,7 or 10..19"
        )
    return found


def _seeds_in(text: str) -> tuple[int, ...]:
    if ".." in text:
        first, _, last = text.partition("..")
        return tuple(range(whole_number(first), whole_number(last) + 1))
    if "," in text:
        return tuple(whole_number(word.strip()) for word in text.split(",") if word.strip())
    return tuple(range(whole_number(text)))


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
    add("--jobs", type=count, default=1, metavar="N", help="Fits at once, a process with one thread each (default 1).")
    add("--output_dir", type=str, required=True, metavar="FOLDER", help="Folder; the same again goes on in it.")
    add("--json", type=str, metavar="FILE", help="Write the table to this file, too.")
    add("--dry_run", action="store_true", help="Print cells, number of fits and time, and stop.")
    add("--quiet", action="store_true", help="No line per fit.")
    return parser
