"""What `fit` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import networkx as nx
import numpy as np
import xarray as xr

from inference.results.arrays import FitArrays
from inference.results.arviz_export import to_datatree, write_posterior
from inference.results.figures import write_figures
from inference.results.report import write_report
from inference.results.run_folder import RunFolder
from inference.results.terminal import summary_table

if TYPE_CHECKING:
    from torch import Tensor

    from inference.data.convert import DataLike

__all__ = ["FitResult"]


@dataclass(frozen=True)
class FitResult:
    """A finished fit.

    Attributes:
        config: The configuration, as plain values.
        summary: What was found, as `summary.json` has it.
        history: One record per epoch.
        arrays: All arrays, or None if the fit diverged.
        weights: Weights of model and guide by name.
        fingerprint: Hash of configuration and data.
        description: What the data added to the configuration, as plain values (`RunDescription`).
        decoders: Laws or decoders that were passed as objects, by modality.
    """

    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    arrays: FitArrays | None
    weights: Mapping[str, Tensor]
    fingerprint: str
    description: Mapping[str, Any] = field(default_factory=dict)
    decoders: Mapping[str, Any] = field(default_factory=dict)

    @property
    def status(self) -> str:
        """`ok`, `collapsed` or `diverged`."""
        return str(self.summary["status"])

    def responsibilities(self) -> xr.DataArray:
        """q(N|X), dims `sample, cell`; cells are named by their outcomes."""
        fit = self._arrays()
        names = [",".join(parts) for parts in _cells(fit)]
        return xr.DataArray(
            fit.responsibilities, dims=("sample", "cell"), coords={"cell": names}, name="responsibilities"
        )

    def graph(self) -> nx.DiGraph:
        """The learned graph: nodes by name, edges i -> j with their `strength` (E at the final temperature, > 0.5)."""
        found = self._arrays().graph
        graph = nx.DiGraph()
        graph.add_nodes_from(found.node_names)
        for cause, effect in np.argwhere(found.adjacency):
            strength = float(found.edge_strength[cause, effect])
            graph.add_edge(found.node_names[cause], found.node_names[effect], strength=strength)
        return graph

    def predict(self, data: DataLike, draws: int = 100, seed: int = 0, interval: float = 0.9) -> xr.Dataset:
        """What the fit says of new samples, given the modalities that they have (docs/predict.md).

        Args:
            data: As for `fit`; modalities, or elements of them, may be missing, and one sample is enough.
            draws: Draws of Z per sample.
            seed: Seed of the draws.
            interval: Probability of the predictive interval.

        Raises:
            ValueError: The fit diverged, or the samples do not fit it.
        """
        from inference.prediction.predict import PredictionOptions, predict, read_samples
        from inference.training.fitted_run import rebuild_result

        self._arrays()
        fitted = rebuild_result(self)
        return predict(fitted, read_samples(fitted, data), PredictionOptions(draws, seed, interval))

    def to_arviz(self) -> Any:
        """`arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (ArviZ 1.x)."""
        from inference.results.arviz_compat import as_container

        return as_container(to_datatree(self._arrays()))

    def table(self, more: Mapping[str, Any] | None = None) -> str:
        """The summary, with `more` entries, as a table for people."""
        return summary_table({**self.summary, **(more or {})})

    def save(self, path: Path | str, force: bool = False) -> None:
        """Write the run folder (docs/run_folder.md).

        Args:
            path: The folder; new or empty unless `force` is given.
            force: Replace an earlier run there.

        Raises:
            OutputError: The folder is not empty, not writable, or the disk is full.
        """
        folder = RunFolder(path)
        folder.create(self.config, force)
        with folder.in_use():
            self.write(folder)

    def write(self, folder: RunFolder) -> None:
        """Write everything but the configuration into an existing run folder; the summary comes last.

        A diverged fit leaves metrics and summary, besides the checkpoints of its last finished epochs.
        """
        folder.remove_partials()
        folder.write_metrics(self.history)
        if self.arrays is not None:
            self._write_results(self.arrays, folder)
        folder.write_summary(self.summary)

    def _write_results(self, arrays: FitArrays, folder: RunFolder) -> None:
        from inference.training.checkpoint import save_checkpoint

        labelling = self.summary.get("labelling")
        state = {"summary_status": self.status, "description": self.description, "labelling": labelling}
        save_checkpoint(folder.final, len(self.history), self.weights, state, self.fingerprint, keep=1)
        write_posterior(arrays, folder.posterior)
        labellings = self.summary["graph"]["equivalent_labellings"]
        scores = self.summary.get("evaluation")
        figures = write_figures(arrays, folder.figures, equivalent_labellings=labellings, scores=scores)
        write_report(arrays, self.summary, figures, folder.report)

    def _arrays(self) -> FitArrays:
        if self.arrays is None:
            raise ValueError(f"the fit diverged ({self.summary['reason']}); there is no result to show")
        return self.arrays


def _cells(fit: FitArrays) -> list[tuple[str, ...]]:
    shape = tuple(len(names) for names in fit.graph.outcome_names)
    names = fit.graph.outcome_names
    return [tuple(names[node][value] for node, value in enumerate(index)) for index in np.ndindex(*shape)]
