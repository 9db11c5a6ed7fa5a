"""One fit of an ablation: what it leaves when it cannot run."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference import svi
from causalpima.inference.ablate_worker import main
from causalpima.inference.store.run_folder import RunFolder


def test_refused_settings_are_wrong_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(tmp_path / "run"), "-", "--dataset=nonsense"]) == 2
    assert capsys.readouterr().err.startswith("svi: error: dataset: expected")


def test_a_folder_in_use_refuses_no_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.path.mkdir()

    def command(argv: object) -> int:
        with folder.in_use():
            return 0

    monkeypatch.setattr(svi, "command", command)
    with folder.in_use():
        assert main([str(folder.path), "-", "--dataset=circles"]) == 4
    assert "in use by another process" in capsys.readouterr().err


def test_a_bug_keeps_its_traceback(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def command(argv: object) -> int:
        raise RuntimeError("a bug")

    monkeypatch.setattr(svi, "command", command)
    with pytest.raises(RuntimeError, match="a bug"):
        main([str(tmp_path), "-"])
