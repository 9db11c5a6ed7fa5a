r"""What would have been, had nodes been set, for a sample whose nodes are known: bounds, since no graph tells more.

Tables p(N_k | parents) say what share of samples has which outcome, not which samples would change theirs. With
response functions R_k (the outcome of node k for every outcome of its parents; independent of each other where there is
no hidden common cause), a sample with N_k = u under parents a has, under other parents a*,

$$q(v) = P(R_k(a^*) = v \mid R_k(a) = u), \qquad 0 \le q(v) \le \min\{1,\ p(v \mid a^*) / p(u \mid a)\}, \qquad
\sum_v q(v) = 1,$$

and every such q is that of some coupling of the two rows (Fréchet). Under the same parents the outcome is the same. For
one effect of one cause these are the bounds of Tian and Pearl (2000) on the probabilities of necessity and sufficiency.

The bounds on what several nodes do together are propagated along the causal order, each q chosen anew for every
combination of the nodes before it. That is valid always, and sharp where the parents of every node tell all that led to
them (chains and trees, say); where paths meet again, true bounds may be narrower.
"""

from __future__ import annotations

import numpy as np

from inference.graphs.interventions import Setting, causal_order, check_setting
from inference.graphs.tables import shares_given

__all__ = ["counterfactual_bounds", "counterfactual_cell_bounds"]


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
