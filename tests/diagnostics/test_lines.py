"""Every verdict turns where the fit is broken; numbers against closed forms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.analyses.diagnose import (
    calibration,
    clusters,
    dimension_information,
    held_out,
    k_hat,
    latent_dimensions,
    loo_per_modality,
    starts,
)
from causalpima.inference.findings.verdicts import FEW_SCORED, Line, no_better_than, worst
from causalpima.inference.folds import assign_folds, folds_finding

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:arviz.*")

_D, _S = 60, 40


def verdict(lines: tuple[Line, ...], key: str) -> str:
    return next(line.verdict for line in lines if line.key == key)


def summary(**changes: Any) -> dict[str, Any]:
    found = {"n_requested": 4, "n_occupied": 4, "entropy": 0.01, **changes}
    return {"status": "ok", "clusters": found, "modalities": {"x": {}}}


def test_clear_full_clusters_pass() -> None:
    assert [line.verdict for line in clusters(summary()).lines] == ["passes"] * 3


@pytest.mark.parametrize(
    ("changes", "key", "expected"),
    [
        ({"n_occupied": 3}, "occupied", "unclear"),
        ({"n_occupied": 1}, "occupied", "fails"),
        ({"entropy": 0.2}, "entropy", "unclear"),
        ({"entropy": 0.9}, "entropy", "fails"),
    ],
)
def test_empty_and_overlapping_clusters_turn_the_verdict(changes: dict[str, Any], key: str, expected: str) -> None:
    assert verdict(clusters(summary(**changes)).lines, key) == expected


def test_a_collapsed_fit_fails() -> None:
    found = clusters({**summary(n_occupied=1), "status": "collapsed"})
    assert verdict(found.lines, "status") == "fails"
    assert no_better_than("unclear", "passes") == "unclear"
    assert no_better_than("unclear", "skipped") == "skipped"
    assert worst(["passes", "fails", "skipped"]) == "fails"
    assert worst([]) == "skipped"


@pytest.mark.parametrize(("ece", "expected"), [(0.03, "passes"), (0.09, "unclear"), (0.3, "fails")])
def test_overconfident_clusters_turn_the_verdict(ece: float, expected: str) -> None:
    found = calibration({"evaluation": {"calibration": {"ece": ece, "ece_if_calibrated": 0.01}}})
    assert verdict(found.lines, "calibration") == expected
    assert verdict(calibration({}).lines, "calibration") == "skipped"


def test_a_handful_of_labels_does_not_tell_the_calibration() -> None:
    few = {"calibration": {"ece": 0.333, "ece_if_calibrated": 0.0}, "n_samples": FEW_SCORED - 1}
    assert verdict(calibration({"evaluation": few}).lines, "calibration") == "skipped"
    assert verdict(calibration({"evaluation": {**few, "n_samples": FEW_SCORED}}).lines, "calibration") == "fails"


def test_information_is_the_mean_divergence_from_all_samples() -> None:
    rng = np.random.default_rng(0)
    loc, scale = rng.normal(size=(30, 3)) * [2.0, 1.0, 0.0], np.exp(rng.normal(size=(30, 3)) * [0.5, 0.3, 0.0])
    centre, total = loc.mean(0), loc.var(0) + (scale**2).mean(0)
    each = 0.5 * (np.log(total / scale**2) + (scale**2 + (loc - centre) ** 2) / total - 1)
    found = dimension_information(loc, scale)
    assert np.allclose(found, each.mean(0), rtol=1e-12)
    assert found[2] == pytest.approx(0.0, abs=1e-12)


def test_unused_dimensions_are_told_and_collapse_fails() -> None:
    rng = np.random.default_rng(1)

    def posterior(factor: np.ndarray) -> xr.DataTree:
        variables = {"latent_loc": rng.normal(size=(50, 2)) * factor, "latent_scale": np.full((50, 2), 0.5)}
        dataset = xr.Dataset({name: (("sample", "latent"), values) for name, values in variables.items()})
        return xr.DataTree.from_dict({"variational": dataset})

    assert verdict(latent_dimensions(posterior(np.array([2.0, 2.0]))).lines, "latent") == "passes"
    assert verdict(latent_dimensions(posterior(np.array([2.0, 0.0]))).lines, "latent") == "unclear"
    assert verdict(latent_dimensions(posterior(np.array([0.0, 0.0]))).lines, "latent") == "fails"


def test_advice_on_blocks_is_of_every_block() -> None:
    """`model.latent_dim` is that of a block, of which there is one per node or modality."""
    rng = np.random.default_rng(2)

    def advice(factor: list[float], block_dim: int | None) -> str:
        loc = rng.normal(size=(50, len(factor))) * factor
        variables = {"latent_loc": loc, "latent_scale": np.full(loc.shape, 0.5)}
        dataset = xr.Dataset({name: (("sample", "latent"), values) for name, values in variables.items()})
        return latent_dimensions(xr.DataTree.from_dict({"variational": dataset}), block_dim).lines[0].advice

    assert advice([2.0, 2.0, 2.0, 0.0], None) == "--model.latent_dim 3 would do"
    assert advice([2.0, 0.0, 0.0, 2.0], 2) == "--model.latent_dim 1 would do"
    assert "leave --model.latent_dim as it is" in advice([2.0, 2.0, 0.0, 0.0], 2)
    assert not advice([2.0, 2.0, 2.0, 2.0], 2)


def draws(log_weight: np.ndarray, held: int = 20, log_likelihood: np.ndarray | None = None) -> xr.DataTree:
    """A file with these weights `[chain, draw, sample]`; the last `held` samples were held out."""
    dims, number = ("chain", "draw", "sample_id"), log_weight.shape[-1]
    coords = {"sample_id": np.arange(number)}
    split = (np.arange(number) >= number - held).astype(int)
    likelihood = log_weight if log_likelihood is None else log_likelihood
    return xr.DataTree.from_dict(
        {
            "sample_stats": xr.Dataset({"log_weight": (dims, log_weight)}, coords),
            "log_likelihood": xr.Dataset({"x": (dims, likelihood)}, coords),
            "constant_data": xr.Dataset({"split": (("sample",), split)}, {"split_level": ["train", "validation"]}),
        }
    )


def test_heavy_weights_turn_the_verdict_of_the_guide() -> None:
    rng = np.random.default_rng(2)
    light = k_hat(draws(0.1 * rng.normal(size=(1, _D, _S))))
    heavy = k_hat(draws(5.0 * rng.standard_exponential((1, _D, _S)) ** 2))
    assert verdict(light.lines, "k_hat") == "passes"
    assert verdict(heavy.lines, "k_hat") == "fails"
    assert heavy.values["k_hat"]["share_above"] > 0.3
    assert len(light.values["k_hat"]["values"]) == _S
    assert verdict(k_hat(draws(rng.normal(size=(1, 8, _S)))).lines, "k_hat") == "skipped"


def test_a_weight_that_is_not_finite_is_no_small_k() -> None:
    weight = 0.1 * np.random.default_rng(3).normal(size=(1, _D, _S))
    weight[0, 0, : _S // 2] = -np.inf
    assert verdict(k_hat(draws(weight)).lines, "k_hat") == "fails"


def test_loo_says_what_it_is_conditional_on() -> None:
    likelihood = -3.0 + 0.1 * np.random.default_rng(4).normal(size=(1, _D, _S))
    found = loo_per_modality(draws(likelihood), summary())
    assert "no estimate of generalisation" in found.lines[0].found
    assert found.values["loo"]["x"]["elpd"] == pytest.approx(-3.0 * _S, abs=1.0)
    assert found.values["loo"]["x"]["conditional_on"] == "z"
    wild = loo_per_modality(
        draws(-np.exp(2 * likelihood * 0 + np.random.default_rng(5).normal(0, 2, (1, _D, _S)))), summary()
    )
    assert wild.lines[0].verdict == "unclear"


def test_held_out_samples_that_are_worse_than_training_ones_turn_the_verdict() -> None:
    weight = -10.0 + 0.5 * np.random.default_rng(6).normal(size=(1, _D, 60))
    bound = {"per_sample": -9.9, "standard_error": 0.05, "n_draws": _D, "n_samples": 30, "split": "validation"}
    fine = held_out(draws(weight, 30), {"held_out_log_likelihood": bound})
    overfitted = held_out(draws(weight, 30), {"held_out_log_likelihood": {**bound, "per_sample": -12.0}})
    assert verdict(fine.lines, "held_out") == "passes"
    assert verdict(overfitted.lines, "held_out") == "unclear"
    assert verdict(held_out(draws(weight, 30), {}).lines, "held_out") == "skipped"
    # log of the mean weight of a normal: mean + variance / 2.
    assert fine.values["held_out_log_likelihood"]["training"] == pytest.approx(-10 + 0.125, abs=0.05)


def test_held_out_samples_that_are_lost_do_not_excuse_themselves() -> None:
    """One of thirty at -1000 nats: the mean is -43, and its own standard error 33."""
    weight = -10.0 + 0.5 * np.random.default_rng(6).normal(size=(1, _D, 60))
    bound = {"per_sample": -43.0, "standard_error": 33.0, "n_draws": _D, "n_samples": 30, "split": "validation"}
    assert verdict(held_out(draws(weight, 30), {"held_out_log_likelihood": bound}).lines, "held_out") == "unclear"


def several(same: bool) -> xr.DataTree:
    """Three starts over two nodes; the last one agrees, or is unrelated."""
    rng = np.random.default_rng(7)
    nodes = np.broadcast_to(rng.integers(0, 2, (_S, 2)), (3, _D, _S, 2)).copy()
    ari = np.eye(3) + 0.97 * (1 - np.eye(3))
    if not same:
        nodes[2] = 0
        ari[2, :2] = ari[:2, 2] = 0.1
    tree = draws(-10.0 + rng.normal(size=(3, _D, _S)) - (0 if same else 5) * np.arange(3)[:, None, None])
    dims = ("chain", "draw", "sample_id", "node")
    log_joint = xr.Dataset({"log_joint": (("outcome_A", "outcome_B"), np.log(np.full((2, 2), 0.25)))})
    restarts = xr.Dataset(
        {"ari": (("start", "start_other"), ari), "node_agreement": (("chain", "node"), np.full((3, 2), 0.9))},
        {"start_of_chain": (("chain",), [0, 1, 2]), "node": ["A", "B"]},
    )
    groups = {"posterior": xr.Dataset({"N": (dims, nodes)}), "variational": log_joint, "restarts": restarts}
    return xr.DataTree.from_dict({**{name: node.to_dataset() for name, node in tree.children.items()}, **groups})


def test_starts_that_agree_pass_and_others_do_not() -> None:
    fine, other = starts(several(True)), starts(several(False))
    assert verdict(fine.lines, "restarts") == "passes"
    assert verdict(fine.lines, "r_hat") == "passes"
    assert verdict(other.lines, "restarts") == "fails"
    assert verdict(other.lines, "r_hat") == "fails"
    assert other.values["r_hat"]["log_weight"] > 1.5
    assert fine.values["ess"]["log_weight"] > 0.5 * 3 * _D
    assert verdict(starts(draws(np.zeros((1, _D, _S)))).lines, "restarts") == "skipped"


def test_folds_keep_groups_whole_and_are_of_one_size() -> None:
    groups = np.repeat(np.arange(11), np.arange(1, 12))
    fold = assign_folds(len(groups), groups, 4, 0)
    assert all(len(np.unique(fold[groups == group])) == 1 for group in range(11))
    sizes = [len(np.unique(groups[fold == k])) for k in range(4)]
    assert sorted(sizes) == [2, 3, 3, 3]
    assert not np.array_equal(fold, assign_folds(len(groups), groups, 4, 1))
    with pytest.raises(ValueError, match="folds: expected 2 to 11, the number of groups, got 12"):
        assign_folds(len(groups), groups, 12, 0)


def entry(fold: int, values: list[float], status: str = "ok") -> dict[str, Any]:
    return {"fold": fold, "status": status, "samples": [2 * fold, 2 * fold + 1], "log_evidence": values}


def test_folds_are_one_mean_with_the_error_of_groups() -> None:
    found = folds_finding([entry(0, [-1.0, -2.0]), entry(1, [-3.0, -4.0])], None)
    assert found.values["folds"]["per_sample"] == -2.5
    assert found.values["folds"]["standard_error"] == pytest.approx(np.std([1, 2, 3, 4], ddof=1) / 2)
    assert found.lines[0].verdict == "passes"
    grouped = folds_finding([entry(0, [-1.0, -2.0]), entry(1, [-3.0, -4.0])], np.array([0, 0, 1, 1]))
    assert grouped.values["folds"]["standard_error"] == pytest.approx(np.sqrt(2 * 8) / 4)


def test_a_refit_that_failed_turns_the_verdict() -> None:
    assert (
        folds_finding([entry(0, [-1.0, -2.0]), entry(1, [-3.0, -4.0], "collapsed")], None).lines[0].verdict == "unclear"
    )
    assert folds_finding([entry(0, [], "diverged"), entry(1, [], "diverged")], None).lines[0].verdict == "fails"
    half = folds_finding([entry(0, [], "diverged"), entry(1, [-3.0, -4.0])], None)
    assert half.lines[0].verdict == "unclear"
    assert half.values["folds"]["by_fold"] == [None, -3.5]


def test_lines_are_plain() -> None:
    line = Line("a", "b", "c", "passes")
    assert replace(line, key="d").to_plain() == {
        "key": "d",
        "name": "b",
        "found": "c",
        "verdict": "passes",
        "advice": "",
    }
