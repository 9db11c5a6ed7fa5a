"""Arms and calls of the tables of ablations, and the page that they are written into."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml
from ablation_pages import gap_table, put, write_pages
from ablations import HERE, SOURCES, TABLES, arms_of, calls, runs_of, without_likelihood

from causalpima.inference.ablate import parse
from causalpima.inference.ablation.records import Record, write_records
from causalpima.inference.command_line.ablate_plan import plan_of

BASELINE = "causalPIMA"


@pytest.mark.parametrize(("table", "name"), [(table, name) for table in TABLES for name in TABLES[table].sources])
def test_every_arm_is_legal_on_every_data_set(tmp_path: Path, table: str, name: str) -> None:
    if SOURCES[name].dataset == "mfeat" and not (HERE.parents[1] / "shared").is_dir():
        pytest.skip("no ../shared beside the repository: the reference data are not here")
    n_arms = 0
    for call in list(calls(table, name, 2, tmp_path))[:2]:
        call.arms_file.parent.mkdir(exist_ok=True)
        call.arms_file.write_text(yaml.safe_dump(dict(call.arms)), encoding="utf-8")  # no file of the data set
        own = ["--arms", str(call.arms_file), "--seeds", call.seeds, "--output_dir", str(call.folder)]
        plan = plan_of(parse([*call.words, *own, "--metrics", ",".join(TABLES[table].metrics)]))
        assert [planned.refusal for planned in plan.cells] == [None] * len(call.arms)
        n_arms += len(call.arms)
    assert n_arms == len(yaml.safe_load((HERE / "ablations" / f"{table}.yaml").read_text(encoding="utf-8")))


def test_every_table_begins_with_the_baseline() -> None:
    for table in TABLES:
        for name in TABLES[table].sources:
            assert next(iter(arms_of(table, SOURCES[name], False))) == BASELINE


def test_methods_of_one_modality_are_apart_where_there_are_several() -> None:
    assert list(arms_of("methods", SOURCES["mfeat"], True)) == ["VaDE"]
    assert "VaDE" not in arms_of("methods", SOURCES["mfeat"], False)
    assert "VaDE" in arms_of("methods", SOURCES["circles"], False)
    assert arms_of("methods", SOURCES["circles"], True) == {}


def test_generated_samples_have_a_file_per_seed(tmp_path: Path) -> None:
    found = list(calls("methods", "lattices_law_of_z", 2, tmp_path))
    assert [call.seeds for call in found] == ["2", "0,", "1,"]
    assert len({call.words for call in found[1:]}) == 2
    assert found[1].folder == found[2].folder != found[0].folder


def test_a_text_replaces_what_is_between_the_markers() -> None:
    page = "before\n<!-- begin tools circles -->\nold\n<!-- end tools circles -->\nafter\n"
    once = put(page, "tools circles", "new")
    assert once == "before\n<!-- begin tools circles -->\nnew\n<!-- end tools circles -->\nafter\n"
    assert put(once, "tools circles", "new") == once
    with pytest.raises(ValueError, match="docs: expected a page with the lines <!-- begin methods mfeat -->"):
        put(page, "methods mfeat", "new")


def write_results(folder: Path) -> None:
    """Three fits of the baseline, three of the paper's settings that are worse by 0.1, one that diverged, and gaps."""
    values = {(cell, seed): 0.9 + s + seed / 100 for cell, s in ((BASELINE, 0.0), ("paper", -0.1)) for seed in range(3)}
    records = [
        Record(cell, n, "ok", "", {}, f"runs/{cell}/seed-{n}", {"cluster_accuracy": value, "held_out_bound": 5.0})
        for (cell, n), value in values.items()
    ]
    records.append(Record("paper", 3, "diverged", "the loss is not finite"))
    write_records(folder / "objectives-circles.jsonl", records)
    gaps = {
        "trained_with": "paper",
        "measured": {"meanfield": 0.01, "paper": 0.03},
        "predicted": {"meanfield": 0.012, "paper": 0.032},
        "standard_error": {"meanfield": 0.001, "paper": 0.001},
    }
    (folder / "gaps-circles.json").write_text(json.dumps({"run": gaps}), encoding="utf-8")


def test_the_page_has_means_differences_failures_gaps_and_a_figure(tmp_path: Path) -> None:
    write_results(tmp_path)
    page = tmp_path / "page.md"
    page.write_text("<!-- begin objectives circles -->\n<!-- end objectives circles -->\n", encoding="utf-8")
    write_pages("objectives", "circles", tmp_path, page)
    text = page.read_text(encoding="utf-8")
    assert "| causalPIMA | 3 of 3 |" in text
    assert "0.910 ± 0.010" in text
    assert "fewer than 6 seeds have no interval" in text
    assert "| −0.100 (n=3) |" in text
    assert "held-out bound" in text
    assert "- paper: diverged, seed 3: the loss is not finite" in text
    assert "| paper | collapsed − meanfield | 1 | 0.0100 | 0.0120 | 2.0 |" in text
    assert (tmp_path / "images" / "ablations_objectives_circles.png").is_file()
    assert len(runs_of("objectives", "circles", tmp_path)) == 6
    every_fit = (tmp_path / "ablations" / "objectives_circles.csv").read_text(encoding="utf-8").splitlines()
    assert every_fit[0] == "cell,seed,status,cluster_accuracy,held_out_bound"
    assert every_fit[2] == "causalPIMA,1,ok,0.91,5"
    assert every_fit[-1] == "paper,3,diverged,,"


def test_gaps_are_grouped_by_the_objective_of_the_fit() -> None:
    def fit(objective: str, value: float) -> dict[str, object]:
        both = {"meanfield": value, "paper": 2 * value}
        return {"trained_with": objective, "measured": both, "predicted": both, "standard_error": both}

    lines = gap_table({"a": fit("paper", 1.0), "b": fit("paper", 3.0), "c": fit("meanfield", 1.0)}).splitlines()
    assert "| paper | collapsed − meanfield | 2 | 2.0000 ± 1.4142 | 2.0000 ± 1.4142 | 0.0 |" in lines
    assert "| meanfield | collapsed − paper | 1 | 2.0000 | 2.0000 | 0.0 |" in lines


def test_fits_to_one_vector_have_no_likelihood_in_the_table() -> None:
    record = Record("VaDE", 0, "ok", metrics={"ari": 0.5, "held_out_bound": 3.0, "held_out_as_trained": 4.0})
    assert without_likelihood(record).metrics == {"ari": 0.5, "held_out_bound": None, "held_out_as_trained": None}


def test_the_page_has_a_place_for_every_table() -> None:
    page = (HERE.parent / "docs" / "ablations.md").read_text(encoding="utf-8")
    for table in TABLES:
        for name in TABLES[table].sources:
            assert put(page, f"{table} {name}", "new").count("new") > page.count("new")
