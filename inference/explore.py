"""`python -m inference.explore`: a hint how many cells the data support, with a figure.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the pretraining diverged, 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jsonargparse import ArgumentParser, Namespace
from tqdm.auto import tqdm

from causalpima.inference.clusters.stability import Embedding, compare_sizes, largest_size
from causalpima.inference.command_line.flags import DATASETS, OPTIONS
from causalpima.inference.command_line.parsing import (
    add_computing_flags,
    command_parser,
    parse_in_plain_words,
    run_command,
)
from causalpima.inference.command_line.svi_settings import Source, source_of
from causalpima.inference.command_line.words import count, optional_path, whole_number
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.exploration import Exploration, write_exploration
from causalpima.inference.run import Run
from causalpima.inference.store.files import write_json
from causalpima.inference.training.clustering import embed
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.state import DivergedError

__all__ = [
    "Arguments",
    "main",
    "parse",
    "pretrained_embeddings",
]


# Arguments of `python -m inference.explore`, checked.


_USAGE = "python -m inference.explore (DATA | --dataset NAME) [--FLAG VALUE ...]"
_DESCRIPTION = """\
Give a hint how many cells the data support: encoders are pretrained from a few starts, every number of cells is read
out of halves of the samples, and what comes out the same each time is told from what does not.
"""


@dataclass(frozen=True)
class Arguments:
    """What the command line asks for.

    Attributes:
        settings: The source of the samples, as `source_of` takes it.
        starts: Starts of the pretraining.
        pairs: Pairs of halves per start and number of cells.
        max_cells: Largest number of cells, or None for the default.
        epochs: Epochs of pretraining, or None for those of the data set.
        seed: Seed of everything random.
        figure: File of the figure.
        json: File for the table, or None.
        device: Where to compute.
        threads: Threads to compute with.
        quiet: No progress bar.
    """

    settings: Mapping[str, Any]
    starts: int
    pairs: int
    max_cells: int | None
    epochs: int | None
    seed: int
    figure: Path
    json: Path | None
    device: str
    threads: int
    quiet: bool


def parse(argv: Sequence[str]) -> Arguments:
    """Parse a command line; the file is not read yet.

    Raises:
        ValueError: It does not parse; the message is one line.
    """
    found = parse_in_plain_words(_build_parser(), argv, more=lambda found: {"figure": _figure(found)})
    if (found.data is None) == (found.dataset is None):
        raise ValueError(
            f"data: expected either a file of samples or --dataset NAME, got {'none' if found.data is None else 'both'}"
        )
    figure = _figure(found)
    if figure.suffix != ".png":
        raise ValueError(f"figure: expected a name that ends with .png, got {figure}; it will be a PNG")
    return Arguments(
        settings=_settings(found),
        figure=figure,
        json=optional_path(found.json),
        **{name: found[name] for name in _AS_THEY_ARE},
    )


def _figure(found: Namespace) -> Path:
    return Path(found.figure or f"{found.dataset or Path(found.data or '').stem}-cells.png")


_AS_THEY_ARE = ("starts", "pairs", "max_cells", "epochs", "seed", "device", "threads", "quiet")


def _settings(found: Namespace) -> dict[str, Any]:
    given = {name: found[name] for name in ("data", "dataset", *OPTIONS) if name in found}
    return {name: value for name, value in given.items() if value is not None}


def _build_parser() -> ArgumentParser:
    parser = command_parser("explore", _USAGE, _DESCRIPTION)
    add = parser.add_argument
    add("data", type=str, nargs="?", metavar="DATA", help="Samples in a .nc, .npz or .zarr file.")
    add("--dataset", choices=list(DATASETS), metavar="NAME", help=f"Data set in its place: {', '.join(DATASETS)}.")
    add("--max_cells", type=_cells, metavar="N", help="Most cells (default 12, or an eighth of the samples).")
    add("--starts", type=count, default=3, metavar="N", help="Starts of the pretraining (default 3).")
    add("--pairs", type=count, default=3, metavar="N", help="Pairs of halves per start (default 3).")
    add("--epochs", type=count, metavar="N", help="Epochs of pretraining (default: those of the data set, or 20).")
    add("--seed", type=whole_number, default=0, metavar="N", help="Seed of everything random (default 0).")
    add("--figure", type=str, metavar="FILE.png", help="File of the figure (default NAME-cells.png).")
    add("--json", type=str, metavar="FILE", help="Write the table to this file, too.")
    add("--modalities", type=str, metavar="A,B", help="Variables to learn from; default all without another role.")
    add("--labels", type=str, metavar="A,B", help="Variables that are known factors, not to be learned from.")
    add("--groups", type=str, metavar="A,B", help="Specimens that stay on one side of every split.")
    add("--covariates", type=str, metavar="A,B", help="Nuisances that decoders see: batch, instrument.")
    add("--kinds", type=str, metavar="A=KIND", help="Take a modality as image, curve or vector.")
    add("--sample_dim", type=str, metavar="NAME", help="Dimension of the samples; default sample, else the first.")
    add("--in_memory", choices=("auto", "yes", "no"), help="Whether all samples are loaded (default auto).")
    add_computing_flags(parser)
    add("--quiet", action="store_true", help="No progress bar.")
    return parser


def _cells(value: Any) -> int:
    return whole_number(value, least=2)


_DEFAULT_LARGEST = 12


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command; returns its exit status."""
    return run_command("explore", _command, argv)


def _command(argv: Sequence[str]) -> int:
    arguments = parse(argv)
    torch.set_num_threads(arguments.threads)
    source = source_of(arguments.settings)
    if source is None:
        raise ValueError("dataset: expected a data set or a file, got none; name one")
    found = _explore(arguments, _samples(source, arguments.seed), _config(source, arguments))
    write_exploration(found, arguments.figure)
    if arguments.json is not None:
        write_json(arguments.json, found.to_dict())
    print(f"{found.text()}\n\n{arguments.figure}")
    return 0


def _samples(source: Source, seed: int) -> MultimodalData:
    if source.file is not None:
        return source.file.samples
    return source.experiment.make(**{**source.experiment.options, "seed": seed})


def _config(source: Source, arguments: Arguments) -> FitConfig:
    config = dataclasses.replace(source.experiment.config, seed=arguments.seed)
    if arguments.epochs is None:
        return config
    return dataclasses.replace(config, pretraining=dataclasses.replace(config.pretraining, epochs=arguments.epochs))


def _explore(arguments: Arguments, data: MultimodalData, config: FitConfig) -> Exploration:
    _check_size(arguments.max_cells or 2, data.n_samples)
    shown = not arguments.quiet and sys.stderr.isatty()
    with tqdm(total=arguments.starts, desc="pretraining", leave=False, disable=not shown) as bar:
        embeddings = pretrained_embeddings(data, config, arguments.starts, device=arguments.device, done=bar.update)
    largest = arguments.max_cells or max(2, min(_DEFAULT_LARGEST, largest_size(len(embeddings[0].training))))
    sizes = range(2, largest + 1)
    with tqdm(total=len(sizes), desc="cells", leave=False, disable=not shown) as bar:
        records = compare_sizes(embeddings, sizes, n_pairs=arguments.pairs, seed=arguments.seed, done=bar.update)
    return Exploration(data.name, data.n_samples, arguments.starts, arguments.seed, records)


def _check_size(n_cells: int, n_samples: int) -> None:
    """Before the pretraining; the exact limit is that of the training samples."""
    if n_cells > largest_size(n_samples):
        raise ValueError(
            f"max_cells: expected at most an eighth of the samples, got {n_cells} for {n_samples} samples; "
            "explore fewer cells, or more samples"
        )


def pretrained_embeddings(
    data: MultimodalData,
    config: FitConfig,
    n_starts: int,
    *,
    device: str = "cpu",
    done: Callable[[], object] = lambda: None,
) -> list[Embedding]:
    """Pretrain encoders and decoders from several starts, and embed the training and the held-out samples.

    Args:
        data: The samples.
        config: The configuration; only what concerns the split and the pretraining matters.
        n_starts: Number of starts.
        device: Where to compute.
        done: Called after every start.

    Raises:
        ValueError: The configuration pretrains nothing, or the data cannot be fitted with it.
        DivergedError: Pretraining did.
    """
    if config.pretraining_epochs == 0:
        raise ValueError("pretraining.epochs: expected at least 1, got 0; clusters are read out of what is pretrained")
    found = []
    for start in range(n_starts):
        found.append(_embedding(Run(data, dataclasses.replace(config, restart=start), device)))
        done()
    return found


def _embedding(run: Run) -> Embedding:
    run.train(run.config.pretraining_epochs)
    if run.state.diverged is not None:
        raise DivergedError(run.state.diverged)
    run.state.modules.eval()
    loc = embed(run.state, run.tensors).loc.to("cpu", torch.float64).numpy()
    return Embedding(loc[run.split == "train"], loc[np.isin(run.split, ("validation", "test"))])


if __name__ == "__main__":
    sys.exit(main())
