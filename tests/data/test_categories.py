"""Labels, groups and covariates as codes."""

from __future__ import annotations

from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.data.roles import UNKNOWN, gap_like_levels, joint_groups, to_categories

NAN = float("nan")


@pytest.mark.parametrize(
    ("values", "levels", "codes"),
    [
        ([7, 3, 11, 3], ("3", "7", "11"), [1, 0, 2, 0]),
        ([7.0, 3.0, 11.0, 3.0], ("3", "7", "11"), [1, 0, 2, 0]),
        (["b", "a", "b"], ("a", "b"), [1, 0, 1]),
        (np.array(["b", "a", "b"], dtype=object), ("a", "b"), [1, 0, 1]),
        (np.array(["b", "a", "b"], dtype=np.dtypes.StringDType()), ("a", "b"), [1, 0, 1]),
        (np.array([b"b", b"a", b"b"]), ("a", "b"), [1, 0, 1]),
        ([True, False], ("False", "True"), [1, 0]),
    ],
)
def test_levels_are_in_order(values: Any, levels: tuple[str, ...], codes: list[int]) -> None:
    found = to_categories("alloy", values)
    assert found.levels == levels
    assert found.codes.tolist() == codes
    assert found.codes.dtype == np.int64


@pytest.mark.parametrize(
    ("values", "match"),
    [
        ([1.5, 2.0], "alloy: expected a label per sample, integers or texts .*got float64"),
        ([1.0, np.inf], "alloy: expected a label per sample, .*got float64"),
        ([1.0, NAN, NAN], "alloy: expected a label for every sample, got none for 2 of 3, first sample 1"),
        (["a", ""], "alloy: expected a label for every sample, got none for 1 of 2, first sample 1"),
        (np.array(["a", None], dtype=object), "alloy: .*got none for 1 of 2"),
        (np.array(["a", NAN], dtype=object), "alloy: .*got none for 1 of 2"),
        (np.array(["a", 3], dtype=object), "alloy: .*got int among them"),
        (np.array([1j, 2]), "alloy: .*got complex128"),
        (np.array(["2026-01-01"], "M8[D]"), "alloy: .*got datetime64"),
        ([[1, 2]], r"alloy: .*got int64 of shape \(1, 2\)"),
    ],
)
def test_what_is_no_label_is_refused(values: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match) as error:
        to_categories("alloy", values)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "levels", "codes"),
    [
        ([7.0, NAN, 3.0], ("3", "7"), [1, UNKNOWN, 0]),
        (["b", "", "a"], ("a", "b"), [1, UNKNOWN, 0]),
        (np.array(["b", None, NAN], dtype=object), ("b",), [0, UNKNOWN, UNKNOWN]),
        ([3, 4], ("3", "4"), [0, 1]),
    ],
)
def test_samples_may_lack_a_label_where_they_may(values: Any, levels: tuple[str, ...], codes: list[int]) -> None:
    found = to_categories("alloy", values, may_lack=True)
    assert (found.levels, found.codes.tolist()) == (levels, codes)


@pytest.mark.parametrize(
    ("values", "match"),
    [
        (
            [f"S{k}" for k in range(12)],
            "alloy: expected categories, got 12 different entries in 12 rows, .*--groups alloy",
        ),
        (np.arange(40) // 3, "alloy: expected categories, got 14 different numbers in 40 rows; put them into classes"),
    ],
)
def test_names_of_samples_and_numbers_are_no_categories(values: Any, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        to_categories("alloy", values, may_lack=True)
    assert len(to_categories("alloy", values, kind="group").levels) > 10


def test_covariates_may_be_numbered_specimens() -> None:
    assert len(to_categories("specimen", np.arange(40) // 3, kind="level").levels) == 14
    with pytest.raises(ValueError, match="specimen: expected categories, got 40 different numbers in 40 rows"):
        to_categories("specimen", np.arange(40), kind="level")


@pytest.mark.parametrize(
    ("levels", "gaps"),
    [
        (("-1", "0", "1"), []),
        (("-99", "-9", "0", "1"), ["-99", "-9"]),
        (("-20", "-9", "30"), []),
        (("1", "2", "99"), ["99"]),
        (("1", "20", "99"), []),
        (("+", "-"), []),
        (("+", "-", "n.d."), ["n.d."]),
        (("NA", "Na", "a", "unknown"), ["NA", "unknown"]),
        (("None", "<LOD"), ["<LOD"]),
    ],
)
def test_levels_that_look_like_gaps(levels: tuple[str, ...], gaps: list[str]) -> None:
    assert gap_like_levels(levels) == gaps


def test_a_variable_without_any_label_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alloy: .*got none for 2 of 2"):
        to_categories("alloy", ["", ""], may_lack=True)


@given(st.lists(st.lists(st.integers(0, 5), min_size=7, max_size=7), min_size=1, max_size=3))
def test_joint_groups_are_the_connected_components(codes: list[list[int]]) -> None:
    graph = nx.Graph()
    graph.add_nodes_from(range(7))
    graph.add_edges_from((i, (which, code)) for which, row in enumerate(codes) for i, code in enumerate(row))
    joint = joint_groups([np.array(row) for row in codes])
    assert joint is not None
    for i in range(7):
        for j in range(7):
            assert (joint[i] == joint[j]) == nx.has_path(graph, i, j)
    assert set(joint) == set(range(joint.max() + 1))


def test_no_grouping_makes_no_groups() -> None:
    assert joint_groups([]) is None
