"""`python -m inference.evaluate`: how well a finished run recovers what is known.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jsonargparse import ArgumentParser

from inference.analyses.cross_modal import found_in, known_of, score_run
from inference.analyses.scores import Known, read_labels
from inference.command_line.parsing import add_code_flag, command_parser, parse_in_plain_words, run_command
from inference.command_line.run_data import data_of_run
from inference.command_line.words import count, optional_path, whole_number
from inference.data.multimodal import MultimodalData
from inference.findings.evaluation import evaluation_remarks, evaluation_table
from inference.reporting.figures import write_score_figures
from inference.store.files import write_json
from inference.store.run_folder import RunFolder
from inference.training.fitted_run import FittedRun, load_run

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.evaluate`, checked.


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


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("evaluate", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    torch.set_num_threads(arguments.threads)
    folder = RunFolder(arguments.run)
    fitted = load_run(arguments.run)
    data = _data(arguments, folder)
    scores, remarks = _scores(arguments, folder, fitted, data)
    if arguments.figures is not None:
        write_score_figures(scores, arguments.figures, folder.read_summary().get("identifiability"))
    if arguments.json is not None:
        write_json(arguments.json, scores)
    print("\n\n".join(text for text in (remarks, evaluation_table(scores)) if text))
    return 0


def _scores(
    arguments: Arguments, folder: RunFolder, fitted: FittedRun, data: MultimodalData | None
) -> tuple[dict[str, Any], str]:
    """The scores, and what is to be known of them."""
    posterior, summary = folder.read_posterior(), folder.read_summary()
    found = found_in(posterior, None if data is None else data.groups, summary.get("labelling"))
    if data is not None and data.n_samples != len(found.split):
        raise ValueError(
            f"{folder.path}: expected the {len(found.split)} samples of the run, got {data.n_samples}; its file has "
            "changed, fit again"
        )
    known = known_of(data) if arguments.labels is None else _own_labels(arguments, posterior, len(found.split))
    scores = score_run(found, known, summary, fitted, data, arguments.draws, arguments.seed)
    return scores, evaluation_remarks(summary, scores, {} if known is None else known.factors, len(found.split))


def _own_labels(arguments: Arguments, posterior: Any, n_samples: int) -> Known:
    coordinates = posterior["variational"].coords
    names = coordinates["sample_name"].to_numpy().tolist() if "sample_name" in coordinates else None
    assert arguments.labels is not None
    return read_labels(arguments.labels, n_samples, names)


def _data(arguments: Arguments, folder: RunFolder) -> MultimodalData | None:
    """The samples of the run; where there are labels of one's own, it goes without them."""
    try:
        data = data_of_run(folder, with_labels=False)
    except ValueError as error:
        if arguments.labels is None:
            raise
        print(f"note: without the samples of the run ({error}), nothing is predicted", file=sys.stderr)
        return None
    if data is None and arguments.labels is None:
        print("note: the run names no data; give labels of its samples with --labels", file=sys.stderr)
    return data


if __name__ == "__main__":
    sys.exit(main())
