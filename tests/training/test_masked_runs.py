"""Whole runs under a mask: trained, resumed, loaded, predicted from, exported."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_run import same
from tiny_fits import settings, tiny_samples

from causalpima.inference.analyses.predict import read_samples
from causalpima.inference.analyses.predictive_moments import Noise, draw
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.objectives.responsibilities import log_responsibilities
from causalpima.inference.result import FitResult, rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.clustering import with_node_names
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.fitted_run import load_run
from causalpima.models.block_mixture import BlockMixture
from causalpima.models.decoders.physics.decoder import PhysicsDecoder

MASK = {"spectrum": ("A", "B"), "curve": ("B",)}

pytestmark = pytest.mark.float32


def samples(n: int = 80) -> MultimodalData:
    """As `tiny_samples`, but the curve tells two groups apart only, and some samples lack one or the other."""
    data = tiny_samples(n)
    curve = np.linspace(0, 1, 8) * (1.0 + 3 * (data.factors["cluster"] % 2))[:, None]
    noise = 0.1 * np.random.default_rng(1).standard_normal((n, 8))
    present = {name: np.ones(n, dtype=bool) for name in data.modalities}
    present["spectrum"][::7], present["curve"][3::5] = False, False
    present["curve"][::7] = True
    values = {"spectrum": data.modalities["spectrum"], "curve": (curve + noise).astype(np.float32)}
    kept = {name: np.where(present[name][:, None], value, 0).astype(np.float32) for name, value in values.items()}
    return dataclasses.replace(data, modalities=kept, present=present)


def lacking(name: str, rows: slice) -> MultimodalData:
    """The samples, some of them without a modality."""
    data = samples()
    data.present[name][rows], data.modalities[name][rows] = False, 0
    return data


def configured(**changes: Any) -> FitConfig:
    return settings(mask=MASK, **changes)


def trained(config: FitConfig) -> FitResult:
    run = Run(samples(), config)
    run.train()
    return run.finish()


@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
@pytest.mark.parametrize(
    "changes", [{}, {"model__covariance": "diagonal", "decoder__per_cell": True}], ids=["shared", "per level"]
)
def test_every_objective_runs_and_its_predictions_agree_with_it(objective: str, changes: dict[str, Any]) -> None:
    result = trained(configured(objective=objective, **changes))
    assert result.arrays is not None
    assert result.arrays.latent_loc.shape == (80, 4)
    assert np.isfinite(result.arrays.latent_loc).all()
    assert (result.arrays.latent_scale > 0).all()
    fitted = rebuild_result(result)
    assert isinstance(fitted.model.mixture, BlockMixture)
    found = result.predict(samples(), draws=2000)
    with torch.no_grad():
        _, batch = next(read_samples(fitted, samples()).batches(80, fitted.model.mixture.component_loc))
        drawn = draw(fitted, batch, Noise.make(500, fitted.model))
    error = drawn.cell_probability.std(0).numpy() * np.sqrt(1 / 64 + 1 / 2000)
    difference = np.abs(found.responsibilities.to_numpy() - result.responsibilities().to_numpy())
    assert (difference < 5 * error + 1e-4).all()
    assert np.isfinite(found.curve_mean).all()
    assert np.isfinite(found.log_likelihood).all()


def test_the_curve_says_nothing_of_what_it_does_not_see() -> None:
    """Samples with a curve alone: p(A | B, X) is p(A | B), whatever the curve."""
    result = trained(configured())
    fitted = rebuild_result(result)
    alone = lacking("spectrum", slice(None))
    with torch.no_grad():
        _, batch = next(read_samples(fitted, alone).batches(80, fitted.model.mixture.component_loc))
        rows = batch.has("curve")
        q = fitted.guide.encode(batch)
        r = log_responsibilities("collapsed", fitted.model, q, q.loc, batch).exp().reshape(-1, 2, 2)[rows]
        joint = fitted.model.graph.log_joint().exp()
    torch.testing.assert_close(r, (joint / joint.sum(0)) * r.sum(1, keepdim=True), atol=1e-4, rtol=1e-3)
    assert float(r.sum(1)[:, 0].std()) > 0.1, "of B it does say something"


def test_an_absent_modality_is_predicted_through_the_nodes() -> None:
    """E[X_m | x] = Σ_c q(c | x) E[X_m | c]: by many draws of z from the prior of every level."""
    result = trained(configured(training__epochs=10, pretraining__epochs=10))
    fitted = rebuild_result(result)
    data, n_draws = lacking("curve", slice(None)), 4000
    found = result.predict(data, draws=n_draws)
    mixture = fitted.model.mixture
    assert isinstance(mixture, BlockMixture)
    torch.manual_seed(1)
    with torch.no_grad():
        cells = torch.arange(4).expand(2000, 4)
        z = mixture.component(cells).sample()
        decoded = fitted.model.decode("curve", z, cells).mean
        curves = fitted.modalities["curve"].standardisation.invert(decoded).numpy()
    r = found.responsibilities.to_numpy()
    expected = r @ curves.mean(0)
    within = np.sqrt(r @ (curves.var(0) + curves.mean(0) ** 2) - expected**2)
    error = within * np.sqrt(1 / n_draws + 1 / 2000)
    # All samples share their draws: the largest deviation of 80 x 8 is that of a few independent numbers.
    assert (np.abs(found.curve_mean.to_numpy() - expected) < 5 * error + 1e-3).all()
    assert np.isnan(found.curve_log_likelihood).all()
    absent = found.latent_loc.to_numpy()[:, 2:]
    np.testing.assert_allclose(absent, r @ mixture.component_loc[:, 2:].numpy(), atol=1e-3)


def test_a_new_sample_may_lack_everything() -> None:
    """Then N has its prior, and every modality its marginal."""
    result = trained(configured())
    data = lacking("spectrum", slice(2))
    data.present["curve"][:2], data.modalities["curve"][:2] = False, 0
    found = result.predict(data)
    prior = np.exp(rebuild_result(result).model.graph.log_joint().flatten().numpy())
    np.testing.assert_allclose(found.responsibilities.to_numpy()[:2], [prior, prior], atol=1e-5)
    assert np.isnan(found.log_likelihood.to_numpy()[:2]).all()
    assert np.isfinite(found.spectrum_mean.to_numpy()).all()


def test_a_run_goes_on_where_it_stopped(tmp_path: Path) -> None:
    whole = trained(configured())
    folder = RunFolder(tmp_path / "run")
    first = Run(samples(), configured())
    folder.create(first.config.to_dict())
    first.train(2, folder)
    second = Run(samples(), configured())
    second.restore(folder)
    second.train(folder=folder)
    assert same(second.finish(), whole)


def test_a_run_is_written_loaded_and_read(tmp_path: Path) -> None:
    result = trained(configured())
    result.save(tmp_path / "run")
    fitted = load_run(tmp_path / "run")
    assert fitted.config.mask == MASK
    value = torch.randn(5, 4)
    assert torch.equal(fitted.model.mixture.log_density(value), rebuild_result(result).model.mixture.log_density(value))
    tree = read_posterior(tmp_path / "run" / "posterior.nc")
    posterior = tree["posterior"].dataset
    assert posterior.sizes["latent"] == 4
    assert all(np.isfinite(values.to_numpy()).all() for values in posterior.data_vars.values())
    assert (tmp_path / "run" / "figures" / "latent_clusters.png").exists()


def law_run(**changes: Any) -> FitResult:
    config = configured(**changes)
    curve = config.modality["curve"]
    decoder = dataclasses.replace(curve.decoder, kind="linear")
    modality = {**config.modality, "curve": dataclasses.replace(curve, decoder=decoder)}
    return trained(dataclasses.replace(config, modality=modality))


def test_a_physics_law_has_parameters_per_level() -> None:
    result = law_run(training__epochs=10, pretraining__epochs=10)
    decoder = rebuild_result(result).model.decoders["curve"]
    assert isinstance(decoder, PhysicsDecoder)
    assert decoder.table.shape[0] == 2
    assert result.arrays is not None
    physics = result.arrays.modalities["curve"].physics
    assert physics is not None
    assert physics.value.shape[0] == 4
    # Cells 0 and 2 (1 and 3) differ in A alone, which the curve does not see.
    np.testing.assert_array_equal(physics.value[[0, 1]], physics.value[[2, 3]])
    np.testing.assert_array_equal(physics.effective_samples[[0, 1]], physics.effective_samples[[2, 3]])


def test_cells_keep_their_numbers_as_the_mask_allows() -> None:
    """The final read-out is one of the mask: decoded curves do not depend on A."""
    result = trained(configured(training__epochs=5))
    assert result.arrays is not None
    decoded = result.arrays.modalities["curve"].decoded
    np.testing.assert_array_equal(decoded[[0, 1]], decoded[[2, 3]])
    spectrum = result.arrays.modalities["spectrum"].decoded
    assert np.abs(spectrum[0] - spectrum[2]).max() > 0


def test_nodes_with_other_names_are_seen_by_the_same_modalities() -> None:
    renamed = with_node_names(configured(), ("shape", "hue"))
    assert renamed.mask == {"spectrum": ("shape", "hue"), "curve": ("hue",)}
    assert renamed.visible == configured().visible
