"""Local scores against the formulas written out, equivalent graphs, and the libraries where they are installed."""

from __future__ import annotations

from itertools import product
from math import lgamma, log

import numpy as np
import pytest

from causalpima.inference.graphs.dags import GraphKnowledge, all_dags, class_codes
from causalpima.inference.graphs.scores import Score, family_scores, table_family_scores

_OUTCOMES = (2, 3, 2, 4)
_SCORES = [Score(), Score("bdeu", 1.0), Score("bdeu", 10.0)]


@pytest.fixture
def codes() -> np.ndarray:
    """a -> b <- c, b -> d, with outcomes that are rare or never seen.

    a -> b <- c
         |
         v
         d
    """
    random = np.random.default_rng(0)
    a, c = random.integers(2, size=300), random.integers(2, size=300)
    b = np.where(random.random(300) < 0.8, a + c, random.integers(3, size=300))
    d = np.where(random.random(300) < 0.7, np.minimum(b, 1), random.integers(3, size=300))
    return np.stack([a, b, c, d], axis=1)


def _written_out(codes: np.ndarray, node: int, parents: list[int], score: Score) -> float:
    """The score of a family as textbooks have it: over outcomes of the parents, then over those of the node."""
    r, q = _OUTCOMES[node], int(np.prod([_OUTCOMES[parent] for parent in parents]))
    total = 0.0 if score.name == "bdeu" else -0.5 * log(len(codes)) * q * (r - 1)
    for given in product(*(range(_OUTCOMES[parent]) for parent in parents)):
        rows = (codes[:, parents] == given).all(1)
        m = [int((codes[rows, node] == outcome).sum()) for outcome in range(r)]
        a = score.equivalent_sample_size
        if a is None:
            total += sum(count * log(count / sum(m)) for count in m if count > 0)
            continue
        total += lgamma(a / q) - lgamma(a / q + sum(m))
        total += sum(lgamma(a / (q * r) + count) - lgamma(a / (q * r)) for count in m)
    return total


def _of_dags(scores: np.ndarray, dags: np.ndarray) -> np.ndarray:
    sets = (dags * (1 << np.arange(dags.shape[1]))[:, None]).sum(1)
    return scores[np.arange(dags.shape[1]), sets].sum(1)


@pytest.mark.parametrize("score", _SCORES)
def test_every_family_has_the_score_of_the_formula(codes: np.ndarray, score: Score) -> None:
    found = family_scores(codes, _OUTCOMES, score)
    assert found.shape == (4, 16)
    assert found.dtype == np.float64
    for node, members in product(range(4), range(16)):
        parents = [other for other in range(4) if members >> other & 1]
        wanted = -np.inf if node in parents else _written_out(codes, node, parents, score)
        assert found[node, members] == pytest.approx(wanted, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("score", _SCORES)
def test_equivalent_graphs_score_alike_and_others_do_not(codes: np.ndarray, score: Score) -> None:
    dags = all_dags(4)
    value, number = _of_dags(family_scores(codes, _OUTCOMES, score), dags), class_codes(dags)
    highest = np.full(number.max() + 1, -np.inf)
    np.maximum.at(highest, number, value)
    np.testing.assert_allclose(value, highest[number], rtol=1e-12)
    assert len(np.unique(np.round(highest, 6))) == len(highest)


@pytest.mark.parametrize("score", _SCORES)
def test_a_table_of_counts_is_the_same_as_its_samples(codes: np.ndarray, score: Score) -> None:
    table = np.zeros(_OUTCOMES)
    np.add.at(table, tuple(codes.T), 1)
    np.testing.assert_allclose(table_family_scores(table, score), family_scores(codes, _OUTCOMES, score), rtol=1e-11)


def test_samples_that_weigh_a_half_twice_are_the_samples_once(codes: np.ndarray) -> None:
    twice = family_scores(np.repeat(codes, 2, axis=0), _OUTCOMES, weights=np.full(600, 0.5))
    np.testing.assert_allclose(twice, family_scores(codes, _OUTCOMES), rtol=1e-11)


def test_what_is_known_takes_sets_of_parents_away(codes: np.ndarray) -> None:
    known = GraphKnowledge.none(("a", "b", "c", "d"))
    known.forbidden[0, 3], known.required[1, 3] = True, True
    found, free = family_scores(codes, _OUTCOMES, knowledge=known), family_scores(codes, _OUTCOMES)
    allowed = [members for members in range(8) if not members & 1 and members & 2]
    assert np.flatnonzero(np.isfinite(found[3])).tolist() == allowed
    np.testing.assert_array_equal(found[3, allowed], free[3, allowed])
    np.testing.assert_array_equal(found[:3], free[:3])


@pytest.mark.parametrize("n_outcomes", [2, 5])
def test_many_nodes_with_few_samples_agree_with_the_formula(n_outcomes: int) -> None:
    """Cells that are far more than samples take the sorted way, sets of few nodes the dense one."""
    random = np.random.default_rng(1)
    codes = random.integers(n_outcomes, size=(40, 9))
    found = family_scores(codes, [n_outcomes] * 9, Score("bdeu", 2.0))
    pair, triple = np.unique(codes[:, :8], axis=0, return_counts=True), np.unique(codes, axis=0, return_counts=True)
    g = [
        sum(lgamma(m + 2 / n_outcomes**size) - lgamma(2 / n_outcomes**size) for m in counts)
        for size, (_, counts) in ((8, pair), (9, triple))
    ]
    assert found[8, 255] == pytest.approx(g[1] - g[0], rel=1e-12)


@pytest.mark.parametrize("score", _SCORES)
def test_pgmpy_gives_the_same(codes: np.ndarray, score: Score) -> None:
    """With the outcomes that are seen: pgmpy 1.1's BDeu leaves out outcomes of a node that no sample has."""
    estimators = pytest.importorskip("pgmpy.estimators")
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(codes, columns=list("abcd"))
    size = {} if score.name == "bic" else {"equivalent_sample_size": score.equivalent_sample_size}
    theirs = (estimators.BIC if score.name == "bic" else estimators.BDeu)(frame, **size)
    found = family_scores(codes, (2, 3, 2, 3), score)
    for node, members in product(range(4), range(16)):
        if not members >> node & 1:
            parents = tuple("abcd"[other] for other in range(4) if members >> other & 1)
            assert found[node, members] == pytest.approx(theirs.local_score("abcd"[node], parents), rel=1e-9)


def test_causal_learn_gives_the_same_but_for_its_graph_prior(codes: np.ndarray) -> None:
    theirs = pytest.importorskip("causallearn.score.LocalScoreFunction")
    found = family_scores(codes, _OUTCOMES, Score("bdeu", 3.0))
    options = {"sample_prior": 3.0, "structure_prior": 1.0, "r_i_map": dict(enumerate(_OUTCOMES))}
    for node, members in product(range(4), range(16)):
        if not members >> node & 1:
            parents = [other for other in range(4) if members >> other & 1]
            prior = len(parents) * log(1 / 3) + (3 - len(parents)) * log(2 / 3)
            wanted = theirs.local_score_BDeu(codes, node, parents, options) - prior
            assert found[node, members] == pytest.approx(wanted, rel=1e-9)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda codes: codes[:, :3], r"codes: expected shape \[sample, 4\]"),
        (lambda codes: codes - 1, r"codes: expected integers below \(2, 3, 2, 4\)"),
        (lambda codes: codes * 1.0, "codes: expected integers"),
        (lambda codes: codes[:0], "codes: expected shape"),
    ],
)
def test_codes_that_are_no_outcomes_are_refused(codes: np.ndarray, change: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        family_scores(change(codes), _OUTCOMES)  # type: ignore[operator]


def test_wrong_scores_and_sizes_are_refused(codes: np.ndarray) -> None:
    with pytest.raises(ValueError, match="score: expected BDeu with an equivalent sample size above 0, got none"):
        family_scores(codes, _OUTCOMES, Score("bdeu"))
    with pytest.raises(ValueError, match="counts: expected finite numbers"):
        table_family_scores(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="outcomes: expected 1 to 20 nodes"):
        family_scores(np.zeros((3, 21), dtype=int), [2] * 21)
