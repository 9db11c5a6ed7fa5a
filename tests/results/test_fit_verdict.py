"""Three states with their reasons: from the findings, and the same wherever they are shown."""

from __future__ import annotations

from typing import Any

import pytest
from circle_like_fit import circle_like_summary

from causalpima.inference.findings.clusters import fit_verdict
from causalpima.inference.reporting.terminal import summary_table


def clusters(**changes: Any) -> dict[str, Any]:
    found: dict[str, Any] = circle_like_summary()["clusters"] | changes
    return {"clusters": found}


def starts(ari: list[float | None], disagreeing: list[int], statuses: list[str] | None = None) -> dict[str, Any]:
    n = len(ari)
    entry = {"n": n, "chosen": 0, "disagreeing": disagreeing, "entropies": [0.01 + 0.01 * i for i in range(n)]}
    entry |= {"statuses": statuses or ["ok"] * n, "ari": [ari, *[[None] * n] * (n - 1)]}
    return {"restarts": entry | {"mode": "processes", "n_occupied": [8] * n, "seconds": [1.0] * n}}


WITHHELD = {"labelling": {"source": "labels", "details": {"withheld": {"nodes": ["N1"], "reason": "of a reason"}}}}


@pytest.mark.parametrize(
    ("changes", "state", "reasons"),
    [
        ({}, "clear", []),
        (clusters(entropy=0.2), "doubtful", ["Clusters are not clean: the mean entropy of q(N|X) is 0.200 nats, "]),
        (starts([1.0, 0.99, 0.4], []), "clear", []),
        (starts([1.0, 0.5, 0.99], [1]), "doubtful", ["Start 1 separates its clusters about as well as the kept"]),
        (starts([1.0, 0.5, 0.6], []), "doubtful", ["None of 2 other starts finds the clusters of the kept start 0"]),
        (starts([1.0, 0.5, 0.6, 1.0], []), "doubtful", ["1 of 3 other starts finds the clusters of the kept start 0"]),
        (starts([1.0, None, 0.2], [], ["ok", "diverged", "collapsed"]), "clear", []),
        (starts([1.0, 0.5], [1]) | clusters(entropy=0.2), "doubtful", ["Clusters are not clean", "Start 1 separates"]),
        (clusters(n_occupied=7), "doubtful", ["1 of 8 clusters is not occupied"]),
        (
            clusters(n_requested=2, n_occupied=2, sizes=[191, 9]),
            "doubtful",
            ["1 cluster has fewer than 10 samples"],
        ),
        (clusters(n_groups=[9, 9, *[50] * 6]), "doubtful", ["2 clusters have fewer than 10 independent samples"]),
        (WITHHELD, "doubtful", ["Labels were given (N1), but of a reason."]),
        ({"status": "collapsed"} | clusters(n_occupied=3), "failed", ["The fit collapsed: 3 of 8 clusters are occ"]),
        (
            {"status": "collapsed"} | clusters(uncertainty_coefficient=0.01),
            "failed",
            ["The fit collapsed: q(N|X) does not tell the samples apart"],
        ),
        ({"status": "diverged", "reason": "NaN in epoch 3"}, "failed", ["The fit diverged: NaN in epoch 3."]),
    ],
)
def test_findings_make_the_verdict(changes: dict[str, Any], state: str, reasons: list[str]) -> None:
    found = fit_verdict(circle_like_summary(**changes))
    assert found.state == state
    assert len(found.reasons) == len(reasons)
    for reason, start in zip(found.reasons, reasons, strict=True):
        assert reason.startswith(start)


def test_a_stored_verdict_stands() -> None:
    """What was found at the time is what every page says of it; anything else in its place is none."""
    stored = {"state": "doubtful", "reasons": ["it was so\nthen"]}
    assert fit_verdict(circle_like_summary(verdict=stored)).to_plain() == stored | {"reasons": ["it was so then"]}
    assert fit_verdict(circle_like_summary(verdict={"state": "fine"})).state == "clear"


def test_the_terminal_has_a_point_per_reason() -> None:
    lines = summary_table(circle_like_summary(**clusters(entropy=0.2, n_occupied=7))).splitlines()
    assert lines[:2] == [
        "Verdict    doubtful",
        "           - Clusters are not clean: the mean entropy of q(N|X) is 0.200 nats,",
    ]
    assert sum(line.startswith("           - ") for line in lines[:8]) == 2
    assert max(map(len, lines)) <= 80
