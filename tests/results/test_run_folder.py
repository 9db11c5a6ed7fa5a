"""The folder of a run: claimed by one process, cleared of what a run wrote and of nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from causalpima.inference.store import run_folder
from causalpima.inference.store.files import OutputError
from causalpima.inference.store.run_folder import RunFolder, claim_run_folder, next_run_folder

CONFIG = {"nodes": {"b": 2, "a": 3}, "seed": 0}


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def fill(path: Path, *files: str) -> None:
    for name in files:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("x")


WRITTEN = [
    "summary.json",
    "metrics.jsonl",
    "posterior.nc",
    "report.html",
    "checkpoint/epoch-000003/state.pt",
    "checkpoint/epoch-000003-replaced/state.pt",
    "checkpoint/final/epoch-000003/state.pt",
    "figures/graph.png",
    "figures/latent_factors.png",
    "figures/decoded_means_image.png",
    ".posterior-0123abcd.partial.nc",
    "figures/.graph-0123abcd.partial.png",
    "checkpoint/.epoch-000004-0123abcd.partial/state.pt",
]


def test_the_configuration_comes_back_in_its_order(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "a" / "run")
    assert folder.create(CONFIG) == []
    assert names(folder.path) == ["config.yaml"]
    assert list(folder.read_config()["nodes"].items()) == [("b", 2), ("a", 3)]


def test_an_empty_folder_may_be_used(tmp_path: Path) -> None:
    RunFolder(tmp_path).create(CONFIG)
    assert names(tmp_path) == ["config.yaml"]


def test_only_what_a_run_wrote_is_replaced(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create(CONFIG)
    mine = ["notes.txt", "figures/graph_edited.png", "checkpoint/mine.pt", "data/a.npz", ".hidden"]
    fill(tmp_path, *WRITTEN, *mine)
    with pytest.raises(
        OutputError, match=r"^output_dir: expected a new or empty folder, got .* with files in it; name"
    ):
        folder.create(CONFIG)
    kept = folder.create({**CONFIG, "seed": 1}, force=True)
    assert kept == [".hidden", "checkpoint/mine.pt", "data", "figures/graph_edited.png", "notes.txt"]
    assert {name for name in names(tmp_path) if (tmp_path / name).is_file()} == {"config.yaml", *mine}
    assert folder.read_config()["seed"] == 1


def test_nothing_is_left_of_a_run_alone(tmp_path: Path) -> None:
    RunFolder(tmp_path).create(CONFIG)
    fill(tmp_path, *WRITTEN)
    assert RunFolder(tmp_path).create(CONFIG, force=True) == []
    assert names(tmp_path) == ["config.yaml"]


@pytest.mark.parametrize("content", [None, "", "a: [", "wings: 2", "- nodes", "\xff"])
def test_a_folder_without_a_run_is_never_replaced(tmp_path: Path, content: str | None) -> None:
    fill(tmp_path, "summary.json", "figures/graph.png")
    if content is not None:
        (tmp_path / "config.yaml").write_text(content, encoding="latin-1")
    before = names(tmp_path)
    with pytest.raises(
        OutputError, match=r"^output_dir: --force replaces an earlier run, and .* holds files but no run"
    ):
        RunFolder(tmp_path).create(CONFIG, force=True)
    assert names(tmp_path) == before


def test_a_linked_checkpoint_is_unlinked_and_its_target_kept(tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    fill(tmp_path / "elsewhere", "state.pt")
    folder = RunFolder(tmp_path / "run")
    folder.create(CONFIG)
    folder.checkpoints.mkdir()
    (folder.checkpoints / "epoch-000001").symlink_to(tmp_path / "elsewhere")
    folder.create(CONFIG, force=True)
    assert names(folder.path) == ["config.yaml"]
    assert names(tmp_path / "elsewhere") == ["state.pt"]


@pytest.mark.parametrize("stop", range(1, 9))
def test_replacing_can_be_killed_and_repeated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stop: int) -> None:
    """At every moment the folder can be told for a run: it may be replaced again, and is never taken for complete."""
    folder = RunFolder(tmp_path)
    folder.create(CONFIG)
    fill(tmp_path, *WRITTEN)
    left, unlink = [stop], Path.unlink

    def kill(*_: object, **__: object) -> None:
        left[0] -= 1
        if left[0] == 0:
            raise KeyboardInterrupt

    def kill_or_unlink(path: Path) -> None:
        kill()
        unlink(path)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", kill_or_unlink)
        patch.setattr(run_folder, "remove_folder", kill)
        patch.setattr(run_folder, "write_text", kill)
        with pytest.raises(KeyboardInterrupt):
            folder.create({**CONFIG, "seed": 1}, force=True)
    assert stop <= 3 or not folder.is_complete, "leftovers go first, then the summary"
    assert folder.create({**CONFIG, "seed": 1}, force=True) == []


def test_a_folder_that_another_process_uses(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create(CONFIG)
    script = (
        "import sys; from causalpima.inference.store.run_folder import RunFolder\n"
        "with RunFolder(sys.argv[1]).in_use():\n    print('in use', flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", script, str(tmp_path)]
    root = Path(run_folder.__file__).parents[2]
    with subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "in use\n"
        with pytest.raises(OutputError, match=r"is in use by another process; wait until it ends, or stop it$"):
            folder.create(CONFIG, force=True)
        other.kill()
    folder.create(CONFIG, force=True)


def test_who_has_the_folder_clears_what_a_killed_one_left(tmp_path: Path) -> None:
    for name in (".changes/figures/a.png", "figures/.a-0123abcd.partial.png"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    with RunFolder(tmp_path).in_use():
        assert [path.name for path in tmp_path.rglob("*")] == ["figures"]


def test_what_a_killed_one_left_does_not_count_as_files_of_somebody(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / ".config-0123abcd.partial.yaml").write_text("no")
    folder = RunFolder(tmp_path / "run")
    assert folder.is_empty
    assert folder.create(CONFIG) == []
    assert [path.name for path in folder.path.iterdir()] == ["config.yaml"]
    assert not folder.is_empty


def test_numbers_go_on_after_the_highest(tmp_path: Path) -> None:
    assert next_run_folder("circles", tmp_path / "runs") == tmp_path / "runs" / "circles-001"
    for name in ("circles-002", "circles-41", "circles_edge-099", "circles-x", "circles-043.old"):
        (tmp_path / name).mkdir()
    assert next_run_folder("circles", tmp_path).name == "circles-042"
    (tmp_path / "circles-1000").mkdir()
    assert claim_run_folder("circles", tmp_path).path == tmp_path / "circles-1001"
    assert (tmp_path / "circles-1001").is_dir()


def test_no_two_get_the_same_number(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        folders = list(pool.map(lambda _: claim_run_folder("x", tmp_path / "runs").path.name, range(40)))
    assert sorted(folders) == [f"x-{number:03d}" for number in range(1, 41)]


def test_a_home_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(OutputError, match=r"cannot write .*runs: a file of that name is there"):
        claim_run_folder("x", tmp_path / "runs")


SUMMARY = {"status": "ok", "dataset": "d", "nodes": {}, "modalities": {}, "graph": {}, "clusters": {}}


def test_a_summary_makes_a_run_complete(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create(CONFIG)
    assert not folder.is_complete
    folder.write_summary(SUMMARY)
    assert folder.is_complete
    assert folder.read_summary() == SUMMARY


@pytest.mark.parametrize(
    "content",
    [
        *("", "{", "[1]", "{}", "\xff"),
        json.dumps({**SUMMARY, "nodes": None}),
        json.dumps({**SUMMARY, "graph": []}),
        json.dumps({"status": "diverged"}),
    ],
)
def test_a_summary_that_is_none(tmp_path: Path, content: str) -> None:
    (tmp_path / "summary.json").write_text(content, encoding="latin-1")
    with pytest.raises(
        ValueError, match=r"summary.json: expected the summary of a run, got something else .*; remove it"
    ):
        RunFolder(tmp_path).read_summary()


@pytest.mark.parametrize("content", [None, "a: [", "- 1", "\xff\xfe"])
def test_a_configuration_that_is_none(tmp_path: Path, content: str | None) -> None:
    if content is not None:
        (tmp_path / "config.yaml").write_text(content, encoding="latin-1")
    with pytest.raises(ValueError, match="expected") as error:
        RunFolder(tmp_path).read_config()
    assert "\n" not in str(error.value)


def test_places_that_cannot_be_written_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match=r"^output_dir: expected a folder, got the file .*file; name another$"):
        RunFolder(tmp_path / "file").check()
    with pytest.raises(
        OutputError, match=r"^output_dir: expected a path of folders, got .*run, where .*file is a file"
    ):
        RunFolder(tmp_path / "file" / "run").check()
    monkeypatch.setattr(os, "access", lambda *_: False)
    with pytest.raises(
        OutputError, match=r"^output_dir: expected a folder that you may write to, got .*; choose another$"
    ):
        RunFolder(tmp_path / "run").check()
    assert names(tmp_path) == ["file"]


def test_an_unfinished_run_has_no_summary_and_says_how_to_go_on(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    folder.create(CONFIG)
    with pytest.raises(ValueError, match=r"got one that is unfinished; go on with python -m inference.svi --resume /"):
        folder.read_summary()
