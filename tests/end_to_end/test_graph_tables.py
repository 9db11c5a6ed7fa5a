"""`python -m inference.graph --data TABLE`: from a table of categories to a posterior over graphs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from inference.graph import main
from inference.graphs.cpdag import cpdag

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


@pytest.mark.end_to_end
@pytest.mark.parametrize(
    ("flags", "words"),
    [
        ((), "expected the folder of a run, or a table with --data, got none"),
        (("run", "--data", "table.csv"), "got both"),
        (("--data", "none.csv"), "expected a readable table"),
        (("--data", "table.csv", "--as_labelled"), "as_labelled"),
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
