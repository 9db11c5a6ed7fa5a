"""A run: alone in its process or not, resumed, diverged, and refused."""

from __future__ import annotations

import dataclasses
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyro
import pytest
import torch
from test_surroundings import of_the_caller, strange_caller
from tiny_fits import settings, tiny_samples

from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training import loop as epochs
from causalpima.inference.training.checkpoint import CheckpointError, load_checkpoint, save_checkpoint
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.state import TrainingState
from causalpima.models.graph.hodge import HodgeGraph


def fitted(config: FitConfig, data: MultimodalData | None = None) -> FitResult:
    run = Run(data or tiny_samples(), config)
    run.train()
    return run.finish()


def same(one: FitResult, other: FitResult) -> bool:
    """Bit for bit, up to the time that it took."""
    assert one.arrays is not None
    assert other.arrays is not None
    equal = all(torch.equal(value, other.weights[name]) for name, value in one.weights.items())
    draws = np.array_equal(one.arrays.draws.log_weight, other.arrays.draws.log_weight)
    responsibilities = np.array_equal(one.arrays.responsibilities, other.arrays.responsibilities)
    histories = [[{**record, "seconds": 0} for record in result.history] for result in (one, other)]
    return equal and draws and responsibilities and histories[0] == histories[1]


def test_fits_in_one_process_know_nothing_of_each_other() -> None:
    first = fitted(settings())
    assert not same(first, fitted(settings(seed=1)))
    pyro.param("encoder", torch.tensor(2.0))
    assert same(first, fitted(settings()))


def test_two_runs_may_take_turns() -> None:
    alone = fitted(settings())
    one, other = Run(tiny_samples(), settings()), Run(tiny_samples(), settings(seed=1))
    for epoch in (1, 2, 3):
        other.train(epoch)
        one.train(epoch)
    other.finish()
    assert same(one.finish(), alone)


def test_the_caller_is_left_alone() -> None:
    with strange_caller():
        before = of_the_caller()
        fitted(settings())
        assert of_the_caller() == before


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_precision_of_the_caller_does_not_matter(dtype: torch.dtype) -> None:
    expected = fitted(settings())
    before = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    with torch.inference_mode():
        found = fitted(settings())
    assert torch.get_default_dtype() == dtype
    torch.set_default_dtype(before)
    assert same(found, expected)


def test_an_interrupted_run_leaves_the_caller_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    run = Run(tiny_samples(), settings())
    before = of_the_caller()
    monkeypatch.setattr(epochs, "_observe", interrupt)
    with pytest.raises(KeyboardInterrupt):
        run.train()
    assert of_the_caller() == before


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
def test_resumed_in_python(tmp_path: Path, stop: int) -> None:
    folder = RunFolder(tmp_path)
    Run(tiny_samples(), settings()).train(stop, folder)
    run = Run(tiny_samples(), settings())
    checkpoint = run.restore(folder)
    assert (checkpoint.epoch, checkpoint.warning) == (stop, None)
    run.train(folder=folder)
    assert same(run.finish(), fitted(settings()))


def test_metrics_that_a_kill_kept_behind_the_last_checkpoint_catch_up(tmp_path: Path) -> None:
    run, folder = Run(tiny_samples(), settings()), RunFolder(tmp_path)
    run.train(1, folder)
    behind = folder.metrics.read_bytes()
    run.train(folder=folder)
    whole = folder.metrics.read_bytes()
    folder.metrics.write_bytes(behind)
    resumed = Run(tiny_samples(), settings())
    resumed.restore(folder)
    resumed.train(folder=folder)
    assert folder.metrics.read_bytes() == whole


def test_metrics_are_written_with_every_checkpoint(tmp_path: Path) -> None:
    run, folder = Run(tiny_samples(), settings()), RunFolder(tmp_path)
    for epoch in (0, 1, 3):
        run.train(epoch, folder)
        lines = folder.metrics.read_text().splitlines()
        assert [json.loads(line)["epoch"] for line in lines] == list(range(1, epoch + 1))


@pytest.mark.parametrize(
    ("data", "config", "message"),
    [
        (tiny_samples(), settings(seed=1), "is of another configuration"),
        (tiny_samples(), settings(training__epochs=3), "is of another configuration"),
        (tiny_samples(seed=1), settings(), "was fitted to, got other values of"),
        (tiny_samples(42), settings(), "was fitted to, got 42 samples"),
        (tiny_samples(missing=True), settings(), "was fitted to, got other values of"),
    ],
)
def test_other_settings_or_data_are_not_resumed(
    tmp_path: Path, data: MultimodalData, config: FitConfig, message: str
) -> None:
    folder = RunFolder(tmp_path)
    Run(tiny_samples(), settings()).train(1, folder)
    with pytest.raises(ValueError, match=message):
        Run(data, config).restore(folder)


def test_weights_of_another_program_are_not_resumed(tmp_path: Path) -> None:
    run = Run(tiny_samples(), settings())
    run.train(1, RunFolder(tmp_path))
    saved = load_checkpoint(tmp_path / "checkpoint", run.fingerprint)
    others = {name: value for name, value in saved.weights.items() if "node_score" not in name}
    save_checkpoint(tmp_path / "checkpoint", 2, others, saved.state, run.fingerprint)
    with pytest.raises(
        CheckpointError, match="expected the weights of this model, got others; it was written by another"
    ):
        run.restore(RunFolder(tmp_path))


# What is not finite, and where it is noticed.
def at_once(run: Run) -> None:
    next(iter(run.state.guide.parameters())).data[0] = float("inf")


def in_a_decoder(run: Run) -> None:
    in_a_decoder_of(run.state)


def in_a_decoder_of(state: TrainingState) -> None:
    state.decoders["curve"].head.bias.data[0] = float("nan")  # type: ignore[union-attr, operator]


def in_the_graph(run: Run) -> None:
    assert isinstance(run.state.model.graph, HodgeGraph)
    run.state.model.graph.conditional_logits.data[0] = float("nan")


@pytest.mark.parametrize("stop", [0, 1, 2, 3])
@pytest.mark.parametrize("damage", [at_once, in_a_decoder, in_the_graph])
def test_what_is_not_finite_is_a_diverged_fit(tmp_path: Path, stop: int, damage: Any) -> None:
    run, folder = Run(tiny_samples(), settings(read_out__final=False)), RunFolder(tmp_path)
    run.train(stop, folder)
    damage(run)
    run.state.best_weights = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        run.train(folder=folder)
        result = run.finish()
    assert result.status == "diverged"
    assert result.arrays is None
    assert result.summary["reason"].startswith("the ")
    assert not {"objective", "clusters", "graph", "evaluation", "held_out_log_likelihood"} & set(result.summary)
    assert load_checkpoint(folder.checkpoints, run.fingerprint).epoch == run.state.epoch
    with pytest.raises(ValueError, match=r"^the fit diverged \(the .*\); there is no result to show$"):
        result.responsibilities()


def test_weights_that_the_last_step_makes_infinite(monkeypatch: pytest.MonkeyPatch) -> None:
    def update(state: TrainingState, *_: object) -> list[int]:
        in_a_decoder_of(state)
        return []

    monkeypatch.setattr(epochs, "update_mixture", update)
    config = settings(pretraining__kind="none", training__epochs=1, training__validation_fraction=0.0)
    reason = fitted(config).summary["reason"]
    assert reason == "the weight model.decoders.curve.head.bias is nan, in epoch 1"


def test_a_step_that_is_far_too_long_diverges() -> None:
    result = fitted(settings(training__learning_rate=1e20))
    assert result.status == "diverged"
    assert "in epoch 1" in result.summary["reason"]


def test_a_matrix_that_cannot_be_decomposed_is_a_diverged_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    def singular(*_: object) -> list[int]:
        torch.linalg.cholesky(-torch.eye(2))
        return []

    monkeypatch.setattr(epochs, "update_mixture", singular)
    result = fitted(settings())
    assert result.summary["reason"] == "the covariance of a cluster is not positive definite, in epoch 2"


def test_samples_that_are_all_alike_collapse() -> None:
    data = tiny_samples(40)
    two = {name: values[[0, 1]].repeat(20, axis=0) for name, values in data.modalities.items()}
    config = settings(nodes={"A": 2, "B": 3}, objective="meanfield")
    result = fitted(config, dataclasses.replace(data, modalities=two))
    assert result.status == "collapsed"
    assert result.summary["clusters"]["n_occupied"] <= 2
    assert result.arrays is not None


@pytest.mark.parametrize("missing", [False, True])
def test_rehearsing_tells_nothing_to_the_caller(missing: bool) -> None:
    run = Run(tiny_samples(missing=missing), settings())
    before = of_the_caller()
    run.rehearse(2)
    assert of_the_caller() == before


@pytest.mark.parametrize(
    ("changes", "n"),
    [
        ({"training__batch_size": 2**31 - 1}, 41),
        ({"training__validation_fraction": 0.0}, 4),
        ({"training__validation_fraction": 0.5, "nodes": {"N": 2}}, 4),
        ({"pretraining__epochs": 0}, 41),
        ({"training__epochs": 0}, 41),
        ({"pretraining__kind": "none", "training__epochs": 0}, 41),
        ({"training__epochs": 0, "read_out__final": False}, 41),
        ({"training__batch_size": 1, "pretraining__kind": "none", "training__epochs": 1}, 9),
        ({"mixture__updates_per_epoch": 99}, 41),
        ({"training__patience": 0, "graph__start_steps": 0, "graph__extra_steps": 0}, 41),
    ],
)
def test_extreme_but_possible(changes: dict[str, Any], n: int) -> None:
    result = fitted(settings(**changes), tiny_samples(n))
    assert result.status in ("ok", "collapsed")
    assert result.arrays is not None
    assert np.isfinite(result.arrays.responsibilities).all()
    json.dumps(result.summary, allow_nan=False)
