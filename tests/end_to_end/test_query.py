"""Questions to a run that labels named, from its folder and in Python; and to one whose clusters have no names."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from command import svi

from causalpima.inference.query import main

pytestmark = pytest.mark.usefixtures("without_figures")

N = 200
QUICK = [
    "--pretraining.epochs=25",
    "--training.epochs=2",
    "--training.batch_size=16",
    "--training.learning_rate=0.01",
    "--modality.spectrum.encoder.sizes=16",
    "--modality.spectrum.decoder.sizes=16",
    "--read_out.n_init=1",
    "--read_out.shape=curved",
    "--quiet",
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spectra of four kinds; treated more often where the alloy is steel. Specimens of two samples each."""
    rng = np.random.default_rng(1)
    alloy = np.repeat(rng.random(N // 2) < 0.5, 2)
    treated = rng.random(N) < np.where(alloy, 0.8, 0.3)
    spectrum = 3.0 * np.eye(6)[2 * alloy + treated] + 0.2 * rng.normal(size=(N, 6)) + 5.0
    content = {
        "spectrum": (("sample", "line"), spectrum, {"units": "V"}),
        "alloy": ("sample", np.where(alloy, "steel", "brass")),
        "treated": ("sample", np.where(treated, "yes", "no")),
        "specimen": ("sample", np.repeat(np.arange(N // 2), 2), {"role": "group"}),
    }
    path = tmp_path_factory.mktemp("data") / "samples.nc"
    names = [f"S{number}" for number in range(N)]
    xr.Dataset(content, coords={"sample": names}).to_netcdf(path, engine="h5netcdf")
    return path


def fit_run(file: Path, folder: Path, *words: str) -> Path:
    ended = svi("--data", file, "--modalities", "spectrum", *words, "--output_dir", folder, *QUICK)
    assert ended.status == 0, ended.err
    return folder


@pytest.fixture(scope="module")
def run(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "named"
    return fit_run(file, folder, "--nodes", "alloy=2,treated=2", "--observe", "alloy,treated")


def test_from_a_folder_to_text_figures_and_files(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    json_file, draws, figures = tmp_path / "answer.json", tmp_path / "draws.nc", tmp_path / "figures"
    words = ["--do", "treated=yes", "--json", str(json_file), "--output", str(draws), "--figures", str(figures)]
    assert main([str(run), *words, "--draws", "200"]) == 0
    text = " ".join(capsys.readouterr().out.split())
    found = json.loads(json_file.read_text())
    # Two nodes that depend on each other: the data do not tell which way.
    assert found["graphs"]["n_graphs"] == 2
    alloy = found["node_probabilities"]["alloy"]["steel"]
    assert alloy["do"]["value"] is None
    ends = sorted([alloy["observed"]["value"], alloy["seen"]["value"]])
    np.testing.assert_allclose([alloy["do"]["low"], alloy["do"]["high"]], ends, atol=1e-6)
    assert abs(ends[0] - 0.5) < 0.15
    assert "alloy=steel: not identified: between" in text
    assert "no hidden common cause" in text
    assert "by labels of" in text
    assert [path.name for path in figures.iterdir()] == ["query_spectrum.png"]
    with xr.open_datatree(draws, engine="h5netcdf") as tree:
        assert tree["predictions"]["spectrum"].sizes == {"chain": 1, "draw": 200, "feature_spectrum": 6}
        assert bool((tree["predictions"]["N"].sel(node="treated") == 1).all())


def test_a_sample_of_the_run(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(run), "--do", "alloy=steel", "--counterfactual", "S7", "--json", str(tmp_path / "a.json")]) == 0
    text = " ".join(capsys.readouterr().out.split())
    assert "Sample S7 as it is" in text
    assert "the sample keeps its standardised residual" in text
    found = json.loads((tmp_path / "a.json").read_text())["counterfactual"]
    assert found["sample"] == 7
    assert found["node_bounds"]["alloy"]["steel"] == {"lower": 1.0, "upper": 1.0}
    for outcome in ("no", "yes"):
        bounds = found["node_bounds"]["treated"][outcome]
        assert 0 <= bounds["lower"] <= bounds["upper"] <= 1


def test_a_new_sample(run: Path, file: Path, tmp_path: Path) -> None:
    """The seventh sample of the run, once more as a new one."""
    with xr.open_dataset(file, engine="h5netcdf") as samples:
        samples.load().isel(sample=[3, 7]).to_netcdf(tmp_path / "new.nc", engine="h5netcdf")
    answers = []
    for words in (["--counterfactual", "7"], ["--counterfactual", "S7", "--data", str(tmp_path / "new.nc")]):
        assert main([str(run), "--do", "alloy=steel", *words, "--json", str(tmp_path / "a.json")]) == 0
        answers.append(json.loads((tmp_path / "a.json").read_text())["counterfactual"])
    old, new = answers
    assert (old["sample"], new["sample"], new["name"]) == (7, 1, "S7")
    for outcome in ("no", "yes"):  # q(N|X) is a mean over draws in both
        bounds = [found["node_bounds"]["treated"][outcome] for found in answers]
        assert abs(bounds[0]["upper"] - bounds[1]["upper"]) < 0.05
    means = [np.array(found["residual_kept"]["factual"]["spectrum"]) for found in answers]
    np.testing.assert_allclose(means[0], means[1], atol=1e-3)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--do", "colour=red"], "do: expected a node of alloy, treated, got colour"),
        (["--do", "treated=perhaps"], "do: expected an outcome of treated (no, yes), got perhaps"),
        (["--do", "alloy=steel", "--do", "alloy=brass"], "do: expected every node once, got alloy twice"),
        (["--do", "alloy=steel", "--given", "alloy=brass"], "given: expected no contradiction to --do"),
        (["--do", "alloy=steel", "--counterfactual", "S999"], "counterfactual: expected a sample of these"),
        ([], "do: expected NODE=OUTCOME, got nothing to set"),
    ],
)
def test_wrong_questions_end_with_2_and_one_line(
    run: Path, tmp_path: Path, words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(run), *words, "--json", str(tmp_path / "answer.json")]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""
    assert not any(tmp_path.iterdir())


def test_unnamed_clusters_are_asked_nothing(file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = fit_run(file, tmp_path / "unnamed", "--nodes", "2,2")
    capsys.readouterr()
    for flag in ("--do", "--given"):
        assert main([str(folder), flag, "N2=1"]) == 2
        said = capsys.readouterr()
        assert said.err.startswith(f"query: error: {flag[2:]}: expected a run all of whose nodes have a meaning")
        assert "python -m inference.name" in said.err
        assert "label some samples for N1" in said.err
        assert said.err.count("\n") == 1
        assert said.out == ""
