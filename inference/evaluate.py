"""`python -m inference.evaluate`: how well a finished run recovers what is known.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Any

import torch

from causalpima.inference.analyses.cross_modal import found_in, known_of, score_run
from causalpima.inference.analyses.scores import Known, read_labels
from causalpima.inference.command_line.command import Command, Count, File, Folder, Run, Seed
from causalpima.inference.command_line.run_data import data_of_run
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.evaluation import evaluation_remarks, evaluation_table
from causalpima.inference.reporting.figures.files import write_score_figures
from causalpima.inference.store.files import write_json
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import FittedRun, load_run

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


@dataclass(frozen=True)
class Options:
    """Score a finished run against what is known of its samples.

    Clusters, nodes, graph, calibration, held-out likelihood, what nodes explain, and how well modalities are predicted
    from each other; beside scores stand chance and ceiling.

    Attributes:
        run: Folder of a finished run.
        labels: Labels to score against, in place of the factors that came with the data: a column per factor, a row per
            sample.
        json: Write the scores to this file, too.
        figures: Write the figures of these scores into this folder.
        draws: Draws per sample for cross-modal prediction.
        seed: Seed of draws and of random labellings.
        threads: Threads to compute with.
    """

    run: Run
    _: KW_ONLY
    labels: Annotated[Path, "TABLE.csv"] | None = None
    json: File | None = None
    figures: Folder | None = None
    draws: Count = 50
    seed: Seed = 0
    threads: Count = 1


def run(options: Options) -> int:
    """Score a run, write and print the scores; returns the exit status."""
    torch.set_num_threads(options.threads)
    folder = RunFolder(options.run)
    fitted = load_run(options.run)
    data = _data(options, folder)
    scores, remarks = _scores(options, folder, fitted, data)
    if options.figures is not None:
        write_score_figures(scores, options.figures, folder.read_summary().get("identifiability"))
    if options.json is not None:
        write_json(options.json, scores)
    print("\n\n".join(text for text in (remarks, evaluation_table(scores)) if text))
    return 0


def _scores(
    options: Options, folder: RunFolder, fitted: FittedRun, data: MultimodalData | None
) -> tuple[dict[str, Any], str]:
    """The scores, and what is to be known of them."""
    posterior, summary = folder.read_posterior(), folder.read_summary()
    found = found_in(posterior, None if data is None else data.groups, summary.get("labelling"))
    if data is not None and data.n_samples != len(found.split):
        raise ValueError(
            f"{folder.path}: expected the {len(found.split)} samples of the run, got {data.n_samples}; its file has "
            "changed, fit again"
        )
    known = known_of(data) if options.labels is None else _own_labels(options, posterior, len(found.split))
    scores = score_run(found, known, summary, fitted, data, options.draws, options.seed)
    return scores, evaluation_remarks(summary, scores, {} if known is None else known.factors, len(found.split))


def _own_labels(options: Options, posterior: Any, n_samples: int) -> Known:
    coordinates = posterior["variational"].coords
    names = coordinates["sample_name"].to_numpy().tolist() if "sample_name" in coordinates else None
    assert options.labels is not None
    return read_labels(options.labels, n_samples, names)


def _data(options: Options, folder: RunFolder) -> MultimodalData | None:
    """The samples of the run; where there are labels of one's own, it goes without them."""
    try:
        data = data_of_run(folder, with_labels=False)
    except ValueError as error:
        if options.labels is None:
            raise
        print(f"note: without the samples of the run ({error}), nothing is predicted", file=sys.stderr)
        return None
    if data is None and options.labels is None:
        print("note: the run names no data; give labels of its samples with --labels", file=sys.stderr)
    return data


COMMAND = Command("evaluate", Options, run, runs_code=True)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
