"""Outputs that would be written over what is needed, and places that cannot be written to."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from causalpima.inference import (
    ablate,
    check,
    diagnose,
    evaluate,
    explore,
    export,
    graph,
    identify,
    mcmc,
    predict,
    prepare,
    query,
    report,
)
from causalpima.inference import (
    name as name_command,
)
from causalpima.inference.command_line import svi_parser
from causalpima.inference.command_line.files import OUTPUTS, check_places
from causalpima.inference.store.files import OutputError, write_json

_PARSERS = {
    "check": (check, "--json", ()),
    "diagnose": (diagnose, "--json", ()),
    "evaluate": (evaluate, "--json", ()),
    "export": (export, "--output", ()),
    "graph": (graph, "--json", ()),
    "mcmc": (mcmc, "--json", ()),
    "query": (query, "--json", ("--do", "a=1")),
    "report": (report, "--output", ()),
}


@pytest.mark.parametrize("command", list(_PARSERS))
def test_every_command_about_a_run_looks_out_for_its_files(tmp_path: Path, command: str) -> None:
    module, flag, words = _PARSERS[command]
    (tmp_path / "checkpoint" / "final").mkdir(parents=True)
    with pytest.raises(OutputError, match="expected another file than those of the run"):
        module.parse([str(tmp_path), flag, str(tmp_path / "checkpoint" / "x.json"), *words])


def test_an_input_is_no_output(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n")
    with pytest.raises(OutputError, match="json: expected a file of its own"):
        graph.parse(["--data", str(table), "--json", str(table)])


_ALL = {
    "ablate": ablate,
    "explore": explore,
    "identify": identify,
    "name": name_command,
    "predict": predict,
    "prepare": prepare,
    **{name: module for name, (module, *_) in _PARSERS.items()},
}
_READ = {"run", "data", "data_resolved", "resume", "config", "labels", "names", "arms", "manifest"}


@pytest.mark.parametrize("command", [*_ALL, "svi"])
def test_every_flag_that_takes_a_path_is_known_as_read_or_written(command: str) -> None:
    parser = svi_parser.build_parser(None) if command == "svi" else _ALL[command].COMMAND.parser()
    names = {
        action.dest
        for action in parser._actions
        if re.search(r"FILE|FOLDER|RUN|DATA|TABLE|\.(csv|nc|png|html|yaml)", str(action.metavar))
    }
    assert names <= {*OUTPUTS, *_READ}, "what takes a path and is not in OUTPUTS counts as read: say so in _READ"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run and its data, a table that names a curve, settings that name a graph."""
    monkeypatch.chdir(tmp_path)
    for name in ("run", "other"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.yaml").write_text("data: d.nc\nnodes:\n  a: 2\n")
    (tmp_path / "d.nc").write_text("data")
    (tmp_path / "curves").mkdir()
    (tmp_path / "curves" / "a.json").write_text("a curve")
    (tmp_path / "table.csv").write_text("sample,curve\na,curves/a.json\n")
    (tmp_path / "graph.csv").write_text("a graph")
    (tmp_path / "lab.py").write_text("code")
    (tmp_path / "s.yaml").write_text("model:\n  graph: fixed:graph.csv\njson: out.json\n")
    return tmp_path


_LINKS: dict[str, Callable[[Path, Path], object]] = {
    "itself": lambda target, link: None,
    "symlink": lambda target, link: link.symlink_to(target),
    "hard link": lambda target, link: os.link(target, link),
}


@pytest.mark.parametrize("link", list(_LINKS))
@pytest.mark.parametrize(
    ("words", "read"),
    [
        (["run"], "d.nc"),
        (["--resume=run"], "d.nc"),
        (["--data", "d.nc"], "d.nc"),
        (["table.csv"], "table.csv"),
        (["table.csv"], "curves/a.json"),
        (["--config", "s.yaml"], "s.yaml"),
        (["--config", "s.yaml"], "graph.csv"),
        (["--model.graph", "fixed:graph.csv"], "graph.csv"),
        (["--vary=model.graph=hodge,fixed:graph.csv"], "graph.csv"),
        (["--model.prior", "lab:Prior"], "lab.py"),
    ],
)
def test_nothing_that_is_read_is_written_even_with_force(place: Path, words: list[str], read: str, link: str) -> None:
    target = place / read
    _LINKS[link](target, place / "link")
    output = target if link == "itself" else place / "link"
    with pytest.raises(OutputError, match="which is read or written, too"):
        check_places("svi", [*words, "--json", str(output)], {"json": str(output), "force": True}, {})


@pytest.mark.parametrize(
    "name",
    [
        "config.yaml",
        "summary.json",
        "query.json",
        "names/names.csv",
        "figures/graph.png",
        "restarts/0/x.json",
        "mcmc.nc",
    ],
)
@pytest.mark.parametrize("run", ["run", "other"])
def test_no_run_loses_what_it_is_made_of(place: Path, run: str, name: str) -> None:
    output = place / run / name
    output.parent.mkdir(parents=True, exist_ok=True)
    with pytest.raises(OutputError, match=rf"expected another file than those of the run .*{run}"):
        check_places("evaluate", ["run"], {"run": "run", "json": str(output), "force": True}, {})


def test_other_files_in_the_folder_of_a_run_may_be_written(place: Path) -> None:
    for name in ("mine.json", "graph.graphml", "notes/a.json"):
        (place / "run" / name).parent.mkdir(exist_ok=True)
        check_places("query", ["run"], {"json": place / "run" / name}, {})


def test_two_outputs_are_two_files(place: Path) -> None:
    (place / "link").symlink_to("a.nc")
    with pytest.raises(OutputError, match="json: expected a file of its own"):
        check_places("predict", [], {"output": "a.nc", "json": "link"}, {})


def test_places_that_cannot_be_written_to(place: Path) -> None:
    (place / "file").touch()
    (place / "folder").mkdir()
    for flags, message in (
        ({"figures": "file"}, "figures: expected a folder, got the file"),
        ({"json": "folder"}, "json: expected a file in a folder that you may write to, got folder"),
        ({"json": "absent/a.json"}, "json: expected a file in a folder that you may write to, got absent/a.json"),
    ):
        with pytest.raises(OutputError, match=message):
            check_places("graph", [], flags, {})
    check_places("graph", [], {"figures": "new", "json": None}, {})


@pytest.mark.parametrize("name", ["mcmc.nc", "summary.json", "names", "unnamed/checkpoint", "figures/graph.png"])
def test_no_folder_takes_the_name_of_a_file_of_a_run(place: Path, name: str) -> None:
    with pytest.raises(OutputError, match=r"output_dir: expected another folder than those of the run .*other"):
        check_places("ablate", [], {"output_dir": f"other/{name}", "force": True}, {})


@pytest.mark.parametrize("words", [["--data", "d.nc"], ["--data=d.nc"], ["--model.graph", "fixed:d.nc"]])
def test_what_the_fits_of_an_ablation_read_is_not_written(place: Path, words: list[str]) -> None:
    with pytest.raises(OutputError, match="json: expected a file of its own"):
        ablate.parse([*words, "--vary", "a=1,2", "--output_dir", "new", "--json", "d.nc", "--force"])


def test_a_hard_link_to_what_a_run_is_made_of_is_read_too(place: Path) -> None:
    (place / "run" / "summary.json").write_text("{}")
    os.link(place / "run" / "summary.json", place / "same.json")
    with pytest.raises(OutputError, match="json: expected a file of its own"):
        check_places("evaluate", ["run"], {"run": "run", "json": "same.json", "force": True}, {})


def test_a_command_keeps_its_own_result_in_the_run_that_it_reads(place: Path) -> None:
    check_places("evaluate", ["run"], {"json": "run/evaluate.json"}, {})
    check_places("graph", ["run"], {"json": "run/graph.json", "figures": "run/figures"}, {})
    with pytest.raises(OutputError, match="expected another file than those of the run"):
        check_places("evaluate", ["run"], {"json": "other/evaluate.json"}, {})
    with pytest.raises(OutputError, match="expected another folder than those of the run"):
        check_places("graph", ["run"], {"figures": "other/figures"}, {})


@pytest.mark.parametrize("name", ["notes.txt", "x.json", "x.nc", "x.png", "x.csv", "x.html", "README.md"])
def test_a_file_of_somebody_else_is_replaced_by_force_alone(place: Path, name: str) -> None:
    (place / name).write_text('{"a": "causalPIMA and causalpima_format are only mentioned"}')
    with pytest.raises(OutputError, match="replace it with --force"):
        check_places("evaluate", ["run"], {"json": name}, {})
    check_places("evaluate", ["run"], {"json": name, "force": True}, {})


def test_what_this_program_wrote_is_replaced(place: Path) -> None:
    write_json(place / "out.json", {"a": 1})
    check_places("svi", ["--config", "s.yaml"], {"json": "out.json"}, {})


def test_every_command_passes_through_the_check(place: Path) -> None:
    (place / "notes").write_text("mine")
    words = {
        "ablate": ["--output_dir", "new", "--json", "notes"],
        "explore": ["d.nc", "--json", "notes"],
        "identify": ["--nodes", "2,2", "--json", "notes"],
        "name": ["run", "--json", "notes"],
        "predict": ["run", "--data", "d.nc", "--output", "p.nc", "--json", "notes"],
        "prepare": ["table.csv", "--output", "p.nc", "--json", "notes"],
        "svi": ["--dataset", "circles", "--json", "notes"],
    }
    for command, arguments in words.items():
        module = svi_parser if command == "svi" else _ALL[command]
        with pytest.raises(OutputError, match=r"json: .* got notes, which is another"):
            module.parse(arguments)
