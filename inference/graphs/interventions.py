r"""p(N) under interventions, from a directed acyclic graph and a joint distribution of its nodes.

The truncated factorisation (Robins 1986; Pearl 2009, equation 3.10): where nodes are set, what told them before does so
no longer, and all else stays as it is,

$$p(N \mid do(N_S = c)) = 1[N_S = c] \prod_{k \notin S} p(N_k \mid N_{pa(k)}).$$

This assumes that the nodes have no common cause that is not among them, and that samples were not selected by them.

Joints are arrays `[..., C_1, ..., C_L]`; leading dimensions are other joints of the same nodes. Graphs are `[L, L]`,
row = cause, column = effect.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from causalpima.inference.graphs.dags import is_acyclic
from causalpima.inference.graphs.scores import parents_of, shares_given

__all__ = [
    "Setting",
    "causal_order",
    "check_setting",
    "conditioned",
    "counterfactual_bounds",
    "counterfactual_cell_bounds",
    "descendants",
    "factorised",
    "intervened",
    "node_marginals",
    "parent_support",
]


Setting = Mapping[int, int]
"""Outcome by node."""


def intervened(joint: np.ndarray, dag: np.ndarray, do: Setting) -> np.ndarray:
    """p(N | do), the shape of `joint`.

    NaN where it rests on p(N_k | parents) of parents that have no mass in the joint and some under the intervention:
    such a table is not known. What cannot come about is 0, whatever the tables that follow.

    Args:
        joint: p(N), `[..., C_1, ..., C_L]`; each sums to one.
        dag: `[L, L]`.
        do: Outcome that each set node is set to; empty: the distribution that the graph makes of the joint.

    Raises:
        ValueError: A graph with a cycle or of another size, a node or an outcome that is not there.
    """
    _check_dag(joint, dag)
    check_setting("do", joint, dag, do)
    result = np.ones_like(joint, dtype=np.float64)
    for node in causal_order(dag):
        if node in do:
            factor = _indicator(joint, len(dag), node, do[node])
        else:
            factor = shares_given(joint, len(dag), node, parents_of(dag, node), np.nan)
        result = np.where(result > 0, result * factor, result)
    return result


def factorised(joint: np.ndarray, dag: np.ndarray) -> np.ndarray:
    """The joint that the graph makes of the tables of another one: `intervened` without an intervention."""
    return intervened(joint, dag, {})


def conditioned(joint: np.ndarray, n_nodes: int, given: Setting) -> np.ndarray:
    """p(N | N_S = c), the shape of `joint`; after `intervened`: p(N | do, given).

    Args:
        joint: `[..., C_1, ..., C_L]`.
        n_nodes: L.
        given: Outcome of each node that is conditioned on.

    Raises:
        ValueError: The condition has no mass.
    """
    result: np.ndarray = np.asarray(joint, dtype=np.float64)
    axes = tuple(range(joint.ndim - n_nodes, joint.ndim))
    for node, outcome in given.items():
        result = np.where(_indicator(joint, n_nodes, node, outcome) > 0, result, 0.0)
    total = result.sum(axis=axes, keepdims=True)
    if (total <= 0).any():
        raise ValueError(
            f"given: expected a condition that can come about, got {dict(given)}, which has probability 0; leave "
            "one of its nodes out"
        )
    normalised: np.ndarray = result / total if given else result
    return normalised


def node_marginals(joint: np.ndarray, n_nodes: int) -> list[np.ndarray]:
    """p(N_k) of every node, `[..., C_k]` each."""
    leading = joint.ndim - n_nodes
    return [joint.sum(axis=tuple(leading + k for k in range(n_nodes) if k != node)) for node in range(n_nodes)]


def parent_support(joint: np.ndarray, dag: np.ndarray, do: Setting, least: float = 0.01) -> float:
    """The least mass that any table has to rest on: min of p(parents of k) over what the intervention brings about.

    Positivity in numbers: times the number of samples, the expected number of those from which the thinnest row of a
    table that matters is known. Of nodes that are not set, rows that have at least `least` of the mass under the
    intervention; 1 where no table matters.

    Args:
        joint: p(N), `[C_1, ..., C_L]`.
        dag: `[L, L]`.
        do: As for `intervened`.
        least: Rows that come about less often are not looked at.
    """
    under, found = np.nan_to_num(intervened(joint, dag, do), nan=1.0), [1.0]
    for node in range(len(dag)):
        if node not in do:
            others = tuple(k for k in range(len(dag)) if not dag[k, node])
            rows = joint.sum(axis=others)[under.sum(axis=others) >= least]
            found.append(float(rows.min(initial=1.0)))
    return min(found)


def causal_order(dag: np.ndarray) -> list[int]:
    """The nodes, causes before effects; of several such orders the one with small numbers first."""
    left, order = list(range(len(dag))), []
    while left:
        first = next(node for node in left if not dag[left, node].any())
        order.append(first)
        left.remove(first)
    return order


def descendants(dag: np.ndarray, nodes: Sequence[int]) -> set[int]:
    """Nodes that a directed path leads to from one of `nodes`, these not among them unless one leads there."""
    found: set[int] = set()
    border = set(map(int, nodes))
    while border:
        border = {int(k) for node in border for k in np.flatnonzero(dag[node])} - found
        found |= border
    return found


def check_setting(name: str, joint: np.ndarray, dag: np.ndarray, setting: Setting) -> None:
    """Refuse nodes and outcomes that are not there.

    Raises:
        ValueError: One is not.
    """
    sizes = joint.shape[joint.ndim - len(dag) :]
    for node, outcome in setting.items():
        if not 0 <= node < len(sizes) or not 0 <= outcome < sizes[node]:
            raise ValueError(f"{name}: expected nodes and outcomes of {sizes}, got node {node} = {outcome}")


def _check_dag(joint: np.ndarray, dag: np.ndarray) -> None:
    if dag.ndim != 2 or dag.shape[0] != dag.shape[1] or joint.ndim < len(dag):
        raise ValueError(f"dag: expected one row and column per node of {joint.shape}, got {dag.shape}")
    if not bool(is_acyclic(dag)):
        raise ValueError("dag: expected a graph without cycles, got one with; rows are causes, columns are effects")


def _indicator(joint: np.ndarray, n_nodes: int, node: int, outcome: int) -> np.ndarray:
    """1[N_node = outcome], of size 1 along the other nodes."""
    shape = [1] * n_nodes
    shape[node] = joint.shape[joint.ndim - n_nodes + node]
    indicator: np.ndarray = (np.arange(shape[node]) == outcome).astype(np.float64).reshape(shape)
    return indicator


# What would have been, had nodes been set, for a sample whose nodes are known: bounds, since no graph tells more.
#
# Tables p(N_k | parents) say what share of samples has which outcome, not which samples would change theirs. With
# response functions R_k (the outcome of node k for every outcome of its parents; independent of each other where there
# is
# no hidden common cause), a sample with N_k = u under parents a has, under other parents a*,
#
# $$q(v) = P(R_k(a^*) = v \mid R_k(a) = u), \qquad 0 \le q(v) \le \min\{1,\ p(v \mid a^*) / p(u \mid a)\}, \qquad
# \sum_v q(v) = 1,$$
#
# and every such q is that of some coupling of the two rows (Fréchet). Under the same parents the outcome is the same.
# For
# one effect of one cause these are the bounds of Tian and Pearl (2000) on the probabilities of necessity and
# sufficiency.
#
# The bounds on what several nodes do together are propagated along the causal order, each q chosen anew for every
# combination of the nodes before it. That is valid always, and sharp where the parents of every node tell all that led
# to
# them (chains and trees, say); where paths meet again, true bounds may be narrower.


def counterfactual_bounds(
    joint: np.ndarray, dag: np.ndarray, factual: tuple[int, ...], do: Setting
) -> list[tuple[np.ndarray, np.ndarray]]:
    """Lower and upper bounds of P(N_k = v had `do` been | the sample has `factual`), `[C_k]` each, for every node k.

    Args:
        joint: p(N), `[C_1, ..., C_L]`.
        dag: `[L, L]`, row = cause, column = effect.
        factual: Outcomes of the sample, `[L]`.
        do: Outcome of each node that would have been set.

    Raises:
        ValueError: Nodes or outcomes that are not there, or outcomes of the sample that the joint rules out.
    """
    found = []
    for node, size in enumerate(joint.shape):
        events = [_event(joint.shape, {node: value}) for value in range(size)]
        found.append(_bounds_of(events, joint, dag, factual, do))
    return found


def counterfactual_cell_bounds(
    joint: np.ndarray, dag: np.ndarray, factual: tuple[int, ...], do: Setting
) -> tuple[np.ndarray, np.ndarray]:
    """The same of every joint outcome, `[C]` each, row-major.

    Raises:
        ValueError: As for `counterfactual_bounds`.
    """
    cells = [dict(enumerate(cell)) for cell in np.ndindex(*joint.shape)]
    return _bounds_of([_event(joint.shape, cell) for cell in cells], joint, dag, factual, do)


def _bounds_of(
    events: list[np.ndarray], joint: np.ndarray, dag: np.ndarray, factual: tuple[int, ...], do: Setting
) -> tuple[np.ndarray, np.ndarray]:
    _check(joint, dag, factual, do)
    largest = np.array([_largest(event, joint, dag, factual, do) for event in events])
    smallest = np.array([-_largest(-event, joint, dag, factual, do) for event in events])
    return smallest, largest


def _event(shape: tuple[int, ...], setting: Setting) -> np.ndarray:
    """1 in the cells with these outcomes."""
    event = np.zeros(shape)
    event[tuple(setting.get(node, slice(None)) for node in range(len(shape)))] = 1.0
    return event


def _largest(value: np.ndarray, joint: np.ndarray, dag: np.ndarray, factual: tuple[int, ...], do: Setting) -> float:
    """Largest expectation of a function of the cells, backwards along the causal order."""
    for node in reversed(causal_order(dag)):
        value = _reduced(value, joint, dag, factual, do, node)
    return float(value.reshape(()))


def _reduced(
    value: np.ndarray, joint: np.ndarray, dag: np.ndarray, factual: tuple[int, ...], do: Setting, node: int
) -> np.ndarray:
    """The function with one node summed out in the best way, `[..., 1, ...]` along it."""
    if node in do:
        return np.take(value, [do[node]], axis=node)
    parents = np.flatnonzero(dag[:, node])
    stays = np.take(value, [factual[node]], axis=node)
    if not len(parents):
        return stays
    caps = _caps(joint, dag, factual, node, parents)
    best = _best_share(value, np.broadcast_to(caps, np.broadcast_shapes(caps.shape, value.shape)), node)
    result: np.ndarray = np.where(_same_parents(joint.shape, parents, factual), stays, best)
    return result


def _caps(joint: np.ndarray, dag: np.ndarray, factual: tuple[int, ...], node: int, parents: np.ndarray) -> np.ndarray:
    """min(1, p(v | a*) / p(u | a)); rows that have no mass allow everything."""
    table = shares_given(joint, len(dag), node, parents, np.nan)
    place = tuple(factual[k] if k == node or k in parents else 0 for k in range(len(dag)))
    caps: np.ndarray = np.minimum(np.where(np.isnan(table), 1.0, table / table[place]), 1.0)
    return caps


def _best_share(value: np.ndarray, caps: np.ndarray, axis: int) -> np.ndarray:
    """max Σ_v q(v) value(v) over 0 <= q <= caps, Σ q = 1: the largest values are filled first."""
    value = np.broadcast_to(value, caps.shape)
    order = np.argsort(-value, axis=axis, kind="stable")
    filled = np.minimum(np.cumsum(np.take_along_axis(caps, order, axis), axis=axis), 1.0)
    share = np.diff(filled, axis=axis, prepend=0.0)
    best: np.ndarray = (share * np.take_along_axis(value, order, axis)).sum(axis=axis, keepdims=True)
    return best


def _same_parents(shape: tuple[int, ...], parents: np.ndarray, factual: tuple[int, ...]) -> np.ndarray:
    """Whether the parents have their factual outcomes, of size 1 along all other nodes."""
    sizes = [shape[k] if k in parents else 1 for k in range(len(shape))]
    same = np.zeros(sizes, dtype=bool)
    same[tuple(factual[k] if k in parents else 0 for k in range(len(shape)))] = True
    return same


def _check(joint: np.ndarray, dag: np.ndarray, factual: tuple[int, ...], do: Setting) -> None:
    check_setting("do", joint, dag, do)
    check_setting("factual", joint, dag, dict(enumerate(factual)))
    for node in range(len(dag)):
        parents = np.flatnonzero(dag[:, node])
        table = shares_given(joint, len(dag), node, parents, np.nan)
        place = tuple(factual[k] if k == node or k in parents else 0 for k in range(len(dag)))
        if not table[place] > 0:
            raise ValueError(f"factual: expected outcomes that the joint allows, got {factual}, of probability 0")
