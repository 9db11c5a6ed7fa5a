"""`python -m inference.evaluate`: how well a finished run recovers what is known.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

import torch

from inference.command_line.errors import run_command
from inference.command_line.evaluate_arguments import Arguments, parse
from inference.command_line.run_data import data_of_run
from inference.data.multimodal import MultimodalData
from inference.evaluation.label_table import read_labels
from inference.evaluation.run_scores import found_in, known_of, score_run
from inference.evaluation.scores import Known
from inference.results.evaluation_remarks import evaluation_remarks
from inference.results.evaluation_table import evaluation_table
from inference.results.figures import write_score_figures
from inference.results.files import write_json
from inference.results.run_folder import RunFolder
from inference.training.fitted_run import FittedRun, load_run

__all__ = ["main"]


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
