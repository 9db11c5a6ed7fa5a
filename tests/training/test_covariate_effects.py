"""Effects of covariates on the elements: against least squares by hand, and what encoders get to see."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
import torch

from causalpima.guides.encoders import mlp_encoder
from causalpima.guides.guide import CovariateShift, Guide
from causalpima.inference.data.tensors import TensorData
from causalpima.inference.training.side_information import covariate_effects, fit_covariate_shift, with_trained_levels
from causalpima.models.batch import Standardisation

N, V, SHAPE = 60, 3, (2, 2)


def samples(gaps: bool, absent: bool) -> TensorData:
    """Elements with an effect of their own per level, levels of unequal size."""
    generator = np.random.default_rng(0)
    level = generator.choice(V, N, p=[0.6, 0.3, 0.1])
    value = generator.normal(size=(V, *SHAPE))[level] + 0.1 * generator.normal(size=(N, *SHAPE)) + 2.0
    observed = generator.random((N, *SHAPE)) > 0.3 if gaps else np.ones((N, *SHAPE), dtype=bool)
    present = generator.random(N) > 0.2 if absent else np.ones(N, dtype=bool)
    observed &= present[:, None, None]
    return TensorData(
        {"x": torch.from_numpy(np.where(observed, value, 0.0))},
        {"x": torch.from_numpy(present) if absent else None},
        {"x": Standardisation()},
        {"x": torch.from_numpy(observed)} if gaps else {},
        torch.nn.functional.one_hot(torch.from_numpy(level), V).double(),
    )


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("absent", [False, True])
def test_effects_are_ridge_regression_of_every_element(gaps: bool, absent: bool) -> None:
    data = samples(gaps, absent)
    found = covariate_effects(data, "x").numpy()
    assert data.covariates is not None
    c, x = data.covariates.numpy(), data.values["x"].numpy().reshape(N, -1)  # type: ignore[union-attr]
    measured = np.ones_like(x, dtype=bool)
    if absent:
        measured &= data.present["x"].numpy()[:, None]  # type: ignore[union-attr]
    if gaps:
        measured &= data.observed["x"].numpy().reshape(N, -1)  # type: ignore[union-attr]
    for element in range(x.shape[1]):
        rows = measured[:, element]
        design = np.vstack([np.c_[np.ones(rows.sum()), c[rows]], np.c_[np.zeros(V), np.eye(V)]])
        target = np.r_[x[rows, element], np.zeros(V)]
        expected = np.linalg.lstsq(design, target, rcond=None)[0]
        np.testing.assert_allclose(found[:, element], expected[1:], atol=1e-6)


def test_a_level_without_training_samples_has_no_effect() -> None:
    data = samples(gaps=False, absent=False)
    assert data.covariates is not None
    wider = dataclasses.replace(data, covariates=torch.nn.functional.pad(data.covariates, (0, 1)))
    torch.testing.assert_close(covariate_effects(wider, "x")[-1], torch.zeros(4))


def test_encoders_see_residuals_and_other_modalities_as_they_are() -> None:
    data = samples(gaps=False, absent=False)
    shift = CovariateShift({"x": SHAPE}, V)
    guide = Guide({"x": mlp_encoder(SHAPE, (5,), 2)}, covariate_shift=shift)
    (batch,) = data.batches(N)
    plain = guide.encode(batch)
    fit_covariate_shift(guide, data)
    assert batch.covariates is not None
    residual = batch.values["x"] - (batch.covariates @ covariate_effects(data, "x")).reshape(N, *SHAPE)
    by_hand = guide.encoders["x"](residual)
    torch.testing.assert_close(guide.encode(batch), by_hand)
    assert not torch.allclose(guide.encode(batch).loc, plain.loc)
    torch.testing.assert_close(shift("y", batch.values["x"], batch.covariates), batch.values["x"])
    torch.testing.assert_close(shift("x", batch.values["x"], None), batch.values["x"])
    assert "covariate_shift.x" in guide.state_dict(), "it is saved with the weights"
    between = [residual[batch.covariates[:, level] == 1].mean(0) for level in range(2)]
    torch.testing.assert_close(between[0], between[1], atol=0.1, rtol=0)


def test_levels_that_were_not_trained_on_are_averaged_over() -> None:
    data = samples(gaps=False, absent=False)
    assert data.covariates is not None
    level = data.covariates.argmax(1).numpy()
    training = level != 2
    found = with_trained_levels(data, training).covariates
    assert found is not None
    mean = data.covariates[torch.from_numpy(training)].mean(0)
    torch.testing.assert_close(found[torch.from_numpy(~training)], mean.expand(int((~training).sum()), V))
    assert torch.equal(found[torch.from_numpy(training)], data.covariates[torch.from_numpy(training)])
