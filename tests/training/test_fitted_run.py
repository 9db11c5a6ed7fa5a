from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.result import rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.checkpoint import load_checkpoint, save_checkpoint
from causalpima.inference.training.config import FitConfig, from_plain
from causalpima.inference.training.fitted_run import load_run
from causalpima.inference.training.prepared_run import RunDescription
from causalpima.models.decoders.physics.law import PhysicsLaw
from causalpima.models.decoders.physics.laws import load_law

pytestmark = pytest.mark.float32


def with_covariates() -> MultimodalData:
    data = tiny_samples(80)
    codes = {"plate": np.arange(80) % 2, "batch": np.arange(80) % 3}
    return dataclasses.replace(data, covariates=codes, covariate_levels={"plate": ("p", "q"), "batch": ("a", "b", "c")})


CASES: dict[str, tuple[MultimodalData, dict[str, Any]]] = {
    "plain": (tiny_samples(80), {}),
    "missing, distilled": (
        tiny_samples(80, missing=True),
        {"distillation__epochs": 1, "guide__prior_expert": True},
    ),
    "heads": (tiny_samples(80), {"decoder__per_cell": True, "objective": "meanfield"}),
    "one Gaussian": (tiny_samples(80), {"mixture__gaussians": "one", "model__covariance": "diagonal"}),
    "weights": (tiny_samples(80), {"model__likelihood_scaling": "dimension"}),
    "Student": (tiny_samples(80), {"decoder__likelihood": "student_t"}),
    "covariates": (with_covariates(), {}),
}


def finished(data: MultimodalData, config: FitConfig, decoders: dict[str, PhysicsLaw] | None = None) -> Run:
    run = Run(data, config, decoders=decoders)
    run.train()
    return run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "run"


def save(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.result.write_figures", lambda *_, **__: {})
    monkeypatch.setattr("causalpima.inference.result.write_report", lambda *_: None)
    run.finish().save(folder)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_loaded_run_is_the_one_that_was_saved(case: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, changes = CASES[case]
    run = finished(data, settings(**changes))
    save(run, folder, monkeypatch)
    loaded = load_run(folder)
    for loaded_part, part in ((loaded.model, run.state.model), (loaded.guide, run.state.guide)):
        expected = part.state_dict()
        assert loaded_part.state_dict().keys() == expected.keys()
        assert all(torch.equal(value, expected[name]) for name, value in loaded_part.state_dict().items())
    assert loaded.config == run.config
    assert list(loaded.config.nodes) == list(run.config.nodes)
    assert loaded.model.weights == run.state.model.weights
    assert loaded.model.node_names == run.state.model.node_names
    batch = next(run.tensors.batches(64))
    for mine, other in zip(loaded.guide.encode(batch), run.state.guide.encode(batch), strict=True):
        assert torch.equal(mine, other)
    assert not any(parameter.requires_grad for parameter in loaded.model.parameters())


def test_description_comes_back_whole() -> None:
    entries = settings().modality
    logarithmic = dataclasses.replace(entries["curve"], transform="asinh")
    config = settings(modality={**entries, "curve": logarithmic})
    run = Run(with_covariates(), config)
    described = run._described()
    with_dtype = RunDescription.from_plain(described.to_plain())
    assert with_dtype.config == described.config
    assert with_dtype.covariate_levels == {"plate": ("p", "q"), "batch": ("a", "b", "c")}
    for name, modality in described.modalities.items():
        for entry in dataclasses.fields(modality):
            mine, other = getattr(with_dtype.modalities[name], entry.name), getattr(modality, entry.name)
            assert torch.equal(mine, other) if isinstance(other, torch.Tensor) else mine == other


def test_result_in_memory_is_rebuilt_too() -> None:
    run = finished(tiny_samples(80), settings())
    rebuilt = rebuild_result(run.finish())
    assert all(
        torch.equal(value, rebuilt.model.state_dict()[name]) for name, value in run.state.model.state_dict().items()
    )


def test_objects_are_asked_for_again(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    law = load_law("linear")
    save(finished(tiny_samples(80), settings(), {"curve": law}), folder, monkeypatch)
    with pytest.raises(ValueError, match=r"decoders: expected the object of class Linear .* 'curve' .* got none"):
        load_run(folder)
    with pytest.raises(ValueError, match="decoders: expected none for 'spectrum'"):
        load_run(folder, {"curve": law, "spectrum": law})
    assert load_run(folder, {"curve": law}).model.decoders["curve"].depends_on_cell


def test_what_is_no_finished_run_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError, match=r"expected a run folder"):
        load_run(folder)
    run = Run(tiny_samples(80), settings())
    RunFolder(folder).create(run.config.to_dict())
    with pytest.raises(ValueError, match=r"expected a finished run, .* --resume"):
        load_run(folder)
    RunFolder(folder).write_summary({"status": "diverged", "dataset": "d", "nodes": {}, "modalities": {}})
    with pytest.raises(ValueError, match=r"got one that diverged"):
        load_run(folder)


def test_runs_of_older_and_newer_programs_are_told(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = finished(tiny_samples(80), settings())
    save(run, folder, monkeypatch)
    final = RunFolder(folder).final
    saved = load_checkpoint(final)
    for state, words in (
        ({"summary_status": "ok"}, "one of an older version of this program; fit again"),
        ({"description": {**saved.state["description"], "version": 99}}, "expected a description of version 1, got 99"),
    ):
        save_checkpoint(final, saved.epoch, saved.weights, state, "", keep=1)
        with pytest.raises(ValueError, match=words):
            load_run(folder)
    save_checkpoint(final, saved.epoch, {"model.x": torch.zeros(1)}, saved.state, "", keep=1)
    with pytest.raises(ValueError, match="expected the weights of the model that it describes"):
        load_run(folder)


def test_settings_that_the_program_does_not_know_are_refused() -> None:
    plain = settings().to_dict()
    assert from_plain(FitConfig, plain) == settings()
    with pytest.raises(ValueError, match=r"ModelConfig: expected settings prior, .* got colour"):
        from_plain(FitConfig, {**plain, "model": {"colour": 1}})
