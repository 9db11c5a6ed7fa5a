"""New samples with environments that the run knows: p(N | e) in all that is said of them."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from small_runs import random_run, samples

from causalpima.inference.analyses.predict import PredictionOptions, predict, read_samples
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.objectives.responsibilities import log_responsibilities
from causalpima.inference.predict import parse
from causalpima.inference.training.config import GuideConfig
from causalpima.inference.training.fitted_run import FittedRun

NAMES = ("usual", "hot")


def known_run(**changes: object) -> FittedRun:
    """Under `hot`, A is almost always 1."""
    run = random_run(**changes)  # type: ignore[arg-type]
    table = torch.tensor([0.02, 0.98]).reshape(2, 1)
    run.model.environments.replace([None, 0], [None, table], run.model.graph.log_joint().detach())
    return dataclasses.replace(run, description=dataclasses.replace(run.description, environment_names=NAMES))


def test_samples_without_any_modality_get_what_is_true_of_their_environment() -> None:
    run = known_run(guide=GuideConfig(prior_expert=True))
    nothing = samples(present=dict.fromkeys(("curve", "vector"), np.zeros(6, dtype=bool)))
    coded = dataclasses.replace(nothing, environment=np.arange(6) % 2, environment_names=NAMES)
    found = predict(run, fit_to_run(coded, run), PredictionOptions(draws=20_000))
    joint = run.model.environments.log_joint(run.model.graph.conditional_log_tables())
    assert joint is not None
    prior = joint.exp().reshape(2, 4).detach().numpy()
    weight = run.model.log_weight(fit_to_run(coded, run)._batch(slice(0, 2), joint)).exp().detach().numpy()
    loc = run.model.mixture.component_loc.numpy()
    for n in range(6):
        r = found["responsibilities"][n].to_numpy()
        assert np.abs(r - prior[n % 2]).max() < 4 * np.sqrt(0.25 / 20_000)
        mean = weight[n % 2] @ loc
        np.testing.assert_allclose(found["latent_loc"][n], mean, rtol=1e-6)
        variances = run.model.mixture.covariance().diagonal(dim1=-2, dim2=-1).numpy()
        np.testing.assert_allclose(
            found["latent_scale"][n] ** 2, weight[n % 2] @ (variances + np.square(loc - mean)), rtol=1e-6
        )
    assert prior[1, 2:].sum() == pytest.approx(0.98)


def test_q_of_n_has_the_prior_of_the_environment() -> None:
    run = known_run(objective="meanfield", guide=GuideConfig(prior_expert=True))
    coded = samples(environment=np.array([0, 1, 1, 0, 1, 0]), environment_names=NAMES)
    found = predict(run, fit_to_run(coded, run))["responsibilities"].to_numpy()
    _, batch = next(fit_to_run(coded, run).batches(6, run.model.mixture.component_loc))
    plain = dataclasses.replace(batch, environment=None)
    posterior = run.guide.encode(plain)
    log_r = log_responsibilities("meanfield", run.model, posterior, posterior.loc, plain)
    r = run.model.mixture.sum_to_cells(log_r.exp()).detach().numpy()
    joint = run.model.environments.log_joint(run.model.graph.conditional_log_tables())
    assert joint is not None
    prior = joint.exp().reshape(2, 4).detach().numpy()
    expected = r * prior[coded.environment] / prior[0]
    np.testing.assert_allclose(found, expected / expected.sum(1, keepdims=True), rtol=1e-5)


def test_environments_of_a_file_by_name(tmp_path: Path) -> None:
    run, path = known_run(), tmp_path / "new.nc"
    values = {"curve": (("sample", "strain"), 1 + np.random.default_rng(0).random((4, 4)), {"units": "MPa"})}
    coordinates = {"strain": ("strain", [0.0, 0.5, 1.0, 1.5], {"units": "mm"})}
    oven = ("sample", np.array(["hot", "usual", "cold", "hot"], dtype=object))
    xr.Dataset({**values, "oven": oven}, coordinates).to_netcdf(path, engine="h5netcdf")
    arguments = parse(["run", "--data", str(path), "--output", "out.nc", "--environment", "oven"])
    assert arguments.reading.environment == ("oven",)
    read = read_samples(run, path, arguments.reading)
    np.testing.assert_array_equal(read.environment, [1, 0, 0, 1])
    assert "environments that the run does not know are taken as without intervention: cold" in read.notes
    without = read_samples(run, path, ReadOptions())
    assert without.environment is None
    assert any(note.endswith("oven") for note in without.notes)
    assert read_samples(random_run(), path, arguments.reading).environment is None  # it tells none apart
