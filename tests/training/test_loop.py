"""The loop: when it ends, what it returns to, and what finishing changes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch
from tiny_fits import settings, tiny_samples

from causalpima.inference.run import Run
from causalpima.inference.training import loop
from causalpima.inference.training.loop import finish, is_finished, next_phase
from causalpima.models.graph.hodge import HodgeGraph


def with_objectives(patch: pytest.MonkeyPatch, objectives: Sequence[float]) -> None:
    """Held-out objectives of joint training, whatever the weights are."""
    left = list(objectives)

    def held_out(state: Any, task: Any, phase: str) -> dict[str, float]:
        return {"validation_objective": left.pop(0) if phase == "training" else 0.0}

    patch.setattr(loop, "_held_out", held_out)


#   epoch                 1 | 2   3   4   5   6   7   8
#   pretraining           * |
#   held-out objective      | 1   3   2   2   9   .   .
@pytest.mark.parametrize(("patience", "last", "best"), [(1, 4, 3), (2, 5, 3), (3, 8, 6), (0, 8, 6)])
def test_early_stopping(monkeypatch: pytest.MonkeyPatch, patience: int, last: int, best: int) -> None:
    with_objectives(monkeypatch, [1, 3, 2, 2, 9, 5, 5])
    run = Run(tiny_samples(), settings(training__epochs=7, training__patience=patience))
    seen: dict[int, torch.Tensor] = {}
    while not run.is_finished:
        run.train(run.state.epoch + 1)
        seen[run.state.epoch] = run.weights()["model.graph.node_score"]
    assert (run.state.epoch, run.state.best_epoch) == (last, best)
    run.state.return_to_best()
    assert torch.equal(run.weights()["model.graph.node_score"], seen[best])
    assert not torch.equal(seen[last], seen[best])


def test_without_validation_the_training_objective_decides() -> None:
    run = Run(tiny_samples(), settings(training__validation_fraction=0.0))
    run.train()
    joint = {record["epoch"]: record["objective"] for record in run.state.history if record["phase"] == "training"}
    assert run.state.best_epoch == max(joint, key=lambda epoch: joint[epoch])
    assert run.state.best_objective == max(joint.values())


def test_pretraining_is_never_the_best_epoch() -> None:
    run = Run(tiny_samples(), settings(pretraining__epochs=3, training__epochs=0, training__patience=1))
    run.train()
    assert (run.state.epoch, run.state.best_weights) == (3, {})


@pytest.mark.parametrize(
    ("epoch", "best_epoch", "diverged", "expected"),
    [
        (3, 3, None, False),
        (8, 8, None, True),
        (9, 8, None, True),
        (5, 3, None, True),
        (4, 3, None, False),
        (1, 0, "x", True),
    ],
)
def test_when_a_run_is_finished(epoch: int, best_epoch: int, diverged: str | None, expected: bool) -> None:
    run = Run(tiny_samples(), settings(training__epochs=7, training__patience=2))
    state = run.state
    state.epoch, state.best_epoch, state.diverged, state.best_weights = epoch, best_epoch, diverged, run.weights()
    assert is_finished(state, run.config) == expected


# Two epochs of pretraining, four of joint training, two of distillation; patience of two epochs.
@pytest.mark.parametrize(
    ("epoch", "distilled", "best_epoch", "expected"),
    [
        (0, 0, 0, "pretraining"),
        (1, 0, 0, "pretraining"),
        (2, 0, 0, "training"),
        (3, 0, 3, "training"),
        (4, 0, 3, "training"),
        (4, 0, 2, "distillation"),  # stalled
        (6, 0, 6, "distillation"),
        (7, 1, 6, "distillation"),
        (8, 2, 6, None),
        (5, 1, 2, "distillation"),  # stalled, then one epoch of distillation: joint training is over
        (6, 2, 2, None),
    ],
)
def test_what_the_next_epoch_does(epoch: int, distilled: int, best_epoch: int, expected: str | None) -> None:
    changes = {"pretraining__epochs": 2, "training__epochs": 4, "training__patience": 2, "distillation__epochs": 2}
    run = Run(tiny_samples(), settings(**changes))
    state = run.state
    state.epoch, state.distilled_epochs, state.best_epoch = epoch, distilled, best_epoch
    state.best_weights = run.weights() if best_epoch and not distilled else {}
    assert next_phase(state, run.config) == expected
    assert is_finished(state, run.config) == (expected is None)
    state.diverged = "the objective is nan"
    assert next_phase(state, run.config) is None


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"pretraining__kind": "none"}, "training"),
        ({"pretraining__epochs": 0, "training__epochs": 0}, None),
        ({"pretraining__kind": "none", "training__epochs": 0, "distillation__epochs": 1}, "distillation"),
        ({}, "pretraining"),
    ],
)
def test_what_the_first_epoch_does(changes: dict[str, Any], expected: str | None) -> None:
    run = Run(tiny_samples(), settings(**changes))
    assert next_phase(run.state, run.config) == expected


def finished(**changes: Any) -> Run:
    run = Run(tiny_samples(), settings(**changes))
    run.train()
    with run._working():
        finish(run.state, run.task)
    return run


def test_finishing_starts_from_the_best_weights(monkeypatch: pytest.MonkeyPatch) -> None:
    with_objectives(monkeypatch, [5, 1, 1])
    run = finished(training__epochs=3, read_out__final=False)
    after, best = run.weights(), run.state.best_weights
    assert run.state.best_epoch == 2
    changed = {name for name, value in after.items() if not torch.equal(value, best[name])}
    assert {name.rpartition(".")[2] for name in changed} == {"reported", "use_reported", "element"}


def test_the_graph_is_read_at_the_final_temperature_whatever_the_best_epoch_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_objectives(monkeypatch, [5, 1, 1])
    run = finished(training__epochs=3)
    assert float(run.state.best_weights["model.graph.temperature"]) == 1.0
    assert isinstance(run.state.model.graph, HodgeGraph)
    assert float(run.state.model.graph.temperature) == pytest.approx(0.05)


def test_what_is_reported_has_no_floor() -> None:
    run = finished(decoder__variance_floor=5.0)
    for decoder in run.state.decoders.values():
        variance: Any = decoder.variance
        assert float(variance.training_variance()) == 5.0
        assert 0 < float(variance.reported) < 5.0
        assert bool(variance.use_reported)


def test_reported_variances_are_mean_squared_errors() -> None:
    run = finished(read_out__final=False)
    with run._working():
        generator = torch.get_rng_state()
        before = {name: float(decoder.variance.reported) for name, decoder in run.state.decoders.items()}  # type: ignore[union-attr, arg-type]
        errors = mean_squared_errors(run)
        torch.set_rng_state(generator)
    assert before == pytest.approx(errors, rel=0.2), "up to the draws of z"


def mean_squared_errors(run: Run) -> dict[str, float]:
    batch = next(run.task.training.batches(1000))
    with torch.no_grad():
        posterior = run.state.guide.encode(batch)
        latent = posterior.loc + posterior.scale * torch.randn(200, *posterior.loc.shape)
        cell = torch.zeros(1, dtype=torch.long)
        return {
            name: float((decoder(latent, cell).mean - batch.values[name]).square().mean())
            for name, decoder in run.state.decoders.items()
        }
