"""Environments and truths that do not fit the samples are refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.validation import validate

CODES = np.array([0, 1, 1, 0])


def data(**changes: Any) -> MultimodalData:
    made = MultimodalData(
        name="samples",
        modalities={"vector": np.arange(12, dtype=np.float32).reshape(4, 3)},
        present={"vector": np.ones(4, dtype=bool)},
        kinds={"vector": "vector"},
        factors={"phase": np.array([0, 1, 0, 1]), "size": np.array([0, 1, 2, 1])},
        factor_levels={"phase": ("a", "b"), "size": ("s", "m", "l")},
        environment=CODES,
        environment_names=("observational", "do(phase)"),
        environment_targets=((), ("phase",)),
        true_joint=np.full((2, 3), 1 / 6),
        true_adjacency=np.array([[0, 1], [0, 0]]),
    )
    return dataclasses.replace(made, **changes)


def test_what_fits_is_taken() -> None:
    validate(data())
    validate(data(environment_targets=None, true_joint=None, true_adjacency=None))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"environment": None}, "environment: expected one code per sample, got none"),
        ({"environment": CODES.astype(float)}, r"environment: expected one integer code per sample, .*float64"),
        ({"environment": CODES[:3]}, r"environment: expected one integer code per sample, \[4\], got int64 \(3,\)"),
        ({"environment": 2 * CODES}, "environment: expected codes from 0 to 1, .*got 0 to 2"),
        ({"environment": -CODES}, "environment: expected codes from 0 to 1, .*got -1 to 0"),
        ({"environment_names": ("a", "a")}, "environment_names: expected every name once, got a, a"),
        ({"environment_targets": ((),)}, "environment_targets: expected one tuple per environment, 2, got 1"),
        ({"environment_targets": ((), ("mass",))}, "environment_targets: expected names of factors, got mass"),
        ({"true_joint": np.full((3, 2), 1 / 6)}, r"true_joint: expected \(2, 3\), one axis per factor, got \(3, 2\)"),
        ({"true_joint": np.full((2, 3), 0.2)}, "true_joint: expected probabilities that sum to 1, got a sum of 1.2"),
        ({"true_joint": np.eye(3)[:2] - 1 / 6}, "true_joint: expected probabilities"),
        ({"true_adjacency": np.zeros((3, 3))}, r"true_adjacency: expected \(2, 2\), got \(3, 3\)"),
        ({"true_adjacency": np.full((2, 2), 0.5)}, "true_adjacency: expected 0 and 1"),
    ],
)
def test_what_does_not_fit_is_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        validate(data(**changes))
