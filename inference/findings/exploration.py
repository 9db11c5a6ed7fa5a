"""What the exploration of numbers of cells found: table, one sentence, and values for machines."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from causalpima.inference.clusters.stability import STABLE, SizeRecord, largest_stable
from causalpima.inference.findings.drawing import (
    ACCENT,
    GREY,
    WARNING,
    Space,
    add_note,
    figure_style,
    panels,
    save_figure,
)

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "Exploration",
    "draw_exploration",
    "write_exploration",
]


_WIDTH = 100


@dataclass(frozen=True)
class Exploration:
    """Numbers of cells that were tried on one data set.

    Attributes:
        name: Name of the data set.
        n_samples: Number of its samples.
        n_starts: Starts of the pretraining.
        seed: Seed.
        records: One per number of cells, in ascending order.
    """

    name: str
    n_samples: int
    n_starts: int
    seed: int
    records: Sequence[SizeRecord]

    @property
    def hint(self) -> int | None:
        """The largest number of cells whose read-outs agree; None if there is none."""
        return largest_stable(self.records)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them."""
        return {
            "dataset": self.name,
            "n_samples": self.n_samples,
            "n_starts": self.n_starts,
            "seed": self.seed,
            "hint": self.hint,
            "agreement_needed": STABLE,
            "sizes": [{**asdict(record), "is_stable": record.is_stable} for record in self.records],
        }

    def text(self) -> str:
        """Table and sentence for a terminal."""
        head = f"{'cells':>5} {'halves':>8} {'lowest':>8} {'starts':>8} {'entropy':>8} {'occupied':>8} {'held out':>9}"
        return "\n".join([head, *map(_row, self.records), "", *textwrap.wrap(self.sentence(), _WIDTH)])

    def sentence(self) -> str:
        """What the table hints at, and no more."""
        of_starts = " and of different starts" if self.n_starts > 1 else ""
        agreeing = f"read-outs of random halves of the samples{of_starts} agree (adjusted Rand index {STABLE} or more)"
        if self.hint is None:
            return f"At no number of cells that was tried do {agreeing}: that is no hint at any.{self._likeliest()}"
        more = "; it is also the largest that was tried: try more" if self.hint == self.records[-1].n_cells else ""
        return (
            f"{self.hint} cells are the largest number at which {agreeing}{more}.{self._likeliest()} This is a hint, "
            "no test: there may be more groups that these samples do not tell apart, or fewer if groups come in pieces."
        )

    def _likeliest(self) -> str:
        """The number of cells with the highest held-out likelihood, where there is one."""
        gains = {record.n_cells: record.held_out for record in self.records if record.held_out is not None}
        if not gains:
            return ""
        return f" Held out, a mixture of {max(gains, key=lambda size: gains[size])} Gaussians is likeliest."


def _row(record: SizeRecord) -> str:
    starts, held_out = _number(record.starts, 3), _number(record.held_out, 3)
    mark = "  *" if record.is_stable else ""
    return (
        f"{record.n_cells:5} {record.halves:8.3f} {record.halves_lowest:8.3f} {starts:>8} {record.entropy:8.3f} "
        f"{record.n_occupied:8} {held_out:>9}{mark}"
    )


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:.{digits}f}"


# How many cells the data support: agreement of read-outs, entropy, held-out likelihood.


_PANEL = (2.2, 1.5)
_SPACE = Space(left=0.55, below=0.45, above=0.3)
_COLUMNS = 3


def write_exploration(found: Exploration, path: Path) -> Path:
    """Write the figure as PNG; returns the path."""
    with figure_style():
        return save_figure(draw_exploration(found), path)


def draw_exploration(found: Exploration) -> Figure:
    """Three panels over the number of cells: agreement, entropy, and held-out log-likelihood where there is one."""
    has_held_out = any(record.held_out is not None for record in found.records)
    figure, axes = panels(3 if has_held_out else 2, size=_PANEL, columns=_COLUMNS, space=_SPACE)
    _agreement(axes[0], found)
    _curve(axes[1], found, [record.entropy for record in found.records], "entropy of q(N|X) (nats)")
    if has_held_out:
        gains = [float("nan") if record.held_out is None else record.held_out for record in found.records]
        _curve(axes[2], found, gains, "held out, above one Gaussian (nats)")
    add_note(figure, found.sentence())
    return figure


def _agreement(ax: Axes, found: Exploration) -> None:
    _curve(ax, found, [record.halves for record in found.records], "agreement of read-outs (ARI)", label="halves")
    if found.n_starts > 1:
        starts = [float("nan") if record.starts is None else record.starts for record in found.records]
        ax.plot(_sizes(found), starts, color=WARNING, marker="s", markersize=3, label="starts")
    ax.axhline(STABLE, color=GREY, linewidth=0.6, linestyle=":")
    if found.hint is not None:
        ax.axvline(found.hint, color=GREY, linewidth=0.6)
    ax.set_ylim(min(0.0, ax.get_ylim()[0]), 1.03)
    ax.legend(loc="lower left")


def _curve(ax: Axes, found: Exploration, values: list[float], title: str, label: str | None = None) -> None:
    from matplotlib.ticker import MaxNLocator

    ax.plot(_sizes(found), values, color=ACCENT, marker="o", markersize=3, label=label)
    ax.set_title(title, fontsize=8)
    ax.set_xlabel("cells", labelpad=1)
    ax.xaxis.set_major_locator(MaxNLocator(nbins=6, integer=True))


def _sizes(found: Exploration) -> list[int]:
    return [record.n_cells for record in found.records]
