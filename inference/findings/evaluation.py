"""The scores of `python -m inference.evaluate` for people."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from causalpima.inference.findings.clusters import (
    Score,
    disentanglement_scores,
    factor_lines,
    score_notes,
    scored_samples,
    scores,
)
from causalpima.inference.findings.meaning import meaning_sentence
from causalpima.inference.findings.verdicts import gap_text
from causalpima.inference.store.text import format_number, format_r2, printable, shorten

__all__ = [
    "evaluation_remarks",
    "evaluation_table",
]


_WIDTH = 80
_NAME = 26
_COLUMN = 16

Scores = Mapping[str, Any]


def evaluation_table(found: Scores) -> str:
    """Plain text of at most 80 columns; parts without numbers are left out.

    Args:
        found: As `score_run` returns it.
    """
    parts = [
        _against_factors(found),
        _node_factors(found),
        _disentanglement(found),
        _graph(found),
        _modalities(found),
        _held_out(found),
    ]
    return "\n\n".join("\n".join(part) for part in parts if part)


def _against_factors(found: Scores) -> list[str]:
    rows = scores({"evaluation": found}) if "cluster_accuracy" in found else []
    if not rows:
        return ["No factor is known: there is nothing to score clusters, nodes and graph against."]
    head = _row(f"on {scored_samples({'evaluation': found})}", "this fit", "random names", "ceiling")
    notes = [line for note in score_notes({"evaluation": found}) for line in _wrapped(note)]
    return [head, *map(_score_row, rows), *factor_lines(found), *notes]


def _score_row(score: Score) -> str:
    return _row(score.name, *score.texts())


def _disentanglement(found: Scores) -> list[str]:
    """Rows of their own, with what they are not good for."""
    rows = disentanglement_scores(found)
    if not rows:
        return []
    note = (
        "These fall when the factors depend on each other, even where every node is right: they can't compare fits "
        "of such data."
    )
    return [_row("DCI, gap", "this fit", "random names"), *map(_score_row, rows), *_wrapped(note)]


def _node_factors(found: Scores) -> list[str]:
    """Accuracy and normalised mutual information of every node with every factor."""
    if "node_factor_accuracy" not in found:
        return []
    factors = list(found["assignment"])
    rows = [
        _row(node, *(f"{a:.3f} ({i:.3f})" for a, i in zip(accuracy, information, strict=True)))
        for node, accuracy, information in zip(
            found["node_names"], found["node_factor_accuracy"], found["node_factor_nmi"], strict=True
        )
    ]
    return [_row("accuracy (NMI) of node as", *factors), *rows]


def _graph(found: Scores) -> list[str]:
    graph = found.get("graph")
    if not graph:
        return []
    return [line for part in (_graph_rows(graph), _joint_row(graph)) for line in part]


def _graph_rows(graph: Scores) -> Iterator[str]:
    if graph["true_cpdag"] is None:
        return
    yield _row("graph against the truth", "soft strengths", "exact search", "random names")
    columns = (graph["edge_strength"], graph["exact_search"], graph["random_labelling"])
    for title, key, digits in _GRAPH_ROWS:
        numbers = [format_number((column or {}).get(key), digits) for column in columns[:2]]
        yield _row(title, *numbers, format_number((columns[2] or {}).get(key), digits or 1))
    found = graph["exact_search"]
    if found is not None:
        gap = gap_text(found["bic_gap"], f"the next of {found['n_classes']}")
        yield from _wrapped(f"The best class of the exact search (BIC): {gap or 'the only one'}.")


_GRAPH_ROWS = (
    ("structural Hamming distance", "shd", 0),
    ("F1 of the skeleton", "skeleton_f1", 3),
    ("F1 of the v-structures", "v_structure_f1", 3),
    ("compelled edges directed", "orientation", 3),
)


def _joint_row(graph: Scores) -> Iterator[str]:
    found = graph["joint_kl"]
    if found is None:
        return
    yield _row("KL from the true p(N), nats", "this fit", "random names", "true labels")
    yield _row("", *(format_number(found[key], 4) for key in ("learned", "random_labelling", "true_labels")))


def _modalities(found: Scores) -> list[str]:
    lines: list[str] = []
    for name, share in (found.get("variance_explained") or {}).items():
        parts = ", ".join(
            f"{shorten(node, 16)} {100 * value:.0f} % (random names {100 * share['random_labelling'][node]:.0f} %)"
            for node, value in share["nodes"].items()
        )
        lines += _wrapped(
            f"{printable(name)}: variance explained by {parts}; by all cells {100 * share['all_cells']:.0f} %."
        )
    for name, score in (found.get("cross_modal") or {}).items():
        lines += _wrapped(
            f"{printable(name)} from the other modalities: R² {format_r2(score['r2'], score['standard_error'])}, "
            f"by the means of the clusters {format_r2(score['r2_cluster_mean'])} ({score['n_samples']} held-out "
            "samples)."
        )
    return lines


def _held_out(found: Scores) -> list[str]:
    held_out = found.get("held_out_log_likelihood")
    if not held_out:
        return []
    bound = held_out.get("collapsed_bound", {})
    parts = [
        f"{name} {format_number(values.get('per_sample'), 2)} ± {format_number(values.get('standard_error'), 2)}"
        for name, values in (("importance-weighted", held_out), ("collapsed bound", bound))
    ]
    where = f"{held_out['n_samples']} {held_out['split']} samples"
    return _wrapped(f"Held-out log p(x), nats per sample: {', '.join(parts)} ({where}).")


def _row(name: str, *values: str) -> str:
    cells: Sequence[str] = [f"{shorten(value, _COLUMN - 1):>{_COLUMN}}" for value in values]
    return f"{shorten(name, _NAME + 2):<{_NAME + 3}}{''.join(cells)}".rstrip()


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH) if text else []


# What goes before the scores of `python -m inference.evaluate`: what the nodes mean, and which samples have labels.


def evaluation_remarks(
    summary: Mapping[str, Any], found: Mapping[str, Any], factors: Mapping[str, np.ndarray], n_samples: int
) -> str:
    """Plain text of at most 80 columns.

    Args:
        summary: That of the run.
        found: The scores, as `score_run` returns them.
        factors: Codes of the factors that are scored against, `[n]`; negative: not known.
        n_samples: Samples of the run.
    """
    remarks = (meaning_sentence(summary), _not_identified(summary), _labelled(found, factors, n_samples))
    return "\n".join(line for remark in remarks for line in textwrap.wrap(remark, _WIDTH))


def _not_identified(summary: Mapping[str, Any]) -> str:
    identified = (summary.get("identifiability") or {}).get("identified_nodes")
    others = [printable(node) for node in summary.get("nodes", {}) if node not in (identified or ())]
    if identified is None or not others:
        return ""
    return (
        f"Not identified: {', '.join(others)}. Scores by {'this node' if len(others) == 1 else 'these nodes'} hold for "
        "one of several readings that fit equally well."
    )


def _labelled(found: Mapping[str, Any], factors: Mapping[str, np.ndarray], n_samples: int) -> str:
    """How many samples have labels, where some have none."""
    known = int(np.all([codes >= 0 for codes in factors.values()], axis=0).sum()) if factors else 0
    if not factors or known == n_samples:
        return ""
    included = " (training samples included)" if found.get("split", "all") == "all" else ""
    return f"{known} of {n_samples} samples have labels of every factor{included}."
