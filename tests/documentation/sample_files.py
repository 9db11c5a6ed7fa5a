"""The files of samples that documented commands read, made as their page makes them."""

from __future__ import annotations

import contextlib
import importlib
import io
from itertools import pairwise
from pathlib import Path

from markdown_pages import ROOT, Command, commands, parse_blocks

__all__ = ["make_sample_file"]

_WRITERS = ("to_netcdf", "to_csv")
_WHERE_ALL_IS_SAID = ROOT / "docs" / "own_data.md"


def make_sample_file(command: Command) -> None:
    """Make the file behind `--data` in the working folder, by a block or command of its page or of own_data.

    Raises:
        LookupError: No page makes it.
    """
    file = next((value for word, value in pairwise(command.words) if word == "--data"), None)
    if file is not None and not any(_made_on(page, file) for page in (command.block.page, _WHERE_ALL_IS_SAID)):
        raise LookupError(f"{command}: no page makes {file}")


def _made_on(page: Path, file: str) -> bool:
    for block in parse_blocks(page):
        if block.language == "python" and any(f'{writer}("{file}"' in block.text for writer in _WRITERS):
            exec(compile(block.text, str(block), "exec", dont_inherit=True), {"__name__": "page"})
            return True
        for prepare in commands(block) if block.language == "bash" else []:
            if prepare.words[2:3] == ("inference.prepare",) and file in prepare.words:
                return _prepare(prepare)
    return False


def _prepare(command: Command) -> bool:
    Path("docs").symlink_to(ROOT / "docs")
    with contextlib.redirect_stdout(io.StringIO()):
        return importlib.import_module("causalpima.inference.prepare").main(command.words[3:]) == 0
