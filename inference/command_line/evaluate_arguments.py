"""Arguments of `python -m inference.evaluate`, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from jsonargparse import ArgumentParser

from inference.command_line.flag_types import count, optional_path, whole_number
from inference.command_line.parsing import add_code_flag, command_parser, parse_in_plain_words

__all__ = ["Arguments", "parse"]

_USAGE = "python -m inference.evaluate RUN [--labels TABLE.csv] [--json FILE] [--figures FOLDER]"
_NO_RUN = f"run: expected the folder of a run, got none; {_USAGE}"
_DESCRIPTION = """\
Score a finished run against what is known of its samples: clusters, nodes, graph, calibration, held-out likelihood,
what nodes explain, and how well modalities are predicted from each other; beside scores stand chance and ceiling.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        labels: Table of labels to score against, instead of the factors that came with the data; or None.
        json: File for the scores, or None.
        figures: Folder for figures, or None.
        draws: Draws of Z per sample, where one modality is predicted from the others.
        seed: Seed of these draws and of random labellings.
        threads: Threads to compute with.
    """

    run: Path
    labels: Path | None
    json: Path | None
    figures: Path | None
    draws: int
    seed: int
    threads: int


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, lambda _: _NO_RUN)
    labels, json, figures = map(optional_path, (found.labels, found.json, found.figures))
    return Arguments(Path(found.run), labels, json, figures, found.draws, found.seed, found.threads)


def _build_parser() -> ArgumentParser:
    parser = command_parser("evaluate", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add = parser.add_argument
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add(
        "--labels",
        type=str,
        metavar="TABLE.csv",
        help="Labels to score against: a column per factor, a row per sample.",
    )
    add("--json", type=str, metavar="FILE", help="Write the scores to this file, too.")
    add("--figures", type=str, metavar="FOLDER", help="Write the figures of these scores into this folder.")
    add(
        "--draws",
        type=count,
        default=50,
        metavar="N",
        help="Draws per sample for cross-modal prediction (default 50).",
    )
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed of draws and of random labellings (default 0).")
    add("--threads", type=count, default=1, metavar="N", help="Threads to compute with (default 1).")
    return parser
