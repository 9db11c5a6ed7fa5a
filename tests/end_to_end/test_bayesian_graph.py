"""`--guide.graph bayesian`: a whole run, resume to the bit, loading, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from command import TINY, contents, differences, svi

from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.training.fitted_run import load_run

BAYESIAN = (*TINY, "--guide.graph", "bayesian")


def test_run_leaves_q_of_edges_and_is_resumed_exactly(tmp_path: Path, without_figures: object) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert svi(*BAYESIAN, "--output_dir", whole).status == 0
    summary = json.loads((whole / "summary.json").read_text())
    found = np.array(summary["graph"]["variational"]["edge_probability"])
    assert found.shape == (2, 2)
    assert ((found >= 0) & (found <= 1)).all()
    stored = read_posterior(whole / "posterior.nc")["variational"]["variational_edge_probability"]
    assert np.allclose(stored, found)
    joint = load_run(whole).model.graph.log_joint().exp()
    assert np.isclose(float(joint.sum()), 1.0, atol=1e-5)
    assert svi(*BAYESIAN, "--output_dir", parts, "--stop_after", 3).status == 0
    assert svi("--resume", parts).status == 0
    assert not differences(contents(whole), contents(parts))


def test_what_a_guide_over_graphs_cannot_do_is_refused_in_one_line(tmp_path: Path) -> None:
    for more, told in (
        (("--model.graph", "complete"), "guide.graph"),
        (("--restarts", 2, "--restart_mode", "batched"), "restart_mode"),
    ):
        refused = svi(*BAYESIAN, "--output_dir", tmp_path / "none", *more)
        assert refused.status == 2
        assert told in refused.err
        assert len(refused.err.strip().splitlines()) == 1
