"""The value of `--nodes`."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.command_line.flags import parse_nodes

NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_]{0,8}", fullmatch=True)
NODES = st.dictionaries(NAMES, st.integers(2, 10), min_size=1, max_size=6)


@given(NODES)
def test_names_and_their_order_are_kept(nodes: dict[str, int]) -> None:
    typed = ",".join(f"{name}={outcomes}" for name, outcomes in nodes.items())
    assert list(parse_nodes(typed).items()) == list(nodes.items())
    assert parse_nodes(nodes) == nodes, "as a configuration file has it, and a second time"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("2,3", {"N1": 2, "N2": 3}),
        ("[2, 3]", {"N1": 2, "N2": 3}),
        ([2, 3], {"N1": 2, "N2": 3}),
        (3, {"N1": 3}),
        ("3", {"N1": 3}),
        (" a = 2 , b = 3 ", {"a": 2, "b": 3}),
        ("2,b=3,4", {"N1": 2, "b": 3, "N3": 4}),
    ],
)
def test_every_form(value: Any, expected: dict[str, int]) -> None:
    assert parse_nodes(value) == expected


@pytest.mark.parametrize(
    "value", ["0", "1", "-2", "a=", "=2", "", ",", "2,", "a b=2", "2.5", "2.0", "x", "true", "a=2=3"]
)
def test_nonsense_is_refused_with_an_example(value: str) -> None:
    with pytest.raises(
        ValueError, match=r"^nodes: expected whole numbers >= 2 .*type=2,response=3, got '.*' for node '"
    ):
        parse_nodes(value)


@pytest.mark.parametrize("value", [True, 2.5, {"a": 2.0}, {"a": None}, {1: 2}, [True], [[2]]])
def test_other_types_are_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^nodes: expected whole numbers >= 2"):
        parse_nodes(value)


@pytest.mark.parametrize("value", ["a=2,a=3", "N2=2,3"])
def test_a_name_twice_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match=r"^nodes: expected a name of its own for every node, for example"):
        parse_nodes(value)


@pytest.mark.parametrize("value", [{}, []])
def test_none_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"^nodes: expected outcomes per node, for example 2,3"):
        parse_nodes(value)


@pytest.mark.parametrize(
    ("value", "got"),
    [
        ("100000000,2", "about 1e8"),
        ("99999999999999999999", "about 1e20"),
        ("1001,1000", "1001000"),
        ([10**9] * 40, "about 1e360"),
    ],
)
def test_more_combinations_than_can_be_counted_are_refused(value: Any, got: str) -> None:
    with pytest.raises(ValueError, match=rf"^nodes: expected at most 1000000 combinations of outcomes, got {got};"):
        parse_nodes(value)


def test_a_million_combinations_are_accepted() -> None:
    assert parse_nodes("1000,1000") == {"N1": 1000, "N2": 1000}
