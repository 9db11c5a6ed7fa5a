"""The flags of what is known of the graph: forms, files, round trips, one line for what is none."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path

import pytest
import yaml

from causalpima.inference.command_line.flags import read_edges, read_nodes, read_tiers
from causalpima.inference.command_line.svi_parser import parse, parse_settings
from causalpima.inference.graphs.dags import KnowledgeConfig

CIRCLES = ["--dataset", "circles", "--nodes", "a=2,b=2,c=2"]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], KnowledgeConfig()),
        (["--knowledge.forbid", "a->b,b->c"], KnowledgeConfig(forbid=("a->b", "b->c"))),
        (["--knowledge.require=a → b"], KnowledgeConfig(require=("a → b",))),
        (["--knowledge.tiers", "a;b , c"], KnowledgeConfig(tiers=(("a",), ("b", "c")))),
        (['--knowledge.tiers=[["a"],["b"]]'], KnowledgeConfig(tiers=(("a",), ("b",)))),
        (["--knowledge.designed", "a,c"], KnowledgeConfig(designed=("a", "c"))),
    ],
)
def test_every_flag_is_read_and_written_down(words: list[str], expected: KnowledgeConfig) -> None:
    arguments = parse([*CIRCLES, *words])
    assert arguments.config.knowledge == expected
    again = parse_settings(yaml.safe_load(yaml.safe_dump(arguments.to_config())))
    assert again.config == arguments.config


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"forbid": "a->b,b->c"}, KnowledgeConfig(forbid=("a->b", "b->c"))),
        ({"forbid": ["a->b"], "require": ["a->c"]}, KnowledgeConfig(forbid=("a->b",), require=("a->c",))),
        ({"tiers": [["a"], ["b", "c"]]}, KnowledgeConfig(tiers=(("a",), ("b", "c")))),
        ({"tiers": ["a,b", "c"], "designed": "a"}, KnowledgeConfig(tiers=(("a", "b"), ("c",)), designed=("a",))),
    ],
)
def test_files_have_lists_or_text(tmp_path: Path, settings: dict[str, object], expected: KnowledgeConfig) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(yaml.safe_dump({"knowledge": settings}))
    assert parse([*CIRCLES, "--config", str(file)]).config.knowledge == expected


def test_what_is_printed_as_config_is_read_as_config(tmp_path: Path) -> None:
    words = ["--knowledge.forbid", "a→b", "--knowledge.tiers", "a,b;c"]
    with contextlib.redirect_stdout(io.StringIO()) as printed, pytest.raises(SystemExit) as ended:
        parse([*CIRCLES, *words, "--print_config"])
    assert ended.value.code == 0
    file = tmp_path / "settings.yaml"
    file.write_text(printed.getvalue(), encoding="utf-8")
    assert parse(["--config", str(file)]).config.knowledge == parse([*CIRCLES, *words]).config.knowledge


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("forbid", "a", "knowledge.forbid: expected edges as A->B with commas between them, got 'a'"),
        ("forbid", "a->b,", "knowledge.forbid: expected names with commas between them, got 'a->b,'"),
        ("require", "[1]", r"knowledge.require: expected names with commas between them, got '\[1\]'"),
        ("tiers", "a;;b", "knowledge.tiers: expected tiers as A,B;C, or a list of lists, got 'a;;b'"),
        ("designed", "[", r"knowledge.designed: expected names with commas between them, got '\['"),
        ("designed", "d", "knowledge.designed: expected nodes among a, b, c, got 'd'"),
    ],
)
def test_what_is_none_is_one_line(flag: str, value: str, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}") as refused:
        parse([*CIRCLES, f"--knowledge.{flag}", value])
    assert "\n" not in str(refused.value)


def test_names_with_commas_and_semicolons_stand_in_json() -> None:
    assert read_edges("forbid", '["a,b->c;d"]') == ("a,b->c;d",)
    assert read_nodes("designed", '["a,b"]') == ("a,b",)
    assert read_tiers("tiers", '[["a,b"], ["c;d"]]') == (("a,b",), ("c;d",))
