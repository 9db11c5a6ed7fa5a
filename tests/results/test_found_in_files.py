"""What is read from posterior.nc is what the fit was scored by."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fit_arrays_example import example_fit

from causalpima.inference.analyses.cross_modal import found_in
from causalpima.inference.analyses.scores import Found
from causalpima.inference.reporting.arviz import write_posterior
from causalpima.inference.store.posterior_file import read_posterior


@pytest.mark.parametrize("environment", [None, np.arange(11) % 3])
def test_found_in_a_file_is_what_the_fit_holds(tmp_path: Path, environment: Any) -> None:
    labelling = {"source": "names", "named_nodes": ["type"]}
    fit = example_fit(environment=environment, labelling=labelling)
    write_posterior(fit, tmp_path / "posterior.nc")
    read, held = found_in(read_posterior(tmp_path / "posterior.nc"), None, labelling), Found.of(fit)
    for name in ("responsibilities", "joint", "adjacency", "split", "environment"):
        np.testing.assert_array_equal(getattr(read, name), getattr(held, name))
    assert read.node_names == held.node_names
    assert read.outcome_names == held.outcome_names
    assert read.labelling == held.labelling
    assert read.observational().tolist() == held.observational().tolist()
