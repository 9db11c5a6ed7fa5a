"""One importable name: `causalpima`, and in a checkout the names of its folders for the same modules."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import torch
from jaxtyping import TypeCheckError
from markdown_pages import ROOT

import causalpima
from causalpima import __main__ as console
from causalpima.models import dag

HOSTILE = "raise SystemExit('a foreign module was imported')\n"


def python(words: list[str], folder: Path, path: Path) -> str:
    """Standard output of a Python that sees the library path and one more folder."""
    environment = {**os.environ, "PYTHONPATH": str(path)}
    done = subprocess.run([sys.executable, *words], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_public_names_are_there() -> None:
    names = [name for name in dir(causalpima) if not name.startswith("_")]
    assert len(names) > 30
    assert {name for name in names if getattr(causalpima, name) is None} == set()


def test_names_of_folders_are_other_names_of_the_same_modules() -> None:
    for name in ("models.dag", "guides.guide", "inference.store.text", "inference.training.config", "examples"):
        short, full = importlib.import_module(name), importlib.import_module(f"causalpima.{name}")
        assert short is full
        assert full.__spec__ is not None
        assert full.__spec__.name == f"causalpima.{name}"
    assert importlib.import_module("inference.training").fit is causalpima.fit
    with pytest.raises(ModuleNotFoundError, match=r"inference\.nothing"):
        importlib.import_module("inference.nothing")


def test_commands_are_those_of_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    sources = {path.stem: path.read_text() for path in (ROOT / "inference").glob("*.py")}
    modules = {name for name, text in sources.items() if text.startswith(f'"""`python -m inference.{name}`')}
    assert set(console.COMMANDS) == modules
    assert console.main([]) == 0
    assert "causalpima COMMAND" in capsys.readouterr().out
    assert console.main(["fit"]) == 2
    assert "expected a command, got fit; one of svi" in capsys.readouterr().err
    assert console.main(["identify", "--nodes", "A=2,B=2"]) == 0


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, unpacked where nothing else lies."""
    folder, before = tmp_path_factory.mktemp("wheel"), Path.cwd()
    (copy := folder / "source").mkdir()
    for name in ("causalpima", "models", "guides", "inference", "examples", "pyproject.toml", "README.md", "LICENSE"):
        (copy / name).symlink_to(ROOT / name)
    os.chdir(copy)
    try:
        name = importlib.import_module("setuptools.build_meta").build_wheel(str(folder))
    finally:
        os.chdir(before)
    with zipfile.ZipFile(folder / name) as file:
        file.extractall(folder / "installed")
    return folder / "installed"


def test_the_wheel_has_one_name_and_everything_below_it(wheel: Path) -> None:
    assert {path.name for path in wheel.iterdir() if not path.name.endswith(".dist-info")} == {"causalpima"}
    sources = {path.relative_to(ROOT) for tree in ("models", "inference") for path in (ROOT / tree).rglob("*.py")}
    assert {path for path in sources if not (wheel / "causalpima" / path).is_file()} == set()
    assert list(wheel.glob("causalpima/inference/reporting/templates/*.html"))
    assert list(wheel.glob("causalpima/examples/data/*/*.npz"))
    assert (wheel / "causalpima" / "__init__.pyi").is_file()


def test_foreign_folders_do_not_disturb_an_installed_program(wheel: Path, tmp_path: Path) -> None:
    for name in ("models", "guides", "inference", "examples"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(HOSTILE)
    words = ["--nodes", "A=2,B=2"]
    assert "A" in python(["-m", "causalpima", "identify", *words], tmp_path, wheel)
    assert python(["-c", "import causalpima; print(causalpima.fit.__module__)"], tmp_path, wheel) == (
        "causalpima.inference.fit\n"
    )


def test_annotated_shapes_are_executed() -> None:
    with pytest.raises(TypeCheckError, match="trace_exponential"):
        dag.trace_exponential(torch.zeros(2, 3))
