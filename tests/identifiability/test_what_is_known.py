"""Side information that is refused, and how environments are read."""

from __future__ import annotations

from typing import Any

import pytest

from causalpima.inference.clusters.identify import Environment, SideInformation, read_environment

NODES = {"N1": 2, "N2": 3}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("do(N1)", Environment("do", "N1")),
        ("do(N2=1)", Environment("do", "N2", "1")),
        ("soft(N1)", Environment("soft", "N1")),
        ("do(?)", Environment("do", None)),
    ],
)
def test_environments(text: str, expected: Environment) -> None:
    assert read_environment(text) == expected


@pytest.mark.parametrize("text", ["N1", "do N1", "do()", "do(N1", "soft(N1=0)", "set(N1)", "do(N1=)"])
def test_other_words_are_no_environments(text: str) -> None:
    with pytest.raises(ValueError, match=r"environments: expected do\(NODE\)"):
        read_environment(text)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"nodes": {}}, "nodes: expected one at least"),
        ({"nodes": {"N1": 1}}, "nodes: expected one at least, of 2 outcomes at least"),
        ({"mask": {"a": ("N1", "N2", "N9")}}, "mask: expected nodes among N1, N2, got N9"),
        ({"mask": {"a": ("N1",)}}, "mask: expected every node to be seen"),
        ({"labels": ("N9",)}, "labels: expected nodes among"),
        ({"tiers": (("N1",), ("N9",))}, "tiers: expected nodes among"),
        ({"tiers": (("N1",), ("N1", "N2"))}, "tiers: expected every node in one tier at most, got N1"),
        ({"environments": (Environment("do", "N9"),)}, "environments: expected nodes among"),
        ({"environments": (Environment("do", None),) * 3}, "environments: expected at most 2 of unknown target"),
    ],
)
def test_what_cannot_be_known_is_refused(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        SideInformation(**{"nodes": NODES, **arguments})
    assert "\n" not in str(error.value)
