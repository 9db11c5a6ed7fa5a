"""What the page of a run is made from: its summary, a few arrays, its figures, and what later commands left."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from inference.results.arrays import FitArrays
from inference.results.arviz_export import run_facts
from inference.results.arviz_groups import GROUPS
from inference.results.page.later import read_later
from inference.results.run_folder import RunFolder

__all__ = ["RunContent"]

_GROUP = "variational"


@dataclass(frozen=True)
class RunContent:
    """Everything that stands on the page.

    Attributes:
        summary: As `summary.json` has it.
        responsibilities: q(N|X), `[n, C]`, cells row-major over the nodes.
        log_joint: log p(N), `[C_1, ..., C_L]`.
        outcome_names: Names of the outcomes of every node.
        facts: Configuration and further facts.
        figures: PNG files.
        later: Results of later commands by the name of the command: parsed JSON.
    """

    summary: Mapping[str, Any]
    responsibilities: np.ndarray
    log_joint: np.ndarray
    outcome_names: tuple[tuple[str, ...], ...]
    facts: Mapping[str, Any] = field(default_factory=dict)
    figures: tuple[Path, ...] = ()
    later: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of_fit(cls, fit: FitArrays, summary: Mapping[str, Any], figures: Iterable[Path] = ()) -> RunContent:
        """From a fit in memory, by way of the arrays that its file would hold."""
        return _content(GROUPS[_GROUP](fit), run_facts(fit), summary, figures)

    @classmethod
    def of_folder(
        cls, folder: RunFolder, summary: Mapping[str, Any] | None = None, changed: Path | None = None
    ) -> RunContent:
        """From what a run folder holds; no data and no weights are needed.

        Args:
            folder: The folder.
            summary: Its summary where `summary.json` is not yet written.
            changed: Another folder with figures and results of later commands that go before those of the folder.

        Raises:
            ValueError: It holds no finished run, one that diverged, or files that can't be read.
        """
        found = folder.read_summary() if summary is None else summary
        if found["status"] == "diverged":
            raise ValueError(f"{folder.path}: expected a run that found something, got one that diverged; fit again")
        homes = (folder.path,) if changed is None else (folder.path, changed)
        figures = {path.name: path for home in homes for path in sorted(home.glob("figures/*.png"))}
        later = {name: content for home in homes for name, content in read_later(home).items()}
        tree = folder.read_posterior((_GROUP,), is_finished=summary is None)
        return _content(tree[_GROUP].dataset, json.loads(tree.attrs["facts"]), found, figures.values(), later)


def _content(
    variational: xr.Dataset,
    facts: Mapping[str, Any],
    summary: Mapping[str, Any],
    figures: Iterable[Path],
    later: Mapping[str, Any] | None = None,
) -> RunContent:
    r, log_joint = variational["responsibilities"], variational["log_joint"]
    outcomes = tuple(tuple(map(str, variational[dim].to_numpy())) for dim in log_joint.dims)
    return RunContent(summary, r.to_numpy(), log_joint.to_numpy(), outcomes, facts, tuple(figures), later or {})
