"""`python -m inference.predict`: what a finished run says of new samples.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from dataclasses import KW_ONLY, dataclass
from pathlib import Path
from typing import Annotated, Literal

import torch

from causalpima.inference.analyses.predict import (
    PredictionOptions,
    prediction_table,
    read_samples,
    summarise_prediction,
    write_predictions,
)
from causalpima.inference.command_line.command import Command, Computing, Count, File, NetcdfFile, Run, Seed
from causalpima.inference.command_line.words import comma_names, probability
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.store.files import write_json
from causalpima.inference.training.fitted_run import load_run

__all__ = ["COMMAND", "Options", "main", "parse", "run"]


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What is read of the file.

    Attributes:
        labels: Further variables to carry through as labels.
        environment: Variable that tells the environment of every sample; default what the file says, else no
            intervention.
        sample_dim: Dimension of the samples; default `sample`, or the first.
        in_memory: Whether all samples are loaded, or read when they are needed; auto loads up to 2 GiB of values.
    """

    labels: Annotated[tuple[str, ...], comma_names, "NAME,.."] = ()
    environment: Annotated[tuple[str, ...], comma_names, "NAME"] = ()
    sample_dim: Annotated[str, "NAME"] | None = None
    in_memory: Literal["auto", "yes", "no"] = "auto"


@dataclass(frozen=True)
class Options(Reading, Computing):
    """Say of new samples what a finished run knows.

    Clusters, latent positions, every modality (given those that a sample has) with an interval, and how likely the
    sample is.

    Attributes:
        run: Folder of a finished run.
        data: New samples: a .nc, .npz or .zarr file.
        output: File to write; an older one is replaced.
        draws: Draws of Z per sample.
        seed: Seed of the draws.
        interval: Probability of the predictive interval.
        json: Write the summary to this file, too.
    """

    run: Run
    _: KW_ONLY
    data: Annotated[Path, "NEW.nc"]
    output: NetcdfFile
    draws: Count = PredictionOptions.draws
    seed: Seed = PredictionOptions.seed
    interval: Annotated[float, probability, "P"] = PredictionOptions.interval
    json: File | None = None

    @property
    def prediction(self) -> PredictionOptions:
        """How the prediction is computed."""
        return PredictionOptions(self.draws, self.seed, self.interval)

    @property
    def reading(self) -> ReadOptions:
        """What of the file is read, and as what."""
        return ReadOptions(
            sample_dim=self.sample_dim,
            labels=self.labels,
            environment=self.environment,
            in_memory=self.in_memory,
        )


def run(options: Options) -> int:
    """Predict, write the predictions and print their summary; returns the exit status."""
    torch.set_num_threads(options.threads)
    fitted = load_run(options.run, device=options.device)
    samples = read_samples(fitted, options.data, options.reading)
    for note in samples.notes:
        print(f"note: {note}", file=sys.stderr)
    evidence = write_predictions(fitted, samples, options.output, options.prediction)
    summary = summarise_prediction(samples, evidence, options.prediction, str(options.output))
    if options.json is not None:
        write_json(options.json, summary)
    print(prediction_table(summary))
    return 0


COMMAND = Command("predict", Options, run, runs_code=True)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
