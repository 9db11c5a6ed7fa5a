"""Effects of an outcome on a modality: units, scale of the model, categories, groups, what is absent."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import stats

from causalpima.inference.clusters.design import designed_effect
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.models.batch import Standardisation

N = 60
CODES = np.repeat([0, 1, 2], 20)


def data_of(values: np.ndarray, **changes: Any) -> MultimodalData:
    fields: dict[str, Any] = {
        "name": "made",
        "modalities": {"x": values.astype(np.float32)},
        "present": {"x": np.ones(N, dtype=bool)},
        "kinds": {"x": "vector"},
    }
    return MultimodalData(**{**fields, **changes})


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((N, *shape))


def test_means_are_in_the_units_of_the_data_and_shares_on_the_scale_of_the_model() -> None:
    values = np.exp(normal(2, 3) + 0.5 * CODES[:, None, None]).astype(np.float32)
    found = designed_effect(data_of(values), "x", np.arange(N), CODES, 3, Standardisation(0.3, 2.0, "log"), 0)
    assert found is not None
    assert found.mean.shape == (3, 2, 3)
    for outcome in range(3):
        np.testing.assert_allclose(found.mean[outcome], values[outcome == CODES].mean(0), rtol=1e-6)
        error = stats.sem(values[outcome == CODES].astype(float))
        np.testing.assert_allclose(found.standard_error[outcome], error, rtol=1e-6)
    np.testing.assert_allclose(found.difference, found.mean[1:] - found.mean[:1])
    logs = np.log(values.astype(float))
    between = sum(20 * np.square(logs[o == CODES].mean(0) - logs.mean(0)).sum() for o in range(3))
    np.testing.assert_allclose(found.explained, between / np.square(logs - logs.mean(0)).sum(), rtol=1e-6)
    assert found.samples.tolist() == found.units.tolist() == [20, 20, 20]


def test_absent_samples_and_rows_that_do_not_count_are_left_out() -> None:
    values = normal(2)
    spoilt = values.copy()
    present = np.ones(N, dtype=bool)
    present[::7], spoilt[::7] = False, 1e6
    rows = np.flatnonzero(np.arange(N) % 5 != 0)
    spoilt[::5] = -1e6
    data = data_of(spoilt, present={"x": present}, groups=np.arange(N) // 2)
    found = designed_effect(data, "x", rows, CODES[rows], 3, Standardisation(), 0)
    kept = present & (np.arange(N) % 5 != 0)
    assert found is not None
    np.testing.assert_allclose(found.mean[1], values[kept & (CODES == 1)].mean(0), rtol=1e-5)
    assert found.samples.tolist() == [int((kept & (o == CODES)).sum()) for o in range(3)]
    assert found.units.tolist() == [len(np.unique(np.arange(N)[kept & (o == CODES)] // 2)) for o in range(3)]


def test_of_categories_the_shares_differ() -> None:
    codes = np.random.default_rng(1).integers(0, 3, (N, 2))
    codes[CODES == 2] = 2
    found = designed_effect(data_of(codes), "x", np.arange(N), CODES, 3, Standardisation(), 0, is_categorical=True)
    assert found is not None
    assert found.mean.shape == (3, 2, 3)
    np.testing.assert_allclose(found.mean.sum(-1), 1.0)
    np.testing.assert_array_equal(found.mean[2], np.eye(3)[[2, 2]])
    assert found.test.p_value == 0.001


@pytest.mark.parametrize("left", [[0], []])
def test_one_outcome_alone_is_no_comparison(left: list[int]) -> None:
    present = np.isin(CODES, left)
    data = data_of(normal(2), present={"x": present})
    assert designed_effect(data, "x", np.arange(N), CODES, 3, Standardisation(), 0) is None


def test_the_same_seed_gives_the_same_p_value() -> None:
    data = data_of(normal(2) + 0.2 * CODES[:, None])
    first, again, other = (
        designed_effect(data, "x", np.arange(N), CODES, 3, Standardisation(), seed) for seed in (0, 0, 1)
    )
    assert first is not None
    assert again is not None
    assert other is not None
    assert first.test == again.test != other.test
