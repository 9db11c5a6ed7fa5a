"""Several files of a folder change in one step: whatever stops it, the folder is the old one or becomes the new one."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from causalpima.inference.store import run_folder as folder_changes
from causalpima.inference.store.files import OutputError, write_text
from causalpima.inference.store.run_folder import STAGING, changes_of, complete_changes

SAME = {"notes.txt": "mine"}
OLD = {"summary.json": "old", "posterior.nc": "old", "figures/a.png": "old", "figures/b.png": "old", **SAME}
NEW = {"summary.json": "new", "posterior.nc": "new", "figures/a.png": "new", "names/names.csv": "new", **SAME}


class Killed(BaseException):
    """What no handler of the program catches."""


def write(home: Path, content: dict[str, str]) -> None:
    for name, text in content.items():
        (home / name).parent.mkdir(parents=True, exist_ok=True)
        (home / name).write_text(text)


def content(home: Path) -> dict[str, str]:
    found = (path for path in home.rglob("*") if path.is_file())
    return {path.relative_to(home).as_posix(): path.read_text() for path in found}


def change(home: Path) -> None:
    with changes_of(home) as changes:
        for name, text in NEW.items():
            if text == "new":
                (changes.path / name).parent.mkdir(exist_ok=True)
                write_text(changes.path / name, text)
        changes.remove("summary.json", "posterior.nc", "figures/*.png")


def killing(after: int, calls: Callable[..., Any], counter: list[int]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        counter[0] += 1
        if counter[0] > after:
            raise Killed
        return calls(*arguments, **named)

    return call


def test_a_change_replaces_adds_removes_and_leaves(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    change(tmp_path)
    assert content(tmp_path) == NEW


def test_killed_before_any_step_it_is_the_old_or_becomes_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every call that changes something on the disk, of this module and of those that write for it."""
    found = set()
    for after in range(200):
        home = tmp_path / str(after)
        write(home, OLD)
        counter = [0]
        with monkeypatch.context() as patched:
            for name in ("replace", "link", "unlink", "rmdir", "mkdir", "fsync"):
                patched.setattr(os, name, killing(after, getattr(os, name), counter))
            try:
                change(home)
            except Killed:
                is_killed = True
            else:
                is_killed = False
        complete_changes(home)
        left = {name: text for name, text in content(home).items() if not name.startswith(STAGING)}
        assert left in (OLD, NEW), after
        found.add(left["summary.json"])
        change(home)
        assert content(home) == NEW, "what was left is cleared by the next change"
        if not is_killed:
            break
    assert (found, is_killed) == ({"old", "new"}, False)
    assert after > 10


def test_an_error_before_the_end_changes_nothing(tmp_path: Path) -> None:
    write(tmp_path, OLD)

    def on_a_full_disk() -> None:
        with changes_of(tmp_path) as changes:
            write_text(changes.path / "summary.json", "new")
            raise OutputError(f"{changes.path}/posterior.nc: the disk is full")

    with pytest.raises(OutputError, match=f"^{tmp_path}/posterior.nc: the disk is full"):
        on_a_full_disk()
    assert content(tmp_path) == OLD


@pytest.mark.parametrize("name", ["../outside", "ABSOLUTE", "figures/../../outside", "linked/victim", ".", 7, ""])
def test_the_journal_of_a_stranger_reaches_nothing_outside(tmp_path: Path, name: Any) -> None:
    home, other = tmp_path / "run", tmp_path / "other"
    name = str(tmp_path / "outside") if name == "ABSOLUTE" else name
    write(home, OLD)
    write(tmp_path, {"outside": "kept", "other/victim": "kept"})
    (home / "linked").symlink_to(other)
    write(home / STAGING, {"journal.json": json.dumps({"remove": [name]})})
    with pytest.raises(OutputError, match=f"remove .*{STAGING}"):
        complete_changes(home)
    assert {**OLD}.items() <= content(home).items()
    assert ((tmp_path / "outside").read_text(), (other / "victim").read_text()) == ("kept", "kept")


def test_the_files_of_a_stranger_are_not_moved_through_links(tmp_path: Path) -> None:
    home, victim = tmp_path / "run", tmp_path / "victim"
    write(home, OLD)
    victim.write_text("kept")
    (home / "report.html").symlink_to(victim)
    write(home / STAGING, {"journal.json": json.dumps({"remove": []}), "report.html": "stranger"})
    with pytest.raises(OutputError, match="leads out of it"):
        complete_changes(home)
    assert victim.read_text() == "kept"


def test_files_that_are_kept_are_those_before(tmp_path: Path) -> None:
    write(tmp_path, OLD)
    with changes_of(tmp_path) as changes:
        write_text(changes.path / "summary.json", "new")
        changes.remove("figures/*.png")
        changes.keep("before")
    assert content(tmp_path) == {
        "summary.json": "new",
        "posterior.nc": "old",
        "notes.txt": "mine",
        "before/summary.json": "old",
        "before/figures/a.png": "old",
        "before/figures/b.png": "old",
    }
    assert not (tmp_path / folder_changes.STAGING).exists()
