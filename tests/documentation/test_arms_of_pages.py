"""Files of arms that a page shows can be copied: every arm of them can run on the data that the page names."""

from __future__ import annotations

from pathlib import Path

import pytest
from markdown_pages import ROOT, commands, parse_blocks

from causalpima.inference.ablate import parse
from causalpima.inference.command_line.ablate_plan import plan_of

BLOCKS = parse_blocks(ROOT / "docs" / "ablate.md")
ARMS = {block.text.split()[1].rstrip(":"): block.text for block in BLOCKS if block.language == "yaml"}
COMMANDS = {
    command.words[command.words.index("--arms") + 1]: command.words[3:]
    for block in BLOCKS
    if block.language == "bash"
    for command in commands(block)
    if "--arms" in command.words
}


def test_every_file_has_a_command() -> None:
    assert set(ARMS) == set(COMMANDS) == {"arms.yaml", "methods.yaml"}


@pytest.mark.parametrize("name", ARMS)
def test_every_arm_can_run(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(ARMS[name])
    assert {
        planned.cell.name: planned.refusal for planned in plan_of(parse(COMMANDS[name])).cells if planned.refusal
    } == {}
