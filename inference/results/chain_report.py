"""Chains in words: edges beside the exact posterior, why the two differ, and the table of verdicts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inference.graphs.edge_text import edge_text
from inference.results.chain_findings import ChainFindings
from inference.results.text import printable, shorten
from inference.results.verdicts import counts, verdict_table

__all__ = ["LABELLING_NOTE", "PRIOR_NOTES", "chain_report"]

PRIOR_NOTES: Mapping[str, str] = {
    "hodge": (
        "Priors differ: (ξ, B, W) makes nearly every pair an edge beforehand (docs/mcmc.md) and averages tables over "
        "non-parents; the exact posterior takes all graphs for equally likely and has a table per family (BDeu)."
    ),
    "dags": "The priors are those of the exact posterior (BDeu), so the two agree within Monte Carlo error where "
    "clusters are clear; where they overlap, the exact one approximates the integral over tables.",
}
LABELLING_NOTE = (
    "The nodes are not named: edges are those of one labelling among many; cell probabilities hold for all."
)
_WIDTH = 24


def chain_report(
    findings: ChainFindings, program: str, exact: np.ndarray | None, prior: np.ndarray | None, is_named: bool
) -> str:
    """Plain text.

    Args:
        findings: The chains.
        program: `hodge` or `dags`.
        exact: Edge probabilities of the exact posterior, `[L, L]`, or None.
        prior: Edge probabilities before the data, under the prior of the program, `[L, L]`.
        is_named: Whether every node has one meaning.
    """
    lines = findings.lines()
    parts = [_edge_table(findings, exact, prior), PRIOR_NOTES[program] if exact is not None else ""]
    parts += ["" if is_named else LABELLING_NOTE, verdict_table(lines), counts(lines)]
    return "\n\n".join(part for part in parts if part)


def _edge_table(findings: ChainFindings, exact: np.ndarray | None, prior: np.ndarray | None) -> str:
    columns: dict[str, Any] = {"chains": findings.edge_probability, "exact": exact, "prior": prior}
    given = {name: values for name, values in columns.items() if values is not None}
    head = f"{'edge':<{_WIDTH}}" + "".join(f"{name:>9}" for name in given)
    rows = [head]
    for i, j in np.argwhere(~np.eye(len(findings.nodes), dtype=bool)):
        name = shorten(printable(edge_text(findings.nodes[i], findings.nodes[j])), _WIDTH - 1)
        rows.append(f"{name:<{_WIDTH}}" + "".join(f"{values[i, j]:>9.3f}" for values in given.values()))
    return "\n".join(rows)
