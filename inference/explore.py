"""`python -m inference.explore`: a hint how many cells the data support, with a figure.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the pretraining diverged, 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Sequence

import torch
from tqdm.auto import tqdm

from inference.clusters.stability import compare_sizes, largest_size
from inference.command_line.errors import run_command
from inference.command_line.explore_arguments import Arguments, parse
from inference.command_line.svi_source import Source, source_of
from inference.data.multimodal import MultimodalData
from inference.results.exploration import Exploration
from inference.results.figures.exploration import write_exploration
from inference.results.files import write_json
from inference.training.config import FitConfig
from inference.training.exploration import pretrained_embeddings

__all__ = ["main"]

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


if __name__ == "__main__":
    sys.exit(main())
