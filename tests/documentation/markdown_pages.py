"""The pages of the documentation, their code blocks, and the command lines in them."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from pathlib import Path

__all__ = ["PAGES", "ROOT", "Block", "Command", "commands", "links", "page_id", "parse_blocks"]

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCE = re.compile(r"(?P<indent> *)```(?P<language>\S*)\s*$")
_NO_RUN = re.compile(r"<!-- no-run: (?P<reason>.+) -->$")
_LINK = re.compile(r"\]\((?P<target>[^)#\s]+)[^)]*\)")
_CHECKED = re.compile(r"(\.venv/bin/)?python -m inference\.|make(\s|$)")


@dataclass(frozen=True)
class Block:
    """A fenced block: its page, the line of its opening fence, its language and text, and why it is not run, if so."""

    page: Path
    line: int
    language: str
    text: str
    no_run: str | None

    def __str__(self) -> str:
        """The place, as an editor opens it."""
        return f"{page_id(self.page)}:{self.line}"


@dataclass(frozen=True)
class Command:
    """A command line of a bash block, split into words."""

    block: Block
    words: tuple[str, ...]

    def __str__(self) -> str:
        """The command line as it stands on its page."""
        return f"{page_id(self.block.page)}: {shlex.join(self.words)}"


def page_id(page: Path) -> str:
    """The page's path from the root of the repository, or from its own folder."""
    return page.relative_to(ROOT).as_posix() if ROOT in page.parents else page.name


def parse_blocks(page: Path) -> list[Block]:
    """Fenced blocks of a page, in order.

    Raises:
        ValueError: A fence is never closed.
    """
    found, lines = [], page.read_text(encoding="utf-8").splitlines()
    number = 0
    while number < len(lines):
        fence = _FENCE.match(lines[number])
        number += 1
        if fence is None:
            continue
        begin, closing = number, fence["indent"] + "```"
        while number < len(lines) and lines[number].rstrip() != closing:
            number += 1
        if number == len(lines):
            raise ValueError(f"{page_id(page)}:{begin}: expected a closing fence, got the end of the page")
        text = "\n".join(line.removeprefix(fence["indent"]) for line in lines[begin:number])
        found.append(Block(page, begin, fence["language"], text + "\n", _no_run_reason(lines[: begin - 1])))
        number += 1
    return found


def _no_run_reason(lines_before: list[str]) -> str | None:
    last = next((line.strip() for line in reversed(lines_before) if line.strip()), "")
    mark = _NO_RUN.match(last)
    return mark["reason"] if mark else None


def commands(block: Block) -> list[Command]:
    """The lines of a bash block that run this project's commands or its Makefile."""
    lines = (line.strip() for line in block.text.replace("\\\n", " ").splitlines())
    return [Command(block, tuple(shlex.split(line, comments=True))) for line in lines if _CHECKED.match(line)]


def links(page: Path) -> list[str]:
    """Targets of the page's links and pictures that are files of the repository."""
    targets = (link["target"] for link in _LINK.finditer(page.read_text(encoding="utf-8")))
    return [target for target in targets if "://" not in target and not target.startswith("mailto:")]
