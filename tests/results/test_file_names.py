"""Files of figures are named after modalities, whatever these are called."""

from __future__ import annotations

import re

import hypothesis.strategies as st
import pytest
from hypothesis import given

from causalpima.inference.findings.drawing import file_names


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["image", "_raw", "S11"], ["image", "_raw", "S11"]),
        (["yield strength (MPa)", "a/../b", "Härte"], ["yield_strength_MPa", "a_b", "Harte"]),
        (["a b", "a-b", "image", "Image"], ["0_a_b", "1_a_b", "2_image", "3_Image"]),
        (["応力", "µ", "0"], ["0_", "1", "0"]),
        (["x" * 60], ["x" * 40]),
    ],
)
def test_what_names_become(names: list[str], expected: list[str]) -> None:
    assert list(file_names(names).values()) == expected


@given(st.lists(st.text(st.sampled_from("aAbä_ /.01µ"), max_size=5), unique=True, max_size=8))
def test_files_are_told_apart_on_every_system(names: list[str]) -> None:
    found = file_names(names)
    assert list(found) == names
    assert all(re.fullmatch("[A-Za-z0-9_]+", file) for file in found.values())
    assert len({file.lower() for file in found.values()}) == len(names)
