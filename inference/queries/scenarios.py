"""p(N) as it is, as it is where a node happens to have an outcome, and as it would be if it were set."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import numpy as np

from inference.graphs.interventions import Setting, conditioned, descendants, intervened, parent_support
from inference.queries.graph_set import GraphSet
from inference.queries.question import Question
from inference.queries.tables import CellShares

__all__ = ["Scenario", "effects_given", "observed_scenario", "scenarios_of", "thinnest_row"]


class Scenario(NamedTuple):
    """Probabilities of the cells under each of G graphs, from D draws each.

    Attributes:
        label: What it is: `observed`, `do(A=1)`.
        cells: `[G, C]`.
        draws: `[G, D, C]`.
    """

    label: str
    cells: np.ndarray
    draws: np.ndarray


def scenarios_of(
    question: Question, graphs: GraphSet, shares: CellShares, label: Callable[[str, Setting], str]
) -> dict[str, Scenario]:
    """`observed`; where nodes are set also `seen` and `do`, and one more for every other outcome of a node that is set.

    Args:
        question: What is asked.
        graphs: The graphs.
        shares: p(N) of each.
        label: Name of a scenario from `do` or `seen` and the outcomes.

    Raises:
        ValueError: A condition that cannot come about.
    """
    found = {"observed": observed_scenario(graphs, shares, question.given, "observed")}
    if not question.do:
        return found
    both = {**question.do, **question.given}
    found["seen"] = observed_scenario(graphs, shares, both, label("seen", question.do))
    found["do"] = _scenario(label("do", question.do), graphs, shares, question.do, question.given)
    for setting in _others(question.do, shares.best.shape[1:]):
        name = label("do", setting)
        found[name] = _scenario(name, graphs, shares, setting, question.given)
    return found


def observed_scenario(graphs: GraphSet, shares: CellShares, given: Setting, label: str) -> Scenario:
    """p(N | given), without an intervention."""
    return _scenario(label, graphs, shares, {}, given)


def _others(do: Setting, sizes: tuple[int, ...]) -> list[dict[int, int]]:
    """The other outcomes of every node that is set, the rest as they are set."""
    return [{**do, node: outcome} for node, value in do.items() for outcome in range(sizes[node]) if outcome != value]


def _scenario(label: str, graphs: GraphSet, shares: CellShares, do: Setting, given: Setting) -> Scenario:
    n_nodes = graphs.dags.shape[1]

    def ask(joint: np.ndarray, dag: np.ndarray) -> np.ndarray:
        answer = conditioned(intervened(joint, dag, do), n_nodes, given)
        return answer.reshape(*answer.shape[: answer.ndim - n_nodes], -1)

    pairs = list(zip(graphs.dags, graphs.class_of, strict=True))
    return Scenario(
        label,
        np.stack([ask(shares.best[number], dag) for dag, number in pairs]),
        np.stack([ask(shares.draws[number], dag) for dag, number in pairs]),
    )


def thinnest_row(question: Question, graphs: GraphSet, shares: CellShares) -> float:
    """Expected number of samples behind the thinnest row of a table that the answer rests on, over all graphs."""
    rows = [
        parent_support(shares.best[number], dag, question.do)
        for dag, number in zip(graphs.dags, graphs.class_of, strict=True)
    ]
    return min(rows) * shares.n_samples


def effects_given(question: Question, graphs: GraphSet) -> Mapping[int, int]:
    """Nodes that are conditioned on and are effects of a node that is set: in how many graphs."""
    below = [descendants(dag, list(question.do)) for dag in graphs.dags]
    counts = {node: sum(node in found for found in below) for node in question.given}
    return {node: count for node, count in counts.items() if count}
