"""Classes under knowledge and interventions, against all members of the class by brute force."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from causalpima.inference.graphs.dags import (
    GraphKnowledge,
    all_dags,
    class_codes,
    cpdag,
    essential_graph,
    interventional_codes,
    mpdag,
)

dags_of = cache(all_dags)
codes_of = cache(lambda n_nodes: class_codes(all_dags(n_nodes)))


def knowledge_for(dag: np.ndarray, seed: int, share: float) -> GraphKnowledge:
    """Some true edges are required, some that are not there forbidden."""
    rng, edges = np.random.default_rng(seed), dag.astype(bool)
    chosen = rng.random(edges.shape) < share
    itself = np.eye(len(dag), dtype=bool)
    return GraphKnowledge(tuple("abcde"[: len(dag)]), ~edges & ~itself & chosen, edges & chosen)


def union(members: np.ndarray) -> np.ndarray:
    return members.any(0).astype(int)


@pytest.mark.parametrize("n_nodes", [2, 3, 4])
@pytest.mark.parametrize("share", [0.0, 0.15, 0.5])
def test_the_graph_is_the_union_of_the_members_that_agree(n_nodes: int, share: float) -> None:
    dags, codes = dags_of(n_nodes), codes_of(n_nodes)
    for number, dag in enumerate(dags):
        known = knowledge_for(dag, number, share)
        members = dags[(codes == codes[number]) & known.allows(dags)]
        np.testing.assert_array_equal(mpdag(dag, known), union(members))


@given(st.integers(0, 29280), st.integers(0, 2**32 - 1), st.sampled_from([0.05, 0.1, 0.2, 0.4]))
@settings(max_examples=200, deadline=None)
def test_the_same_for_five_nodes(number: int, seed: int, share: float) -> None:
    dags, codes = dags_of(5), codes_of(5)
    known = knowledge_for(dags[number], seed, share)
    members = dags[codes == codes[number]]
    np.testing.assert_array_equal(mpdag(dags[number], known), union(members[known.allows(members)]))


# 1 --> 2 --> 3 known, 0 joined with all, 1 and 3 not joined: rule 4 alone directs 0 --> 3
def test_the_fourth_rule_is_needed() -> None:
    dag = np.array([[0, 1, 1, 1], [0, 0, 1, 0], [0, 0, 0, 1], [0, 0, 0, 0]])
    known = GraphKnowledge.none(("a", "b", "c", "d"))
    known.required[1, 2] = known.required[2, 3] = True
    found = mpdag(dag, known)
    assert (found[0, 3], found[3, 0]) == (1, 0)
    assert (found[0, 1], found[1, 0]) == (1, 1)


def test_nothing_known_is_the_class_itself() -> None:
    for dag in dags_of(4)[::7]:
        np.testing.assert_array_equal(mpdag(dag, GraphKnowledge.none(("a", "b", "c", "d"))), cpdag(dag))


@pytest.mark.parametrize("n_nodes", [2, 3, 4])
@pytest.mark.parametrize("targets", [(), ((0,),), ((1,), (0, 1)), ((0, 1), (1,), ())], ids=str)
def test_interventions_direct_what_all_members_agree_on(n_nodes: int, targets: tuple[tuple[int, ...], ...]) -> None:
    dags = dags_of(n_nodes)
    codes = interventional_codes(dags, targets)
    for number, dag in enumerate(dags):
        np.testing.assert_array_equal(essential_graph(dag, targets), union(dags[codes == codes[number]]))


@given(
    st.integers(0, 29280),
    st.lists(st.sets(st.integers(0, 4), min_size=1), min_size=1, max_size=3),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0.0, 0.1]),
)
@settings(max_examples=40, deadline=None)
def test_interventions_and_knowledge_together(number: int, targets: list[set[int]], seed: int, share: float) -> None:
    dags, codes = dags_of(5), codes_of(5)
    members = dags[codes == codes[number]]
    own = int((members == dags[number]).all((1, 2)).argmax())
    codes_among = interventional_codes(members, targets)
    known = knowledge_for(dags[number], seed, share)
    left = members[(codes_among == codes_among[own]) & known.allows(members)]
    np.testing.assert_array_equal(essential_graph(dags[number], targets, known), union(left))


# 0 --> 1 --> 2: observation leaves all open; an intervention upon 1 directs both edges, one upon 0 the first, so both
@pytest.mark.parametrize(("targets", "n_open"), [((), 2), (((1,),), 0), (((0,),), 0), (((2,),), 1), (((0, 1, 2),), 2)])
def test_a_chain(targets: tuple[tuple[int, ...], ...], n_open: int) -> None:
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    found = essential_graph(chain, targets)
    assert int((found & found.T).sum()) == 2 * n_open
    assert (found >= chain).all()


def test_equal_classes_have_equal_distributions_under_interventions() -> None:
    """Two graphs of one interventional class: the cut graphs are equivalent, too; of others, not all of them."""
    dags, targets = dags_of(4), ((0,), (1, 2))
    codes, cut = interventional_codes(dags, targets), [codes_of(4)]
    for nodes in targets:
        left = dags.copy()
        left[:, :, list(nodes)] = 0
        cut.append(class_codes(left))
    by_distribution = np.unique(np.stack(cut, 1), axis=0, return_inverse=True)[1].reshape(-1)
    pairs = {(a, b) for a, b in zip(codes.tolist(), by_distribution.tolist(), strict=True)}
    assert len(pairs) == len(set(codes.tolist())) == len(set(by_distribution.tolist()))


def test_what_cannot_be_is_refused() -> None:
    chain = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])
    known = GraphKnowledge.none(("a", "b", "c"))
    known.forbidden[0, 1] = True
    with pytest.raises(ValueError, match="dag: expected a graph that agrees with what is known"):
        mpdag(chain, known)
    with pytest.raises(ValueError, match="dag: expected a graph without cycles"):
        essential_graph(chain + chain.T)
    with pytest.raises(ValueError, match="targets: expected nodes 0 to 2, got 3"):
        essential_graph(chain, [(3,)])
