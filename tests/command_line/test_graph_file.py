"""A graph from a file: tables and lines, and what is no graph."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.command_line.flags import read_graph_file
from causalpima.inference.command_line.svi_parser import parse, parse_settings

NODES = ("A", "B", "C")
TABLE = "from/to,A,B,C\nA,0,1,0\nB,0,0,1\nC,0,0,0\n"
OTHER_ORDER = ",C,A,B\nC,0,0,0\nA,0,0,1\nB,1,0,0\n"
LINES = "# a chain\n\nA -> B\nB \N{RIGHTWARDS ARROW} C\n"


@pytest.mark.parametrize("text", [TABLE, OTHER_ORDER, LINES, TABLE.replace("1", "1.0"), "\ufeff" + TABLE])
def test_both_forms_are_read(tmp_path: Path, text: str) -> None:
    file = tmp_path / "graph.csv"
    file.write_text(text, encoding="utf-8")
    assert set(read_graph_file(file, NODES)) == {"A->B", "B->C"}


def test_a_table_without_edges_is_the_empty_graph(tmp_path: Path) -> None:
    file = tmp_path / "graph.csv"
    file.write_text(TABLE.replace("1", "0"))
    assert read_graph_file(file, NODES) == ()


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "expected a table with the names .* got something else"),
        ("A -> B\nC\n", "expected a table with the names .* got something else"),
        ("A -> D\n", "expected nodes among A, B, C, got 'D'"),
        ("A -> B\nA->B\n", "expected every edge once in .*, got A->B twice"),
        (TABLE.replace("1", "0.7", 1), "expected 0 or 1 in .*, got '0.7'"),
        (TABLE.replace("A,0,1,0", "A,0,1"), "expected a table with the names .* got something else"),
        (TABLE.replace("C", "D"), "expected the nodes A, B, C in .*, got A, B, D"),
        (TABLE.replace("B,0,0,1", "B,1,0,1"), "expected edges with a direction in .*, got A -- B both ways"),
    ],
)
def test_what_is_no_graph_is_refused_in_one_line(tmp_path: Path, text: str, match: str) -> None:
    file = tmp_path / "graph.csv"
    file.write_text(text)
    with pytest.raises(ValueError, match=rf"^model\.graph: .*{match}") as refusal:
        read_graph_file(file, NODES)
    assert "\n" not in str(refusal.value)


def test_files_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    for name, reason in (("nowhere", "No such file"), ("binary", "it is no text in UTF-8"), ("", "Is a directory")):
        with pytest.raises(ValueError, match=rf"^model\.graph: expected a file with a graph, got .*{reason}"):
            read_graph_file(tmp_path / name, NODES)


def test_the_file_is_needed_no_more_once_it_was_read(tmp_path: Path) -> None:
    file = tmp_path / "graph.txt"
    file.write_text(LINES)
    arguments = parse(["--dataset", "circles", "--nodes", "A=2,B=2,C=2", "--model.graph", f"fixed:{file}"])
    file.unlink()
    assert arguments.config.model.graph == "fixed"
    assert arguments.config.model.edges == ("A->B", "B->C")
    assert parse_settings(arguments.to_config()).config == arguments.config


def test_edges_are_typed_with_commas_and_stand_in_files_as_lists(tmp_path: Path) -> None:
    chain = ["--dataset", "circles", "--nodes", "A=2,B=2,C=2", "--model.graph", "fixed"]
    assert parse([*chain, "--model.edges", "A->B,B->C"]).config.model.edges == ("A->B", "B->C")
    file = tmp_path / "settings.yaml"
    file.write_text("model:\n  graph: fixed\n  edges: [A->B]\n")
    assert parse(["--config", str(file), *chain[:4]]).config.model.edges == ("A->B",)
    graph = tmp_path / "graph.txt"
    graph.write_text("B -> A\n")
    file.write_text(f"model:\n  graph: fixed:{graph}\n")
    assert parse(["--config", str(file), *chain[:4]]).config.model.edges == ("B->A",)


def test_the_paper_s_settings_have_the_paper_s_graph() -> None:
    config = parse(["--dataset", "circles", "--model.graph", "exact", "--paper_settings"]).config
    assert config.model.graph == "hodge"
