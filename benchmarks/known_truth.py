"""What is known of the generated data sets: graph, Bayes ceiling and chance, and a picture of samples.

    python benchmarks/known_truth.py --seed 0 --figure docs/images/known_truth.png

Ceiling and chance are those of the samples of this seed.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes

from causalpima.examples.experiment import labelling_baseline
from causalpima.inference.command_line.flags import DATASETS
from causalpima.inference.data.multimodal import MultimodalData

__all__ = ["Row", "contact_sheet", "edges_of", "main", "row_of"]

_COLUMNS = 8
_SHOWN = ("circles_collider", "circles_views", "pendulum", "synthetic_nets_cancer")


@dataclass(frozen=True)
class Row:
    """One data set.

    Attributes:
        name: Its name.
        edges: The true graph in words.
        n_cells: Number of cells.
        rarest: Share of the samples that the rarest cell has in expectation.
        ceiling: Cluster accuracy of Bayes' rule.
        mean: Node accuracy of random labellings of the true cells, mean over factors.
        worst: The same of the worst factor.
    """

    name: str
    edges: str
    n_cells: int
    rarest: float
    ceiling: float
    mean: float
    worst: float


def edges_of(data: MultimodalData) -> str:
    """The true edges, cause → effect."""
    names = list(data.factors)
    adjacency = np.zeros((0, 0)) if data.true_adjacency is None else data.true_adjacency
    found = [f"{names[i]} → {names[j]}" for i, j in np.argwhere(adjacency)]
    return ", ".join(found) or "none"


def row_of(name: str, seed: int, **options: object) -> Row:
    """What is known of a data set with these options."""
    experiment = DATASETS[name]
    data = experiment.make(**{**experiment.options, **options}, seed=seed)
    assert data.true_joint is not None, "generated data know their truth"
    assert data.bayes_ceiling is not None, "generated data know their ceiling"
    chance = labelling_baseline(data)
    size, rarest = data.true_joint.size, float(data.true_joint.min())
    return Row(data.name, edges_of(data), size, rarest, data.bayes_ceiling, chance.mean, chance.worst)


def _line(row: Row) -> str:
    numbers = f"{row.rarest:.4f} {row.ceiling:.3f} {row.mean:.3f} {row.worst:.3f}"
    return f"{row.name:34} {row.n_cells:4} {numbers}  {row.edges}"


def contact_sheet(sets: Sequence[MultimodalData], file: Path) -> None:
    """A row per modality: a sample of each of up to eight cells, in the order of the cells."""
    rows = [(data, modality) for data in sets for modality in data.modalities]
    figure, axes = plt.subplots(len(rows), _COLUMNS, figsize=(7.2, 0.95 * len(rows)), layout="constrained")
    for line, (data, modality) in zip(axes, rows, strict=True):
        for axis, sample in zip(line, _one_per_cell(data), strict=True):
            _draw(axis, data, modality, sample)
        line[0].set_title(f"{data.name}: {modality}", fontsize=7, loc="left")
    temporary = file.with_suffix(".partial.png")
    figure.savefig(temporary, dpi=100)
    plt.close(figure)
    os.replace(temporary, file)


def _one_per_cell(data: MultimodalData) -> list[int]:
    shape = tuple(len(data.factor_levels[name]) for name in data.factors)
    cells = np.ravel_multi_index(tuple(data.factors.values()), shape)
    chosen = np.unique(cells, return_index=True)[1]
    picked: list[int] = chosen[np.linspace(0, len(chosen) - 1, _COLUMNS).astype(int)].tolist()
    return picked


def _draw(axis: Axes, data: MultimodalData, modality: str, sample: int) -> None:
    values = data.modalities[modality]
    axis.set_xticks([])
    axis.set_yticks([])
    if data.kinds[modality] == "image":
        axis.imshow(np.clip(values[sample], 0, 1).squeeze(), cmap="gray", vmin=0, vmax=1)
        return
    axis.plot(data.axis(modality).values, values[sample], linewidth=0.8)
    axis.set_ylim(float(values.min()), float(values.max()))


def main(argv: Sequence[str] | None = None) -> None:
    """Print the table and draw the picture."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--figure", type=Path)
    arguments = parser.parse_args(argv)
    generated = [name for name in DATASETS if name.startswith(("circles", "pendulum", "synthetic"))]
    rows = [row_of(name, arguments.seed) for name in generated]
    rows += [row_of(name, arguments.seed, rare=True) for name in generated if name in ("circles", "circles_chain")]
    rows += [row_of(name, arguments.seed, tables="own") for name in generated if name.startswith("synthetic")]
    rows += [row_of("pendulum", arguments.seed, levels=3), row_of("circles_environments", arguments.seed, kind="soft")]
    print("\n".join(map(_line, rows)))
    if arguments.figure is not None:
        contact_sheet([_few(name, arguments.seed) for name in _SHOWN], arguments.figure)


def _few(name: str, seed: int) -> MultimodalData:
    return DATASETS[name].make(**{**DATASETS[name].options, "n_samples": 600}, seed=seed)


if __name__ == "__main__":
    main()
