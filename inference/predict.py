"""`python -m inference.predict`: what a finished run says of new samples.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import torch

from inference.command_line.errors import run_command
from inference.command_line.predict_arguments import parse
from inference.prediction.predict import read_samples, write_predictions
from inference.prediction.summary import prediction_table, summarise_prediction
from inference.results.files import write_json
from inference.training.fitted_run import load_run

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("predict", _command, argv, reads_run=True)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    torch.set_num_threads(arguments.threads)
    fitted = load_run(arguments.run, device=arguments.device)
    samples = read_samples(fitted, arguments.data, arguments.reading)
    for note in samples.notes:
        print(f"note: {note}", file=sys.stderr)
    evidence = write_predictions(fitted, samples, arguments.output, arguments.options)
    summary = summarise_prediction(samples, evidence, arguments.options, str(arguments.output))
    if arguments.json is not None:
        write_json(arguments.json, summary)
    print(prediction_table(summary))
    return 0


if __name__ == "__main__":
    sys.exit(main())
