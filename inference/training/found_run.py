"""What a trained run found: clusters read out, named, and collected as a result."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from inference.clusters.occupancy import fit_status
from inference.data.tensors import TensorData
from inference.design.effects import DesignedNode
from inference.identifiability import SideInformation
from inference.labelling.cell_names import CellNames
from inference.labelling.masked_names import check_mask
from inference.labelling.renamed import under_names
from inference.results.arrays import FitArrays
from inference.results.collect import Fitted, collect, responsibilities
from inference.results.fit_result import FitResult
from inference.results.graph_search import graph_search
from inference.results.summary import diverged_summary, summarise
from inference.training.description import RunDescription
from inference.training.designed import designed_nodes
from inference.training.divergence import DivergedError, no_singular_matrices
from inference.training.loop import finish
from inference.training.prepared_run import PreparedRun
from inference.training.renaming import relabel_cells, with_node_names
from inference.training.side_information import side_information

__all__ = ["FoundRun"]


class FoundRun(PreparedRun):
    """A run whose clusters can be looked at, read out for good, named, and collected."""

    @cached_property
    def _designed(self) -> dict[int, DesignedNode]:
        """Designed nodes by position, as they were declared: labels, not clusters, tell their outcomes."""
        return designed_nodes(*self._declared, self.data, self.split, self.tensors.standardisation)

    def clusters(self) -> tuple[np.ndarray, np.ndarray]:
        """q(N|X) `[n, C]` and the mean of q(Z|X) `[n, J]` of all samples, as the model has them now."""
        with self._working():
            return responsibilities(self.state.model, self.state.guide, self._observed(), self.config.objective)[:2]

    def as_found(self, labelling: Mapping[str, Any] | None) -> FitResult:
        """The finished fit that was taken over, collected anew.

        Args:
            labelling: Where the meaning of its cells comes from (`Labelling.to_plain`), or None.
        """
        began = time.perf_counter()
        self.state.labelling = None if labelling is None else dict(labelling)
        with self._working():
            arrays = collect(self._fitted())
        return self._finished(arrays, began)

    def named(self, names: CellNames, before: Mapping[str, Any] | None = None) -> FitResult:
        """The finished fit with its cells numbered and called as a person says, with p(N) to go with them.

        Args:
            names: The names.
            before: Where the meaning of the cells came from so far (`Labelling.to_plain`), or None.

        Raises:
            ValueError: The names contradict the mask, or a decoder of cells cannot be renumbered.
        """
        began = time.perf_counter()
        labelling = under_names(before, names, tuple(self.config.nodes))
        with self._working(), no_singular_matrices():
            try:
                check_mask(names.permutation, self.config.outcomes, self.config.visible, tuple(names.nodes))
                facts = self.task.training, self.config, labelling, self.task.weights
                relabel_cells(self.state, *facts, tuple(names.nodes))
            except ValueError as error:
                raise ValueError(f"names: {error}") from error
            self.config = with_node_names(self.config, tuple(names.nodes))
            self.state.model.node_names = self.state.guide.node_names = tuple(names.nodes)
            self.outcome_names, self.labels = names.outcomes, None
            arrays = collect(self._fitted())
        return self._finished(arrays, began)

    def finish(self) -> FitResult:
        """Read the clusters out for good and collect what the fit found; of a diverged fit, only that it is one."""
        began = time.perf_counter()
        try:
            if self.state.diverged is not None:
                raise DivergedError(self.state.diverged)
            with self._working(), no_singular_matrices():
                finish(self.state, self.task)
                arrays = collect(self._fitted())
        except DivergedError as error:
            return self._result(self._diverged(str(error)), None)
        return self._finished(arrays, began)

    def _finished(self, arrays: FitArrays, began: float) -> FitResult:
        searched = graph_search(arrays) if (arrays.identifiability or {}).get("is_named") else None
        arrays = dataclasses.replace(arrays, status=fit_status(arrays.responsibilities), searched=searched)
        return self._result(summarise(arrays, time.perf_counter() - began), arrays)

    def _diverged(self, reason: str) -> dict[str, Any]:
        return diverged_summary(self.data, self.config.seed, self.config.nodes, self.state.history, reason)

    def _result(self, summary: Mapping[str, Any], arrays: FitArrays | None) -> FitResult:
        history = list(self.state.history)
        facts = self.weights(), self.fingerprint, self._described().to_plain(), self.decoders
        return FitResult(
            self.config.to_dict(), summary, history, arrays, *facts, data=self.data, components=self.components
        )

    def _described(self) -> RunDescription:
        levels = {name: self.data.covariate_levels[name] for name in self.data.covariates}
        supplied = {name: type(decoder).__name__ for name, decoder in self.decoders.items()}
        facts = levels, supplied, self.data.name, self.outcome_names
        environments = () if self.state.model.environments.target is None else self.data.environment_names
        return RunDescription(
            self.config, self.modalities, *facts, environments, self.components.class_names(), self.samples
        )

    def _fitted(self) -> Fitted:
        return Fitted(
            model=self.state.model,
            guide=self.state.guide,
            objective=self.config.objective,
            seed=self.config.seed,
            status="ok",
            data=self.data,
            tensors=self._observed(),
            split=self.split,
            history=self.state.history,
            attributes={"config": self.config.to_dict()},
            labelling=self.state.labelling,
            known=self._known(),
            outcome_names=self.outcome_names,
            labelled=None if self.labels is None else self.labels.labelled,
            node_labels=None if self.labels is None else self.labels.codes,
            designed={list(self.config.nodes)[place]: node for place, node in self._designed.items()},
            likelihoods={name: entry.decoder.likelihood for name, entry in self.config.modality.items()},
        )

    def _observed(self) -> TensorData:
        """All samples, those of the training with what labels tell of N where these took part in it."""
        if self.labels is None or self.config.observe.use != "training":
            return self.tensors
        return dataclasses.replace(self.tensors, cells=self.labels.cells(np.full(len(self.split), True), self.device))

    def _known(self) -> SideInformation:
        """What was known of the nodes, names that were given afterwards included."""
        labelling = self.state.labelling or {}
        named = labelling.get("named_nodes", ()) if labelling.get("source") == "names" else ()
        return side_information(self.config, self.data.environment_names[1:], named)
