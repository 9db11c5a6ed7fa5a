"""Whole runs with everything they write; and what prints instead of running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command import ROOT, TINY, contents, differences, start_process, svi

from causalpima.inference.store.arviz import import_arviz

FILES = {"config.yaml", "summary.json", "metrics.jsonl", "posterior.nc", "report.html", "checkpoint", "figures"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two runs at once, in processes of their own, that were not told where to go."""
    home = tmp_path_factory.mktemp("runs")
    processes = [start_process(*TINY, "--json", f"summary-{i}.json", cwd=home) for i in range(2)]
    for process in processes:
        out, err = process.communicate(timeout=500)
        assert (process.returncode, err) == (0, "")
        assert out.startswith(("Verdict    clear\n", "Verdict    doubtful\n"))
        assert "Files      runs/circles-00" in out
    return home


def test_each_process_gets_a_folder_of_its_own(runs: Path) -> None:
    folders = sorted((runs / "runs").iterdir())
    assert [folder.name for folder in folders] == ["circles-001", "circles-002"]
    for folder in folders:
        assert {path.name for path in folder.iterdir()} == FILES
        assert [path for path in folder.rglob("*") if path.name.startswith(".")] == []


def test_runs_in_processes_of_their_own_equal_one_in_a_process_that_did_more(runs: Path, tmp_path: Path) -> None:
    assert (
        svi(*TINY, "--seed", 1, "--training.epochs", 0, "--output_dir", tmp_path / "other", "--stop_after", 1).status
        == 0
    )
    assert svi(*TINY, "--output_dir", tmp_path / "here").status == 0
    first, second, here = (contents(path) for path in (*sorted((runs / "runs").iterdir()), tmp_path / "here"))
    assert differences(first, second) == []
    assert differences(first, here) == []
    seed = differences(first, {**first, "config": here["config"].replace("seed: 0", "seed: 1")})
    assert len(seed) == 1, "a difference is seen"


def test_the_copy_of_the_summary(runs: Path) -> None:
    copies = [json.loads(path.read_text()) for path in sorted(runs.glob("summary-*.json"))]
    originals = [json.loads(path.read_text()) for path in sorted(runs.glob("runs/*/summary.json"))]
    assert [set(summary.pop("checksums")) for summary in originals] == [{"posterior.nc"}] * len(copies)
    assert sorted(map(json.dumps, copies)) == sorted(map(json.dumps, originals))


def test_the_summary_has_what_the_design_lists(runs: Path) -> None:
    summary = json.loads((runs / "runs" / "circles-001" / "summary.json").read_text())
    assert {"dataset", "seed", "n_samples", "modalities", "nodes", "epochs", "versions", "status"} <= set(summary)
    assert set(summary["objective"]) >= {"name", "value", "per_sample"}
    assert set(summary["seconds"]) >= {"pretraining", "training", "total"}
    assert set(summary["clusters"]) >= {"n_occupied", "effective_number", "sizes"}
    assert set(summary["graph"]) >= {"edge_strength", "adjacency", "log_joint"}
    assert set(summary["evaluation"]) >= {
        "cluster_accuracy",
        "nmi",
        "ari",
        "node_accuracy",
        "node_accuracy_mean",
        "node_accuracy_worst",
        "random_labelling_baseline",
        "bayes_ceiling",
        "split",
    }
    assert sum(summary["clusters"]["sizes"]) == summary["n_samples"] == 96
    assert summary["objective"]["value"] == pytest.approx(summary["objective"]["per_sample"] * 10)


def keys_of(value: object) -> set[str]:
    """Keys at every depth, but for those that are names of the data."""
    if not isinstance(value, dict):
        return set()
    nested = (entry for key, entry in value.items() if key not in ("nodes", "versions", "node_accuracy", "assignment"))
    return set(value) | set().union(*map(keys_of, nested))


def test_every_key_of_the_summary_is_documented(runs: Path) -> None:
    summary = json.loads((runs / "runs" / "circles-001" / "summary.json").read_text())
    page = "".join((ROOT / "docs" / f"{name}.md").read_text() for name in ("run_folder", "evaluate"))
    names_of_the_data = {"image", "hue", "radius", "shift", "N1", "N2"}
    known = {"mean", "worst"} | names_of_the_data  # the two parts of a baseline
    assert {key for key in keys_of(summary) - known if f"`{key}`" not in page} == set()


def test_arviz_opens_the_posterior(runs: Path) -> None:
    opened = import_arviz().from_netcdf(runs / "runs" / "circles-001" / "posterior.nc")
    assert opened.posterior["Z"].shape == (1, 100, 96, 2)
    summary = json.loads((runs / "runs" / "circles-001" / "summary.json").read_text())
    assert (
        opened.variational["responsibilities"].argmax("cell").values.tolist().count(0)
        == summary["clusters"]["sizes"][0]
    )


def test_figures_are_in_the_folder_and_in_the_report(runs: Path) -> None:
    figures = sorted(path.name for path in runs.glob("runs/circles-001/figures/*"))
    assert figures == [
        "conditionals.png",
        "decoded_means_image.png",
        "latent_clusters.png",
        "latent_factors.png",
        "nearest_samples_image.png",
        "node_factors.png",
        "objective.png",
        "outcomes_N1_image.png",
        "outcomes_N2_image.png",
        "reliability.png",
        "variance_explained.png",
    ]
    assert (runs / "runs" / "circles-001" / "report.html").read_text().count("data:image/png;base64,") == len(figures)


def test_an_earlier_run_is_replaced_without_a_trace(runs: Path, tmp_path: Path) -> None:
    folder = runs / "runs" / "circles-002"
    (folder / "notes.txt").write_text("mine")
    (folder / "figures" / "for_the_paper.png").write_text("mine")
    outcome = svi(*TINY, "--output_dir", folder, "--force", "--stop_after", 0)
    assert outcome.status == 0
    assert outcome.err == f"warning: kept in {folder}, since no run writes it: figures/for_the_paper.png, notes.txt\n"
    left = sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())
    assert left == [
        "checkpoint/epoch-000000/manifest.json",
        "checkpoint/epoch-000000/state.pt",
        "checkpoint/epoch-000000/weights.safetensors",
        "config.yaml",
        "figures/for_the_paper.png",
        "metrics.jsonl",
        "notes.txt",
    ]


@pytest.mark.usefixtures("without_figures")
def test_written_settings_repeat_the_run(tmp_path: Path) -> None:
    assert svi(*TINY, "--output_dir", tmp_path / "first", "--stop_after", 3).status == 0
    printed = svi(*TINY, "--print_config")
    assert (printed.status, printed.err) == (0, "")
    (tmp_path / "printed.yaml").write_text(printed.out)
    for name, file in {"second": tmp_path / "first" / "config.yaml", "third": tmp_path / "printed.yaml"}.items():
        assert svi("--config", file, "--output_dir", tmp_path / name).status == 0
    assert svi("--resume", tmp_path / "first").status == 0
    first, second, third = (contents(tmp_path / name) for name in ("first", "second", "third"))
    assert differences(first, second) == []
    assert differences(first, third) == []


@pytest.mark.usefixtures("without_figures")
@pytest.mark.parametrize(
    "flags", ["--paper_settings", "--objective meanfield", "--objective paper --mixture.gaussians one"]
)
def test_other_settings_run(tmp_path: Path, flags: str) -> None:
    outcome = svi(*TINY, *flags.split(), "--output_dir", tmp_path / "run")
    assert outcome.status in (0, 3), outcome.err
    assert json.loads((tmp_path / "run" / "summary.json").read_text())["status"] in ("ok", "collapsed")


def test_a_dry_run_tells_and_writes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    outcome = svi(*TINY, "--dry_run")
    assert (outcome.status, outcome.err) == (0, "")
    assert list(tmp_path.iterdir()) == []
    told = dict(line.split(maxsplit=1) for line in outcome.out.splitlines() if not line.startswith(" "))
    assert told["data"] == "circles: 96 samples, 86 for training"
    assert told["model"] == "4 cells of nodes N1 (2), N2 (2); latent dimension 2"
    assert set(told) == {"data", "model", "memory", "time", "folder"}
    assert told["folder"] == "runs/circles-001 (not made)"
    lines = [line.split() for line in outcome.out.splitlines()]
    assert ["image", "28x28x3"] in lines
    # 2352 x 16 + 16 to the hidden layer, 2 x (16 x 2 + 2) to location and log-variance
    assert ["encoder", "of", "image", f"{2352 * 16 + 16 + 2 * (16 * 2 + 2):,}", "parameters"] in lines
    # two nodes: two scores, one edge weight, two tables of 2 x 2
    assert ["graph", "11", "parameters"] in lines


@pytest.mark.parametrize("arguments", [["--help"], ["--help_all"], ["--dataset", "circles", "--help_all"]])
def test_help_is_readable(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    outcome = svi(*arguments)
    assert (outcome.status, outcome.err) == (0, "")
    assert outcome.out.startswith(
        "usage: python -m inference.svi (--dataset NAME | --data FILE --nodes NODES) [--FLAG VALUE"
    )
    assert max(len(line) for line in outcome.out.splitlines() if line.startswith(" ")) <= 80
    assert "--help_all" in arguments or outcome.out.count("\n") <= 120
    for clutter in ("Path to a configuration file", "typing", "<class", "type:", "null", "{'"):
        assert clutter not in outcome.out
    assert ("--modality.image.decoder.sizes" in outcome.out) == ("circles" in arguments)
    assert "(default: 128,64,32,16)" in outcome.out or "circles" not in arguments
