"""Settings of an ablation, its cells, and its plan."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from causalpima.inference.ablation.plan import (
    Cell,
    Plan,
    as_words,
    assignment,
    cells_of,
    planned,
    read_arms,
    spread_over_modalities,
    value_text,
    varied,
)


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("a=1", ("1",)),
        ("a=1, 2", ("1", "2")),
        ("a.sizes=[64,32],[8]", ("[64,32]", "[8]")),
        ('read_outs={"image": "moments", "b": "values"},{}', ('{"image": "moments", "b": "values"}', "{}")),
        ("nodes=2,2;4", ("2,2", "4")),
        ("model.graph=fixed:a.csv,exact", ("fixed:a.csv", "exact")),
        ("environments.targets=do(hue=1)=hue", ("do(hue=1)=hue",)),
    ],
)
def test_values_are_parted_by_commas_outside_of_brackets(text: str, values: tuple[str, ...]) -> None:
    assert varied(text) == (text.partition("=")[0], values)


@pytest.mark.parametrize("text", ["a", "=1", "a=", "a=1,,2", "a=1,1", "a=1;"])
def test_what_is_no_list_of_values_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^vary: expected"):
        varied(text)


def test_dashes_before_a_flag_are_no_part_of_its_name() -> None:
    assert assignment("--seed=1") == ("seed", "1")


def test_values_of_files_are_written_as_on_a_command_line() -> None:
    assert [value_text(value) for value in ("dag", True, None, 3, 1e-4, [64, 32])] == [
        "dag",
        "true",
        "null",
        "3",
        "0.0001",
        "[64, 32]",
    ]


def test_a_star_is_every_modality_and_a_name_goes_over_it() -> None:
    flags = {"modality.b.weight": "2", "modality.*.weight": "1", "objective": "paper"}
    assert spread_over_modalities(flags, ["a", "b"]) == {
        "modality.a.weight": "1",
        "modality.b.weight": "2",
        "objective": "paper",
    }


def test_a_switch_stands_alone_or_not_at_all() -> None:
    assert as_words([("paper_settings", "true"), ("a", "1")]) == ("--paper_settings", "--a=1")
    assert as_words([("paper_settings", "false")]) == ()
    with pytest.raises(ValueError, match="paper_settings: expected true or false"):
        as_words([("paper_settings", "maybe")])


def test_a_grid_has_every_combination_and_the_last_flag_changes_fastest() -> None:
    cells = cells_of((), [("p", ("1", "2")), ("q", ("x", "y"))])
    assert [cell.name for cell in cells] == ["p=1,q=x", "p=1,q=y", "p=2,q=x", "p=2,q=y"]
    assert cells[1].flags == {"p": "1", "q": "y"}


def test_arms_and_a_grid_are_combined() -> None:
    cells = cells_of([Cell("plain", {}), Cell("slow", {"r": "0"})], [("p", ("1", "2"))])
    assert [cell.name for cell in cells] == ["plain,p=1", "plain,p=2", "slow,p=1", "slow,p=2"]
    assert cells[3].flags == {"p": "2", "r": "0"}


def test_an_arm_that_sets_what_is_varied_is_refused() -> None:
    with pytest.raises(ValueError, match="vary: expected flags that no arm sets, got p, which slow sets"):
        cells_of([Cell("plain", {}), Cell("slow", {"p": "9"})], [("p", ("1", "2"))])


def test_nothing_to_compare_and_a_flag_twice_are_refused() -> None:
    with pytest.raises(ValueError, match="vary: expected something to compare"):
        cells_of((), [])
    with pytest.raises(ValueError, match="vary: expected every flag once, got p, p"):
        cells_of((), [("p", ("1",)), ("p", ("2",))])


def test_arms_are_read_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "arms.yaml"
    path.write_text("plain:\n'β-VAE, β = 4': {model.prior: standard, kl_weight: 4, read_out.final: false}\n", "utf-8")
    assert read_arms(path) == (
        Cell("plain", {}),
        Cell("β-VAE, β = 4", {"model.prior": "standard", "kl_weight": "4", "read_out.final": "false"}),
    )


@pytest.mark.parametrize("text", ["", "- a\n", "a: 3\n", "a: [\n"])
def test_a_file_without_arms_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "arms.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=r"^arms: expected .*arms\.yaml"):
        read_arms(path)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("a: {p: 1}\nb: {}\na: {p: 2}\n", "got 'a' twice"),
        ("a: {p: 1, p: 2}\n", "got 'p' twice"),
        ("'': {}\n", "a name on one line"),
        ('"x\\ny": {}\n', "a name on one line"),
        ('"\\e[31m": {}\n', "a name on one line"),
        ("a: {p: !!set {x}}\n", "got the tag"),
        ("a: {p: &x [*x]}\n", "alias"),
    ],
)
def test_what_would_be_lost_or_has_no_text_is_refused(tmp_path: Path, text: str, reason: str) -> None:
    path = tmp_path / "arms.yaml"
    path.write_text(text, "utf-8")
    with pytest.raises(ValueError, match=rf"^arms: expected .*{reason}"):
        read_arms(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="No such file"):
        read_arms(tmp_path / "none.yaml")


def test_folders_of_cells_are_safe_and_differ() -> None:
    names = ["a=1,b=x", "a/b", "a:b", "..", "β", "x" * 300, "x" * 299, "A B", "𝒜" * 90, "𝒜" * 91]
    folders = [Cell(name, {}).folder for name in names]
    assert folders[0] == "a=1,b=x"
    assert len(set(folders)) == len(folders)
    assert all("/" not in folder and not folder.startswith(".") and len(folder.encode()) < 100 for folder in folders)


def settings(words: Sequence[str]) -> dict[str, Any]:
    """Settings of a data set with two modalities; a learning rate below zero is refused."""
    given = dict(word.removeprefix("--").split("=", 1) for word in words)
    if given.get("rate", "1").startswith("-"):
        raise ValueError(f"rate: expected more than 0,\n got {given['rate']}")
    return {**given, "modality": {"a": {}, "b": {}}, "restarts": int(given.get("restarts", 1))}


def plan(cells: Sequence[Cell]) -> Plan:
    found = planned(cells, ["--data=x"], {"modality.*.weight": "1"}, 3, settings)
    return Plan(Path("out"), found, (3, 5), cells[0].name)


def test_refused_cells_have_a_reason_and_no_fits() -> None:
    found = plan([Cell("one", {"rate": "1"}), Cell("two", {"rate": "-1"})])
    assert [cell.refusal for cell in found.cells] == [None, "rate: expected more than 0, got -1"]
    assert [(fit.cell, fit.seed) for fit in found.fits] == [("one", 3), ("one", 5)]
    assert found.fits[0].words == (
        "--data=x",
        "--modality.a.weight=1",
        "--modality.b.weight=1",
        "--rate=1",
        "--seed=3",
    )
    assert found.fits[1].folder == Path("out/runs/one/seed-5")
    assert found.fits[1].log == Path("out/runs/one/seed-5.log")


def test_all_cells_have_a_seed_before_the_next_one_begins() -> None:
    found = plan([Cell("one", {}), Cell("two", {})])
    assert [(fit.cell, fit.seed) for fit in found.fits] == [("one", 3), ("two", 3), ("one", 5), ("two", 5)]


def test_a_setting_of_a_cell_goes_over_that_of_all() -> None:
    found = plan([Cell("one", {"modality.*.weight": "7"})])
    assert found.fits[0].words[1:3] == ("--modality.a.weight=7", "--modality.b.weight=7")


def test_several_starts_of_a_fit_run_one_after_the_other() -> None:
    found = plan([Cell("one", {"restarts": "4"}), Cell("two", {"restarts": "4", "restart_mode": "batched"})])
    assert "--jobs=1" in found.fits[0].words
    assert "--jobs=1" not in found.fits[1].words


def test_cells_of_one_name_are_refused() -> None:
    with pytest.raises(ValueError, match="two of one"):
        plan([Cell("one", {}), Cell("one", {"rate": "2"})])


@pytest.mark.parametrize("name", ["seed", "output_dir", "json", "stop_after", "resume"])
def test_flags_that_would_distinguish_no_cell_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=rf"^{name}: expected no such flag"):
        plan([Cell("one", {name: "1"}), Cell("two", {name: "2"})])
