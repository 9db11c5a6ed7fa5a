"""Bad input: one line on standard error that says what to do, exit status 2, and nothing half-written."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from command import TINY, Outcome, contents, differences, svi

from causalpima.inference.training.components import GRAPHS

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, empty."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def assert_refused(outcome: Outcome, *parts: str) -> None:
    assert outcome.status == 2, outcome
    assert outcome.out == ""
    assert outcome.err.startswith("svi: error: ")
    assert outcome.err.count("\n") == 1
    assert len(outcome.err) < 400
    for part in parts:
        assert part in outcome.err


@pytest.mark.parametrize(
    ("flags", "parts"),
    [
        ("--dataset squares", ["dataset: expected one of circles, ", "got squares"]),
        ("--seed x", ["seed: expected a whole number, got x"]),
        ("--epochs 3", ["got --epochs; did you mean --pretraining.epochs, --training.epochs, --distillation.epochs?"]),
        ("--nodes 0", ["nodes: expected whole numbers >= 2", "for example 2,3 or type=2,response=3"]),
        ("--nodes a=2,a=3", ["nodes: expected a name of its own for every node"]),
        (
            f"--read_out.sizes [] --nodes {','.join('2' * 40)}",
            ["nodes: expected at most 1000000 combinations of outcomes, got about 1e12; give fewer outcomes or nodes"],
        ),
        ("--read_out.sizes [] --nodes 87", ["got 86 samples for 87 cells", "give fewer nodes or outcomes"]),
        ("--training.batch_size -5", ["training.batch_size: expected a number > 0"]),
        ("--training.learning_rate .nan", ["training.learning_rate: expected a number > 0", "got nan"]),
        ("--dataset_options.n_samples 0", ["n_samples: expected at least 1, got 0"]),
        ("--dataset_options.n_samples 1000000000000000", ["out of memory; use fewer samples"]),
        ("--dataset_options.seed -1", ["seed: expected a non-negative integer, got -1"]),
        (
            "--model.graph exat",
            [f"model.graph: expected {', '.join(GRAPHS)}, fixed:FILE or module:Class, got 'exat'; a file is read by"],
        ),
        ("--model.graph fixed:nowhere", ["model.graph: expected a file with a graph, got nowhere: No such file"]),
        ("--model.graph fixed --model.edges N1->N2,N2->N1", ["model.edges: expected a graph without cycles"]),
        ("--model.graph fixed --model.edges N1->N7", ["model.edges: expected nodes among N1, N2", "got 'N7'"]),
        ("--model.graph complete --knowledge.forbid N1->N2", ["expected complete to agree with what is known"]),
        ("--environments.kind soft", ["environments.kind: expected do, or soft beside a mask or labels", "--observe"]),
        ("--model.latent_dim 3000000", ["out of memory; use fewer samples, a smaller batch or smaller networks"]),
        ("--modality.image.encoder.kind curve", ["expected"]),
        ("--modality.image.decoder.kind convolutional", ["expected"]),
        ("--device cuda:77", ["device: expected one that this machine has", "got 'cuda:77'"]),
        ("--device foo", ["device: expected one that this machine has", "got 'foo'"]),
        ("--threads 0", ["threads: expected a whole number >= 1"]),
        ("--stop_after -1", ["stop_after: expected a whole number >= 0, got -1"]),
        (
            "--json absent/summary.json",
            ["json: expected a file in a folder that you may write to, got absent/summary.json"],
        ),
        ("--json .", ["json: expected a file in a folder that you may write to, got ."]),
        ("--config absent.yaml", ["config: expected a readable YAML or JSON file, got absent.yaml (No such file"]),
        (
            "--resume absent",
            ["resume: expected no other flags than device", " and 9 more; a resumed run keeps its settings"],
        ),
    ],
)
def test_refused(home: Path, flags: str, parts: list[str]) -> None:
    assert_refused(svi(*TINY, *flags.split()), *parts)
    assert list(home.iterdir()) == []


def test_refused_without_any_flag(home: Path) -> None:
    assert_refused(svi(), "dataset: expected one of circles")
    assert_refused(svi("--resume", "absent"), "absent: expected a run folder with a readable config.yaml, got none (")
    assert list(home.iterdir()) == []


def test_output_folders_that_are_refused(home: Path) -> None:
    (home / "file").write_text("mine")
    (home / "full").mkdir()
    (home / "full" / "notes.txt").write_text("mine")
    (home / "other").mkdir()
    (home / "other" / "config.yaml").write_text("wings: 2")
    assert_refused(svi(*TINY, "--output_dir", "file"), "output_dir: expected a folder, got the file file")
    assert_refused(svi(*TINY, "--output_dir", "file/run"), "output_dir: expected a path of folders", "file is a file")
    assert_refused(
        svi(*TINY, "--output_dir", "full"), "expected a new or empty folder, got full", "--resume", "--force"
    )
    for name in ("full", "other"):
        refused = svi(*TINY, "--output_dir", name, "--force")
        assert_refused(refused, f"--force replaces an earlier run, and {name} holds files but no run; name another")
    assert_refused(svi(*TINY, "--output_dir", "full", "--dry_run"), "expected a new or empty folder")
    left = {str(path.relative_to(home)): path.read_text() for path in home.rglob("*") if path.is_file()}
    assert left == {"file": "mine", "full/notes.txt": "mine", "other/config.yaml": "wings: 2"}


def test_folders_that_may_not_be_written_to(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    access = os.access
    (home / "locked").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: "locked" not in str(path) and access(path, mode))
    for folder in ("locked", "locked/run"):
        refused = svi(*TINY, "--output_dir", folder)
        assert_refused(refused, f"output_dir: expected a folder that you may write to, got {folder}; choose another")
    assert_refused(svi(*TINY, "--json", "locked/s.json"), "json: expected a file in a folder that you may write to")
    assert [path.name for path in home.iterdir()] == ["locked"]


def test_folders_above_are_made(home: Path) -> None:
    assert svi(*TINY, "--output_dir", "a/b/run", "--json", "a/b/run/copy.json", "--stop_after", 0).status == 0
    assert (home / "a" / "b" / "run" / "config.yaml").exists()


@pytest.fixture
def stopped(home: Path) -> Path:
    assert svi(*TINY, "--output_dir", "run", "--stop_after", 1).status == 0
    return home / "run"


def edited(folder: Path, change: Callable[[dict[str, object]], object]) -> None:
    settings = yaml.safe_load((folder / "config.yaml").read_text())
    change(settings)
    (folder / "config.yaml").write_text(yaml.safe_dump(settings))


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (
            lambda s: s.update(seed=1),
            ["error: circles: expected the samples that", "got other values of 'image' in 96 of 96"],
        ),
        (lambda s: s.update(objective="meanfield"), ["is of another configuration: expected fingerprint"]),
        (lambda s: s["training"].update(epochs=9), ["is of another configuration", "or start a new run"]),
        (lambda s: s["dataset_options"].update(n_samples=97), ["was fitted to, got 97 samples (in the run 96); put"]),
        (lambda s: s.update(dataset="squares"), ["run/config.yaml: dataset: expected one of circles"]),
        (lambda s: s["training"].update(epochs="nine"), ["run/config.yaml: training.epochs: expected a whole number"]),
        (lambda s: s["training"].update(epoch=9), ["run/config.yaml: config: expected settings that there are, got"]),
        (lambda s: s.pop("dataset"), ["run: expected a run of python -m inference.svi, got one of the Python call"]),
    ],
)
def test_settings_that_were_edited_are_not_resumed(
    stopped: Path, change: Callable[[dict[str, object]], object], parts: list[str]
) -> None:
    before = (stopped / "metrics.jsonl").read_text()
    edited(stopped, change)
    assert_refused(svi("--resume", "run"), *parts)
    assert (stopped / "metrics.jsonl").read_text() == before


@pytest.mark.parametrize("content", [b"", b"a: [", b"\xff\xfe", b"- 1"])
def test_settings_that_cannot_be_read(stopped: Path, content: bytes) -> None:
    (stopped / "config.yaml").write_bytes(content)
    assert_refused(svi("--resume", "run"), "expected")


def test_a_run_that_another_process_is_at(stopped: Path) -> None:
    from causalpima.inference.store.run_folder import RunFolder

    with RunFolder(stopped).in_use():
        for arguments in (["--resume", "run"], [*TINY, "--output_dir", "run", "--force"]):
            assert_refused(svi(*arguments), "run is in use by another process; wait until it ends, or stop it")
    assert svi("--resume", "run", "--stop_after", 0).status == 0


def full_after(steps: int, patch: pytest.MonkeyPatch) -> None:
    """A disk that is full after so many files."""
    left, sync = [steps], os.fsync

    def fail(descriptor: int) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(descriptor)

    patch.setattr(os, "fsync", fail)


def test_a_disk_that_is_full_from_the_start(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    full_after(0, monkeypatch)
    assert_refused(svi(*TINY, "--output_dir", "run"), "cannot write run/config.yaml: the disk is full; free some space")
    assert_refused(svi(*TINY), "cannot write runs/circles-001/config.yaml: the disk is full; free some space")
    assert [path for path in home.rglob("*") if path.name != "runs"] == []


def test_a_disk_that_fills_up(home: Path) -> None:
    assert svi(*TINY, "--output_dir", "whole").status == 0
    arguments: list[str] = [*TINY, "--output_dir", "run"]
    # In the checkpoints of epochs 0, 2 and 4, then in the final weights, the posterior, and the summary.
    for steps in (4, 16, 16, 10, 7, 11):
        with pytest.MonkeyPatch.context() as patch:
            full_after(steps, patch)
            outcome = svi(*arguments)
        arguments = ["--resume", "run"]
        assert outcome.status == 2
        last = outcome.err.splitlines()[-1]
        assert "the disk is full; free some space" in last
        assert last.endswith("then go on with: python -m inference.svi --resume run")
        assert not (home / "run" / "summary.json").exists()
        assert [path for path in (home / "run").rglob("*") if path.name.startswith(".")] == []
    assert svi(*arguments).status == 0
    assert differences(contents(home / "whole"), contents(home / "run")) == []
