"""Strict JSON: what results hold survives, and what JSON has no form for is null or refused."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from causalpima.inference.store.files import to_json

_trees = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("abc"), inner, max_size=4),
    max_leaves=12,
)


def _strictly(text: str) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(constant)

    return json.loads(text, parse_constant=refuse)


def _nulled(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_nulled(item) for item in value]
    return {key: _nulled(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(tree=_trees, indent=st.sampled_from([None, 2]))
def test_plain_values_round_trip_with_null_for_what_is_not_finite(tree: Any, indent: int | None) -> None:
    assert _strictly(to_json(tree, indent)) == _nulled(tree)


def test_numpy_values_become_numbers_and_lists() -> None:
    value = {
        "float32": np.float32(0.5),
        "float64": np.float64("inf"),
        "int": np.int64(7),
        "bool": np.bool_(True),
        "string": np.str_("a"),
        "array": np.array([[1.0, np.nan], [2.0, -np.inf]]),
        "names": np.array(["a", "b"]),
        "tuple": (np.uint8(3), Path("runs") / "one"),
        3: "a key",
    }
    assert _strictly(to_json(value)) == {
        "float32": 0.5,
        "float64": None,
        "int": 7,
        "bool": True,
        "string": "a",
        "array": [[1.0, None], [2.0, None]],
        "names": ["a", "b"],
        "tuple": [3, "runs/one"],
        "3": "a key",
    }


def test_a_line_has_no_line_break() -> None:
    assert "\n" not in to_json({"a": [1, {"b": "x\ny"}]}, indent=None)


def test_the_standard_library_alone_is_not_strict() -> None:
    with pytest.raises(AssertionError, match="NaN"):
        _strictly(json.dumps({"a": math.nan}))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": [1, {2}]}, r"value\['a'\]\[1\]: expected numbers, .* got set; convert it"),
        ({"a": 1j}, r"value\['a'\]: .* got complex"),
        ({(1, 2): 1}, r"value: expected keys that are strings, got \(1, 2\)"),
        ({True: 1}, r"value: expected keys that are strings, got True"),
    ],
)
def test_anything_else_is_refused_with_its_place(value: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        to_json(value)
