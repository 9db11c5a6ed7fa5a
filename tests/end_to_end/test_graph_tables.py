"""`python -m inference.graph --data TABLE`: from a table of categories to a posterior over graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from causalpima.inference.graph import main
from causalpima.inference.graphs.dags import cpdag

SHARED = Path(__file__).resolve().parents[3] / "shared" / "data" / "bnlearn_discrete"

TRUE_EDGES = {
    #  1 -> 3 <- 2,  3 -> 4,  3 -> 5
    "cancer": ((0, 2), (1, 2), (2, 3), (2, 4)),
    "earthquake": ((0, 2), (1, 2), (2, 3), (2, 4)),
}


def run(*arguments: object) -> int:
    return main([str(argument) for argument in arguments])


def table_of_seven(path: Path) -> Path:
    """rain -> wet <- sprinkler, wet -> slip; three columns of noise."""
    generator = np.random.default_rng(0)
    columns = {name: generator.random(800) < 0.4 for name in ("rain", "sprinkler", "n1", "n2", "n3")}
    columns["wet"] = (columns["rain"] | columns["sprinkler"]) ^ (generator.random(800) < 0.05)
    columns["slip"] = columns["wet"] & (generator.random(800) < 0.7)
    rows = zip(*([("yes" if value else "no") for value in column] for column in columns.values()), strict=True)
    path.write_text("\n".join([",".join(columns), *map(",".join, rows)]) + "\n")
    return path


@pytest.mark.end_to_end
def test_a_table_of_seven_columns(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, file = table_of_seven(tmp_path / "table.csv"), tmp_path / "graph.json"
    flags = ("--score", "bdeu", "--knowledge.tiers", "rain,sprinkler,n1,n2,n3;wet;slip", "--json", file)
    assert run("--data", path, *flags) == 0
    found: dict[str, Any] = json.loads(file.read_text())
    place = {name: k for k, name in enumerate(found["nodes"])}
    edges = np.array(found["edge_probability"])
    assert edges[place["rain"], place["wet"]] > 0.99
    assert edges[place["wet"], place["slip"]] > 0.99
    assert edges[place["wet"], place["rain"]] == 0.0
    assert found["method"] == "exact sums"
    assert (found["score"], found["equivalent_sample_size"]) == ("bdeu", 1.0)
    assert found["levels"]["wet"] == ["no", "yes"]
    assert any("wet" in edge and "rain" in edge for edge in found["knowledge"]["forbidden"])
    assert set(found["sensitivity"]["scores"]) == {"BIC", "BDeu 1", "BDeu 5", "BDeu 10"}
    said = capsys.readouterr().out
    assert "rain" in said
    assert "no selection of rows" in " ".join(said.split())
    assert max(map(len, said.splitlines())) <= 80


def table_of_levels(path: Path, n_rows: int, **sizes: int) -> Path:
    """Independent columns with so many levels each, and a column of names of the rows."""
    generator = np.random.default_rng(0)
    columns = [[f"{name}{code}" for code in generator.integers(0, size, n_rows)] for name, size in sizes.items()]
    rows = zip(*columns, map("S{}".format, range(n_rows)), strict=True)
    path.write_text("\n".join([",".join([*sizes, "id"]), *map(",".join, rows)]) + "\n")
    return path


@pytest.mark.end_to_end
def test_nothing_is_said_where_rows_are_too_few(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """BIC joins no two columns of many levels, BDeu may join all: neither is what the rows say."""
    path, file = table_of_levels(tmp_path / "table.csv", 150, many=30, more=25, few=2), tmp_path / "graph.json"
    assert run("--data", path) == 2
    assert "id: expected categories, got 150 different entries" in capsys.readouterr().err
    for score in ("bic", "bdeu"):
        assert run("--data", path, "--columns", "many,more", "--score", score, "--json", file) == 0
        said = " ".join(capsys.readouterr().out.split())
        assert "150 samples are fewer than 5 for each combination of the levels of any two of them" in said
        assert "no edge" not in said
        assert "1.00" not in said
        assert json.loads(file.read_text())["too_few_samples"] == [["many", "more"]]


@pytest.mark.end_to_end
def test_pairs_with_rows_enough_are_shown(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = table_of_levels(tmp_path / "table.csv", 150, many=30, few=2, two=2)
    assert run("--data", path, "--columns", "many,few,two") == 0
    said = capsys.readouterr().out
    assert "levels of many and few; many and two." in " ".join(said.split())
    rows = {line.partition("  ")[0]: line.split()[2:] for line in said.splitlines()}
    assert rows["many, few"] == ["-"] * 5
    assert float(rows["few, two"][0]) < 0.5
    assert "class of graphs" not in said


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "expected the folder of a run, or a table with --data, got none"),
        (("run", "--data", "table.csv"), "got both"),
        (("--data", "none.csv"), "expected a readable table"),
        (("--data", "table.csv", "--as_labelled"), "as_labelled"),
        (("--data", "table.csv", "--columns", "rain,snow"), "got none for snow"),
        (("run", "--columns", "rain"), "columns: expected them with a table, got a run"),
        (("--data", "table.csv", "--knowledge.forbid", "rain->snow"), "snow"),
        (("--data", "table.csv", "--equivalent_sample_size", "5"), "expected it with BDeu"),
    ],
)
def test_bad_input_is_one_line_and_status_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    flags: tuple[str, ...],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    table_of_seven(tmp_path / "table.csv")
    assert run(*flags, "--json", "graph.json") == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said.splitlines()) == 1
    assert not (tmp_path / "graph.json").exists()


@pytest.mark.end_to_end
@pytest.mark.skipif(not SHARED.exists(), reason="needs ../shared/data/bnlearn_discrete")
@pytest.mark.parametrize("network", list(TRUE_EDGES))
def test_networks_of_the_literature_are_found(network: str, tmp_path: Path) -> None:
    true = np.zeros((5, 5), dtype=int)
    for i, j in TRUE_EDGES[network]:
        true[i, j] = 1
    assert run("--data", SHARED / f"{network}.txt", "--json", tmp_path / "graph.json") == 0
    found = json.loads((tmp_path / "graph.json").read_text())
    np.testing.assert_array_equal(found["cpdag"], cpdag(true))
    assert found["n_samples"] == 10_000
