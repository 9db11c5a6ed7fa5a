"""Calibration against every factor: which errors say something of q(N|X), and where they are told."""

from __future__ import annotations

from typing import Any

import pytest
from circle_like_fit import circle_like_summary

from causalpima.inference.analyses.diagnose import calibration
from causalpima.inference.findings.clusters import calibrations, fit_verdict
from causalpima.inference.findings.evaluation import evaluation_table
from causalpima.inference.reporting.headline import headline
from causalpima.inference.reporting.terminal import summary_table


def factor(ece: float | None = 0.02, n: int = 400, accuracy: float | None = 0.95, guess: float = 0.5) -> dict[str, Any]:
    error = None if ece is None else {"ece": ece, "ece_if_calibrated": 0.01, "ece_95_if_calibrated": 0.03}
    scores = {"cluster_accuracy": 0.4, "nmi": 0.6, "ari": 0.55, "n_levels": 2, "calibration": error}
    return {"n_samples": n, "accuracy": accuracy, "guess": guess, **scores}


def evaluation(**factors: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = circle_like_summary()["evaluation"]
    return found | {"calibration": {"ece": 0.7, "ece_if_calibrated": 0.01}, "factors": factors}


@pytest.mark.parametrize(
    ("found", "verdict"),
    [
        (factor(0.02), "passes"),
        (factor(0.09), "unclear"),
        (factor(0.3), "fails"),
        (factor(0.3, n=24), "skipped"),
        (factor(0.3, accuracy=0.7), "skipped"),  # other groups than the clusters
        (factor(None, accuracy=None), "skipped"),
        (factor(0.02, guess=1.0), "skipped"),
    ],
)
def test_verdicts(found: dict[str, Any], verdict: str) -> None:
    (one,) = calibrations(evaluation(hue=found))
    assert one.verdict == verdict
    assert bool(one.skipped) == (verdict == "skipped")
    assert calibration({"evaluation": evaluation(hue=found)}).lines[0].verdict == verdict


def test_chance_is_no_fault() -> None:
    few = factor(0.12)
    few["calibration"] |= {"ece_if_calibrated": 0.05, "ece_95_if_calibrated": 0.13}
    assert calibrations(evaluation(hue=few))[0].verdict == "passes"


def test_clusters_are_not_compared_with_the_joint_of_all_labels() -> None:
    """Four clusters against 160 joint levels: the joint error is 0.7, and says nothing."""
    summary = circle_like_summary(evaluation=evaluation(hue=factor(), operator=factor(0.4, accuracy=0.3, guess=0.25)))
    (line,) = calibration(summary).lines
    assert line.verdict == "passes"
    assert "hue 0.020 (0.010)" in line.found
    assert "other groups than those of operator" in line.found
    assert fit_verdict(summary).state == "clear"
    assert "the calibration error is 0.020 against hue, where 0.010" in headline(summary)[2]


def test_a_q_that_is_too_sure_is_a_doubt() -> None:
    summary = circle_like_summary(evaluation=evaluation(hue=factor(0.3), radius=factor()))
    (reason,) = fit_verdict(summary).reasons
    assert reason.startswith("Against hue the expected calibration error is 0.300, where 0.010")
    assert "do not take q(N|X) at its word" in headline(summary)[2]


def test_a_row_per_factor() -> None:
    found = evaluation(hue=factor(), operator=factor(0.4, accuracy=0.3, guess=0.25))
    for text in (summary_table(circle_like_summary(evaluation=found)), evaluation_table(found | {"node_names": []})):
        rows = {line.split()[0]: line.split()[1:] for line in text.splitlines() if line.strip()}
        assert rows["hue"] == ["0.950", "(0.500)", "0.600", "0.550", "0.020", "(0.010)"]
        assert rows["operator"] == ["0.300", "(0.250)", "0.600", "0.550", "-"]
        assert "by factor" in text
        assert "0.700" not in text
        assert max(map(len, text.splitlines())) <= 80
    assert "by factor" not in summary_table(circle_like_summary(evaluation=evaluation(hue=factor())))


def test_runs_of_before_have_the_joint_alone() -> None:
    old = circle_like_summary()["evaluation"] | {"calibration": {"ece": 0.3, "ece_if_calibrated": 0.01}}
    (one,) = calibrations(old)
    assert (one.factor, one.verdict) == ("all factors", "fails")
    assert calibrations(None) == []
