"""The README and docs/ do what they say: Python blocks run, commands exist and parse, links lead somewhere."""

from __future__ import annotations

import importlib
import importlib.util
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from types import ModuleType

import pytest
from fresh_modules import run_afresh
from markdown_pages import PAGES, ROOT, Block, Command, commands, links, page_id, parse_blocks
from sample_files import make_sample_file

LANGUAGES = {"python", "bash", "text", "json", "yaml", "toml", "csv", "bibtex", "math"}

BLOCKS = [block for page in PAGES for block in parse_blocks(page)]
COMMANDS = [command for block in BLOCKS if block.language == "bash" and not block.no_run for command in commands(block)]
MAKE = list({command.words: command for command in COMMANDS if command.words[0] == "make"}.values())  # each once
INFERENCE = [command for command in COMMANDS if command.words[0] != "make"]


def run_blocks(blocks: list[Block], namespace: str) -> None:
    """Execute blocks one after the other in one namespace; tracebacks name the page and its line."""
    module = sys.modules[namespace] = ModuleType(namespace)
    try:
        for block in blocks:
            source = "\n" * block.line + block.text
            exec(compile(source, page_id(block.page), "exec", dont_inherit=True), module.__dict__)
    finally:
        del sys.modules[namespace]


def runnable(page: Path) -> list[Block]:
    return [block for block in parse_blocks(page) if block.language == "python" and not block.no_run]


@pytest.mark.end_to_end
@pytest.mark.parametrize("page", [page for page in PAGES if runnable(page)], ids=page_id)
def test_python_blocks_run(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_blocks(runnable(page), f"page_{page.stem}")


def test_blocks_that_are_left_out_are_told() -> None:
    left_out = [f"{block}: {block.no_run}" for block in BLOCKS if block.no_run]
    if left_out:
        pytest.skip("; ".join(left_out))


def test_names_that_pages_import_are_there() -> None:
    """Also in blocks that are not run."""
    found = [
        (page_id(page), module, name.strip())
        for page in PAGES
        for module, names in re.findall(
            r"^\s*from (causalpima[\w.]*) import ([\w, ]+)$", page.read_text(encoding="utf-8"), re.MULTILINE
        )
        for name in names.split(",")
    ]
    assert len(found) > 50
    assert [
        (page, module, name)
        for page, module, name in found
        if not hasattr(importlib.import_module(module), name) and importlib.util.find_spec(f"{module}.{name}") is None
    ] == []


def test_what_is_to_be_installed_is_on_the_index() -> None:
    """This package itself is not: `pip install 'causalpima[zarr]'` finds nothing; `.` is a folder."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    asked = [*project["dependencies"], *chain.from_iterable(project["optional-dependencies"].values())]
    known = {re.split(r"[^\w-]", requirement)[0] for requirement in asked} | {"pre-commit"}
    sources = [path for top in ("models", "guides", "inference", "examples") for path in (ROOT / top).rglob("*.py")]
    said = [
        (page_id(path) if path in PAGES else path.name, word)
        for path in [*PAGES, *sources]
        for word in re.findall(r"pip install\s+([^\s`]+)", path.read_text(encoding="utf-8"))
    ]
    assert {"zarr", "optuna", "causal-learn"} <= {word.strip("\"'.,;)") for _, word in said}
    assert [(place, word) for place, word in said if word != "." and word.strip("\"'.,;)") not in known] == []


@pytest.mark.end_to_end
@pytest.mark.parametrize("module", sorted({command.words[2] for command in INFERENCE}))
def test_documented_commands_have_help(module: str) -> None:
    status, said = run_afresh(module, "--help")
    assert status == 0, said
    assert "usage:" in said


@pytest.mark.end_to_end
def test_a_command_that_fails_is_seen() -> None:
    assert run_afresh("causalpima.inference.svi", "--no_such_setting")[0] == 2
    status, said = run_afresh("inference.no_such_command")
    assert status != 0
    assert "No module named inference.no_such_command" in said


@pytest.mark.end_to_end
@pytest.mark.parametrize("command", INFERENCE, ids=str)
def test_documented_commands_parse(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if "--data" in command.words:
        monkeypatch.chdir(tmp_path)
        make_sample_file(command)
    module, *arguments = command.words[2:]
    parser = importlib.import_module(module)
    if arguments != ["--help"]:
        parser.parse(arguments)


@pytest.mark.parametrize("command", MAKE, ids=str)
def test_documented_targets_exist(command: Command) -> None:
    shown = subprocess.run(["make", "-n", *command.words[1:]], cwd=ROOT, capture_output=True, text=True)
    assert shown.returncode == 0, shown.stderr


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_every_block_names_a_known_language(block: Block) -> None:
    assert block.language in LANGUAGES, f"{block}: a block without a language is run by no test"


@pytest.mark.parametrize("page", PAGES, ids=page_id)
def test_links_lead_to_files(page: Path) -> None:
    missing = [target for target in links(page) if not (page.parent / target).exists()]
    assert not missing


def test_the_index_lists_every_page() -> None:
    listed = {(ROOT / "docs" / target).resolve() for target in links(ROOT / "docs" / "index.md")}
    assert {page for page in PAGES if ROOT / "docs" in page.parents} - {ROOT / "docs" / "index.md"} <= listed


def test_every_example_is_named_on_a_page() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    names = [path.stem for path in (ROOT / "examples").glob("[a-z]*.py")]
    assert [name for name in names if f"--dataset {name}" not in text and f"examples/{name}.py" not in text] == []


def test_a_failing_block_fails_and_names_its_line(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("# Title\n\n```python\nx = 1\n```\n\n```python\nx += 1\nassert x == 1\n```\n", encoding="utf-8")
    with pytest.raises(AssertionError) as failure:
        run_blocks(parse_blocks(page), "page_failing")
    assert str(failure.traceback[-1].path).endswith("page.md")
    assert failure.traceback[-1].lineno + 1 == 9
