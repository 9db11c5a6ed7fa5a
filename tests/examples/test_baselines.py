"""The random-labelling baseline of data sets with known factors, against all labellings of a small one."""

from __future__ import annotations

import dataclasses
from itertools import permutations

import numpy as np
import pytest

from causalpima.examples.circles import circles
from causalpima.examples.experiment import labelling_baseline
from causalpima.inference.analyses.node_scores import node_accuracy
from causalpima.inference.data.multimodal import MultimodalData


def four_cells() -> MultimodalData:
    counts = np.array([[5, 1], [2, 8]])
    first, second = (np.repeat(codes.ravel(), counts.ravel()) for codes in np.indices((2, 2)))
    return MultimodalData(
        name="four",
        modalities={"vector": np.arange(32, dtype=np.float32).reshape(16, 2)},
        present={"vector": np.ones(16, dtype=bool)},
        kinds={"vector": "vector"},
        factors={"a": first, "b": second},
        factor_levels={"a": ("0", "1"), "b": ("0", "1")},
    )


def test_baseline_is_the_mean_over_all_labellings() -> None:
    data = four_cells()
    cells = 2 * data.factors["a"] + data.factors["b"]
    scores = [
        node_accuracy(np.stack(np.unravel_index(np.array(order)[cells], (2, 2)), axis=1), (2, 2), data.factors)
        for order in permutations(range(4))
    ]
    found = labelling_baseline(data, n_draws=2000)
    assert abs(found.mean - np.mean([score.mean for score in scores])) < 4 * found.mean_standard_error
    assert abs(found.worst - np.mean([score.worst for score in scores])) < 4 * found.worst_standard_error
    assert found.mean < 1


def test_chance_on_the_circles_is_far_above_a_half() -> None:
    found = labelling_baseline(circles(2000), n_draws=300)
    assert found.mean == pytest.approx(0.76, abs=0.02)
    assert found.worst == pytest.approx(0.64, abs=0.03)


def test_data_without_factors_are_refused() -> None:
    with pytest.raises(ValueError, match="four: expected known factors, got none"):
        labelling_baseline(dataclasses.replace(four_cells(), factors={}, factor_levels={}))
