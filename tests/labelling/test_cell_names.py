"""Names of clusters: which are a bijection of clusters and cells, and what is said of those that are none."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from causalpima.inference.clusters.names import cell_names, outcome_names

NODES = {"hue": 2, "size": 2}
COMBINATIONS = list(product(("red", "blue"), ("small", "large")))
SIZES = (5, 5, 5, 5)


def rows(*combinations: tuple[str, str] | None) -> dict[int, dict[str, str]]:
    return {c: dict(zip(NODES, names, strict=True)) for c, names in enumerate(combinations) if names is not None}


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (2, 0, 3, 1)])
def test_names_put_every_cluster_into_its_cell(order: tuple[int, ...]) -> None:
    named = cell_names(rows(*(COMBINATIONS[i] for i in order)), NODES, SIZES)
    for cluster, i in enumerate(order):
        cell = np.unravel_index(named.permutation[cluster], (2, 2))
        assert tuple(named.outcomes[node][code] for node, code in enumerate(cell)) == COMBINATIONS[i]
    assert sorted(named.permutation) == [0, 1, 2, 3]
    assert named.named == ("hue", "size")
    labelling = named.labelling()
    assert labelling.source == "names"
    assert labelling.details["clusters"] == np.argsort(named.permutation).tolist()


def test_outcomes_come_in_the_order_of_clusters_and_numbers_in_their_own() -> None:
    named = cell_names(rows(("red", "10"), ("red", "9"), ("blue", "10"), ("blue", "9")), NODES, SIZES)
    assert named.outcomes == (("red", "blue"), ("9", "10"))


def test_empty_clusters_take_what_is_left() -> None:
    named = cell_names(rows(COMBINATIONS[3], None, COMBINATIONS[0], ("", "")), NODES, (5, 0, 5, 0))
    assert named.permutation[[0, 2]].tolist() == [0, 3], "blue is the first hue that is named"
    assert sorted(named.permutation) == [0, 1, 2, 3]


def test_an_outcome_that_no_cluster_has_is_called_unnamed() -> None:
    named = cell_names({0: {"hue": "red"}, 1: {"hue": "blue"}}, {"hue": 3}, (5, 5, 0))
    assert named.outcomes == (("red", "blue", "unnamed"),)


def test_a_node_without_names_keeps_its_numbers() -> None:
    named = cell_names(rows(("red", ""), ("blue", ""), ("blue", ""), ("red", "")), NODES, SIZES)
    assert named.outcomes == (("red", "blue"), ("0", "1"))
    assert named.named == ("hue",)
    assert (named.permutation // 2).tolist() == [0, 1, 1, 0]
    assert sorted(named.permutation) == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("found", "match"),
    [
        (
            rows(*COMBINATIONS[:3], COMBINATIONS[0]),
            r"^names: expected every combination of hue, size once, got \(red, small\) for clusters 0, 3, while "
            r"\(blue, large\) is left",
        ),
        (rows(*COMBINATIONS[:3], ("bleu", "large")), "^hue: expected at most 2 .*, got 3 .red, blue, bleu."),
        (rows(*COMBINATIONS[:3]), "^cluster 3: expected names, for it has 5 samples, got none"),
        (rows(*COMBINATIONS[:3], ("blue", "")), "^cluster 3: expected a name for each of hue, size, got none for size"),
        (rows(("red", ""), ("red", ""), ("red", ""), ("blue", "")), "every combination of hue 2 times, got .red."),
        (rows(*[("", "")] * 4), "^names: expected a name in some column, got none"),
        ({9: {"hue": "red"}}, "^names: expected clusters from 0 to 3, got 9"),
        ({0: {"colour": "red"}}, "^names: expected the nodes hue, size for cluster 0, got 'colour'"),
    ],
)
def test_other_names_are_refused(found: dict[int, dict[str, str]], match: str) -> None:
    with pytest.raises(ValueError, match=match) as error:
        cell_names(found, NODES, SIZES)
    assert "\n" not in str(error.value)


def test_missing_outcomes_are_described_in_words() -> None:
    found = rows(("red", "small"), ("red", "large"), ("red", "small"), ("red", "large"))
    with pytest.raises(ValueError, match=r"\(another hue, small\); \(another hue, large\) are left"):
        cell_names(found, NODES, SIZES)


def test_outcomes_beyond_the_levels_are_numbered() -> None:
    assert outcome_names({"A": 4, "B": 2}, {"A": ["x", "y"]}) == (("x", "y", "unnamed_1", "unnamed_2"), ("0", "1"))
