"""`python -m inference.predict`: what a finished run says of new samples.

Exit status: 0 done, 2 wrong input (one line says what to do), 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from jsonargparse import ArgumentParser

from causalpima.inference.analyses.predict import (
    PredictionOptions,
    prediction_table,
    read_samples,
    summarise_prediction,
    write_predictions,
)
from causalpima.inference.command_line.files import check_netcdf_name
from causalpima.inference.command_line.parsing import (
    add_code_flag,
    add_computing_flags,
    command_parser,
    parse_in_plain_words,
    run_command,
)
from causalpima.inference.command_line.words import comma_names, count, optional_path, whole_number
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.store.files import write_json
from causalpima.inference.training.fitted_run import load_run

__all__ = [
    "Arguments",
    "main",
    "parse",
]


# Arguments of `python -m inference.predict`, checked.


_USAGE = "python -m inference.predict RUN --data NEW.nc --output FILE.nc [--FLAG VALUE ...]"
_DESCRIPTION = """\
Say of new samples what a finished run knows: clusters, latent positions, every modality (given those that a sample has)
with an interval, and how likely the sample is.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        run: Folder of the run.
        data: File of the new samples.
        output: File to write.
        options: How the prediction is computed.
        reading: What of the file is read, and as what.
        device: Where to compute.
        threads: Threads to compute with.
        json: File for the summary, or None.
    """

    run: Path
    data: Path
    output: Path
    options: PredictionOptions
    reading: ReadOptions
    device: str
    threads: int
    json: Path | None


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, _missing)
    arguments = Arguments(
        Path(found.run),
        Path(found.data),
        Path(found.output),
        PredictionOptions(found.draws, found.seed, found.interval),
        ReadOptions(
            sample_dim=found.sample_dim,
            labels=found.labels or (),
            environment=found.environment or (),
            in_memory=found.in_memory,
        ),
        found.device,
        found.threads,
        optional_path(found.json),
    )
    _check_files(arguments)
    return arguments


def _build_parser() -> ArgumentParser:
    parser = command_parser("predict", _USAGE, _DESCRIPTION)
    add_code_flag(parser)
    add, default = parser.add_argument, PredictionOptions()
    add("run", type=str, metavar="RUN", help="Folder of a finished run.")
    add("--data", type=str, required=True, metavar="NEW.nc", help="New samples: a .nc, .npz or .zarr file.")
    add("--output", type=str, required=True, metavar="FILE.nc", help="File to write; an older one is replaced.")
    add("--draws", type=count, default=default.draws, metavar="N", help="Draws of Z per sample (default 100).")
    add("--seed", type=whole_number, default=default.seed, metavar="N", help="Seed of the draws (default 0).")
    add(
        "--interval",
        type=float,
        default=default.interval,
        metavar="P",
        help="Probability of the predictive interval (default 0.9).",
    )
    add(
        "--labels",
        type=comma_names,
        metavar="NAME,..",
        help="Further variables to carry through as labels.",
    )
    add(
        "--environment",
        type=str,
        metavar="NAME",
        help="Variable that tells the environment of every sample (default: what the file says, else no intervention).",
    )
    add("--sample_dim", type=str, metavar="NAME", help="Dimension of the samples; default `sample`, or the first.")
    add(
        "--in_memory",
        choices=("auto", "yes", "no"),
        default="auto",
        help="Whether all samples are loaded (default: up to 2 GiB of values), or read when they are needed.",
    )
    add_computing_flags(parser)
    add("--json", type=str, metavar="FILE", help="Write the summary to this file, too.")
    return parser


def _missing(message: str) -> str:
    missing = [flag for flag in ("run", "data", "output") if re.search(rf'"?(--)?\b{flag}\b"?', message)]
    return f"{(missing or ['run'])[0]}: expected it, got none; {_USAGE}"


def _check_files(arguments: Arguments) -> None:
    """Refuse a file that would be written over another one that is needed, or whose name says another format."""
    check_netcdf_name(arguments.output)
    if arguments.output.absolute() == arguments.data.absolute():
        raise ValueError("output: expected another file than data, got the same; name a new file")
    if arguments.json is not None and arguments.json.absolute() in {
        arguments.output.absolute(),
        arguments.data.absolute(),
    }:
        raise ValueError("json: expected a file of its own, got one that is read or written, too; name another")


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
