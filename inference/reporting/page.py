"""One HTML page with everything that a run found; it needs no other file and no network."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from causalpima.inference.findings.clusters import (
    FACTOR_HEAD,
    State,
    cluster_sentence,
    factor_rows,
    fit_verdict,
    held_out_sentence,
    objective_sentence,
    score_notes,
    scored_samples,
    scores,
    time_sentence,
)
from causalpima.inference.findings.designed import designed_rows, designed_sentences
from causalpima.inference.findings.drawing import file_names
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
from causalpima.inference.findings.restarts import restart_rows, restart_sentences
from causalpima.inference.reporting.content import Part, Picture, RunContent, Section, Table, later_parts
from causalpima.inference.reporting.headline import SIGNS, headline
from causalpima.inference.reporting.page_tables import (
    bibtex,
    cell_table,
    conditional_tables,
    decoder_table,
    modality_table,
    node_parts,
    outcome_pictures,
    physics_tables,
    posterior_tables,
    section_pictures,
)
from causalpima.inference.store.files import write_text
from causalpima.inference.store.text import format_number, printable

if TYPE_CHECKING:
    from jinja2 import Template

__all__ = [
    "page_html",
    "sections_of",
    "write_report",
]


# What the report says in words, tables and pictures, section by section.


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


@cache
def _template() -> Template:
    from jinja2 import Environment, PackageLoader, StrictUndefined  # late: only a page needs it

    environment = Environment(
        loader=PackageLoader("causalpima.inference.reporting", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("report.html")


def write_report(content: RunContent, path: str | Path) -> None:
    """Write the page: what was found in three sentences, then everything behind it, with every figure.

    Everything that comes from the data is escaped; the page holds no script and loads nothing.

    Args:
        content: What stands on it: `RunContent.of_folder` reads it from a run folder.
        path: Where the page goes; replaced if it exists.

    Raises:
        OutputError: The disk is full, or the folder is missing or not writable.
    """
    summary = content.summary
    verdict = fit_verdict(summary)
    page = page_html(
        title=f"{printable(summary['dataset'])}, seed {summary['seed']}",
        state=verdict.state,
        status=f"Verdict: {verdict.state}",
        reasons=verdict.reasons,
        found=headline(summary),
        facts=_facts(summary),
        sections=[section for section in sections_of(content) if section.is_filled],
    )
    write_text(path, page)


def page_html(
    title: str,
    state: State,
    status: str,
    found: Sequence[str],
    facts: Sequence[str],
    sections: Sequence[Section],
    reasons: Sequence[str] = (),
) -> str:
    """A page in the form of a report; all text is escaped.

    Args:
        title: Heading of the page.
        state: How it came out, which colours the status.
        status: A few words on that.
        found: What was found, in sentences.
        facts: Short facts below the heading.
        sections: Everything else.
        reasons: What speaks against it, a sentence each.
    """
    return _template().render(
        title=title, state=state, status=status, reasons=reasons, found=found, facts=facts, sections=sections
    )


def _facts(summary: Mapping[str, Any]) -> list[str]:
    nodes = ", ".join(f"{name} ({count} outcomes)" for name, count in summary["nodes"].items())
    modalities = ", ".join(summary["modalities"])
    return [f"{summary['n_samples']} samples", f"measured as {modalities}", f"nodes {nodes}", time_sentence(summary)]
