"""The mutants of a file, what they change, and the comparison of two studies of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from mutants import Mutant, compare, importers, main, mutants_of, mutate, sample

SOURCE = """\
def f(x: int = 3) -> float:
    if x < 2:
        return x + 0.5
    return None
"""


def test_every_kind_of_change_is_made_once_and_annotations_stay() -> None:
    found = {mutant.change: mutate(mutant, SOURCE) for mutant in mutants_of("f.py", SOURCE)}
    assert set(found) == {"Lt -> LtE", "Add -> Sub", "3 -> 4", "2 -> 3", "0.5 -> 1.5", "return None"}
    assert "if x <= 2" in found["Lt -> LtE"]
    assert "return x - 0.5" in found["Add -> Sub"]
    assert "x < 3" in found["2 -> 3"]
    assert all("x: int" in text and "-> float" in text for text in found.values())


def test_another_source_is_refused() -> None:
    with pytest.raises(ValueError, match="expected the source that it was sampled from, got another"):
        mutate(Mutant("f.py", 0, 1, "Lt -> LtE"), "x = 1")


def write(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")


def test_the_seed_alone_decides_and_tests_are_found_through_helpers(tmp_path: Path) -> None:
    write(
        tmp_path,
        {
            "models/f.py": SOURCE,
            "tests/helper.py": "from causalpima.models.f import f",
            "tests/test_a.py": "from helper import f",
            "tests/test_b.py": "import causalpima.models.f",
        },
    )
    assert sample(tmp_path, 3, 1) == sample(tmp_path, 3, 1) != sample(tmp_path, 3, 2)
    assert importers(tmp_path)["models.f"] == ["tests/test_b.py", "tests/test_a.py"]


def test_what_was_killed_and_survives_now_is_listed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {name: {"outcome": outcome} for name, outcome in (("a", "killed"), ("b", "survived"), ("c", "killed"))}
    after = {name: {"outcome": outcome} for name, outcome in (("a", "survived"), ("b", "survived"), ("c", "killed"))}
    assert compare(before, after) == ["a"]
    assert compare(after, before) == []
    write(tmp_path, {"x.json": '{"a": {"outcome": "killed"}}', "y.json": '{"a": {"outcome": "survived"}}'})
    assert main(["--compare", str(tmp_path / "x.json"), str(tmp_path / "y.json")]) == 1
    assert "killed before and not now: 1\na" in capsys.readouterr().out
