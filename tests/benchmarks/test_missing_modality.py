from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from missing_modality import ARMS, SCORES, crps, hidden_rows, one_fit, table, without
from scipy.stats import norm

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.training.config import FitConfig, PretrainingConfig, default_config


def two_vectors(n: int = 80) -> MultimodalData:
    rng = np.random.default_rng(0)
    cluster = rng.integers(0, 2, n)
    values = {name: 4.0 * cluster[:, None] + rng.standard_normal((n, 2)) for name in ("a", "b")}
    return MultimodalData(
        "two",
        {name: value.astype(np.float32) for name, value in values.items()},
        {name: np.ones(n, dtype=bool) for name in values},
        {"a": "vector", "b": "vector"},
        factors={"cluster": cluster},
        factor_levels={"cluster": ("0", "1")},
    )


@pytest.mark.parametrize("truth", [-1.5, 0.0, 2.0])
def test_crps_of_a_gaussian_is_the_closed_form(truth: float) -> None:
    """`σ (z (2 Φ(z) - 1) + 2 φ(z) - 1/√π)`, Gneiting and Raftery 2007, equation 21."""
    exact = truth * (2 * norm.cdf(truth) - 1) + 2 * norm.pdf(truth) - 1 / np.sqrt(np.pi)
    draws = np.random.default_rng(1).standard_normal((50, 4000))
    found = crps(draws, np.full(4000, truth))
    assert found.mean() == pytest.approx(exact, abs=4 * found.std() / np.sqrt(4000))
    assert found.mean() != pytest.approx(exact + 0.5 / 50, abs=found.std() / np.sqrt(4000))  # with a biased spread


def test_crps_of_few_draws_by_hand() -> None:
    draws = np.array([[3.0], [1.0], [2.0]])
    assert crps(draws, np.array([2.0])) == pytest.approx((1 + 1 + 0) / 3 - (2 + 1 + 1) / 3 / 2)


@pytest.mark.parametrize("pattern", ["random", "systematic"])
def test_three_in_ten_test_samples_lack_a_modality(pattern: str) -> None:
    data, test = two_vectors(), np.arange(40, 80)
    rows = hidden_rows(data, test, "a", pattern, seed=0)
    assert len(rows) == 12
    assert set(rows) <= set(test)
    lacking = without(data, "a", rows)
    assert not lacking.present["a"].any()
    assert not lacking.modalities["a"].any()
    assert lacking.present["b"].all()
    if pattern == "systematic":
        assert len(np.unique(data.factors["cluster"][rows])) == 1  # the largest of b are of one cluster


@pytest.mark.float32
def test_a_small_fit_gives_a_row_for_every_modality_and_pattern(monkeypatch: pytest.MonkeyPatch) -> None:
    def small(dataset: str, seed: int) -> tuple[MultimodalData, FitConfig]:
        data = two_vectors()
        return data, dataclasses.replace(default_config(data, {"N": 2}), pretraining=PretrainingConfig(epochs=2))

    monkeypatch.setattr("missing_modality.experiment", small)
    monkeypatch.setattr("missing_modality.EPOCHS", 2)
    records = one_fit("two", "plain", 0)
    assert {(record["modality"], record["pattern"]) for record in records} == {
        (name, pattern) for name in "ab" for pattern in ("random", "systematic")
    }
    assert all(np.isfinite(record[score]) for record in records for score in SCORES)
    assert records[0]["overall_mean"] > records[0]["ridge"]
    assert len(table(records).splitlines()) == 5
    assert set(ARMS) == {"plain", "dropout", "distilled", "both"}
