"""A component of a file of one's own, from the command line: fitted, gone on with, read again; and what is none."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from command import TINY, svi

from causalpima.inference import check, diagnose, evaluate, name, predict, query
from causalpima.inference.svi import main as svi_main
from causalpima.inference.training.fitted_run import load_run

pytestmark = pytest.mark.usefixtures("without_figures")
READERS: list[Any] = [
    (check.main,),
    (diagnose.main,),
    (evaluate.main,),
    (name.main,),
    (predict.main, "--data", "absent.nc", "--output", "new.nc"),
    (query.main, "--do", "N1=0"),
]

FILE = """
from torch import nn, zeros

from causalpima.guides.encoders import GaussianParameters
from causalpima.guides.fusion import Fusion, ProductOfExperts


class WeighedExperts(Fusion):
    def __init__(self, n_modalities, latent_dim, prior_expert):
        super().__init__()
        self.log_weight = nn.Parameter(zeros(n_modalities))
        self.product = ProductOfExperts(prior_expert)

    def forward(self, experts, present):
        weighed = [
            GaussianParameters(expert.loc, expert.log_variance - log_weight)
            for expert, log_weight in zip(experts, self.log_weight)
        ]
        return self.product(weighed, present)


def nothing(*facts):
    return None
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "own_fusion_of_a_run.py").write_text(FILE, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_run_with_a_component_of_ones_own_is_like_any_other(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    words = [*TINY, "--guide.fusion", "own_fusion_of_a_run:WeighedExperts", "--output_dir", home / "run"]
    stopped = svi(*words, "--stop_after", 1)
    assert stopped.status == 0, stopped.err
    ended = svi("--resume", home / "run")
    assert ended.status == 0, ended.err
    fitted = load_run(home / "run")
    assert type(fitted.guide.fusion).__name__ == "WeighedExperts"
    assert "own_fusion_of_a_run:WeighedExperts" in (home / "run" / "config.yaml").read_text(encoding="utf-8")
    _check_that_others_are_asked(home, monkeypatch)


def _check_that_others_are_asked(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever did not start this run, or finds another file there, has to allow the import; nothing is run untold."""
    run, marker = home / "run", home / "code was run"
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "state of another user"))
    line = f"__import__('pathlib').Path({str(marker)!r}).touch()"
    (home / "own_fusion_of_a_run.py").write_text(f"{line}\n{FILE}", encoding="utf-8")
    sys.modules.pop("own_fusion_of_a_run")
    importlib.invalidate_caches()
    (run / "summary.json").rename(run / "summary")
    refused = [main([str(run), *words]) for main, *words in READERS]
    resumed = svi("--resume", run)
    (run / "summary").rename(run / "summary.json")
    refused += [svi_main(["--config", str(run / "config.yaml"), "--dry_run"]), resumed.status]
    assert refused == [2] * len(refused)
    told = rf"permission to run the code of own_fusion_of_a_run \({home}/own_fusion_of_a_run.py\), .* add --allow_code"
    assert re.search(told, resumed.err)
    assert resumed.err.count("\n") == 1
    with pytest.raises(ValueError, match=r"run: guide.fusion own_fusion_of_a_run:WeighedExperts: expected your perm"):
        load_run(run)
    assert not marker.exists()
    assert type(load_run(run, allow_code=True).guide.fusion).__name__ == "WeighedExperts"
    assert marker.exists()
    assert evaluate.main([str(run), "--allow_code", "--draws", "1"]) == 0
    assert svi_main(["--resume", str(run), "--allow_code"]) == 0


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--guide.fusion", "own_fusion_of_a_run:Weighted", "its fusions: WeighedExperts, nothing"),
        (
            "--guide.fusion",
            "own_fusion_of_a_run:nothing",
            "expected it to make a causalpima.guides.fusion.Fusion, got NoneType",
        ),
        ("--model.graph", "no_such_module_of_mine:Graph", "expected a module no_such_module_of_mine"),
        ("--model.prior", "own_fusion_of_a_run:WeighedExperts", "expected a PriorChoice, a subclass of LatentPrior"),
        (
            "--modality.image.encoder.kind",
            "own_fusion_of_a_run:nothing",
            "expected it to make a causalpima.guides.encoders.Encoder",
        ),
        ("--modality.image.encoder.kind", "mpl", "expected one of mlp, convolutional, curve, or module:function"),
    ],
)
def test_what_is_no_component_is_one_line_and_leaves_nothing(home: Path, flag: str, value: str, message: str) -> None:
    ended = svi(*TINY, flag, value, "--output_dir", home / "run")
    assert ended.status == 2
    assert ended.err.count("\n") == 1
    assert ended.err.startswith("svi: error: ")
    assert message in ended.err
    assert not (home / "run").exists()
