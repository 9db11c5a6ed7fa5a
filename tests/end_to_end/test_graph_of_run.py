"""The posterior over graphs of a run that labels named; and of one whose clusters have no names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from command import svi

from causalpima.inference.graph import main
from causalpima.inference.store.posterior_file import read_posterior

pytestmark = pytest.mark.usefixtures("without_figures")

N = 160
QUICK = [
    "--pretraining.epochs=10",
    "--training.epochs=1",
    "--training.batch_size=16",
    "--training.learning_rate=0.01",
    "--modality.spectrum.encoder.sizes=16",
    "--modality.spectrum.decoder.sizes=16",
    "--read_out.n_init=1",
    "--quiet",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spectra of four kinds; treated more often where the alloy is steel. Specimens of two samples each."""
    rng = np.random.default_rng(1)
    alloy = np.repeat(rng.random(N // 2) < 0.5, 2)
    treated = np.repeat(rng.random(N // 2) < 0.5, 2)
    treated = np.where(alloy, treated | (np.arange(N) // 2 % 2 == 0), treated & (np.arange(N) // 2 % 3 == 0))
    spectrum = 3.0 * np.eye(6)[2 * alloy + treated] + 0.2 * rng.normal(size=(N, 6)) + 5.0
    content = {
        "spectrum": (("sample", "line"), spectrum),
        "alloy": ("sample", np.where(alloy, "steel", "brass")),
        "treated": ("sample", np.where(treated, "yes", "no")),
        "specimen": ("sample", np.repeat(np.arange(N // 2), 2), {"role": "group"}),
    }
    path = tmp_path_factory.mktemp("data") / "samples.nc"
    xr.Dataset(content).to_netcdf(path, engine="h5netcdf")
    return path


def fit_run(file: Path, folder: Path, *words: str) -> Path:
    ended = svi("--data", file, "--modalities", "spectrum", *words, "--output_dir", folder, *QUICK)
    assert ended.status in (0, 3), ended.err
    return folder


@pytest.fixture(scope="module")
def run(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "named"
    return fit_run(file, folder, "--nodes", "alloy=2,treated=2", "--observe", "alloy,treated")


def graph_json(*words: object) -> dict[str, Any]:
    assert main([str(word) for word in words]) == 0
    found: dict[str, Any] = json.loads(Path(str(words[-1])).read_text())
    return found


def test_the_command_finds_what_the_run_found(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = graph_json(run, "--figures", tmp_path / "figures", "--json", tmp_path / "g.json")
    said = capsys.readouterr().out
    own = json.loads((run / "summary.json").read_text())["graph"]["posterior"]
    np.testing.assert_allclose(found["edge_probability"], own["edge_probability"], atol=1e-6)
    assert found["n_independent"] == own["n_independent"] < found["n_samples"]
    assert found["adjacency_probability"][0][1] > 0.9
    assert found["is_named"] is True
    assert set(own) <= set(found)
    assert (tmp_path / "figures" / "edge_probabilities.png").is_file()
    assert "alloy -- treated" in said
    assert "which count as" in said
    tree = read_posterior(run / "posterior.nc")
    np.testing.assert_allclose(tree["variational"]["edge_probability"], own["edge_probability"])


def test_scores_priors_and_knowledge_of_the_command(run: Path, tmp_path: Path) -> None:
    words = (run, "--score", "bdeu", "--equivalent_sample_size", "5", "--knowledge.designed", "alloy", "--edge_prior")
    found = graph_json(*words, "-2", "--json", tmp_path / "g.json")
    assert (found["score"], found["equivalent_sample_size"], found["edge_prior"]) == ("bdeu", 5.0, -2.0)
    assert found["edge_probability"][1][0] == 0
    assert found["knowledge"] == {"forbidden": ["treated->alloy"], "required": []}
    assert found["cpdag"] == [[0, 1], [0, 0]]


def test_known_factors_stand_beside_the_nodes(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ("--labels", "alloy,treated", "--nodes", "alloy=2,treated=2", "--observe", "alloy,treated")
    folder = tmp_path / "run"
    ended = svi("--data", file, "--modalities", "spectrum", *words, "--output_dir", folder, *QUICK)
    assert ended.status in (0, 3), ended.err
    assert main([str(folder), "--factors", "alloy"]) == 2
    assert "factors: expected factors besides the nodes, got alloy" in capsys.readouterr().err
    assert main([str(folder), "--factors", "oven"]) == 2
    assert "factors: expected known factors of the run (alloy, treated), got oven" in capsys.readouterr().err


def test_a_factor_that_a_cluster_follows_is_joined_to_it(file: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ("--nodes", "kind=4", "--labels", "alloy,treated")
    ended = svi("--data", file, "--modalities", "spectrum", *words, "--output_dir", folder, *QUICK)
    assert ended.status in (0, 3), ended.err
    found = graph_json(folder, "--factors", "alloy,treated", "--json", tmp_path / "g.json")
    assert found["nodes"] == ["kind", "alloy", "treated"]
    joined = np.array(found["adjacency_probability"])
    assert joined[0, 1] > 0.9
    assert joined[0, 2] > 0.9


def test_unnamed_clusters_end_with_two_unless_they_are_taken_as_they_are(
    file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = fit_run(file, tmp_path / "unnamed", "--nodes", "2,2")
    assert main([str(folder)]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "clusters without names" in said
    assert "inference.name" in said
    assert "--as_labelled" in said
    found = graph_json(folder, "--as_labelled", "--json", tmp_path / "g.json")
    assert found["is_named"] is False
    assert "Warning: the clusters are unnamed." in capsys.readouterr().out


def test_no_run_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1
