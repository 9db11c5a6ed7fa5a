"""`summary.json` has its schema in code; `tests/conftest.py` holds every summary that a test writes to it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from circle_like_fit import circle_like_fit
from summaries import unknown_entries

from causalpima.inference.reporting.summary import summarise
from causalpima.inference.store.files import to_json
from causalpima.inference.store.summary_schema import checked_summary, json_schema


def plain_summary() -> dict[str, Any]:
    """A summary as a file has it."""
    found: dict[str, Any] = json.loads(to_json(summarise(circle_like_fit(40, (2, 2)), 1.0)))
    return found


def test_the_written_schema_is_that_of_the_code() -> None:
    written = json.loads((Path(__file__).parents[2] / "docs" / "summary.schema.json").read_text())
    assert written == json_schema(), "write it: python -m causalpima.inference.store.summary_schema FILE"


def test_entries_that_the_schema_does_not_know_are_seen() -> None:
    summary = plain_summary()
    assert unknown_entries(summary) == []
    summary["clusters"]["shape"] = 1
    summary["graph"]["posterior"] = {"classes": [{"cpdag": [], "colour": "red"}]}
    assert unknown_entries(summary) == ["clusters/shape", "graph/posterior/classes/0/colour"]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("clusters", "sizes"), [1, -1], r"^clusters.sizes\[1\]: expected int >= 0$"),
        (("seed",), "one", "^seed: expected int, got str$"),
        (("graph", "adjacency"), [[0, 2], [0, 0]], r"^graph.adjacency\[0\]\[1\]: invalid enum value 2$"),
        (("nodes",), {f"N{i}": 2 for i in range(65)}, "^nodes: expected object of length <= 64$"),
        (("graph", "edge_strength"), [[0.0]], "^graph/edge_strength: expected a row and a column for each of 2 nodes"),
    ],
)
def test_an_entry_of_another_kind_is_told(place: tuple[str, ...], value: object, message: str) -> None:
    summary = plain_summary()
    *parents, last = place
    entry = summary
    for name in parents:
        entry = entry[name]
    entry[last] = value
    with pytest.raises(ValueError, match=message):
        checked_summary(summary, "summary.json")
