"""Clusters of a run with a block of Z per node are found anew in its blocks."""

from __future__ import annotations

import numpy as np
import pytest
from planted_runs import planted

from causalpima.inference.analyses import controls as refit


def test_blocks_of_nodes_are_read_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    run = planted(400, 0.5, 0.7, by_node=True)
    for name in ("read_out", "read_out_round"):
        monkeypatch.setattr(refit, name, None)  # those of all of Z
    rows = np.arange(0, 400, 2)
    found = refit.refit(run, rows, seed=0)
    np.testing.assert_array_equal(found.argmax(1), run.cells[rows])
    np.testing.assert_allclose(found, run.responsibilities[rows], atol=0.05)
