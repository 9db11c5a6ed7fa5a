"""Code of a user's own that changes between the fits of an ablation."""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from causalpima.inference.ablation.plan import CODE, Cell, Plan, PlannedCell, check_code, keep_code
from causalpima.inference.command_line.ablate_plan import check_unchanged
from causalpima.inference.store.files import OutputError

MODULE = "code_of_mine"
Write = Callable[[str], None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes the file of the module, as another process finds it."""
    monkeypatch.chdir(tmp_path)

    def write(text: str) -> None:
        (tmp_path / f"{MODULE}.py").write_text(text)
        sys.modules.pop(MODULE, None)
        importlib.invalidate_caches()

    yield write
    sys.modules.pop(MODULE, None)


def plan(folder: Path, *cells: str) -> Plan:
    """Cells of which `own` names code of a user's."""
    fusions = {"own": f"{MODULE}:Mine", "absent": "no_such_code:X"}
    settings = {name: {"guide": {"fusion": fusions.get(name, "poe")}} for name in cells}
    return Plan(folder, tuple(PlannedCell(Cell(n, {}), (), settings[n]) for n in cells), (0, 1), cells[0])


def begin(of: Plan, cell: str) -> None:
    fit = next(fit for fit in of.fits if fit.cell == cell)
    fit.folder.mkdir(parents=True)
    settings = next(planned.settings for planned in of.cells if planned.cell.name == cell)
    (fit.folder / "config.yaml").write_text(json.dumps({**(settings or {}), "seed": fit.seed}))


def test_a_change_after_a_fit_is_refused_by_cell_and_setting(tmp_path: Path, write: Write) -> None:
    there = plan(tmp_path / "out", "poe", "own")
    there.folder.mkdir()
    write("Mine = 1\n")
    check_code(there)
    keep_code(there)
    begin(there, "own")
    check_code(there)
    write("Mine = 2\n")
    for again in (there, plan(there.folder, "own")):
        with pytest.raises(OutputError, match=rf"earlier fits of own, .* guide.fusion {MODULE}:Mine; .* runs/own$"):
            check_code(again)
    check_code(plan(there.folder, "poe"))
    with pytest.raises(OutputError, match="earlier fits of own"):
        check_code(replace(there, seeds=(7,)))
    write("Mine = 1\n")
    check_code(there)


def test_a_change_before_any_fit_is_none(tmp_path: Path, write: Write) -> None:
    there = plan(tmp_path / "out", "poe", "own")
    there.folder.mkdir()
    for text in ("Mine = 1\n", "Mine = 2\n"):
        write(text)
        check_code(there)
        keep_code(there)
    begin(there, "own")
    check_code(there)


def test_a_cell_that_is_left_out_for_a_while_is_not_forgotten(tmp_path: Path, write: Write) -> None:
    there = plan(tmp_path / "out", "poe", "own")
    there.folder.mkdir()
    write("Mine = 1\n")
    keep_code(there)
    begin(there, "own")
    keep_code(plan(there.folder, "poe"))
    write("Mine = 2\n")
    with pytest.raises(OutputError, match="earlier fits of own"):
        check_code(there)


def test_nothing_is_left_where_no_cell_has_code_and_code_that_is_not_there_is_for_the_fit(tmp_path: Path) -> None:
    there = plan(tmp_path, "poe", "absent")
    keep_code(there)
    check_code(there)
    assert not (tmp_path / CODE).exists()


def test_a_plan_is_compared_with_its_folder(tmp_path: Path, write: Write) -> None:
    there = plan(tmp_path / "out", "own")
    there.folder.mkdir()
    (there.folder / "ablation.json").write_text("{}")
    write("Mine = 1\n")
    keep_code(there)
    kept = json.loads((there.folder / CODE).read_text())
    assert list(kept["own"]) == ["guide.fusion"]
    begin(there, "own")
    check_unchanged(there)
    write("Mine = 2\n")
    with pytest.raises(OutputError, match=r"got another file for guide\.fusion"):
        check_unchanged(there)
