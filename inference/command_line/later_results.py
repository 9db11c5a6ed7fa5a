"""Results of a command about a finished run are kept in its folder, and its page is written anew."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from inference.results.files import OutputError, make_folder, write_json
from inference.results.page.content import RunContent
from inference.results.report import write_report
from inference.results.run_folder import RunFolder

__all__ = ["keep_results"]


def keep_results(
    folder: RunFolder,
    name: str,
    results: Mapping[str, Any],
    write_figures: Callable[[Path], object],
    json: Path | None = None,
    figures: Path | None = None,
    write_files: Callable[[Path], object] = lambda _: None,
) -> None:
    """Write `NAME.json` and figures into the folder of the run, and its page with them, in one step.

    A folder that cannot be written to keeps nothing, and this is told; what was asked for elsewhere is written.

    Args:
        folder: The folder of the run.
        name: Of the command, `check`.
        results: What it found.
        write_figures: Writes its figures into a folder.
        json: Another file for the results, or None.
        figures: Another folder for the figures, or None.
        write_files: Writes further files into the folder of the run.

    Raises:
        OutputError: The other file or folder cannot be written.
    """
    if json is not None:
        write_json(json, results)
    if figures is not None:
        write_figures(figures)
    try:
        with folder.in_use(), folder.changes() as changes:
            write_json(changes.path / f"{name}.json", results)
            write_figures(make_folder(changes.path / "figures"))
            write_files(changes.path)
            write_report(RunContent.of_folder(folder, changed=changes.path), changes.path / "report.html")
    except OutputError as error:
        print(f"note: not kept in the folder of the run: {error}", file=sys.stderr)
