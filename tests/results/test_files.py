"""Atomic writing: whole or absent, and errors that say what to do."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from causalpima.inference.store import files
from causalpima.inference.store.files import (
    OutputError,
    make_folder,
    remove_partials,
    write_atomically,
    write_bytes,
    write_folder_atomically,
    write_json,
    write_text,
)


def _names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def _half_then(error: BaseException) -> Callable[[Path], None]:
    def write(path: Path) -> None:
        target = path / "part" if path.is_dir() else path
        target.write_text("half")
        raise error

    return write


def test_text_is_replaced_whole(tmp_path: Path) -> None:
    path = tmp_path / "summary.txt"
    write_text(path, "a longer first text")
    write_text(path, "größer → µ")
    assert path.read_text(encoding="utf-8") == "größer → µ"
    assert _names(tmp_path) == ["summary.txt"]


def test_bytes_and_json(tmp_path: Path) -> None:
    write_bytes(tmp_path / "a.bin", memoryview(b"\x00\xff"))
    write_json(tmp_path / "a.json", [{"x": [1, float("nan")]}])
    assert (tmp_path / "a.bin").read_bytes() == b"\x00\xff"
    assert (tmp_path / "a.json").read_text() == '[\n  {\n    "x": [\n      1,\n      null\n    ]\n  }\n]\n'


@pytest.mark.parametrize("error", [KeyboardInterrupt(), RuntimeError("writer"), SystemExit(1)])
def test_failing_writer_leaves_the_old_file_alone(tmp_path: Path, error: BaseException) -> None:
    path = tmp_path / "summary.json"
    write_text(path, "old")
    with pytest.raises(type(error)):
        write_atomically(path, _half_then(error))
    assert path.read_text() == "old"
    assert _names(tmp_path) == ["summary.json"]


def test_the_writer_sees_the_ending_of_the_target(tmp_path: Path) -> None:
    seen: list[Path] = []

    def writer(path: Path) -> None:
        seen.append(path)
        path.touch()

    write_atomically(tmp_path / "graph.png", writer)
    assert seen[0].suffix == ".png"
    assert seen[0].parent == tmp_path
    assert seen[0].name.startswith(".")


def test_content_is_synced_before_it_is_renamed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    steps: list[str] = []
    sync, replace = os.fsync, os.replace

    def note_sync(descriptor: int) -> None:
        steps.append("sync")
        sync(descriptor)

    def note_replace(source: Path, target: Path) -> None:
        steps.append("replace")
        replace(source, target)

    monkeypatch.setattr(os, "fsync", note_sync)
    monkeypatch.setattr(os, "replace", note_replace)
    write_text(tmp_path / "a", "x")
    assert steps == ["sync", "replace", "sync"]


def test_new_files_have_the_usual_permissions(tmp_path: Path) -> None:
    (tmp_path / "plain").write_text("")
    write_text(tmp_path / "atomic", "")
    write_folder_atomically(tmp_path / "folder", lambda path: None)
    (tmp_path / "plain_folder").mkdir()
    assert (tmp_path / "atomic").stat().st_mode == (tmp_path / "plain").stat().st_mode
    assert (tmp_path / "folder").stat().st_mode == (tmp_path / "plain_folder").stat().st_mode


def test_a_link_stays_a_link(tmp_path: Path) -> None:
    (tmp_path / "real").write_text("old")
    (tmp_path / "link").symlink_to("real")
    write_text(tmp_path / "link", "new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text() == "new"


def test_standard_output_is_written_directly() -> None:
    script = "from causalpima.inference.store.files import write_json; write_json('/dev/stdout', ['a'])"
    root = str(Path(files.__file__).parents[2])
    out = subprocess.run([sys.executable, "-c", script], capture_output=True, cwd=root, check=True, text=True)
    assert out.stdout == '[\n  "a"\n]\n'


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (errno.ENOSPC, "the disk is full; free some space"),
        (errno.EDQUOT, "quota is used up; free some space"),
        (errno.EACCES, "permission denied; choose a folder that you may write to"),
        (errno.EROFS, "read-only; choose a folder that you may write to"),
        (errno.EFBIG, "larger than a file may be"),
        (errno.EIO, f"{os.strerror(errno.EIO)}; choose another place"),
    ],
)
def test_system_errors_become_one_line_of_advice(tmp_path: Path, number: int, message: str) -> None:
    path = tmp_path / "posterior.nc"
    with pytest.raises(OutputError, match=f"cannot write .*posterior.nc: .*{message}") as caught:
        write_atomically(path, _half_then(OSError(number, os.strerror(number))))
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, ValueError)
    assert _names(tmp_path) == []


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_disk_that_is_really_full() -> None:
    with pytest.raises(OutputError, match="cannot write /dev/full: the disk is full"):
        write_text("/dev/full", "x" * 100_000)


def test_a_limit_that_is_really_reached(tmp_path: Path) -> None:
    script = (
        "import resource, signal, sys\n"
        "from causalpima.inference.store.files import OutputError, write_bytes\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_bytes(sys.argv[1], bytes(5000))\n"
        "except OutputError as error:\n"
        "    print(error)\n"
    )
    root = str(Path(files.__file__).parents[2])
    command = [sys.executable, "-c", script, str(tmp_path / "big")]
    out = subprocess.run(command, capture_output=True, cwd=root, check=True, text=True)
    assert "larger than a file may be here" in out.stdout
    assert _names(tmp_path) == []


def test_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="its folder does not exist; create it"):
        write_text(tmp_path / "absent" / "a.json", "x")


def test_target_is_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    with pytest.raises(OutputError, match="a folder of that name is there; choose another name"):
        write_text(tmp_path / "a", "x")
    assert _names(tmp_path) == ["a"]


def test_folder_is_a_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("")
    with pytest.raises(OutputError, match="a part of the path is a file"):
        write_text(tmp_path / "a" / "b", "x")
    with pytest.raises(OutputError, match="a part of the path is a file"):
        make_folder(tmp_path / "a" / "b")
    with pytest.raises(OutputError, match="a file of that name is there; remove it"):
        make_folder(tmp_path / "a")


def test_folder_that_is_not_writable(tmp_path: Path) -> None:
    tmp_path.chmod(0o555)
    if os.access(tmp_path, os.W_OK):
        pytest.skip("this user may write everywhere")
    with pytest.raises(OutputError, match="permission denied"):
        write_text(tmp_path / "a", "x")


def test_folders_are_replaced_whole(tmp_path: Path) -> None:
    target = make_folder(tmp_path / "runs" / "one") / "epoch"
    write_folder_atomically(target, lambda path: (path / "old").write_text("1"))
    write_folder_atomically(target, lambda path: (path / "new").write_text("2"))
    assert _names(target) == ["new"]
    assert _names(target.parent) == ["epoch"]


@pytest.mark.parametrize("error", [KeyboardInterrupt(), OSError(errno.ENOSPC, "full")])
def test_failing_writer_leaves_the_old_folder_alone(tmp_path: Path, error: BaseException) -> None:
    target = tmp_path / "epoch"
    write_folder_atomically(target, lambda path: (path / "old").write_text("1"))
    with pytest.raises((KeyboardInterrupt, OutputError)):
        write_folder_atomically(target, _half_then(error))
    assert _names(target) == ["old"]
    assert _names(tmp_path) == ["epoch"]


def test_leftovers_of_killed_writers_are_removed_and_nothing_else(tmp_path: Path) -> None:
    def killed(path: Path) -> None:
        path.touch()
        raise KeyboardInterrupt

    kept = [".hidden", ".notes-x.partial", "a-0123abcd.partial", "data.nc"]
    for name in kept:
        (tmp_path / name).write_text("")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(files, "_discard", lambda path: None)
        for write in (write_atomically, write_folder_atomically):
            with pytest.raises(KeyboardInterrupt):
                write(tmp_path / "left.nc", killed)
    assert len(_names(tmp_path)) == 6
    remove_partials(tmp_path)
    assert _names(tmp_path) == kept


_WRITER = """
import sys, time
from causalpima.inference.store.files import write_atomically
def write(path):
    path.write_text("half")
    print("writing", flush=True)
    sys.stdin.read(1)
    path.write_text("whole")
write_atomically(sys.argv[1], write)
"""


def _start_writer(target: Path) -> subprocess.Popen[str]:
    root = str(Path(files.__file__).parents[2])
    command = [sys.executable, "-c", _WRITER, str(target)]
    process = subprocess.Popen(command, cwd=root, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "writing\n"
    return process


def test_the_next_write_clears_what_a_killed_one_left_and_not_what_is_in_use(tmp_path: Path) -> None:
    target = tmp_path / "out.nc"
    (tmp_path / ".other-0123abcd.partial.nc").write_text("of another file")
    with _start_writer(target) as killed, _start_writer(target) as alive:
        killed.kill()
        killed.wait()
        assert len(_names(tmp_path)) == 3
        write_text(target, "meanwhile")
        assert len(_names(tmp_path)) == 3, "of the one that is alive, out.nc, and that of another file"
        remove_partials(tmp_path)
        assert len(_names(tmp_path)) == 2
        alive.communicate("x")
    assert alive.returncode == 0
    assert target.read_text() == "whole"
    assert _names(tmp_path) == ["out.nc"]
