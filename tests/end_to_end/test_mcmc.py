"""`inference.mcmc`: chains on a finished run, their file, their numbers, and what is refused."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest
from command import TINY, Outcome, svi

from causalpima.inference.mcmc import main
from causalpima.inference.store.arviz import import_arviz, open_in_arviz

SHORT = ("--chains", 2, "--warmup", 15, "--draws", 30)


def mcmc(*arguments: object) -> Outcome:
    """Run the command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = main([str(argument) for argument in arguments])
    return Outcome(status, out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Path:
    folder = tmp_path_factory.mktemp("runs") / "tiny"
    assert svi(*TINY, "--output_dir", folder).status == 0
    return folder


@pytest.mark.parametrize("program", ["hodge", "dags"])
def test_chains_leave_a_file_numbers_and_verdicts(run: Path, program: str) -> None:
    done = mcmc(run, "--program", program, *SHORT)
    assert done.status == 0, done.err
    found = json.loads((run / "mcmc.json").read_text())
    assert found["program"] == program
    assert {"log density"} < set(found["r_hat"]) == set(found["ess"]["bulk"])
    assert len(found["edge_probability"]) == 2
    assert {line["verdict"] for line in found["lines"]} <= {"passes", "unclear", "fails"}
    assert "one labelling among many" in done.out  # the clusters of this run have no names
    assert abs(sum(found["cell_probability"]) - 1) < 1e-9
    assert (run / "figures" / "mcmc_ranks.png").exists()
    container = open_in_arviz(run / "mcmc.nc")
    assert dict(container["posterior"].sizes)["draw"] == 30
    import_arviz().summary(container, var_names=["cell_probability"])


def test_processes_give_the_same_chains(run: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one.json", tmp_path / "two.json"
    assert mcmc(run, "--program", "dags", *SHORT, "--json", one).status == 0
    assert mcmc(run, "--program", "dags", *SHORT, "--json", two, "--jobs", 2).status == 0
    assert one.read_text() == two.read_text()


def test_wrong_input_is_one_line(run: Path, tmp_path: Path) -> None:
    for arguments in ((tmp_path,), (run, "--draws", 1), (run, "--ess", 0), ()):
        refused = mcmc(*arguments)
        assert refused.status == 2
        assert len(refused.err.strip().splitlines()) == 1, refused.err
    assert not list(run.glob(".*partial*"))
