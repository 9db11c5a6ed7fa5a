"""Mutual information of the nodes: brute force over the cells, closed forms, and what must hold for every table."""

from __future__ import annotations

from itertools import product
from math import log

import hypothesis.strategies as st
import numpy as np
import pytest
from circle_like_fit import circle_like_fit
from hypothesis import given, settings
from hypothesis.extra.numpy import arrays

from causalpima.inference.findings.graph import mutual_information
from causalpima.inference.reporting.summary import summarise


def brute_force(joint: np.ndarray, i: int, j: int) -> float:
    """H(N_i) + H(N_j) - H(N_i, N_j), every entropy from a dictionary of counts over the cells."""

    def entropy(*nodes: int) -> float:
        shares: dict[tuple[int, ...], float] = {}
        for index in product(*map(range, joint.shape)):
            key = tuple(index[node] for node in nodes)
            shares[key] = shares.get(key, 0.0) + float(joint[index])
        return -sum(share * log(share) for share in shares.values() if share > 0)

    return entropy(i) + entropy(j) - entropy(i, j)


@given(data=st.data(), outcomes=st.lists(st.integers(1, 4), min_size=2, max_size=4))
@settings(max_examples=25)
def test_it_equals_the_entropies_summed_over_the_cells(data: st.DataObject, outcomes: list[int]) -> None:
    log_joint = data.draw(arrays(np.float64, tuple(outcomes), elements=st.floats(-30, 5)))
    found = mutual_information(log_joint)
    joint = np.exp(log_joint) / np.exp(log_joint).sum()
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(np.diag(found), 0.0)
    for i, j in product(range(len(outcomes)), repeat=2):
        if i != j:
            # The oracle takes the difference of entropies of order one.
            assert found[i, j] == pytest.approx(brute_force(joint, i, j), abs=1e-13)


def test_copies_share_their_entropy_and_independent_nodes_nothing() -> None:
    p, q = np.array([0.2, 0.3, 0.5]), np.array([0.4, 0.6])
    joint = np.einsum("a,ab,c->abc", p, np.eye(3), q)
    with np.errstate(divide="ignore"):
        found = mutual_information(np.log(joint))
    entropy = -float(p @ np.log(p))
    np.testing.assert_allclose(found, np.array([[0.0, entropy, 0.0], [entropy, 0.0, 0.0], [0.0, 0.0, 0.0]]), atol=1e-15)


def test_a_binary_symmetric_channel_has_its_capacity() -> None:
    flip = 0.11
    table = np.array([[1 - flip, flip], [flip, 1 - flip]]) / 2
    bits = mutual_information(np.log(table))[0, 1] / log(2)
    assert bits == pytest.approx(1 + flip * np.log2(flip) + (1 - flip) * np.log2(1 - flip))


def test_one_node_has_no_other_and_what_is_not_finite_stays_so() -> None:
    np.testing.assert_array_equal(mutual_information(np.log([0.3, 0.7])), [[0.0]])
    found = mutual_information(np.full((2, 2), np.nan))
    assert np.isnan(found[0, 1])
    assert np.isnan(found[1, 0])


def test_rare_outcomes_do_not_underflow() -> None:
    found = mutual_information(np.array([[0.0, -1e4], [-1e4, -460.0]]))
    assert found[0, 1] == pytest.approx(np.exp(-460.0) * 461.0, rel=0.01)
    assert mutual_information(np.array([[0.0, -1e4], [-1e4, -700.0]]))[0, 1] < 1e-290


def test_the_summary_has_it_for_every_pair() -> None:
    fit = circle_like_fit(50)
    found = summarise(fit, 0.0)["graph"]["mutual_information"]
    np.testing.assert_array_equal(found, mutual_information(fit.graph.log_joint))
    assert np.shape(found) == (3, 3)
