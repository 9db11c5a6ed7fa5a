"""Replicates count once: clusters by groups in summary and table."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
from circle_like_fit import circle_like_fit, circle_like_summary

from causalpima.inference.reporting.summary import summarise
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.store.files import to_json

R = np.array(
    [
        [0.9, 0.1, 0.0],  # specimen 7: two of three samples say 1, but the sum says 0
        [0.45, 0.55, 0.0],
        [0.45, 0.55, 0.0],
        [0.0, 1.0, 0.0],  # specimen 3
        [0.0, 1.0, 0.0],
        [0.2, 0.2, 0.6],  # specimen 12, alone
    ]
)
SPECIMENS = np.array([7, 7, 7, 3, 3, 12])


def counted(groups: np.ndarray | None) -> object:
    fit = dataclasses.replace(circle_like_fit(6, (3,)), responsibilities=R, groups=groups, factors={})
    clusters = json.loads(to_json(summarise(fit, 0.0)))["clusters"]
    assert clusters["sizes"] == [1, 4, 1]
    return clusters["n_groups"]


def test_every_group_counts_once() -> None:
    assert counted(SPECIMENS) == [1, 1, 1]
    assert counted(np.arange(6)) == [1, 4, 1]
    assert counted(np.zeros(6, dtype=int)) == [0, 1, 0]
    assert counted(None) is None


def test_the_table_counts_groups_where_there_are_some() -> None:
    clusters = circle_like_summary()["clusters"]
    lines = summary_table(circle_like_summary(clusters=clusters | {"n_groups": [40, 50, 51, 47, 60, 44, 50, 38]}))
    assert "           replicates counted once: 40 50 51 47 60 44 50 38\n" in lines
    for without in (clusters, clusters | {"n_groups": None}):
        assert "replicates" not in summary_table(circle_like_summary(clusters=without))
