"""Outputs that would be written over what is needed, and places that cannot be written to."""

from __future__ import annotations

from pathlib import Path

import pytest

from inference.command_line import (
    check_arguments,
    diagnose_arguments,
    evaluate_arguments,
    export_arguments,
    graph_arguments,
    mcmc_arguments,
    query_arguments,
    report_arguments,
)
from inference.command_line.output_files import check_output_files, check_output_folder
from inference.results.files import OutputError

_PARSERS = {
    "check": (check_arguments, "--json", ()),
    "diagnose": (diagnose_arguments, "--json", ()),
    "evaluate": (evaluate_arguments, "--json", ()),
    "export": (export_arguments, "--output", ()),
    "graph": (graph_arguments, "--json", ()),
    "mcmc": (mcmc_arguments, "--json", ()),
    "query": (query_arguments, "--json", ("--do", "a=1")),
    "report": (report_arguments, "--output", ()),
}


@pytest.mark.parametrize("own", ["summary.json", "config.yaml", "posterior.nc", "metrics.jsonl", "mcmc.nc"])
def test_what_a_run_needs_is_no_output(tmp_path: Path, own: str) -> None:
    with pytest.raises(OutputError, match="json: expected another file than those of the run"):
        check_output_files(tmp_path, json=tmp_path / own)


def test_nor_is_what_stands_in_its_checkpoint_whatever_the_way_there(tmp_path: Path) -> None:
    (tmp_path / "run" / "checkpoint").mkdir(parents=True)
    (tmp_path / "link").symlink_to(tmp_path / "run")
    with pytest.raises(OutputError, match="output: expected another file than those of the run"):
        check_output_files(tmp_path / "run", output=tmp_path / "link" / "checkpoint" / "state.json")


@pytest.mark.parametrize("command", list(_PARSERS))
def test_every_command_about_a_run_looks_out_for_its_files(tmp_path: Path, command: str) -> None:
    module, flag, words = _PARSERS[command]
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(OutputError, match="expected another file than those of the run"):
        module.parse([str(tmp_path), flag, str(tmp_path / "checkpoint" / "x.json"), *words])


def test_other_files_in_the_folder_of_a_run_may_be_written(tmp_path: Path) -> None:
    for name in ("query.json", "evaluate.json", "report.html", "graph.graphml"):
        check_output_files(tmp_path, json=tmp_path / name)


def test_an_input_is_no_output_by_whatever_name(tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("a,b\n")
    (tmp_path / "same.csv").symlink_to(table)
    with pytest.raises(OutputError, match="json: expected a file of its own"):
        check_output_files(None, (table,), json=tmp_path / "same.csv")
    with pytest.raises(OutputError, match="json: expected a file of its own"):
        graph_arguments.parse(["--data", str(table), "--json", str(table)])


def test_two_outputs_are_two_files(tmp_path: Path) -> None:
    with pytest.raises(OutputError, match="json: expected a file of its own"):
        check_output_files(output=tmp_path / "a.nc", json=tmp_path / "a.nc")


def test_a_folder_for_figures_is_no_file(tmp_path: Path) -> None:
    (tmp_path / "figures").touch()
    with pytest.raises(OutputError, match="figures: expected a folder, got the file"):
        check_output_folder(figures=tmp_path / "figures")
    check_output_folder(figures=tmp_path / "new", others=None)
