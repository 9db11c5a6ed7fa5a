"""The result of the checks: a table for people, plain values for machines, a figure."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from inference.checks.check import Checked
from inference.checks.controls import Contribution, Refits
from inference.checks.lines import check_lines
from inference.results.verdicts import Line, counts, verdict_table, worst

__all__ = ["CheckResult"]

_WIDTH = 100


@dataclass(frozen=True)
class CheckResult:
    """What came out where nothing can be found, and from other samples (docs/check.md).

    Attributes:
        found: What the controls found.
        lines: One line per control.
    """

    found: Checked
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, found: Checked) -> CheckResult:
        """With the verdicts."""
        return cls(found, tuple(check_lines(found)))

    @property
    def verdict(self) -> str:
        """The worst of all lines."""
        return worst(line.verdict for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them; keys as in docs/check.md."""
        found = self.found
        return {
            "verdict": self.verdict,
            "lines": [line.to_plain() for line in self.lines],
            "n_samples": found.run.n_samples,
            "repetitions": found.repetitions,
            "seed": found.seed,
            "seconds": round(found.seconds, 2),
            "node_names": list(found.run.node_names),
            "skipped": dict(found.skipped),
            "edges": None if found.edges is None else found.edges.astype(int).tolist(),
            "null": _refits(found.null),
            "bootstrap": {name: _refits(refits) for name, refits in found.bootstraps.items()},
            "modalities": _modalities(found),
            "labels": _labels(found),
        }

    def text(self) -> str:
        """The table for a terminal, at most 100 columns."""
        found = self.found
        head = (
            f"{found.run.n_samples} training samples, {found.repetitions} repetitions, seed {found.seed}: "
            f"{counts(self.lines)} ({found.seconds:.0f} s)."
        )
        note = (
            "Networks are not trained again: what is checked is what clusters and edges make of this embedding. "
            "docs/check.md says what every line means."
        )
        return "\n".join([head, "", verdict_table(self.lines), "", *textwrap.wrap(note, _WIDTH)])

    def write_figures(self, folder: Path | str) -> list[Path]:
        """Write `check.png`: rates of edges and the agreement of clusters.

        Raises:
            OutputError: The disk is full, or the folder can't be written to.
        """
        from inference.results.figures.check import draw_check
        from inference.results.figures.style import figure_style, save_figure
        from inference.results.files import make_folder

        with figure_style():
            return [save_figure(draw_check(self.to_dict()), make_folder(folder) / "check.png")]


def _refits(refits: Refits | None) -> dict[str, Any] | None:
    if refits is None:
        return None
    entry: dict[str, Any] = {
        "ari": refits.ari.tolist(),
        "ari_median": float(np.median(refits.ari)),
        "n": refits.n_units,
    }
    if refits.joined is not None:
        entry |= {
            "joined_frequency": refits.joined.mean(0).tolist(),
            "any_edge_rate": float(refits.joined.any((1, 2)).mean()),
        }
    return entry


def _modalities(found: Checked) -> dict[str, Any] | None:
    if found.intact is None:
        return None
    shared = found.sharing
    return {
        "intact": _contribution(found.intact),
        "permuted": {name: _contribution(entry) for name, entry in found.permuted.items()},
        "shuffled": _contribution(found.shuffled),
        "share": None
        if shared is None
        else {"ari": shared.ari, "ari_shuffled": float(shared.shuffled.mean()), "p_value": shared.p_value},
    }


def _contribution(entry: Contribution | None) -> Mapping[str, Any] | None:
    return None if entry is None else {"ari": float(entry.ari.mean()), "entropy": float(entry.entropy.mean())}


def _labels(found: Checked) -> Mapping[str, Any] | None:
    labels = found.labels
    if labels is None:
        return None
    permuted = float(labels.permuted.mean())
    return {"agreement": labels.share, "permuted": permuted, "p_value": labels.p_value, "n_labelled": labels.n_labelled}
