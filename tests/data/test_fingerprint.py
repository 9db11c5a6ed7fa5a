"""What of the data a resumed run insists on."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from inference.data.multimodal import Axis, MultimodalData
from inference.data.tensors import fingerprint

POSITIONS = np.array([0.0, 1.0, 2.0])


def data(**changes: Any) -> MultimodalData:
    made = MultimodalData(
        name="samples",
        modalities={"curve": np.arange(12, dtype=np.float32).reshape(4, 3)},
        present={"curve": np.ones(4, dtype=bool)},
        kinds={"curve": "curve"},
        factors={"phase": np.array([0, 1, 0, 1])},
        factor_levels={"phase": ("a", "b")},
        axes={"curve": Axis("strain", POSITIONS, "%")},
        units={"curve": "MPa"},
    )
    return dataclasses.replace(made, **changes)


@pytest.mark.parametrize(
    "changes",
    [
        {"axes": {"curve": Axis("strain", 2 * POSITIONS, "%")}},
        {"axes": {"curve": Axis("strain", POSITIONS, "1")}},
        {"axes": {"curve": Axis("time", POSITIONS, "%")}},
        {"axes": {}},
        {"units": {"curve": "Pa"}},
        {"kinds": {"curve": "vector"}, "axes": {}},
        {"factors": {"phase": np.array([1, 0, 0, 1])}},
        {"factor_levels": {"phase": ("b", "a")}},
        {"environment": np.array([0, 0, 1, 1]), "environment_names": ("none", "heated")},
    ],
    ids=str,
)
def test_positions_units_and_factors_are_part_of_the_data(changes: dict[str, Any]) -> None:
    assert fingerprint(data(**changes)) != fingerprint(data())
    assert fingerprint(data()) == fingerprint(data())
