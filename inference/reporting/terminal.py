"""The table at the end of a run."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from causalpima.inference.findings.clusters import (
    cluster_sentence,
    factor_lines,
    fit_verdict,
    objective_sentence,
    score_notes,
    scored_samples,
    scores,
    time_sentence,
)
from causalpima.inference.findings.designed import designed_sentences
from causalpima.inference.findings.graph import (
    class_sentence,
    edge_texts,
    edges_heading,
    edges_remark,
    learned_sentence,
    posterior_sentence,
)
from causalpima.inference.findings.linear_model import linear_model_sentence
from causalpima.inference.findings.meaning import environments_sentence, meaning_sentence
from causalpima.inference.findings.physics import physics_lines
from causalpima.inference.findings.restarts import restart_sentences
from causalpima.inference.store.text import printable, shorten

__all__ = [
    "summary_table",
]


_WIDTH = 80
_INDENT = 11
_NAME_WIDTH = 18
_MOST_EDGES = 12
_COLUMNS = (26, 10, 16, 17)


def summary_table(summary: Mapping[str, Any]) -> str:
    """The summary for people: plain text, the verdict first, at most 80 columns unless the path itself is longer.

    Sections that the summary has no entries for are left out: a diverged run has no clusters, data without known
    factors have no scores.
    """
    sections = {
        "Verdict": _verdict(summary),
        "Data": [_data(summary), environments_sentence(summary)],
        "Clusters": [
            cluster_sentence(summary),
            _counts(summary, "sizes", "sizes"),
            _counts(summary, "n_groups", "replicates counted once:"),
        ],
        "Restarts": restart_sentences(summary),
        "Physics": physics_lines(summary, _WIDTH - _INDENT),
        "Meaning": [meaning_sentence(summary)],
        "Designed": designed_sentences(summary),
        "Graph": _graph(summary),
        "Scores": _scores(summary),
        "Objective": [objective_sentence(summary)],
        "Time": [time_sentence(summary)],
        "Files": [str(summary["output_dir"])] if summary.get("output_dir") else [],
    }
    return "\n".join(line for title, texts in sections.items() for line in _section(title, texts))


def _verdict(summary: Mapping[str, Any]) -> list[str]:
    """The state, then a point for each reason."""
    found = fit_verdict(summary)
    points = (textwrap.wrap(f"- {r}", _WIDTH - _INDENT, subsequent_indent="  ") for r in found.reasons)
    return [found.state, *(line for lines in points for line in lines)]


def _section(title: str, texts: Iterable[str]) -> list[str]:
    lines = [line for text in texts if text for line in _wrap(text)]
    return [f"{title if i == 0 else '':<{_INDENT}}{line}" for i, line in enumerate(lines)]


def _wrap(text: str) -> list[str]:
    """Lines that fit; words are not broken, so that a long path can be copied."""
    width = _WIDTH - _INDENT
    if len(text) <= width:
        return [text]
    return textwrap.wrap(text, width, break_long_words=False, break_on_hyphens=False)


def _data(summary: Mapping[str, Any]) -> str:
    measured = ", ".join(
        f"{shorten(name, _NAME_WIDTH)} {'x'.join(map(str, modality['shape']))}{_peculiarities(modality, summary)}"
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


def _counts(summary: Mapping[str, Any], key: str, name: str) -> str:
    counts = summary.get("clusters", {}).get(key)
    return f"{name} " + " ".join(map(str, counts)) if counts else ""


def _graph(summary: Mapping[str, Any]) -> list[str]:
    if "graph" not in summary:
        return []
    if len(summary["graph"]["node_names"]) == 1:
        return ["one node, no edges"]
    found, heading = edge_texts(summary, _NAME_WIDTH), edges_heading(summary)
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
    per_line = max(1, (_WIDTH - _INDENT + 4) // column)
    return [
        "".join(f"{text:<{column}}" for text in texts[i : i + per_line]).rstrip()
        for i in range(0, len(texts), per_line)
    ]


def _scores(summary: Mapping[str, Any]) -> list[str]:
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
