"""A few cases of every campaign of reliability, on files that need no fit but for that of threads."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import flags
import full_disks
import kills
import mutated_files
import numpy as np
import outputs_on_inputs
import pytest
import threads
from campaign import Case
from example_commands import call, contents, in_folder, make_data

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork"),
    pytest.mark.filterwarnings("ignore:You are writing invalid netcdf features"),
]

PREPARE = next(work for work in kills.WORKS if work.name == "prepare")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Data, tables and settings."""
    folder = tmp_path_factory.mktemp("files")
    make_data(folder)
    return folder


@pytest.fixture(scope="module")
def whole(files: Path, tmp_path_factory: pytest.TempPathFactory) -> kills.Undisturbed:
    """`inference.prepare`, undisturbed; first in this process, for its imports."""
    with in_folder(kills.copied(files, tmp_path_factory.mktemp("first"))):
        assert call("prepare", PREPARE.words[1:]).status == 0
    return kills.undisturbed(PREPARE, files, tmp_path_factory.mktemp("whole"))


def all_held(cases: Iterator[Case], n: int) -> bool:
    """Whether so many were tried, and all held."""
    tried = list(cases)
    assert [str(case) for case in tried if not case.held] == []
    return len(tried) == n


def test_kills(files: Path, whole: kills.Undisturbed, tmp_path: Path) -> None:
    random = np.random.default_rng(0)
    drawn = list(kills.kills(PREPARE, whole, random, 3))
    assert {sign for sign, *_ in drawn} == {signal.SIGKILL, signal.SIGINT}
    assert all_held((kills.killed(PREPARE, whole, files, tmp_path, *one) for one in drawn), 3)


def test_full_disks(files: Path, whole: kills.Undisturbed, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(full_disks.Disk, "_mount", lambda *_: False)  # as a user who may not
    place = full_disks.Disk(tmp_path)
    drawn = full_disks.sizes(np.random.default_rng(0), 20_000, 3)
    assert all_held((full_disks.filled(PREPARE, whole, files, place, size) for size in drawn), 3)


def test_flags(files: Path, tmp_path: Path) -> None:
    before, random = contents(files), np.random.default_rng(0)
    drawn = [one for command in ("svi", "identify") for one in flags.attempts(random, command, 6)]
    assert all_held((flags.tried(one, files, before, tmp_path / "work") for one in drawn), 12)


def test_outputs_on_inputs(files: Path) -> None:
    pairs = [pair for pair in outputs_on_inputs.pairs(files) if pair.command in ("prepare", "explore")]
    before, chosen = contents(files), pairs[:: len(pairs) // 8][:8]
    assert all_held((outputs_on_inputs.tried(pair, files, before) for pair in chosen), 8)


def test_mutated_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mutated_files, "MAINS", {})
    mutated_files.load()
    every = mutated_files.attempts(
        np.random.default_rng(0), tmp_path, "nodes: 2\n", "cluster,size,N1\n0,12,a\n1,12,b\n"
    )
    few = [one for one in every if one.kind in ("npz", "table of categories", "graph")][::16]

    def tried() -> Iterator[Case]:
        for number, one in enumerate(few):
            (tmp_path / str(number)).mkdir()
            yield mutated_files.attempted(one, tmp_path / str(number))

    assert all_held(tried(), 10)


def test_threads(files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    state = threads.process_state
    monkeypatch.setattr(threads, "process_state", lambda: state() | {"Python": "beartype draws from it, in tests"})
    names = ["fit", "graph of a table"]
    expected = {name: threads.alone(name, files, tmp_path) for name in names}
    assert all_held(iter([threads.together(names, expected, files, tmp_path)]), 1)
