"""`python -m inference.explore`: a hint how many cells the data support, with a figure.

Exit status: 0 done, 2 wrong input (one line says what to do), 3 the pretraining diverged, 130 Ctrl-C, 143 SIGTERM.
"""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import torch
from tqdm.auto import tqdm

from causalpima.inference.clusters.stability import Embedding, compare_sizes, largest_size
from causalpima.inference.command_line.command import Command, Computing, Count, File, Seed
from causalpima.inference.command_line.flags import DATASETS, OPTIONS
from causalpima.inference.command_line.svi_settings import Source, source_of
from causalpima.inference.command_line.words import named, whole_number
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.exploration import Exploration, write_exploration
from causalpima.inference.run import Run
from causalpima.inference.store.files import write_json
from causalpima.inference.training.clustering import embed
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.state import DivergedError

__all__ = ["COMMAND", "Options", "main", "parse", "pretrained_embeddings", "run"]


_DEFAULT_LARGEST = 12


@dataclass(frozen=True, kw_only=True)
class Samples:
    """What the variables of DATA are.

    Attributes:
        modalities: Variables to learn from; default all without another role.
        labels: Variables that are known factors, not to be learned from.
        groups: Specimens that stay on one side of every split.
        covariates: Nuisances that decoders see: batch, instrument.
        kinds: Take a modality as image, curve or vector.
        sample_dim: Dimension of the samples; default sample, else the first.
        in_memory: Whether all samples are loaded; default auto.
    """

    modalities: Annotated[str, "A,B"] | None = None
    labels: Annotated[str, "A,B"] | None = None
    groups: Annotated[str, "A,B"] | None = None
    covariates: Annotated[str, "A,B"] | None = None
    kinds: Annotated[str, "A=KIND"] | None = None
    sample_dim: Annotated[str, "NAME"] | None = None
    in_memory: Literal["auto", "yes", "no"] | None = None


@dataclass(frozen=True)
class Options(Samples, Computing):
    """Give a hint how many cells the data support.

    Encoders are pretrained from a few starts, every number of cells is read out of halves of the samples, and what
    comes out the same each time is told from what does not.

    Attributes:
        data: Samples in a .nc, .npz or .zarr file.
        dataset: Data set of inference.svi in its place; its --help_all lists them.
        max_cells: Most cells; default 12, or an eighth of the samples.
        starts: Starts of the pretraining.
        pairs: Pairs of halves per start.
        epochs: Epochs of pretraining; default those of the data set, or 20.
        seed: Seed of everything random.
        figure: File of the figure; default NAME-cells.png.
        json: Write the table to this file, too.
        quiet: No progress bar.
    """

    data: Annotated[str, "DATA"] | None = None
    _: KW_ONLY
    dataset: Annotated[str, "NAME", tuple(DATASETS)] | None = None
    max_cells: Annotated[int, partial(whole_number, least=2), "N"] | None = None
    starts: Count = 3
    pairs: Count = 3
    epochs: Count | None = None
    seed: Seed = 0
    figure: Annotated[Path, partial(named, ending=".png", form="a PNG"), "FILE.png"] | None = None
    json: File | None = None
    quiet: bool = False

    def __post_init__(self) -> None:
        if (self.data is None) == (self.dataset is None):
            got = "none" if self.data is None else "both"
            raise ValueError(f"data: expected either a file of samples or --dataset NAME, got {got}")

    @property
    def picture(self) -> Path:
        """Where the figure goes."""
        return self.figure or Path(f"{self.dataset or Path(self.data or '').stem}-cells.png")

    @property
    def settings(self) -> dict[str, Any]:
        """The source of the samples, as `source_of` takes it."""
        given = {name: getattr(self, name, None) for name in ("data", "dataset", *OPTIONS)}
        return {name: value for name, value in given.items() if value is not None}


def run(options: Options) -> int:
    """Explore, draw the figure, write and print the table; returns the exit status."""
    torch.set_num_threads(options.threads)
    source = source_of(options.settings)
    if source is None:
        raise ValueError("dataset: expected a data set or a file, got none; name one")
    found = _explore(options, _samples(source, options.seed), _config(source, options))
    write_exploration(found, options.picture)
    if options.json is not None:
        write_json(options.json, found.to_dict())
    print(f"{found.text()}\n\n{options.picture}")
    return 0


def _samples(source: Source, seed: int) -> MultimodalData:
    if source.file is not None:
        return source.file.samples
    return source.experiment.make(**{**source.experiment.options, "seed": seed})


def _config(source: Source, options: Options) -> FitConfig:
    config = dataclasses.replace(source.experiment.config, seed=options.seed)
    if options.epochs is None:
        return config
    return dataclasses.replace(config, pretraining=dataclasses.replace(config.pretraining, epochs=options.epochs))


def _explore(options: Options, data: MultimodalData, config: FitConfig) -> Exploration:
    _check_size(options.max_cells or 2, data.n_samples)
    shown = not options.quiet and sys.stderr.isatty()
    with tqdm(total=options.starts, desc="pretraining", leave=False, disable=not shown) as bar:
        embeddings = pretrained_embeddings(data, config, options.starts, device=options.device, done=bar.update)
    largest = options.max_cells or max(2, min(_DEFAULT_LARGEST, largest_size(len(embeddings[0].training))))
    sizes = range(2, largest + 1)
    with tqdm(total=len(sizes), desc="cells", leave=False, disable=not shown) as bar:
        records = compare_sizes(embeddings, sizes, n_pairs=options.pairs, seed=options.seed, done=bar.update)
    return Exploration(data.name, data.n_samples, options.starts, options.seed, records)


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


COMMAND = Command(
    "explore",
    Options,
    run,
    usage="(DATA | --dataset NAME) [--FLAG VALUE ...]",
    also_writes=lambda options: {"figure": options.picture},
)
main, parse = COMMAND.main, COMMAND.parse

if __name__ == "__main__":
    sys.exit(main())
