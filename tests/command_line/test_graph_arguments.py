"""The command line of `inference.graph`."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.graph import parse
from causalpima.inference.graphs.dags import KnowledgeConfig
from causalpima.inference.graphs.scores import Score


def test_a_run_alone_has_bic_all_graphs_alike_and_what_it_declared() -> None:
    found = parse(["runs/a"])
    assert (found.run, found.data, found.scoring(), found.edge_prior) == (Path("runs/a"), None, Score(), 0.0)
    assert found.factors == ()
    assert (found.knowledge, found.as_labelled, found.json, found.figures) == (KnowledgeConfig(), False, None, None)


def test_everything_can_be_set(tmp_path: Path) -> None:
    score = ["--score", "bdeu", "--equivalent_sample_size", "5"]
    words = [*score, "--factors", "plate,oven", "--edge_prior", "-1.5", "--knowledge.tiers", "A,B;C", "--as_labelled"]
    found = parse(["runs/a", *words, "--json", str(tmp_path / "g.json"), "--figures", str(tmp_path)])
    assert (found.scoring(), found.edge_prior, found.as_labelled) == (Score("bdeu", 5.0), -1.5, True)
    assert found.factors == ("plate", "oven")
    assert found.knowledge == KnowledgeConfig(tiers=(("A", "B"), ("C",)))
    assert (found.json, found.figures) == (tmp_path / "g.json", tmp_path)
    assert parse(["runs/a", "--score", "bdeu"]).scoring() == Score("bdeu", 1.0)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "run: expected the folder of a run"),
        (["a", "--data", "b.csv"], "data: expected a table or the folder of a run, got both"),
        (["--data", "b.csv", "--as_labelled"], "as_labelled: expected it with a run, got a table"),
        (["--data", "b.csv", "--factors", "c"], "factors: expected them with a run, got a table"),
        (["a", "--factors", "b,,c"], "expected names with commas between them, each once, got b,,c"),
        (["a", "--factors", "b,b"], "expected names with commas between them, each once, got b,b"),
        (["a", "--equivalent_sample_size", "5"], "equivalent_sample_size: expected it with BDeu"),
        (["a", "--score", "bdeu", "--equivalent_sample_size", "0"], "expected a number above 0, got 0"),
        (
            ["a", "--score", "bdeu", "--equivalent_sample_size", "1e308"],
            "equivalent_sample_size: expected at most 1e\\+09, got 1e\\+308",
        ),
        (["a", "--edge_prior", "inf"], "expected a number from -1e\\+06 to 1e\\+06, got inf"),
        (["a", "--edge_prior=-1e308"], "expected a number from -1e\\+06 to 1e\\+06, got -1e308"),
        (["a", "--score", "aic"], "score"),
        (["a", "--json", "no/such/folder/g.json"], "json: expected a file in a folder that you may write to"),
    ],
)
def test_what_does_not_fit_is_told_in_one_line(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        parse(words)
    assert "\n" not in str(error.value)
