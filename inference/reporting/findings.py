"""The list of what a run says (`FINDINGS`), in the order in which a reader meets it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from causalpima.inference.findings import designed, restarts
from causalpima.inference.findings.arrays import FitArrays
from causalpima.inference.findings.base import Finding, Part, RunContent, Section, Summary, Table
from causalpima.inference.findings.cell_figures import (
    cells_of,
    draw_cell_fits,
    draw_decoded_means,
    draw_nearest_samples,
)
from causalpima.inference.findings.clusters import (
    FACTOR_HEAD,
    cluster_sentence,
    factor_lines,
    factor_rows,
    held_out_sentence,
    objective_sentence,
    score_notes,
    scored_samples,
    scores,
    time_sentence,
)
from causalpima.inference.findings.drawing import Caption, file_names, outcome_files
from causalpima.inference.findings.graph import (
    class_sentence,
    edge_texts,
    edges_heading,
    edges_remark,
    learned_sentence,
    posterior_sentence,
)
from causalpima.inference.findings.linear_model import linear_model_sentence
from causalpima.inference.findings.meaning import environments_sentence, is_named, meaning_sentence
from causalpima.inference.findings.physics import physics_lines
from causalpima.inference.reporting.figures.fit import draw_missing, draw_objective, draw_reliability
from causalpima.inference.reporting.figures.graph import draw_conditionals, draw_graph
from causalpima.inference.reporting.figures.latent import draw_latent_clusters, draw_latent_factors, view_latent
from causalpima.inference.reporting.figures.nodes import draw_explained, draw_node_factors, draw_outcomes
from causalpima.inference.reporting.headline import SIGNS
from causalpima.inference.reporting.page_tables import (
    cell_table,
    conditional_tables,
    decoder_table,
    modality_table,
    node_parts,
    outcome_pictures,
    physics_tables,
    posterior_tables,
)
from causalpima.inference.store.text import format_number, printable, shorten

if TYPE_CHECKING:  # imported where something is drawn: other commands start without it
    from matplotlib.figure import Figure

__all__ = ["FINDINGS", "score_figures"]


_NAME_WIDTH = 40
_PHYSICS = (
    "Least squares of the law on the training samples of each cell, weighted by q(N|X). Standard errors and 95 % "
    "intervals take the clusters as given: where clusters overlap, they are too small."
)
_UNNAMED = "The nodes are unnamed: what follows is one of several readings, and another mixes these nodes."
_WIDTH = 69
_SHORT = 18
_MOST_EDGES = 12
_COLUMNS = (26, 10, 16, 17)


# Data.


def _data_section(content: RunContent) -> Iterator[Section]:
    found = environments_sentence(content.summary)
    yield Section("data", "Data", [f"{found}."] if found else [], [modality_table(content.summary)])


def _data_lines(summary: Summary) -> list[str]:
    return [_data(summary), environments_sentence(summary)]


def _data(summary: Mapping[str, Any]) -> str:
    measured = ", ".join(
        f"{shorten(name, _SHORT)} {'x'.join(map(str, modality['shape']))}{_peculiarities(modality, summary)}"
        for name, modality in summary.get("modalities", {}).items()
    )
    seed = f"seed {summary['seed']}, {summary['n_samples']} samples"
    return f"{printable(summary['dataset'])}, {seed}" + (f": {measured}" if measured else "")


def _peculiarities(modality: Mapping[str, Any], summary: Mapping[str, Any]) -> str:
    """What is not plain about a modality: ` (in 17; 12 % of elements missing; poisson)`; empty where nothing is."""
    missing, transform = modality.get("missing_elements") or 0.0, modality.get("transform", "identity")
    present, likelihood = modality["present"], modality.get("likelihood", "normal")
    found = {
        f"in {present}": present < summary["n_samples"],
        f"{_percent(missing)} of elements missing": missing > 0,
        f"{printable(transform)} scale": transform != "identity",
        printable(likelihood): likelihood != "normal",
    }
    words = [text for text, holds in found.items() if holds]
    return f" ({'; '.join(words)})" if words else ""


def _percent(share: float) -> str:
    return "under 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def _missing_figure(fit: FitArrays, _: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    yield "missing", _draw_missing(fit)


def _draw_missing(fit: FitArrays) -> Figure | None:
    """What is missing where; None where nothing is."""
    shares = [fit.measured_share.get(name, present) for name, present in fit.present.items()]
    if all((share == 1).all() for share in shares):
        return None
    names = None if fit.sample_names is None else fit.sample_names.tolist()
    return draw_missing(list(fit.present), np.stack(shares, axis=1), names)


DATA = Finding(
    title="Data",
    lines=_data_lines,
    sections=_data_section,
    figures=_missing_figure,
    captions={
        "missing": Caption(
            "data",
            "What is missing where",
            "A column for each sample, or for neighbours, in a row for each modality: blue is there, grey are elements "
            "that a measurement lacks, orange are samples without it.",
        ),
    },
)


# Clusters, and what they look like.


def _clusters_section(content: RunContent) -> Iterator[Section]:
    yield Section("clusters", "Clusters", [f"{cluster_sentence(content.summary)}."], [cell_table(content)])


def _cluster_lines(summary: Summary) -> list[str]:
    sizes, counts = _counts(summary, "sizes", "sizes"), _counts(summary, "n_groups", "replicates counted once:")
    return [cluster_sentence(summary), sizes, counts]


def _counts(summary: Mapping[str, Any], key: str, name: str) -> str:
    counts = summary.get("clusters", {}).get(key)
    return f"{name} " + " ".join(map(str, counts)) if counts else ""


def _latent_figures(fit: FitArrays, _: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    view = view_latent(fit.latent_loc)
    yield "latent_clusters", draw_latent_clusters(fit, view, cells_of(fit))
    yield "latent_factors", draw_latent_factors(fit, view)


def _cell_figures(fit: FitArrays, _: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    cells = cells_of(fit)
    for name, file in file_names(fit.modalities).items():
        yield f"nearest_samples_{file}", draw_nearest_samples(fit, name, cells)
        yield f"decoded_means_{file}", draw_decoded_means(fit, name, cells)
        yield f"curves_{file}", draw_cell_fits(fit, name, cells)


CLUSTERS = Finding(
    title="Clusters",
    lines=_cluster_lines,
    sections=_clusters_section,
    figures=_latent_figures,
    captions={
        "latent_clusters": Caption(
            "clusters",
            "Latent space by cluster",
            "Each dot is a sample, coloured by its most probable cell; outlines are two standard deviations of the "
            "Gaussians of the model.",
        ),
        "latent_factors": Caption(
            "clusters",
            "Latent space by known factor",
            "The same dots, coloured by what is known about the samples. Clusters were found without these values, "
            "unless labels of --observe took part in the training; such labels may have named the clusters.",
        ),
    },
)
APPEARANCE = Finding(
    sections=lambda _: [Section("appearance", "What the clusters look like")],
    figures=_cell_figures,
    captions={
        "nearest_samples": Caption(
            "appearance",
            "Nearest sample",
            "For each cell, the measured sample of that cell that lies nearest to its mean in the latent space.",
        ),
        "decoded_means": Caption(
            "appearance",
            "Decoded mean",
            "What the decoder makes of the mean of each cell.",
        ),
        "curves": Caption(
            "appearance",
            "Curves by cluster",
            "Measured curves of each cell, the curve that the model gives the cell (the physical law with the 95 % "
            "interval of its parameters, given the clusters; else the decoded mean), and two standard deviations of "
            "single curves about it: noise, and what varies within the cell.",
        ),
    },
)


# Physical parameters.


def _physics_section(content: RunContent) -> Iterator[Section]:
    tables = physics_tables(content)
    yield Section("physics", "Physical parameters", [_PHYSICS] if tables else [], tables)


PHYSICS = Finding(title="Physics", lines=lambda summary: physics_lines(summary, _WIDTH), sections=_physics_section)


# What the nodes mean.


def _nodes_section(content: RunContent) -> Iterator[Section]:
    summary = content.summary
    identified = (summary.get("identifiability") or {}).get("identified_nodes")
    sentences = [text for text in (meaning_sentence(summary),) if text]
    unnamed = [] if is_named(summary) or identified else [_UNNAMED]
    pictures = outcome_pictures(content.figures, summary)
    parts = node_parts(summary, content.outcome_names, pictures)
    yield Section("nodes", "Node by node", [*sentences, *unnamed], parts=parts)


def _node_figures(fit: FitArrays, _: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    """What distinguishes the outcomes of every node in every modality, and how much they explain."""
    files = outcome_files(fit.graph.node_names, fit.modalities)
    for name in fit.modalities:
        yield from ((f"outcomes_{files[node, name]}", figure) for node, figure in draw_outcomes(fit, name))
    yield "variance_explained", draw_explained(fit)


NODES = Finding(
    title="Meaning",
    lines=lambda summary: [meaning_sentence(summary)],
    sections=_nodes_section,
    figures=_node_figures,
    captions={
        "outcomes": Caption(
            "nodes",
            "What changes with a node",
            "Decoded means for each outcome of a node, averaged over the other nodes with the same weights, and how "
            "they differ from the first.",
        ),
        "variance_explained": Caption(
            "nodes",
            "Variance explained",
            "How much of the variance of every modality lies between the outcomes of every node, and between all "
            "cells.",
        ),
    },
)


# The graph.


def _graph_section(content: RunContent) -> Iterator[Section]:
    summary = content.summary
    tables = [*posterior_tables(summary), *_directed(summary)]
    conditional = conditional_tables(summary, content.outcome_names, content.log_joint)
    part = Part("Conditional tables", "of the learned p(N), along one graph of the class", tables=conditional)
    yield Section("graph", "Graph", _graph_sentences(summary), tables, parts=[part] if conditional else [])


def _graph_sentences(summary: Summary) -> list[str]:
    if len(summary["graph"]["node_names"]) == 1:
        return ["One node has no edges."]
    found, heading = edge_texts(summary, _NAME_WIDTH, SIGNS), edges_heading(summary, SIGNS)
    listed = f"{heading}: {', '.join(found)}." if found else ""
    searched = class_sentence(summary, SIGNS), posterior_sentence(summary, SIGNS), learned_sentence(summary, SIGNS)
    sentences = (*searched, listed, edges_remark(summary), linear_model_sentence(summary, SIGNS))
    return [f"{sentence[0].upper()}{sentence[1:].rstrip('.')}." for sentence in sentences if sentence]


def _square(names: Sequence[str], table: Sequence[Sequence[Any]]) -> list[list[str]]:
    return [
        [name, *("" if i == j else format_number(value, 2) for j, value in enumerate(row))]
        for i, (name, row) in enumerate(zip(names, table, strict=True))
    ]


def _directed(summary: Summary) -> list[Table]:
    """Weights of the edges of the graphs that interventions tell apart; empty without environments."""
    details = summary.get("labelling", {}).get("details", {})
    if "edge_probability" not in details:
        return []
    names = [printable(name) for name in summary["graph"]["node_names"]]
    text = (
        "What the interventions say of every edge: weight of the graphs that have it, by BIC, under this labelling of "
        "the clusters. Row: cause. Column: effect."
    )
    return [Table(text, ("cause", *names), _square(names, details["edge_probability"]))]


def _graph_lines(summary: Mapping[str, Any]) -> list[str]:
    if "graph" not in summary:
        return []
    if len(summary["graph"]["node_names"]) == 1:
        return ["one node, no edges"]
    found, heading = edge_texts(summary, _SHORT), edges_heading(summary)
    more = [f"and {len(found) - _MOST_EDGES} more"] if len(found) > _MOST_EDGES else []
    return [
        " ".join(
            text for text in (class_sentence(summary), posterior_sentence(summary), learned_sentence(summary)) if text
        ),
        f"{heading}:" if heading else "",
        *_side_by_side(found[:_MOST_EDGES]),
        *more,
        edges_remark(summary),
        linear_model_sentence(summary),
    ]


def _side_by_side(texts: Sequence[str]) -> list[str]:
    """As many columns as fit, all of one width."""
    if not texts:
        return []
    column = max(map(len, texts)) + 4
    per_line = max(1, (_WIDTH + 4) // column)
    return [
        "".join(f"{text:<{column}}" for text in texts[i : i + per_line]).rstrip()
        for i in range(0, len(texts), per_line)
    ]


def _graph_figures(fit: FitArrays, summary: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    yield "graph", None if summary is None else draw_graph(summary)
    yield "conditionals", draw_conditionals(fit)


GRAPH = Finding(
    title="Graph",
    lines=_graph_lines,
    sections=_graph_section,
    figures=_graph_figures,
    captions={
        "graph": Caption(
            "graph",
            "Graph over the nodes",
            "Where all nodes have a meaning, the equivalence class of an exact search, or the graph that interventions "
            "tell: an arrow where the direction is identified, else a line, with the mutual information of the two "
            "nodes under p(N). Of nodes without a meaning, there is none.",
        ),
        "conditionals": Caption(
            "graph",
            "Conditional probabilities",
            "How each node is distributed on its own, and given each outcome of each other node.",
        ),
        "edge_probabilities": Caption(
            "graph",
            "Probabilities of edges",
            "Posterior probability of every edge, row to column, and how far it depends on the score "
            "(inference.graph).",
        ),
    },
)


# Scores against known factors.


def _scores_section(content: RunContent) -> Iterator[Section]:
    found = scores(content.summary)
    text = (
        f"On {scored_samples(content.summary)}. Random names: the same clusters, their outcomes named at random (not "
        "chance level: the clusters stay as they were found). Bayes ceiling: what the best classifier reaches. A dash: "
        f"not known, or without meaning. {' '.join(score_notes(content.summary))}"
    )
    head = ("score", "this fit", "random names", "Bayes ceiling")
    rows = [[score.name, *score.texts()] for score in found]
    by_factor = factor_rows(content.summary.get("evaluation") or {})
    tables = [Table(text, head, rows)] if rows else []
    tables += [Table("", ("factor", *FACTOR_HEAD), by_factor)] if by_factor else []
    yield Section("scores", "Scores against known factors", tables=tables)


def _score_lines(summary: Mapping[str, Any]) -> list[str]:
    found = scores(summary)
    if not found:
        return []
    where, columns = f"on {scored_samples(summary)}", ("this fit", "random names", "Bayes ceiling")
    head = [_row(where, *columns)] if len(where) < _COLUMNS[0] else [where, _row("", *columns)]
    rows = [_row(score.name, *score.texts()) for score in found]
    return [*head, *rows, *factor_lines(summary["evaluation"]), *score_notes(summary)]


def _row(name: str, *values: str) -> str:
    first, *others = _COLUMNS
    cells = "".join(f"{value:>{width}}" for value, width in zip(values, others, strict=True))
    return f"{shorten(name, first - 1):<{first}}{cells}".rstrip()


def score_figures(
    scores: Mapping[str, Any] | None, identifiability: Mapping[str, Any] | None
) -> Iterator[tuple[str, Figure]]:
    """Figures of the scores against known factors, by the name of the file; none without scores."""
    if scores is not None:
        yield "node_factors", draw_node_factors(scores, identifiability)
        yield "reliability", draw_reliability(scores)


SCORES = Finding(
    title="Scores",
    lines=_score_lines,
    sections=_scores_section,
    figures=lambda fit, summary: score_figures((summary or {}).get("evaluation"), fit.identifiability),
    captions={
        "node_factors": Caption(
            "scores",
            "Nodes and known factors",
            "What every node tells of every known factor; outlined are the nodes that stand for one, above chance.",
        ),
        "reliability": Caption(
            "scores",
            "Reliability",
            "How often the most probable cell is right, against the probability that q(N|X) gives it.",
        ),
    },
)


# The course of the fit.


def _objective_section(content: RunContent) -> Iterator[Section]:
    objective = objective_sentence(content.summary)
    sentences = (f"Objective: {objective}." if objective else "", held_out_sentence(content.summary))
    yield Section("fit", "Course of the fit", [text for text in sentences if text], [decoder_table(content.summary)])


def _objective_figure(fit: FitArrays, _: Summary | None) -> Iterator[tuple[str, Figure | None]]:
    yield "objective", draw_objective(fit)


OBJECTIVE = Finding(
    title="Objective",
    lines=lambda summary: [objective_sentence(summary)],
    sections=_objective_section,
    figures=_objective_figure,
    captions={
        "objective": Caption(
            "fit",
            "Course of the fit",
            "The objective and its terms over the epochs, the effective number of mixture components, the temperature "
            "of the graph, and the decoder variance.",
        ),
    },
)
TIME = Finding(title="Time", lines=lambda summary: [time_sentence(summary)])


FINDINGS: tuple[Finding, ...] = (
    DATA,
    CLUSTERS,
    APPEARANCE,
    restarts.FINDING,
    PHYSICS,
    NODES,
    designed.FINDING,
    GRAPH,
    SCORES,
    OBJECTIVE,
    TIME,
)
"""A new finding is a file with its record, and a line here."""
