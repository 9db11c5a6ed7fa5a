"""Code of a user's own that cells name as `module:NAME`: fits of one cell are of one and the same file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from inference.ablation.plan import Plan, PlannedCell
from inference.results.files import OutputError, write_json
from inference.results.input_files import read_json
from inference.results.run_folder import RunFolder
from inference.training.own_code import own_names, source_hashes

__all__ = ["CODE", "check_code", "keep_code"]

CODE = "code.json"
"""File with the hashes of a cell's code, by cell and setting."""


def check_code(plan: Plan) -> None:
    """Refuse a cell whose code changed after fits of it had begun, of whatever seeds.

    Raises:
        OutputError: Such a cell, by name, with the setting.
    """
    before = _kept(plan)
    folders = {fit.cell: fit.folder.parent for fit in plan.fits}
    begun = {cell for cell, folder in folders.items() if any(RunFolder(f).config.is_file() for f in folder.glob("*"))}
    for planned in plan.cells:
        name = planned.cell.name
        if name in begun and name in before:
            _check_cell(planned, before[name])


def _check_cell(planned: PlannedCell, before: Mapping[str, str]) -> None:
    now = _hashes(planned)
    changed = next((setting for setting in now if now[setting] != before.get(setting)), None)
    if changed is not None:
        what = own_names(planned.settings or {})[changed]
        raise OutputError(
            f"output_dir: expected the code of the earlier fits of {planned.cell.name}, got another file for "
            f"{changed} {what}; put it back, name another folder, or remove the fits in runs/{planned.cell.folder}"
        )


def keep_code(plan: Plan) -> None:
    """Leave the hashes of the code that cells name in the folder of the ablation; nothing where none names any."""
    now = {planned.cell.name: _hashes(planned) for planned in plan.cells}
    kept = {**_kept(plan), **{name: hashes for name, hashes in now.items() if hashes}}
    if kept:
        write_json(plan.folder / CODE, kept)


def _hashes(planned: PlannedCell) -> dict[str, str]:
    """Code that is not there, or fails, is told by the fit, which is refused."""
    try:
        return source_hashes(planned.settings or {})
    except ValueError:
        return {}


def _kept(plan: Plan) -> dict[str, Any]:
    try:
        content = read_json(plan.folder / CODE, plan.folder)
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}
