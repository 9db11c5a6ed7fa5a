"""Means of cells under q(N|X), against a loop over samples, with gaps and absent samples; who gets them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples
from torch import Tensor

from causalpima.inference.data import tensors
from causalpima.inference.data.stored import StoredRows
from causalpima.inference.data.tensors import TensorData, weighted_means
from causalpima.inference.run import Run
from causalpima.inference.training.mixture_updates import fit_cells
from causalpima.models.batch import Standardisation

N, CELLS = 23, 3


def make_data(present: bool, gaps: bool, filler: float = 7.0) -> TensorData:
    """Curves of four elements; every third sample lacks the curve, the second element is missing in most."""
    value, measured = torch.randn(N, 4), torch.ones(N, 4, dtype=torch.bool)
    here = torch.arange(N) % 3 != 0 if present else torch.ones(N, dtype=torch.bool)
    if gaps:
        measured = torch.rand(N, 4) < torch.tensor([0.7, 0.1, 0.9, 0.0])
    value = torch.where(measured & here.unsqueeze(-1), value, filler)
    observed = {"curve": measured} if gaps else {}
    return TensorData({"curve": value}, {"curve": here if present else None}, {"curve": Standardisation()}, observed)


def in_memory(column: Tensor | StoredRows) -> Tensor:
    """A column that is known not to be on disk."""
    assert isinstance(column, Tensor)
    return column


def by_loop(data: TensorData, r: torch.Tensor) -> tuple[np.ndarray, np.ndarray]:
    total, weight = np.zeros((CELLS, 4)), np.zeros((CELLS, 4))
    here, observed = data.present["curve"], data.observed.get("curve")
    value = in_memory(data.values["curve"])
    observed = None if observed is None else in_memory(observed)
    for n, c, d in np.ndindex(N, CELLS, 4):
        if (here is None or bool(here[n])) and (observed is None or bool(observed[n, d])):
            total[c, d] += float(r[n, c]) * float(value[n, d])
            weight[c, d] += float(r[n, c])
    return np.divide(total, weight, out=np.zeros_like(total), where=weight > 0), weight


@pytest.mark.parametrize("pass_size", [5, 2048], ids=["batch by batch", "one batch"])
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("present", [False, True])
def test_means_are_those_of_a_loop(monkeypatch: pytest.MonkeyPatch, present: bool, gaps: bool, pass_size: int) -> None:
    monkeypatch.setattr(tensors, "_PASS_SIZE", pass_size)
    data, r = make_data(present, gaps), torch.softmax(torch.randn(N, CELLS), -1)
    r[:, 2] = 0.0  # a cell without samples
    mean, weight = weighted_means(data, "curve", r)
    expected = by_loop(data, r)
    np.testing.assert_allclose(mean.numpy(), expected[0], rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(weight.numpy(), expected[1], rtol=1e-12, atol=1e-12)
    assert (mean[2] == 0).all()
    assert not gaps or (weight[:, 3] == 0).all(), "an element that nobody has"


def test_sums_are_of_double_precision() -> None:
    data = make_data(present=True, gaps=True)
    single = TensorData(
        {"curve": in_memory(data.values["curve"]).float()}, data.present, data.standardisation, data.observed
    )
    assert [part.dtype for part in weighted_means(single, "curve", torch.rand(N, CELLS))] == [torch.float64] * 2


def test_filler_is_nowhere() -> None:
    found = []
    for filler in (0.0, 1e20):
        torch.manual_seed(0)
        found.append(weighted_means(make_data(True, True, filler), "curve", torch.rand(N, CELLS)))
    torch.testing.assert_close(found[1], found[0], rtol=0, atol=0)


def test_only_decoders_on_the_cell_alone_are_fitted() -> None:
    run = Run(tiny_samples(gaps=True), settings(decoder__per_cell=True))
    told: dict[str, Any] = {}
    for name, decoder in run.state.decoders.items():
        decoder.update_cells = lambda mean, weight, name=name: told.update({name: (mean, weight)})  # type: ignore[misc, method-assign]
    r = torch.softmax(torch.randn(run.task.training.n_samples, 4), -1)
    fit_cells(run.state, run.task.training, r)
    assert told == {}
    run.state.decoders["curve"].depends_on_latent = False
    fit_cells(run.state, run.task.training, r)
    assert list(told) == ["curve"]
    torch.testing.assert_close(told["curve"], weighted_means(run.task.training, "curve", r))
