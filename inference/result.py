"""What `fit` returns."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import torch
import xarray as xr

from causalpima.inference.analyses.diagnose import Diagnosis, FoundRun, diagnose, fresh_bound
from causalpima.inference.analyses.scenarios import QuerySource
from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.clusters import FitVerdict, fit_verdict
from causalpima.inference.graphs.scores import GraphPosterior, Score
from causalpima.inference.reporting.arviz import to_datatree, write_posterior
from causalpima.inference.reporting.content import content_of_folder
from causalpima.inference.reporting.figures.files import write_figures
from causalpima.inference.reporting.page import write_report
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.store.run_folder import LATER, RESULTS, FolderChanges, RunFolder
from causalpima.inference.training.fitted_run import FittedRun, rebuild
from causalpima.inference.training.prepared_run import RunDescription
from causalpima.inference.training.state import surroundings

if TYPE_CHECKING:
    import networkx as nx
    from torch import Tensor

    from causalpima.inference.analyses.answer import QueryAnswer
    from causalpima.inference.analyses.check import CheckResult
    from causalpima.inference.data.multimodal import MultimodalData
    from causalpima.inference.data.reading import DataLike
    from causalpima.inference.graphs.dags import GraphKnowledge
    from causalpima.inference.graphs.formats import ExportedGraph

__all__ = [
    "FitResult",
    "diagnose_result",
    "rebuild_result",
    "source_of_result",
]


@dataclass(frozen=True)
class FitResult:
    """A finished fit.

    Attributes:
        config: The configuration, as plain values.
        summary: What was found, as `summary.json` has it; the verdict is added.
        history: One record per epoch.
        arrays: All arrays, or None if the fit diverged.
        weights: Weights of model and guide by name.
        fingerprint: Hash of configuration and data.
        description: What the data added to the configuration, as plain values (`RunDescription`).
        decoders: Laws or decoders that were passed as objects, by modality.
        data: The samples.
        components: Other components that were passed as objects (`Components`), or None.
    """

    config: Mapping[str, Any]
    summary: Mapping[str, Any]
    history: Sequence[Mapping[str, Any]]
    arrays: FitArrays | None
    weights: Mapping[str, Tensor]
    fingerprint: str
    description: Mapping[str, Any] = field(default_factory=dict)
    decoders: Mapping[str, Any] = field(default_factory=dict)
    data: MultimodalData | None = field(default=None, repr=False, compare=False)
    components: Any = None

    def __post_init__(self) -> None:
        # Here, so that no way to a summary goes past it: one start, several, named anew.
        findings = {key: value for key, value in self.summary.items() if key != "verdict"}
        object.__setattr__(self, "summary", {**findings, "verdict": fit_verdict(findings).to_plain()})

    @property
    def verdict(self) -> FitVerdict:
        """`clear`, `doubtful` or `failed`, with what speaks against the clusters."""
        return fit_verdict(self.summary)

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
        """Soft strengths of the trained graph: E at the final temperature, edges above 0.5 with their `strength`.

        The direction of an edge is not identified, and the strength is no test of it. Where the summary has a posterior
        over graphs, edges also have `probability`, that the true graph has this edge with this direction, and
        `adjacency_probability`, that it has one whichever way round; all pairs: `graph_posterior`. What is identified
        stands in `summary["graph"]["equivalence_class"]` where all nodes have a meaning, and where environments told a
        directed graph in `summary["labelling"]["details"]["graph"]`, which the strengths are then 1 along and 0
        elsewhere.
        """
        import networkx as nx  # late: only this method needs it

        found, posterior = self._arrays().graph, self.summary["graph"].get("posterior")
        graph = nx.DiGraph()
        graph.add_nodes_from(found.node_names)
        for start, end in np.argwhere(found.adjacency):
            numbers = {"strength": float(found.edge_strength[start, end])}
            if posterior:
                numbers["probability"] = float(posterior["edge_probability"][start][end])
                numbers["adjacency_probability"] = float(posterior["adjacency_probability"][start][end])
            graph.add_edge(found.node_names[start], found.node_names[end], **numbers)
        return graph

    def graph_posterior(
        self,
        score: Literal["bic", "bdeu"] = "bic",
        equivalent_sample_size: float | None = None,
        edge_log_odds: float = 0.0,
        knowledge: GraphKnowledge | None = None,
    ) -> GraphPosterior:
        """The posterior over graphs between the nodes, clusters and their names held (docs/graph_posterior.md).

        Args:
            score: `bic` or `bdeu`.
            equivalent_sample_size: Of BDeu; by default 1.
            edge_log_odds: Log-odds of every edge beforehand; 0: all possible graphs alike.
            knowledge: What is known of the graph; by default what the configuration declares.

        Raises:
            ValueError: The fit diverged, or its nodes have no meaning; says what would give them one.
        """
        from causalpima.inference.analyses.scenarios import check_named
        from causalpima.inference.findings.posterior import graph_posterior

        check_named(self.summary, "graph_posterior")
        chosen = Score.of(score, equivalent_sample_size)
        found = graph_posterior(self._arrays(), knowledge, chosen, edge_log_odds)
        if found is None:
            raise ValueError("graph_posterior: expected training samples without intervention, got none; fit with some")
        return found

    def exported_graph(self, as_labelled: bool = False) -> ExportedGraph:
        """The graph for other programs, with what is known of its edges and with p(N) (docs/export.md).

        Args:
            as_labelled: Export nodes without a meaning, too, as they happen to be labelled; the export says so.

        Raises:
            ValueError: The fit diverged, or some node has no meaning and `as_labelled` is off.
        """
        from causalpima.inference.reporting.exported_graph import exported_graph

        found = self._arrays().graph
        return exported_graph(self.summary, found.outcome_names, found.log_joint, as_labelled)

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
        from causalpima.inference.analyses.predict import PredictionOptions, predict, read_samples

        self._arrays()
        fitted = rebuild_result(self)
        return predict(fitted, read_samples(fitted, data), PredictionOptions(draws, seed, interval))

    def check(self, repetitions: int = 20, seed: int = 0) -> CheckResult:
        """Check the fit against itself: no edges where there are none, other samples, shuffled modalities.

        Args:
            repetitions: Repetitions of resampling.
            seed: Seed of everything random.

        Raises:
            ValueError: The fit diverged.
        """
        from causalpima.inference.analyses.check import check_run

        tree = to_datatree(self._arrays())
        return check_run(rebuild_result(self), tree, self.summary, self.data, repetitions, seed)

    def query(
        self,
        do: Mapping[str, Any] | None = None,
        given: Mapping[str, Any] | None = None,
        counterfactual: str | int | None = None,
        data: DataLike | None = None,
        draws: int = 1000,
        seed: int = 0,
    ) -> QueryAnswer:
        """What would happen if nodes were set, in nodes and in every modality (docs/query.md).

        Args:
            do: Outcome of each node that is set.
            given: Outcome of each node that is conditioned on after that.
            counterfactual: Name or number of a sample: what would have become of it.
            data: New samples that it is one of; by default it is one of those of the fit.
            draws: Draws under the intervention.
            seed: Of all that is drawn.

        Raises:
            ValueError: Nodes without a meaning, names that are not there, a condition that cannot come about.
        """
        from causalpima.inference.analyses.query import QueryOptions, answer_query

        options = QueryOptions(draws, seed, counterfactual=counterfactual, data=data)
        return answer_query(source_of_result(self), do, given, options)

    def diagnose(self, draws: int | None = None, seed: int = 0) -> Diagnosis:
        """Whether the fit can be believed: guide, clusters, predictive checks, held-out samples, starts.

        Args:
            draws: Draws per held-out sample for a new bound of log p(x); None: the bound of the fit.
            seed: Of the draws.

        Raises:
            ValueError: The fit diverged, or draws are asked for without its samples.
        """
        return diagnose_result(self, draws, seed)

    def contact_sheet(self, path: Path | str) -> list[Path]:
        """Write what every cluster looks like, as PNG: its medoid and the samples next to it, in every modality.

        Args:
            path: The file; many clusters go to several, `NAME_2.png` and so on.

        Returns:
            The files.

        Raises:
            ValueError: The fit diverged.
        """
        from causalpima.inference.analyses.sheet import make_sheet
        from causalpima.inference.reporting.contact_sheet import write_contact_sheet

        fit = self._arrays()
        clusters = fit.responsibilities, fit.latent_loc
        return write_contact_sheet(make_sheet(self._samples(), fit.modalities, clusters), Path(path))

    def named(self, names: Mapping[int, Mapping[str, str]], nodes: Sequence[str] | None = None) -> FitResult:
        """The same fit with its clusters named; p(N) is fitted to the named cells (docs/names_and_labels.md).

        Args:
            names: Per cluster, as `contact_sheet` numbers them, the name of its outcome by node. Every combination
                stands once; clusters without samples may be left out.
            nodes: New names of the nodes, in their order, which `names` then uses; default those of the fit.

        Raises:
            ValueError: The fit diverged, or the names are no bijection of clusters and joint outcomes.
        """
        from causalpima.inference.clusters.names import cell_names
        from causalpima.inference.run import Run
        from causalpima.inference.training.prepared_run import RunDescription

        fit, config = self._arrays(), RunDescription.from_plain(self.description).config
        sizes = np.bincount(fit.responsibilities.argmax(1), minlength=fit.responsibilities.shape[1])
        called = tuple(config.nodes) if nodes is None else tuple(nodes)
        if len(set(called)) != len(config.nodes):
            raise ValueError(f"nodes: expected {len(config.nodes)} different names, got {', '.join(called)}")
        chosen = cell_names(names, dict(zip(called, config.outcomes, strict=True)), sizes.tolist())
        run = Run(self._samples(), config, decoders=self.decoders, components=self.components)
        run.take_over(self.weights, self.history)
        return run.named(chosen, self.summary.get("labelling"))

    def _samples(self) -> MultimodalData:
        if self.data is None:
            raise ValueError("data: expected the samples of the fit, got a result without them; fit again")
        return self.data

    def to_arviz(self) -> Any:
        """`arviz.InferenceData` (ArviZ 0.x) or `xarray.DataTree` (ArviZ 1.x)."""
        from causalpima.inference.store.arviz import as_container

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
        with RunFolder(path).created(self.config, force) as changes:
            self.stage(changes)

    def write(self, folder: RunFolder) -> None:
        """Write everything but the configuration into an existing run folder, in one step.

        A diverged fit leaves metrics and summary, besides the checkpoints of its last finished epochs.
        """
        with folder.changes() as changes:
            self.stage(changes)

    def stage(self, changes: FolderChanges) -> None:
        """Let a change of a run folder make this its result, in place of an earlier one and of what is about that."""
        folder = RunFolder(changes.path)
        folder.write_metrics(self.history)
        if self.arrays is not None:
            self._write_results(self.arrays, folder)
        folder.write_summary(self.summary)
        changes.remove(*RESULTS, *LATER)

    def _write_results(self, arrays: FitArrays, folder: RunFolder) -> None:
        from causalpima.inference.training.checkpoint import save_checkpoint

        labelling = self.summary.get("labelling")
        state = {"summary_status": self.status, "description": self.description, "labelling": labelling}
        save_checkpoint(folder.final, len(self.history), self.weights, state, self.fingerprint, keep=1)
        write_posterior(arrays, folder.posterior)
        write_figures(arrays, folder.figures, summary=self.summary)
        write_report(content_of_folder(folder, self.summary), folder.report)

    def _arrays(self) -> FitArrays:
        if self.arrays is None:
            raise ValueError(f"the fit diverged ({self.summary['reason']}); there is no result to show")
        return self.arrays


def _cells(fit: FitArrays) -> list[tuple[str, ...]]:
    shape = tuple(len(names) for names in fit.graph.outcome_names)
    names = fit.graph.outcome_names
    return [tuple(names[node][value] for node, value in enumerate(index)) for index in np.ndindex(*shape)]


# A fit in memory as what analyses work on: model, guide, source of queries, diagnostics.


def rebuild_result(result: FitResult) -> FittedRun:
    """Model and guide of a fit that is in memory, on the CPU."""
    with surroundings(torch.device("cpu")):
        description = RunDescription.from_plain(result.description)
    return rebuild(description, result.weights, result.decoders, components=result.components)


# A question to a fit in memory.


def source_of_result(result: FitResult) -> QuerySource:
    """A fit that is in memory.

    Raises:
        ValueError: It diverged.
    """
    fit = result.arrays
    if fit is None:
        raise ValueError(f"the fit diverged ({result.summary['reason']}); there is nothing to ask")
    names = fit.sample_names
    return QuerySource(
        rebuild_result(result),
        result.summary,
        dict(zip(fit.graph.node_names, fit.graph.outcome_names, strict=True)),
        fit.responsibilities,
        np.exp(fit.graph.log_joint.astype(np.float64)).reshape(-1),
        fit.split == "train",
        fit.environment,
        fit.groups,
        fit.node_labels,
        fit.latent_loc,
        None if names is None else tuple(map(str, names)),
    )


# The diagnostics of a fit that is in memory.


def diagnose_result(result: FitResult, draws: int | None = None, seed: int = 0) -> Diagnosis:
    """Run every diagnostic that there is something for (docs/diagnose.md).

    Args:
        result: A fit that did not diverge.
        draws: Draws per held-out sample for a new bound of log p(x); None: the bound of the fit.
        seed: Of the draws.

    Raises:
        ValueError: The fit diverged, or draws are asked for without its samples.
    """
    if result.arrays is None:
        raise ValueError(f"the fit diverged ({result.summary['reason']}); there is nothing to diagnose, fit again")
    if draws is not None and result.data is None:
        raise ValueError("draws: expected the samples of the fit with it, got a result without them; leave it out")
    run = FoundRun(rebuild_result(result), to_datatree(result.arrays), result.summary)
    fresh = None if draws is None or result.data is None else fresh_bound(run, result.data, draws, seed)
    return diagnose(run, fresh)
