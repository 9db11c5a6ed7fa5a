"""Designed nodes in the summary: an entry of its own, and what it says in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from causalpima.inference.clusters.design import DesignedEffect, DesignedNode
from causalpima.inference.store.text import format_number, printable

__all__ = [
    "ASSUMPTIONS",
    "designed_rows",
    "designed_sentences",
    "designed_summary",
]


ASSUMPTIONS = (
    "Differences in means of the training samples, without a model; causal if outcomes were handed out at random, "
    "regardless of the samples, which the data cannot show"
)

_MOST_ELEMENTS = 16


def designed_summary(nodes: Mapping[str, DesignedNode]) -> dict[str, Any]:
    """The entry `designed` of a summary (docs/run_folder.md), by node."""
    return {
        name: {
            "variable": node.variable,
            "n_labelled": node.n_labelled,
            "n_training": node.n_training,
            "n_groups": node.n_groups,
            "outcomes": list(node.outcomes),
            "modalities": {modality: _effect(effect) for modality, effect in node.effects.items()},
        }
        for name, node in nodes.items()
    }


def _effect(effect: DesignedEffect) -> dict[str, Any]:
    entry = {
        "n_samples": effect.samples.tolist(),
        "n_independent": effect.units.tolist(),
        "explained": effect.explained,
        "p_value": effect.test.p_value,
        "n_permutations": effect.test.n_permutations,
        "standardised_difference": effect.standardised.tolist(),
    }
    if effect.mean[0].size > _MOST_ELEMENTS:
        return entry
    arrays = ("mean", "standard_error", "difference", "lower", "upper")
    return entry | {name: np.asarray(getattr(effect, name), dtype=float).tolist() for name in arrays}


def designed_sentences(summary: Mapping[str, Any]) -> list[str]:
    """What the terminal says of every designed node; a warning where its outcomes are not known of all samples."""
    found = [text for name, node in (summary.get("designed") or {}).items() for text in _node_sentences(name, node)]
    is_any = any(node["modalities"] for node in (summary.get("designed") or {}).values())
    return [*found, f"{ASSUMPTIONS}.", *_about_missing(summary)] if is_any else found


def _about_missing(summary: Mapping[str, Any]) -> list[str]:
    """What is missing may depend on the outcome; then those that were measured are no random part."""
    n_samples = summary["n_samples"]
    lacking = [
        printable(name)
        for name, modality in summary["modalities"].items()
        if modality["present"] < n_samples or (modality.get("missing_elements") or 0.0) > 0
    ]
    if not lacking:
        return []
    return [f"Means are of what was measured: if gaps in {', '.join(lacking)} depend on the outcome, they mislead."]


def _node_sentences(name: str, node: Mapping[str, Any]) -> list[str]:
    shown = printable(name)
    if node["variable"] is None:
        return [f"Warning: {shown} is designed, but not observed: no effects of it; add --observe {shown}=VARIABLE."]
    groups = "" if node["n_groups"] is None else f" in {node['n_groups']} groups"
    known = f"{node['n_labelled']} of {node['n_training']} training samples{groups}"
    effects = [_modality_text(modality, effect) for modality, effect in node["modalities"].items()]
    parts = [f"{shown}, set by the experimenter ({known}), explains: {'; '.join(effects) or 'nothing measurable'}."]
    if node["n_labelled"] < node["n_training"]:
        parts.append(f"Warning: the outcome of {shown} is not known of all training samples; the others are left out.")
    return parts


def _modality_text(modality: str, effect: Mapping[str, Any]) -> str:
    p_value = effect["p_value"]
    return f"{printable(modality)} {100 * effect['explained']:.1f} % of the variance (p = {p_value:.2g})"


def designed_rows(summary: Mapping[str, Any]) -> list[list[str]]:
    """Rows of the table of the report: a difference to the first outcome each."""
    rows = []
    for name, node in (summary.get("designed") or {}).items():
        for modality, effect in node["modalities"].items():
            first, *others = map(printable, node["outcomes"])
            for index, outcome in enumerate(others):
                where = f"{printable(name)}: {outcome} − {first} in {printable(modality)}"
                rows.append([where, *_numbers(effect, index)])
    return rows


def _numbers(effect: Mapping[str, Any], index: int) -> list[str]:
    samples = effect["n_samples"]
    return [
        format_number(effect["standardised_difference"][index], 2),
        f"{100 * effect['explained']:.1f} %",
        f"{effect['p_value']:.2g}",
        f"{samples[index + 1]} and {samples[0]}",
        _single_element(effect, index),
    ]


def _single_element(effect: Mapping[str, Any], index: int) -> str:
    """The difference with its interval where the modality is one number; else it is in the figure."""
    values = [np.ravel(effect[name][index]) for name in ("difference", "lower", "upper") if name in effect]
    if not values or values[0].size != 1 or not all(np.isfinite(float(v[0])) for v in values):
        return ""
    value, lower, upper = (float(v[0]) for v in values)
    return f"{value:.3g} [{lower:.3g}, {upper:.3g}]"
