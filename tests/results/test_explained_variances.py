"""What nodes explain, from tensors in batches: gaps, scale, categories, against sums written out."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from causalpima.inference.data.tensors import TensorData
from causalpima.inference.findings.collect import explained_variances
from causalpima.models.batch import Standardisation


def data(**values: torch.Tensor) -> TensorData:
    return TensorData(values, dict.fromkeys(values), {name: Standardisation() for name in values})


def test_codes_count_as_indicators() -> None:
    # Cells 0 and 1 show the codes 0 and 2 always; code 1 is never seen. One node explains all, and as numbers would.
    cells = torch.arange(2000) % 2
    found = explained_variances(data(code=2.0 * cells.unsqueeze(1)), np.eye(2)[cells], (2,), ["code"])["code"]
    assert found.cells == pytest.approx(1)
    # Codes 0, 1, 2 in two cells: cell 0 shows 0 or 2 evenly, cell 1 shows 1. Means of codes agree, indicators do not.
    codes = torch.where(cells == 0, 2 * (torch.arange(2000) // 2 % 2), 1)
    values = data(code=codes.unsqueeze(1).double())
    as_codes = explained_variances(values, np.eye(2)[cells], (2,))["code"]
    as_categories = explained_variances(values, np.eye(2)[cells], (2,), ["code"])["code"]
    assert as_codes.cells == pytest.approx(0, abs=1e-12)
    # Variances of the indicators: 1/4 for code 1, all explained; 3/16 each for 0 and 2, of which 1/16.
    assert as_categories.cells == pytest.approx((1 / 4 + 2 / 16) / (1 / 4 + 2 * 3 / 16))


def test_absent_samples_and_missing_elements_play_no_part() -> None:
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 2, 3000)
    values = rng.normal(0, 1, (3000, 2)) + 2.0 * cells[:, None]
    present = rng.random(3000) < 0.8
    observed = (rng.random((3000, 2)) < 0.7) & present[:, None]
    spoiled = torch.from_numpy(np.where(observed, values, 50.0))
    tensors = TensorData(
        {"x": spoiled},
        {"x": torch.from_numpy(present)},
        {"x": Standardisation()},
        {"x": torch.from_numpy(observed)},
    )
    between = total = 0.0
    for element in range(2):
        kept = values[observed[:, element], element]
        groups = cells[observed[:, element]]
        means = np.array([kept[groups == group].mean() for group in groups])
        between, total = between + np.square(means - kept.mean()).sum(), total + np.square(kept - kept.mean()).sum()
    assert explained_variances(tensors, np.eye(2)[cells], (2,))["x"].cells == pytest.approx(between / total)
