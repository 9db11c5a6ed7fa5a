"""Whole trainings of several starts as one computation: what they leave, going on, divergence, early stopping."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference import starts as batched_train
from causalpima.inference.run import Run
from causalpima.inference.starts import train_batched
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.batched import Noise, batched_support, seed_of_order
from causalpima.inference.training.config import DecoderConfig, EncoderConfig
from causalpima.inference.training.loop import is_finished


def make_runs(restarts: Sequence[int] = (0, 1, 2), **changes: Any) -> list[Run]:
    return [Run(tiny_samples(), settings(restart=k, **changes)) for k in restarts]


def make_folders(path: Path, n: int = 3) -> list[RunFolder]:
    return [RunFolder(path / "restarts" / str(k)) for k in range(n)]


def assert_equal_weights(one: Run, other: Run, tolerance: float = 0.0) -> None:
    ours, theirs = one.weights(), other.weights()
    assert list(ours) == list(theirs)
    for name, value in ours.items():
        told = f"{name} differs"
        torch.testing.assert_close(value, theirs[name], rtol=tolerance, atol=tolerance, msg=told)


def test_every_start_is_left_as_its_own_training_would_leave_it() -> None:
    runs, (alone,) = make_runs(), make_runs((0,))
    steps: list[int] = []
    train_batched(runs, stepped=steps.append)
    alone.train()
    assert sum(steps) == 3 * 3 * -(-runs[0].task.training.n_samples // 16)
    for run in runs:
        assert run.is_finished
        assert run.state.clustered
        assert [list(record) for record in run.state.history] == [list(record) for record in alone.state.history]
        ours, theirs = run.state.scalars(), alone.state.scalars()
        assert ours["optimizer"]["param_groups"] == theirs["optimizer"]["param_groups"]
        steps_of = [{k: float(v["step"]) for k, v in s["optimizer"]["state"].items()} for s in (ours, theirs)]
        assert steps_of[0] == steps_of[1], "as many steps of Adam for every parameter"
    storages = {p.untyped_storage().data_ptr() for run in runs for p in run.state.modules.parameters()}
    assert len(storages) == 3 * len(list(runs[0].state.modules.parameters())), "memory of their own"
    assert all(run.finish().arrays is not None for run in runs)
    losses = {run.state.history[-1]["objective"] for run in runs}
    assert len(losses) == 3, "starts differ"


def test_the_caller_s_generator_is_not_touched() -> None:
    torch.manual_seed(3)
    before = torch.get_rng_state()
    train_batched(make_runs(), until=2)
    assert torch.equal(torch.get_rng_state(), before)


def test_the_same_seeds_give_the_same_starts_whatever_the_others_are() -> None:
    one, same, others = make_runs((0, 1)), make_runs((0, 1)), make_runs((1, 4, 5))
    for runs in (one, same, others):
        train_batched(runs, until=1)
    for ours, theirs in zip(one, same, strict=True):
        assert_equal_weights(ours, theirs)
    assert_equal_weights(one[1], others[0], tolerance=1e-4)
    with pytest.raises(AssertionError):
        assert_equal_weights(one[1], others[1], tolerance=1e-4)


def test_noise_is_each_start_s_own_and_anew_in_every_epoch() -> None:
    configs = [run.config for run in make_runs()]
    like = torch.zeros(())
    draws = [Noise(configs, epoch, like).normal(4, 2) for epoch in (0, 1, 0)]
    assert torch.equal(draws[0], draws[2])
    assert torch.equal(Noise(configs[1:2], 0, like).normal(4, 2)[0], draws[0][1])
    assert len(torch.unique(torch.cat(draws[:2]))) == 2 * 3 * 8
    assert len({seed_of_order(configs[0], epoch) for epoch in range(9)}) == 9
    assert seed_of_order(configs[0], 4) == seed_of_order(configs[1], 4)


@pytest.mark.parametrize("stops", [(0, 1, 2, 3), (2,)])
def test_starts_go_on_exactly_where_they_were_stopped(tmp_path: Path, stops: Sequence[int]) -> None:
    whole, folders = make_runs(), make_folders(tmp_path)
    train_batched(whole)
    for stop in stops:
        runs = make_runs()
        for run, folder in zip(runs, folders, strict=True):
            if folder.metrics.exists():
                run.restore(folder)
        train_batched(runs, folders, until=stop)
        assert [run.state.epoch for run in runs] == [stop] * 3
    runs = make_runs()
    for run, folder in zip(runs, folders, strict=True):
        run.restore(folder)
    train_batched(runs, folders)
    for ours, theirs in zip(runs, whole, strict=True):
        assert_equal_weights(ours, theirs)
        results = ours.finish().arrays, theirs.finish().arrays
        assert results[0] is not None
        assert results[1] is not None
        np.testing.assert_array_equal(results[0].responsibilities, results[1].responsibilities)
    lines = folders[1].metrics.read_text().splitlines()
    assert len(lines) == 3


def test_a_start_that_is_behind_catches_up(tmp_path: Path) -> None:
    whole, folders = make_runs(), make_folders(tmp_path)
    train_batched(whole, folders)
    newest = max(folders[1].checkpoints.glob("epoch-*"))
    shutil.rmtree(newest)
    runs = make_runs()
    for run, folder in zip(runs, folders, strict=True):
        run.restore(folder)
    assert [run.state.epoch for run in runs] == [3, 2, 3]
    train_batched(runs, folders)
    for ours, theirs in zip(runs, whole, strict=True):
        assert_equal_weights(ours, theirs, tolerance=1e-3)


@pytest.mark.parametrize("until", [0, 1])
def test_one_start_that_diverges_does_no_harm_to_the_others(until: int) -> None:
    runs, others = make_runs(), make_runs()
    for group in (runs, others):
        train_batched(group, until=until)
    poisoned = next(iter(runs[1].state.guide.parameters()))
    poisoned.data[0] = float("nan")
    before = runs[1].weights()
    train_batched(runs)
    train_batched(others)
    place = "objective" if until == 0 else "embedding"
    assert runs[1].state.diverged is not None
    assert runs[1].state.diverged.startswith(f"the {place} is n")
    assert runs[1].state.diverged.endswith(f"in epoch {until + 1}")
    for name, value in runs[1].weights().items():
        torch.testing.assert_close(value, before[name], rtol=0, atol=0, equal_nan=True)
    assert runs[1].finish().summary["status"] == "diverged"
    for k in (0, 2):
        assert runs[k].is_finished
        assert_equal_weights(runs[k], others[k], tolerance=1e-3)
        assert runs[k].finish().arrays is not None


def test_all_starts_may_diverge() -> None:
    runs = make_runs()
    for run in runs:
        next(iter(run.state.guide.parameters())).data[0] = float("nan")
    train_batched(runs)
    assert all(run.state.diverged is not None for run in runs)


def test_a_start_that_gets_no_better_stops_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = make_runs(training__epochs=5, training__patience=2)
    record_epoch = batched_train.record_epoch

    def record(state: Any, record: dict[str, Any], seconds: float) -> None:
        is_stalled = state is runs[1].state and state.epoch > 1
        objective = -1e9 - state.epoch if is_stalled else float(state.epoch)
        record_epoch(state, {**record, "validation_objective": objective}, seconds)

    monkeypatch.setattr(batched_train, "record_epoch", record)
    train_batched(runs)
    assert [run.state.epoch for run in runs] == [6, 4, 6]
    assert [run.state.best_epoch for run in runs] == [6, 2, 6]
    assert all(is_finished(run.state, run.config) for run in runs)


def test_distillation_follows_for_each(tmp_path: Path) -> None:
    runs, folders = make_runs(distillation__epochs=2), make_folders(tmp_path)
    train_batched(runs, folders)
    assert all(run.is_finished and run.state.distilled_epochs == 2 for run in runs)
    again = make_runs(distillation__epochs=2)
    for run, folder in zip(again, folders, strict=True):
        run.restore(folder)
    assert all(run.is_finished for run in again)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, None),
        ({"decoder__per_cell": True, "objective": "paper"}, None),
        ({"decoder__likelihood": "student_t"}, "spectrum has the likelihood student_t"),
        ({"guide__fusion": "concat"}, None),
        ({"model__graph": "exact"}, "the graph exact has tables in closed form"),
        ({"guide__fusion": "moe"}, "guide.fusion moe chooses a Gaussian for every draw"),
        ({"guide__fusion": "mopoe"}, "guide.fusion mopoe chooses a Gaussian for every draw"),
    ],
)
def test_what_is_batched(changes: dict[str, Any], reason: str | None) -> None:
    (run,) = make_runs((0,), **changes)
    found = batched_support(run.config, run.modalities)
    assert found is None if reason is None else reason in str(found)


@pytest.mark.parametrize(
    ("setting", "kind"),
    [("model.graph", "wide_chain"), ("model.prior", "WidePrior"), ("guide.fusion", "DoubledPrecision")],
)
def test_parts_of_ones_own_are_not_batched_because_they_are_that(setting: str, kind: str) -> None:
    """A graph that gradients learn has no tables in closed form, whoever wrote it."""
    name = f"own_components:{kind}"
    (run,) = make_runs((0,), **{setting.replace(".", "__"): name})
    expected = f"{setting} is {name}, of your own, which is not batched"
    assert batched_support(run.config, run.modalities) == expected


def test_what_is_not_batched_is_told_and_refused() -> None:
    (run,) = make_runs((0,))
    config, modalities = run.config, run.modalities
    entry = config.modality["curve"]
    replaced = {
        "encoder curve": replace(entry, encoder=EncoderConfig("curve", (4,))),
        "physics law linear": replace(entry, decoder=DecoderConfig("linear")),
        "decoder convolutional": replace(entry, decoder=DecoderConfig("convolutional", (4, 4, 4))),
    }
    for what, changed in replaced.items():
        modality = {**config.modality, "curve": changed}
        assert what in str(batched_support(settings(modality=modality), modalities))
    assert "decoder of your own" in str(batched_support(config, modalities, {"curve"}))
    with pytest.raises(ValueError, match=r"^runs: expected starts .* the likelihood student_t"):
        train_batched(make_runs(decoder__likelihood="student_t"))


@pytest.mark.parametrize("runs", [[], [{}, {}], [{}, {"restart": 1, "training__epochs": 3}]])
def test_starts_that_are_none_are_refused(runs: list[dict[str, Any]]) -> None:
    with pytest.raises(ValueError, match=r"^runs: expected several starts"):
        train_batched([Run(tiny_samples(), settings(**changes)) for changes in runs])
