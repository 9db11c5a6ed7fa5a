"""Unimodal encoders taught by the fused posterior: the loss, what moves, what stays, resumption, early stopping."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from test_loop import with_objectives
from test_run import fitted, same
from tiny_fits import settings, tiny_samples
from torch.distributions import Independent, Normal, kl_divergence

from causalpima.guides.encoders import GaussianParameters
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.loop import distillation_loss, divergence, evaluate
from causalpima.models.batch import Batch


def gaussian(parameters: GaussianParameters) -> Independent:
    return Independent(Normal(parameters.loc, parameters.scale), 1)


def test_divergence_is_that_of_torch() -> None:
    q, p = (GaussianParameters(torch.randn(6, 3), torch.randn(6, 3)) for _ in range(2))
    torch.testing.assert_close(divergence(q, p), kl_divergence(gaussian(q), gaussian(p)))
    assert not torch.allclose(divergence(q, p), divergence(p, q))
    torch.testing.assert_close(divergence(q, q), torch.zeros(6))


def some_missing(gaps: bool = False, n: int = 41) -> MultimodalData:
    """A fifth of the samples lacks the spectrum, another fifth the curve."""
    data = tiny_samples(n, gaps=gaps)
    data.present["spectrum"][::5] = data.present["curve"][1::5] = False
    for name in data.modalities:
        data.modalities[name][~data.present[name]] = 0
        if name in data.observed:
            data.observed[name][~data.present[name]] = False
    return data


def distilling(data: MultimodalData | None = None, **changes: Any) -> Run:
    return Run(data or some_missing(), settings(**{"distillation__epochs": 2, **changes}))


def whole(run: Run) -> Batch:
    return run.task.training.batch(torch.arange(run.task.training.n_samples))


@pytest.mark.parametrize("gaps", [False, True])
def test_loss_is_the_divergence_from_the_fused_posterior_where_there_are_several(gaps: bool) -> None:
    run = distilling(some_missing(gaps))
    run.train()
    batch, guide = whole(run), run.state.guide
    present: Any = batch.present
    rows = torch.nonzero(present["spectrum"] & present["curve"]).squeeze(-1)
    assert 0 < len(rows) < len(batch)
    fused = guide.encode(batch)
    total = 0.0
    for name, encoder in guide.unimodal.items():
        observed = [batch.observed[name][rows]] if name in batch.observed else []
        student = encoder(batch.values[name][rows], *observed)
        teacher = GaussianParameters(fused.loc[rows], fused.log_variance[rows])
        total += float(kl_divergence(gaussian(teacher), gaussian(student)).sum().detach())
    loss, n_taught = distillation_loss(run.state, batch)
    assert n_taught == 2 * len(rows)
    assert float(loss.detach()) == pytest.approx(total, rel=1e-4)


def test_the_teacher_gets_no_gradient() -> None:
    run = distilling()
    run.train()
    loss, _ = distillation_loss(run.state, whole(run))
    moved = dict(run.state.modules.named_parameters())
    for parameter in moved.values():
        parameter.grad = None
    loss.backward()
    assert {name for name, parameter in moved.items() if parameter.grad is not None} == {
        name for name in moved if name.startswith("guide.unimodal.")
    }


def test_without_samples_that_have_several_there_is_nothing_to_teach() -> None:
    data = tiny_samples()
    data.present["spectrum"][::2] = data.present["curve"][1::2] = False
    for name in data.modalities:
        data.modalities[name][~data.present[name]] = 0
    run = Run(data, settings())
    run.state.add_unimodal_encoders(learning_rate=1e-2)
    loss, n_taught = distillation_loss(run.state, whole(run))
    assert (float(loss), n_taught) == (0.0, 0)


def test_only_the_copies_move() -> None:
    run = distilling()
    run.train(3)
    best = {name: value.clone() for name, value in run.state.best_weights.items()}
    run.train()
    after = run.weights()
    assert [record["phase"] for record in run.state.history] == ["pretraining"] + 2 * ["training"] + 2 * [
        "distillation"
    ]
    assert {name for name in after if name not in best} == {n for n in after if n.startswith("guide.unimodal.")}
    assert [name for name, value in best.items() if not torch.equal(value, after[name])] == []
    copies = {name: name.replace("unimodal", "encoders") for name in after if name.startswith("guide.unimodal.")}
    assert copies
    assert [copy for copy, original in copies.items() if torch.equal(after[copy], after[original])] == []


def test_the_bound_of_samples_with_several_modalities_is_the_same_to_the_bit() -> None:
    run = distilling(tiny_samples())
    run.train(3)
    run.state.return_to_best()
    bounds = []
    for until in (3, 5):
        run.train(until)
        torch.manual_seed(1)
        bounds.append(evaluate(run.state, run.task.elbo, run.task.training).sums)
    assert bounds[0] == bounds[1]
    assert run.state.distilled_epochs == 2


def test_divergences_fall() -> None:
    run = distilling(some_missing(n=200), training__epochs=10, distillation__epochs=1)
    run.train(11)
    run.state.return_to_best()
    run.state.guide.copy_encoders()
    with torch.no_grad():
        before, n_taught = distillation_loss(run.state, whole(run))
    run = distilling(some_missing(n=200), training__epochs=10, distillation__epochs=30)
    run.train()
    with torch.no_grad():
        after, _ = distillation_loss(run.state, whole(run))
    assert 0 < float(after) < 0.5 * float(before)
    told = [-record["objective"] for record in run.state.history if record["phase"] == "distillation"]
    assert float(after) / n_taught < told[-1] < told[0] <= float(before) / n_taught * 1.01


#   epochs   pretraining | joint training | distillation
#              1         |   2      3     |   4      5
@pytest.mark.parametrize("stops", [[2], [3], [4], [5], [3, 4]])
def test_resumed_to_the_bit(tmp_path: Path, stops: list[int]) -> None:
    config = settings(distillation__epochs=2)
    for stop in stops:
        run = Run(some_missing(), config)
        if (tmp_path / "checkpoint").exists():
            run.restore(RunFolder(tmp_path))
        run.train(stop, RunFolder(tmp_path))
    run = Run(some_missing(), config)
    assert run.restore(RunFolder(tmp_path)).epoch == stops[-1]
    assert run.state.distilled_epochs == max(0, stops[-1] - 3)
    run.train(folder=RunFolder(tmp_path))
    assert same(run.finish(), fitted(config, some_missing()))


#   epoch                 1 | 2   3   4   5 |
#   held-out objective      | 1   3   2   2 |        then two epochs of distillation, from the weights of epoch 3
@pytest.mark.parametrize("stop", [None, 5, 6])
def test_early_stopping_goes_over_to_distillation(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, stop: int | None
) -> None:
    config = settings(training__epochs=7, training__patience=2, distillation__epochs=2)
    with_objectives(monkeypatch, [1, 3, 2, 2])
    run = Run(some_missing(), config)
    run.train(3)
    best = run.weights()
    run.train(stop, RunFolder(tmp_path))
    if stop is not None:
        run = Run(some_missing(), config)
        run.restore(RunFolder(tmp_path))
        run.train()
    phases = [record["phase"] for record in run.state.history]
    assert phases == ["pretraining"] + 4 * ["training"] + 2 * ["distillation"]
    assert run.is_finished
    after = run.weights()
    assert [name for name, value in best.items() if not torch.equal(after[name], value)] == []
