"""What the report says in words, tables and pictures, section by section."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import yaml

from inference.results.class_findings import class_sentence
from inference.results.designed import designed_rows, designed_sentences
from inference.results.environment_findings import environments_sentence
from inference.results.figures.file_names import file_names
from inference.results.findings import (
    FACTOR_HEAD,
    cluster_sentence,
    factor_rows,
    held_out_sentence,
    objective_sentence,
    score_notes,
    scored_samples,
    scores,
)
from inference.results.graph_findings import edge_texts, edges_heading, edges_remark
from inference.results.learned_findings import learned_sentence
from inference.results.linear_findings import linear_model_sentence
from inference.results.meaning import is_named, meaning_sentence
from inference.results.page.citation import bibtex
from inference.results.page.content import RunContent
from inference.results.page.data_tables import cell_table, decoder_table, modality_table, physics_tables
from inference.results.page.graph_tables import conditional_tables, posterior_tables
from inference.results.page.headline_graph import SIGNS
from inference.results.page.later import later_parts
from inference.results.page.node_parts import node_parts
from inference.results.page.parts import Part, Picture, Section, Table
from inference.results.page.pictures import outcome_pictures, section_pictures
from inference.results.posterior_findings import posterior_sentence
from inference.results.restart_findings import restart_rows, restart_sentences
from inference.results.text import format_number, printable

__all__ = ["sections_of"]

Summary = Mapping[str, Any]

_NAME_WIDTH = 40
_PHYSICS = (
    "Least squares of the law on the training samples of each cell, weighted by q(N|X). Standard errors and 95 % "
    "intervals take the clusters as given: where clusters overlap, they are too small."
)
_DESIGNED = (
    "Standardised: root mean square of the difference over all elements, in standard deviations within the outcomes. "
    "Explained: share of the variance between all outcomes. p: permutations of the outcomes that explain as much. "
    "Value: of modalities of one number, with a 95 % interval; the others are in the pictures."
)
_UNNAMED = "The nodes are unnamed: what follows is one of several readings, and another mixes these nodes."


def sections_of(content: RunContent) -> list[Section]:
    """All sections in reading order; some may be empty."""
    pictures = section_pictures(content.figures, content.summary)
    return [
        _add(section, pictures.get(section.id, ())) if section.id != "appearance" else section
        for section in (make(content, pictures) for make in _SECTIONS)
    ]


def _add(section: Section, pictures: Sequence[Picture]) -> Section:
    return section._replace(pictures=[*section.pictures, *pictures])


def _clusters(content: RunContent, _: object) -> Section:
    return Section("clusters", "Clusters", [f"{cluster_sentence(content.summary)}."], [cell_table(content)])


def _appearance(content: RunContent, pictures: Mapping[str, Sequence[Picture]]) -> Section:
    """Modality by modality, so that nearest sample and decoded mean stand together."""
    left, parts = list(pictures.get("appearance", ())), []
    for name, file in file_names(content.summary["modalities"]).items():
        own = [picture for picture in left if picture.title.endswith(f": {file}")]
        left = [picture for picture in left if picture not in own]
        parts += [Part(printable(name), pictures=own)] if own else []
    return Section("appearance", "What the clusters look like", pictures=left, parts=parts)


def _physics(content: RunContent, _: object) -> Section:
    tables = physics_tables(content)
    return Section("physics", "Physical parameters", [_PHYSICS] if tables else [], tables)


def _nodes(content: RunContent, _: object) -> Section:
    summary = content.summary
    identified = (summary.get("identifiability") or {}).get("identified_nodes")
    sentences = [text for text in (meaning_sentence(summary),) if text]
    unnamed = [] if is_named(summary) or identified else [_UNNAMED]
    pictures = outcome_pictures(content.figures, summary)
    parts = node_parts(summary, content.outcome_names, pictures)
    return Section("nodes", "Node by node", [*sentences, *unnamed], parts=parts)


def _designed(content: RunContent, _: object) -> Section:
    """What the experimenter set: differences of measured means."""
    rows, sentences = designed_rows(content.summary), designed_sentences(content.summary)
    head = ("difference", "standardised", "explained", "p", "samples", "value")
    return Section("designed", "Designed nodes", sentences, [Table(_DESIGNED, head, rows)] if rows else [])


def _graph(content: RunContent, _: object) -> Section:
    summary = content.summary
    tables = [*posterior_tables(summary), *_directed(summary)]
    conditional = conditional_tables(summary, content.outcome_names, content.log_joint)
    part = Part("Conditional tables", "of the learned p(N), along one graph of the class", tables=conditional)
    return Section("graph", "Graph", _graph_sentences(summary), tables, parts=[part] if conditional else [])


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


def _restarts(content: RunContent, _: object) -> Section:
    summary = content.summary
    sentences, rows = restart_sentences(summary), restart_rows(summary)
    text = (
        "Starts of the same fit, the clearest first. Entropy: mean of q(N|X), in nats, by which the start is chosen "
        "among those with the most occupied cells; the bound does not tell good clusters from bad. "
        "ARI: adjusted Rand index with the kept one."
    )
    head = ("start", "status", "entropy", "cells", "ARI", "cluster accuracy")
    return Section("restarts", "Stability over starts", sentences, [Table(text, head, rows)] if rows else [])


def _scores(content: RunContent, _: object) -> Section:
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
    return Section("scores", "Scores against known factors", tables=tables)


def _checks(content: RunContent, _: object) -> Section:
    return Section("checks", "Checks and diagnostics", parts=later_parts(content.later))


def _fit(content: RunContent, _: object) -> Section:
    objective = objective_sentence(content.summary)
    sentences = (f"Objective: {objective}." if objective else "", held_out_sentence(content.summary))
    return Section("fit", "Course of the fit", [text for text in sentences if text], [decoder_table(content.summary)])


def _data(content: RunContent, _: object) -> Section:
    found = environments_sentence(content.summary)
    return Section("data", "Data", [f"{found}."] if found else [], [modality_table(content.summary)])


def _details(content: RunContent, _: object) -> Section:
    settings = yaml.safe_dump(dict(content.facts), sort_keys=False, allow_unicode=True, default_flow_style=None)
    versions = yaml.safe_dump(dict(content.summary.get("versions", {})), sort_keys=False, allow_unicode=True)
    return Section("details", "Configuration and versions", texts=[("Versions", versions), ("Settings", settings)])


def _citation(content: RunContent, _: object) -> Section:
    sentences = ["The method is that of the paper, the figures are those of this software: please cite both."]
    return Section("cite", "How to cite", sentences, texts=[("BibTeX", bibtex(content.summary.get("versions", {})))])


_SECTIONS: tuple[Callable[[RunContent, Mapping[str, Sequence[Picture]]], Section], ...] = (
    _clusters,
    _appearance,
    _physics,
    _nodes,
    _designed,
    _graph,
    _restarts,
    _scores,
    _checks,
    _fit,
    _data,
    lambda content, pictures: Section("other", "Further figures"),
    _details,
    _citation,
)
