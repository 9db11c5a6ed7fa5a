"""Bounds of counterfactuals against Tian and Pearl, and against linear programmes over all response functions."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.optimize import linprog

from causalpima.inference.graphs.interventions import counterfactual_bounds, counterfactual_cell_bounds, intervened

EDGE = np.array([[0, 1], [0, 0]])
CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
COLLIDER = np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]])
TRIANGLE = np.array([[0, 1, 1], [0, 0, 1], [0, 0, 0]])


def joint_of_edge(p: float, given_0: float, given_1: float) -> np.ndarray:
    return np.array([[(1 - p) * (1 - given_0), (1 - p) * given_0], [p * (1 - given_1), p * given_1]])


@pytest.mark.parametrize(("given_0", "given_1"), [(0.2, 0.7), (0.7, 0.9), (0.9, 0.1), (0.5, 0.5)])
def test_necessity_and_sufficiency_have_the_bounds_of_tian_and_pearl(given_0: float, given_1: float) -> None:
    """Tian and Pearl (2000), without confounding: PN = P(y'_{x'} | x, y), PS = P(y_x | x', y')."""
    joint = joint_of_edge(0.3, given_0, given_1)
    low, high = counterfactual_bounds(joint, EDGE, (1, 1), {0: 0})[1]
    assert low[0] == pytest.approx(max(0.0, (given_1 - given_0) / given_1))
    assert high[0] == pytest.approx(min(1.0, (1 - given_0) / given_1))
    low, high = counterfactual_bounds(joint, EDGE, (0, 0), {0: 1})[1]
    assert low[1] == pytest.approx(max(0.0, (given_1 - given_0) / (1 - given_0)))
    assert high[1] == pytest.approx(min(1.0, given_1 / (1 - given_0)))


def test_what_is_no_effect_stays_and_the_same_causes_have_the_same_effect() -> None:
    joint = np.random.default_rng(0).dirichlet(np.ones(8)).reshape(2, 2, 2)
    bounds = counterfactual_bounds(joint, CHAIN, (1, 0, 1), {1: 1})
    np.testing.assert_allclose(bounds[0], [[0, 1], [0, 1]])
    np.testing.assert_allclose(bounds[1], [[0, 1], [0, 1]])
    assert (bounds[2][0] < bounds[2][1]).all()
    for low, high in counterfactual_bounds(joint, CHAIN, (1, 0, 1), {1: 0}):
        np.testing.assert_allclose(low, high)
    low, high = counterfactual_cell_bounds(joint, CHAIN, (1, 0, 1), {1: 0})
    assert low.tolist() == high.tolist() == [float(cell == 5) for cell in range(8)]


def programme(joint: np.ndarray, target: int, value: int, factual: tuple[int, int], do: int, sign: int) -> float:
    """The edge X -> Y by a linear programme over all response functions of Y."""
    size_x, size_y = joint.shape
    functions = list(product(range(size_y), repeat=size_x))
    rows, right = [], []
    for x in range(size_x):
        for y in range(size_y):
            rows.append([float(f[x] == y) for f in functions])
            right.append(joint[x, y] / joint[x].sum())
    x, y = factual
    aim = [sign * float(f[x] == y and f[do] == value) for f in functions]
    found = linprog(aim, A_eq=rows, b_eq=right)
    assert target == 1
    assert found.success
    return float(sign * found.fun / (joint[x, y] / joint[x].sum()))


@pytest.mark.parametrize("sizes", [(2, 2), (2, 3), (3, 3)])
def test_one_effect_against_a_linear_programme(sizes: tuple[int, int]) -> None:
    joint = np.random.default_rng(1).dirichlet(np.ones(np.prod(sizes))).reshape(sizes)
    for factual in np.ndindex(*sizes):
        for do in range(sizes[0]):
            low, high = counterfactual_bounds(joint, EDGE, factual, {0: do})[1]
            for value in range(sizes[1]):
                assert low[value] == pytest.approx(programme(joint, 1, value, factual, do, 1), abs=1e-8)
                assert high[value] == pytest.approx(programme(joint, 1, value, factual, do, -1), abs=1e-8)


def random_truth(dag: np.ndarray, rng: np.random.Generator) -> list[dict[tuple[int, ...], float]]:
    """A distribution over the response functions of every (binary) node."""
    truth = []
    for node in range(len(dag)):
        functions = list(product((0, 1), repeat=2 ** int(dag[:, node].sum())))
        shares = rng.dirichlet(np.full(len(functions), 0.4))
        truth.append(dict(zip(functions, shares.tolist(), strict=True)))
    return truth


def run(dag: np.ndarray, functions: tuple[tuple[int, ...], ...], do: dict[int, int]) -> tuple[int, ...]:
    """Outcomes of all nodes; nodes are numbered along the causal order."""
    cell: list[int] = []
    for node in range(len(dag)):
        row = int("".join(str(cell[k]) for k in np.flatnonzero(dag[:, node])) or "0", 2)
        cell.append(do[node] if node in do else functions[node][row])
    return tuple(cell)


@pytest.mark.parametrize("dag", [CHAIN, COLLIDER, TRIANGLE], ids=["chain", "collider", "triangle"])
def test_bounds_hold_whatever_the_response_functions(dag: np.ndarray) -> None:
    rng = np.random.default_rng(2)
    for _ in range(3):
        truth = random_truth(dag, rng)
        joint = np.zeros((2, 2, 2))
        both: dict[tuple[tuple[int, ...], tuple[int, ...]], float] = {}
        do = {0: 1}
        for functions in product(*truth):
            mass = float(np.prod([truth[node][function] for node, function in enumerate(functions)]))
            factual, other = run(dag, functions, {}), run(dag, functions, do)
            joint[factual] += mass
            both[factual, other] = both.get((factual, other), 0.0) + mass
        for factual in np.ndindex(2, 2, 2):
            bounds = counterfactual_bounds(joint, dag, factual, do)
            low, high = counterfactual_cell_bounds(joint, dag, factual, do)
            true = np.array([both.get((factual, other), 0.0) for other in np.ndindex(2, 2, 2)]) / joint[factual]
            assert (low <= true + 1e-9).all()
            assert (true <= high + 1e-9).all()
            for node in range(3):
                marginal = true.reshape(2, 2, 2).sum(tuple(k for k in range(3) if k != node))
                assert (bounds[node][0] <= marginal + 1e-9).all()
                assert (marginal <= bounds[node][1] + 1e-9).all()


def test_a_chain_is_sharp() -> None:
    """The best vertices of the two couplings, one after the other, by brute force."""
    joint = intervened(np.random.default_rng(3).dirichlet(np.ones(8)).reshape(2, 2, 2), CHAIN, {})
    first, second = joint.sum(2), joint.sum(0)
    p_b, p_c = first / first.sum(1, keepdims=True), second / second.sum(1, keepdims=True)
    (a, b, c), do = (0, 0, 1), 1
    couplings_b = [max(0.0, 1 - p_b[do, 1 - b] / p_b[a, b]), min(1.0, p_b[do, b] / p_b[a, b])]
    couplings_c = [max(0.0, 1 - p_c[1 - b, 1 - c] / p_c[b, c]), min(1.0, p_c[1 - b, c] / p_c[b, c])]
    stays = [q + (1 - q) * r for q in couplings_b for r in couplings_c]
    low, high = counterfactual_bounds(joint, CHAIN, (a, b, c), {0: do})[2]
    assert (low[c], high[c]) == pytest.approx((min(stays), max(stays)))


def test_samples_that_cannot_be_are_refused() -> None:
    joint = np.array([[0.5, 0.0], [0.25, 0.25]])
    with pytest.raises(ValueError, match="factual: expected outcomes that the joint allows"):
        counterfactual_bounds(joint, EDGE, (0, 1), {0: 1})
    with pytest.raises(ValueError, match="do: expected nodes and outcomes"):
        counterfactual_bounds(joint, EDGE, (0, 0), {5: 1})
