"""Chains that a command wrote are read as they were, and judged alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from causalpima.inference.analyses.diagnose import chains, read_chains
from causalpima.inference.findings.chains import ChainFindings
from causalpima.inference.graphs.chains import Chains
from causalpima.inference.reporting.chain_file import write_chains


def findings(apart: float, program: str = "hodge") -> ChainFindings:
    """Four chains of 150 draws over two nodes; `apart` is how far their log densities differ."""
    rng = np.random.default_rng(0)
    log_density = rng.normal(size=(4, 150)) + apart * np.arange(4)[:, None]
    edge = np.zeros((4, 150, 2, 2))
    edge[..., 0, 1] = rng.random((4, 150))
    cells = rng.dirichlet(np.ones(4), (4, 150))
    diverging = np.zeros((4, 150), dtype=bool)
    made = Chains(cells, edge, log_density, rng.normal(size=(4, 150)), diverging, np.full(4, 0.1), {})
    return ChainFindings(("A", "B"), ("0,0", "0,1", "1,0", "1,1"), made, program == "hodge")


@pytest.mark.parametrize(("apart", "verdict"), [(0.0, "passes"), (2.0, "fails")])
def test_chains_are_judged_as_their_command_does(tmp_path: Path, apart: float, verdict: str) -> None:
    written = findings(apart)
    write_chains(written, {"program": "hodge"}, tmp_path / "mcmc.nc")
    read = read_chains(tmp_path / "mcmc.nc")
    assert read is not None
    assert read.is_indicator
    assert read.to_plain() == written.to_plain()
    found = chains(read)
    assert next(line for line in found.lines if line.key == "mcmc_log density").verdict == verdict
    assert found.values["mcmc"]["n_divergent"] == 0


def test_no_chains_are_skipped_and_other_files_refused(tmp_path: Path) -> None:
    assert read_chains(tmp_path / "mcmc.nc") is None
    assert [line.verdict for line in chains(None).lines] == ["skipped"]
    xr.Dataset({"a": ("x", [1.0])}).to_netcdf(tmp_path / "mcmc.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="expected the chains of python"):
        read_chains(tmp_path / "mcmc.nc")
