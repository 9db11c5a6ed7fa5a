"""Every fusion in training: with missing modalities under every objective, resumed, predicted from, or refused."""

from __future__ import annotations

import copy
import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from resumed_runs import whole_and_resumed
from tiny_fits import settings, tiny_samples

from causalpima.guides.fusion import FUSIONS
from causalpima.guides.graph import MixtureParameters
from causalpima.inference import result as fit_result
from causalpima.inference.analyses.embedding import (
    embedded_run,
    embedding_with_permuted,
    encode_modalities,
    kept_samples,
)
from causalpima.inference.analyses.predict import PredictionOptions, predict
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.command_line.svi_settings import source_of
from causalpima.inference.fit import fit
from causalpima.inference.run import Run
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.training.clustering import cell_responsibilities, embed
from causalpima.inference.training.fitted_run import load_run

pytestmark = pytest.mark.filterwarnings("ignore:The fit collapsed")  # in so few steps on 41 samples
OTHERS = [name for name in FUSIONS if name != "poe"]


@pytest.fixture(autouse=True)
def _no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_result, "write_figures", lambda *_, **__: [])


def only(data: Any, name: str) -> Any:
    """The same samples as if none had another modality."""
    present = {m: mask & (m == name) for m, mask in data.present.items()}
    return dataclasses.replace(data, present=present)


@pytest.mark.parametrize("objective", ["collapsed", "meanfield", "paper"])
@pytest.mark.parametrize("fusion", OTHERS)
def test_missing_modalities_under_every_objective(fusion: str, objective: str) -> None:
    changes = {"guide__fusion": fusion, "objective": objective, "pretraining__epochs": 10}
    result = fit(tiny_samples(missing=True), config=settings(**changes))
    arrays = result.arrays
    assert arrays is not None
    assert result.status != "diverged"
    assert np.isfinite(arrays.responsibilities).all()
    assert np.isfinite(arrays.latent_loc).all()
    assert (arrays.latent_scale > 0).all()
    assert np.isfinite(arrays.draws.log_weight).all()
    assert [record["objective"] for record in arrays.history if record["phase"] == "training"][-1] < np.inf


@pytest.mark.parametrize("fusion", ["moe", "mopoe"])
def test_mixtures_reach_the_pass_over_the_data(fusion: str) -> None:
    run = Run(tiny_samples(missing=True), settings(guide__fusion=fusion))
    run.train()
    found = embed(run.state, run.tensors)
    assert isinstance(found, MixtureParameters)
    n_parts = 2 if fusion == "moe" else 3
    assert found.locs.shape == (41, n_parts, 2)
    shares = found.log_weights.exp()
    torch.testing.assert_close(shares.sum(-1), torch.ones_like(shares[:, 0]))
    assert (shares[3:, 0] == 1).all(), "samples with the spectrum alone have one Gaussian"
    assert shares[2].tolist() == pytest.approx([1 / n_parts] * n_parts)
    r = cell_responsibilities(run.state, run.tensors, run.config)
    torch.testing.assert_close(r.sum(-1), torch.ones_like(r[:, 0]))


@pytest.mark.parametrize("fusion", OTHERS)
def test_a_stopped_run_goes_on_exactly(fusion: str, tmp_path: Path) -> None:
    whole_and_resumed(tiny_samples(missing=True), settings(guide__fusion=fusion), 2, tmp_path / "run")


@pytest.mark.parametrize("fusion", ["moe", "mopoe"])
def test_one_modality_is_the_product_to_the_last_digit(fusion: str) -> None:
    data = tiny_samples()
    one = dataclasses.replace(
        data,
        modalities={"spectrum": data.modalities["spectrum"]},
        present={"spectrum": data.present["spectrum"]},
        kinds={"spectrum": "vector"},
    )
    entry = {"spectrum": settings().modality["spectrum"]}
    runs = [Run(one, settings(guide__fusion=name, modality=entry)) for name in (fusion, "poe")]
    for run in runs:
        run.train()
    found, product = (run.state.weights() for run in runs)
    assert all(torch.equal(found[name], value) for name, value in product.items())


@pytest.mark.parametrize("fusion", OTHERS)
def test_predictions_of_one_modality_and_of_none(fusion: str, tmp_path: Path) -> None:
    """A sample without any modality has what is true of all, given the prior expert."""
    config = settings(guide__fusion=fusion, guide__prior_expert=True, pretraining__epochs=10)
    fit(tiny_samples(missing=True), config=config, output_dir=tmp_path / "run")
    fitted = load_run(tmp_path / "run")
    samples = fit_to_run(only(tiny_samples(missing=True), "curve"), fitted)
    found = predict(fitted, samples, PredictionOptions(20))
    assert np.isfinite(found.spectrum_mean).all()
    assert np.isfinite(found.log_likelihood[:3]).all()
    assert np.isnan(found.log_likelihood[3:]).all()
    assert np.ptp(found.latent_loc[3:].to_numpy(), axis=0) == pytest.approx(0, abs=1e-6)
    unprepared = [note for note in samples.notes if "neither by distillation" in note]
    assert bool(unprepared) is (fusion == "concat")


@pytest.mark.parametrize("fusion", ["moe", "concat"])
def test_controls_fuse_as_the_run_does(fusion: str, tmp_path: Path) -> None:
    """Without a permutation, experts fused again are where the run has the samples."""
    data, config = tiny_samples(missing=True), settings(guide__fusion=fusion, pretraining__epochs=10)
    result = fit(data, config=config, output_dir=tmp_path / "run")
    fitted, posterior = load_run(tmp_path / "run"), read_posterior(tmp_path / "run" / "posterior.nc")
    experts = encode_modalities(fitted, data, kept_samples(posterior))
    fusion_of_run = copy.deepcopy(fitted.guide.fusion).double()
    run = embedded_run(posterior, result.summary, config, data, experts, fusion_of_run)
    assert embedding_with_permuted(run, (), None) == pytest.approx(run.loc, abs=1e-5)


def test_concatenated_encodings_are_distilled(tmp_path: Path) -> None:
    config = settings(guide__fusion="concat", distillation__epochs=3)
    run = Run(tiny_samples(), config)
    run.train()
    losses = [record["objective"] for record in run.state.history if record["phase"] == "distillation"]
    assert losses[-1] > losses[0]
    assert run.state.guide.unimodal


@pytest.mark.parametrize(
    ("changes", "match"),
    [
        ({"guide__fusion": "moe", "distillation__epochs": 2}, "distillation.epochs: expected 0 with guide.fusion moe"),
        ({"guide__fusion": "mopoe", "distillation__epochs": 2}, "a mixture trains every encoder to be right alone"),
        ({"guide__fusion": "moe", "mask": {"spectrum": ["A"], "curve": ["B"]}}, "guide.fusion: expected poe with a ma"),
        ({"guide__fusion": "concat", "mask": {"spectrum": ["A"], "curve": ["B"]}}, "nothing is fused; leave this out"),
        ({"guide__fusion": "mixture"}, "guide.fusion: expected one of poe, moe, mopoe, concat"),
    ],
)
def test_what_is_refused(changes: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        settings(**changes)


@pytest.mark.parametrize("of_file", [True, False])
def test_defaults_distil_nothing_into_mixtures(of_file: bool) -> None:
    def epochs(fusion: str) -> int:
        given = {"guide": {"fusion": fusion}} if of_file else {"guide.fusion": fusion}
        source = source_of({"dataset": "resin_coupons", **given})
        assert source is not None
        return source.experiment.config.distillation.epochs

    assert [epochs(name) for name in ("poe", "concat", "moe", "mopoe")] == [20, 20, 0, 0]
