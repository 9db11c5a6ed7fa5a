"""Nodes under their own names: right, swapped, without a counterpart; and the rows that show it."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations
from typing import Any

import numpy as np
import pytest

from causalpima.inference.analyses.node_scores import Truth, factors_of_nodes, named_accuracy
from causalpima.inference.analyses.scores import Found, Known, scores_of
from causalpima.inference.findings.clusters import scores

LEVELS = {"hue": ("red", "blue"), "size": ("small", "mid", "large")}
LABELS = {"source": "labels", "named_nodes": ["A", "B"], "details": {"variables": {"A": "hue", "B": "size"}}}
FACTORS = {"hue": np.arange(60) % 2, "size": np.arange(60) % 3}


def found(outcome_names: tuple[tuple[str, ...], ...], labelling: dict[str, Any], **changes: Any) -> Found:
    """Clusters without error: node A is hue and node B size, by the order of the levels."""
    cells = 3 * FACTORS["hue"] + FACTORS["size"]
    fit = Found(np.eye(6)[cells], ("A", "B"), np.full((2, 3), 1 / 6), np.zeros((2, 2)), np.full(60, "train"))
    return replace(fit, outcome_names=outcome_names, labelling=labelling, **changes)


def scored(*arguments: Any, **changes: Any) -> dict[str, Any]:
    return scores_of(found(*arguments, **changes), Known(FACTORS, LEVELS))


def test_right_names_are_right() -> None:
    score = scored((LEVELS["hue"], LEVELS["size"]), LABELS)
    assert score["named_accuracy"] == {"A": 1.0, "B": 1.0}
    assert score["named_accuracy_worst"] == 1.0
    assert score["named_accuracy_random"] < 0.6


def test_swapped_names_show_where_matching_hides_them() -> None:
    score = scored((("blue", "red"), LEVELS["size"]), LABELS)
    assert score["node_accuracy_worst"] == 1.0
    assert score["named_accuracy"] == {"A": 0.0, "B": 1.0}
    assert score["named_accuracy_worst"] == 0.0
    rows = {row.name: row for row in scores({"evaluation": score})}
    assert rows["worst node, as named"].value == 0.0
    assert rows["worst node, as named"].random_names == score["named_accuracy_random"]


def test_two_of_three_outcomes_swapped() -> None:
    score = scored((LEVELS["hue"], ("mid", "small", "large")), LABELS)
    assert score["named_accuracy"]["B"] == pytest.approx(1 / 3)


def test_without_names_there_is_none() -> None:
    for labelling in ({"source": "mask", "named_nodes": ["A", "B"]}, {"source": "none"}):
        score = scored((LEVELS["hue"], LEVELS["size"]), labelling)
        assert score["named_accuracy"] == {}
        assert score["named_accuracy_worst"] is None
        assert "worst node, as named" not in [row.name for row in scores({"evaluation": score})]


def test_nodes_find_their_factors() -> None:
    outcomes = {"A": ("blue", "red"), "size": ("small", "mid", "huge"), "C": ("0", "1")}
    names = {"source": "names", "named_nodes": ["A", "size", "C"]}
    assert factors_of_nodes(names, outcomes, LEVELS) == {"A": "hue", "size": "size"}
    # Two factors with the same levels; a node that bears a factor's name and none of its levels; labels of one node.
    assert factors_of_nodes(names, outcomes, {"one": ("0", "1"), "two": ("0", "1")}) == {}
    assert factors_of_nodes(names, outcomes, {"size": ("1", "2")}) == {}
    assert factors_of_nodes(names | {"named_nodes": ["A"]}, outcomes, LEVELS) == {"A": "hue"}
    assert factors_of_nodes(LABELS, {"A": ("red", "blue"), "B": ("a", "b")}, LEVELS) == {"A": "hue"}
    assert factors_of_nodes(None, outcomes, LEVELS) == {}


def test_random_names_are_those_of_all_permutations() -> None:
    rng = np.random.default_rng(0)
    cells, outcomes = rng.integers(0, 4, 200), {"A": ("x", "y"), "B": ("0", "1")}
    factors = {"F": rng.integers(0, 2, 200), "G": cells % 2}
    levels, factor_of = {"F": ("y", "x"), "G": ("0", "1")}, {"A": "F", "B": "G"}
    score = named_accuracy(cells, outcomes, factors, levels, factor_of, rng)
    worst = [
        min(np.mean(1 - named // 2 == factors["F"]), np.mean(named % 2 == factors["G"]))
        for named in (np.array(order)[cells] for order in permutations(range(4)))
    ]
    assert score["named_accuracy"]["A"] == np.mean(1 - cells // 2 == factors["F"])
    assert abs(score["named_accuracy_random"] - np.mean(worst)) < 4 * np.std(worst) / 300**0.5


def test_graph_and_joint_are_scored_without_interventions() -> None:
    """Independent nodes; interventions that tie them together would buy an edge and move the frequencies."""
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 2, (2, 1000))
    environment = (np.arange(1000) >= 500).astype(int)
    codes[1, environment == 1] = codes[0, environment == 1]
    factors = {"hue": codes[0], "size": codes[1]}
    joint = np.full((2, 2), 0.25)
    known = Known(factors, {"hue": ("0", "1"), "size": ("0", "1")}, Truth(joint, np.zeros((2, 2))))
    r = 0.99 * np.eye(4)[2 * codes[0] + codes[1]] + 0.0025
    fit = Found(r, ("A", "B"), joint, np.zeros((2, 2)), np.full(1000, "train"))
    pooled, alone = scores_of(fit, known), scores_of(replace(fit, environment=environment), known)
    assert pooled["cpdag_shd"] == 1
    assert alone["cpdag_shd"] == 0
    counts = np.bincount(2 * codes[0, :500] + codes[1, :500], minlength=4) / 500
    expected = float((0.25 * np.log(0.25 / counts)).sum())
    assert alone["graph"]["joint_kl"]["true_labels"] == pytest.approx(expected)
    assert alone["n_samples"] == 1000
    assert scores_of(replace(fit, environment=np.ones(1000)), known)["graph"] is None


def test_every_factor_is_scored_by_itself_on_all_samples_that_have_it() -> None:
    """Clusters that are the levels of size, and tell nothing of hue, of which most samples have no label."""
    known = {"hue": np.where(np.arange(60) < 20, FACTORS["hue"], -1), "size": FACTORS["size"]}
    fit = replace(found((), {}), responsibilities=np.eye(6)[FACTORS["size"]])
    score = scores_of(fit, Known(known, LEVELS))
    assert score["n_samples"] == 20, "jointly, those with both"
    size, hue = score["factors"]["size"], score["factors"]["hue"]
    assert (size["n_samples"], size["accuracy"], size["cluster_accuracy"], size["nmi"], size["ari"]) == (60, 1, 1, 1, 1)
    assert (hue["n_samples"], hue["n_levels"]) == (20, 2)
    assert hue["nmi"] < 0.05
    assert size["calibration"]["ece"] == 0.0
