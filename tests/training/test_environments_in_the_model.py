"""After training, samples of an environment have p(N | e): in q(N|X), in the files of a run, in predictions."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from test_side_information import NAMES, planted, quick
from test_soft_interventions import LABELS, SOFT, chain
from test_soft_interventions import config as soft_config

from causalpima.inference.clusters import identify as module
from causalpima.inference.findings.collect import responsibilities
from causalpima.inference.fit import fit
from causalpima.inference.result import FitResult
from causalpima.inference.run import Run
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.config import EnvironmentsConfig
from causalpima.inference.training.fitted_run import load_run

DO = EnvironmentsConfig("do", {"do_A": "A", "do_B": "B"})
JOINTS = np.array([[0.48, 0.12, 0.04, 0.36], [0.16, 0.04, 0.08, 0.72], [0.18, 0.42, 0.12, 0.28]]).reshape(3, 2, 2)


@pytest.fixture(autouse=True)
def _of_quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a few epochs are unsure of their clusters."""
    monkeypatch.setattr(module, "TOO_UNCLEAR_ENTROPY", 1.0)


def finished(noise: float = 0.0, **changes: Any) -> tuple[Run, FitResult]:
    data = planted()
    values = data.modalities["x"] + noise * np.random.default_rng(1).standard_normal((900, 2))
    data = dataclasses.replace(data, modalities={"x": values.astype(np.float32)})
    run = Run(data, quick(environments=DO, **changes))
    run.train()
    assert run.state.model.environments.target is None  # none are known while training
    return run, run.finish()


def as_true(joint: np.ndarray, like: np.ndarray) -> np.ndarray:
    """The joint with outcomes flipped so that it is nearest to another: which outcome is called 0 is arbitrary."""
    flips = [joint[::a, ::b] for a in (1, -1) for b in (1, -1)]
    return min(flips, key=lambda each: np.abs(each - like).sum())


def joints(result: FitResult) -> np.ndarray:
    """p(N | e), `[1 + E, C_1, ..., C_L]`."""
    assert result.arrays is not None
    assert result.arrays.graph.log_joint_environment is not None
    found: np.ndarray = np.exp(result.arrays.graph.log_joint_environment)
    return found


def test_every_environment_has_its_own_p_of_n_with_the_targets_factor_alone_replaced() -> None:
    _, result = finished()
    assert result.arrays is not None
    graph = result.arrays.graph
    assert graph.environment_names == NAMES
    found = joints(result)
    np.testing.assert_allclose(found.sum((1, 2)), 1, atol=1e-6)
    np.testing.assert_allclose(found[0], np.exp(graph.log_joint), rtol=1e-6)
    for code, name in ((1, "do_A"), (2, "do_B")):
        np.testing.assert_allclose(found[code], result.summary["labelling"]["environment_joint"][name], atol=1e-6)
        assert np.abs(as_true(found[code], JOINTS[code]) - JOINTS[code]).max() < 0.1  # 300 samples: s.e. up to 0.03
    of_a, of_b = found.sum(2), found / found.sum(2, keepdims=True)
    np.testing.assert_allclose(of_a[2], of_a[0], atol=1e-6)  # A is as ever under do(B)
    np.testing.assert_allclose(of_b[1], of_b[0], atol=1e-6)  # and B | A under do(A)
    np.testing.assert_allclose(of_b[2, 0], of_b[2, 1], atol=1e-6)  # do(B): B does not look at A


def test_responsibilities_are_those_under_the_environment_of_each_sample() -> None:
    run, result = finished(noise=0.9, objective="meanfield")  # clusters overlap: the prior matters
    assert result.arrays is not None
    ours = result.arrays.responsibilities
    run.state.model.environments.clear()
    with run._working():
        pooled = responsibilities(run.state.model, run.state.guide, run.tensors, "meanfield")[0]
    codes, prior = run.data.environment, joints(result).reshape(3, 4)
    assert codes is not None
    expected = pooled / prior[0] * prior[codes]
    np.testing.assert_allclose(ours, expected / expected.sum(1, keepdims=True), rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(ours[codes == 0], pooled[codes == 0], atol=1e-7)
    assert np.abs(ours - pooled)[codes > 0].max() > 1e-3


def test_a_run_that_is_read_again_knows_its_environments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.result.write_figures", lambda *_, **__: {})
    monkeypatch.setattr("causalpima.inference.result.write_report", lambda *_: None)
    run, result = finished()
    result.save(tmp_path / "run")
    posterior = read_posterior(RunFolder(tmp_path / "run").posterior)["variational"]
    assert posterior["log_joint_environment"].dims == ("environment", "outcome_A", "outcome_B")
    assert tuple(posterior["environment"].to_numpy()) == NAMES
    again = load_run(tmp_path / "run")
    assert again.description.environment_names == NAMES
    ours, theirs = run.state.model.environments, again.model.environments
    assert ours.log_own is not None
    assert theirs.log_own is not None
    torch.testing.assert_close(theirs.log_own, ours.log_own)
    told = again.model.environments.log_joint(again.model.graph.conditional_log_tables())
    assert told is not None
    np.testing.assert_allclose(told, posterior["log_joint_environment"], atol=1e-5)


def test_predictions_have_the_environment_that_new_samples_carry() -> None:
    _, result = finished(objective="meanfield")
    new = planted(60, seed=5)
    without = dataclasses.replace(new, environment=None, environment_names=())
    turned = dataclasses.replace(new, environment_names=("do_B", "do_A", "observational"))
    unknown = dataclasses.replace(new, environment_names=("observational", "cooled", "do_B"))
    found = {
        name: result.predict(data)["responsibilities"].to_numpy()
        for name, data in {"own": new, "without": without, "turned": turned, "unknown": unknown}.items()
    }
    prior = joints(result).reshape(3, 4)
    codes = np.arange(60) % 3

    def under(codes: np.ndarray) -> np.ndarray:
        joint = found["without"] / prior[0] * prior[codes]
        return joint / joint.sum(1, keepdims=True)

    np.testing.assert_allclose(found["own"], under(codes), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found["turned"], under(2 - codes), rtol=1e-3, atol=1e-6)
    np.testing.assert_allclose(found["unknown"], under(np.where(codes == 1, 0, codes)), rtol=1e-3, atol=1e-6)


def test_names_take_the_environments_along() -> None:
    _, result = finished()
    exchanged = {2 * a + b: {"second": str(b), "first": str(a)} for a in (0, 1) for b in (0, 1)}
    named = result.named(exchanged, nodes=("second", "first"))
    np.testing.assert_allclose(joints(named), joints(result).transpose(0, 2, 1), atol=1e-6)
    order = np.array([0, 1, 3, 2])
    torn = result.named({c: {"A": str(order[c] // 2), "B": str(order[c] % 2)} for c in range(4)})
    assert torn.arrays is not None
    assert torn.arrays.graph.log_joint_environment is None


def test_a_soft_target_keeps_its_parents() -> None:
    result = fit(chain(), config=soft_config(observe=LABELS, environments=SOFT))
    usual, heated = joints(result)
    given = [joint.sum(2) / joint.sum((1, 2))[:, None] for joint in (usual, heated)]
    assert np.abs(given[0][:, 1] - [0.2, 0.8]).max() < 0.1
    assert np.abs(given[1][:, 1] - [0.55, 0.95]).max() < 0.1
    np.testing.assert_allclose(usual.sum((1, 2)), heated.sum((1, 2)), atol=1e-6)
    of_s = [joint.sum(0) / joint.sum((0, 2))[:, None] for joint in (usual, heated)]
    np.testing.assert_allclose(of_s[0], of_s[1], atol=1e-6)
