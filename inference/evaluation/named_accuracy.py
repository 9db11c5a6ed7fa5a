r"""Accuracy of nodes under the very names of their outcomes, without any matching.

Where labels or a person named the clusters, a score under the best assignment would hide names that are swapped:

$$\mathrm{acc}_\ell = \frac{1}{n} \sum_n 1[\text{name of the outcome of node } \ell = \text{level of its factor}]$$
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import numpy as np

__all__ = ["factors_of_nodes", "named_accuracy"]

_N_DRAWS = 300

Names = Sequence[str]


def factors_of_nodes(
    labelling: Mapping[str, Any] | None, outcome_names: Mapping[str, Names], levels: Mapping[str, Names]
) -> dict[str, str]:
    """The factor that each named node corresponds to; nodes without one are left out.

    Of labels, it is the variable that they were read from. Of names, it is the factor that the node bears the name of,
    else the only one with the same set of levels. Either way some outcome must be called as a level is.

    Args:
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`), or None.
        outcome_names: Names of the outcomes per node.
        levels: Names of the levels per factor.
    """
    labelling = labelling or {}
    found = {node: _factor_of(node, labelling, outcome_names, levels) for node in labelling.get("named_nodes", ())}
    return {
        node: factor
        for node, factor in found.items()
        if factor is not None and set(outcome_names[node]) & set(levels[factor])
    }


def _factor_of(
    node: str, labelling: Mapping[str, Any], outcome_names: Mapping[str, Names], levels: Mapping[str, Names]
) -> str | None:
    variables = (labelling.get("details") or {}).get("variables") or {}
    says = {"labels": variables.get(node), "names": _of_names(node, outcome_names, levels)}
    factor = says.get(labelling.get("source", "none"))
    return factor if factor in levels and node in outcome_names else None


def _of_names(node: str, outcome_names: Mapping[str, Names], levels: Mapping[str, Names]) -> str | None:
    if node in levels:
        return node
    alike = [factor for factor, names in levels.items() if set(names) == set(outcome_names.get(node, ()))]
    return alike[0] if len(alike) == 1 else None


def named_accuracy(
    cells: np.ndarray,
    outcome_names: Mapping[str, Names],
    factors: Mapping[str, np.ndarray],
    levels: Mapping[str, Names],
    factor_of: Mapping[str, str],
    generator: np.random.Generator,
) -> dict[str, Any]:
    """Score nodes as they are named; an outcome that no level is called by is wrong.

    Args:
        cells: Cell of each sample, row-major over the nodes' outcomes, `[n]`.
        outcome_names: Names of the outcomes per node, all nodes in order.
        factors: Codes `[n]` of each factor, none negative.
        levels: Names of the levels per factor.
        factor_of: Per node, its factor (`factors_of_nodes`).
        generator: Source of the random names.

    Returns:
        `named_accuracy` {node: value}, `named_accuracy_worst`, and `named_accuracy_random`, the expected worst where it
        is left to chance which cluster bears which names; None where no node has a factor.
    """
    if not factor_of:
        return {"named_accuracy": {}, "named_accuracy_worst": None, "named_accuracy_random": None}
    pairs = [(outcome_names[node], factors[name], levels[name]) for node, name in factor_of.items()]
    shape = tuple(len(names) for names in outcome_names.values())
    outcome = dict(zip(outcome_names, np.unravel_index(np.arange(prod(shape)), shape), strict=True))
    hits = np.stack([_hits(cells, outcome[node], *pair) for node, pair in zip(factor_of, pairs, strict=True)])
    clusters = np.arange(prod(shape))
    accuracy = hits[:, clusters, clusters].sum(1) / len(cells)
    drawn = [hits[:, clusters, generator.permutation(len(clusters))].sum(1).min() for _ in range(_N_DRAWS)]
    return {
        "named_accuracy": dict(zip(factor_of, accuracy.tolist(), strict=True)),
        "named_accuracy_worst": float(accuracy.min()),
        "named_accuracy_random": float(np.mean(drawn) / len(cells)),
    }


def _hits(cells: np.ndarray, outcome: np.ndarray, names: Names, codes: np.ndarray, levels: Names) -> np.ndarray:
    """Samples of each cluster that are right if it bears the names of each cell, `[cluster, cell]`."""
    table = np.zeros((len(outcome), len(levels)))
    np.add.at(table, (cells, codes), 1)
    is_called = np.array([[name == level for name in names] for level in levels], dtype=float)
    return table @ is_called[:, outcome]
