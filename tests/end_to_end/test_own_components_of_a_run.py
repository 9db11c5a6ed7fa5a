"""A component of a file of one's own, from the command line: fitted, gone on with, read again; and what is none."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import TINY, svi

from inference.training.fitted_run import load_run

FILE = """
from torch import nn, zeros

from guides.encoders import GaussianParameters
from guides.fusion import Fusion, ProductOfExperts


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


def test_a_run_with_a_component_of_ones_own_is_like_any_other(home: Path) -> None:
    words = [*TINY, "--guide.fusion", "own_fusion_of_a_run:WeighedExperts", "--output_dir", home / "run"]
    stopped = svi(*words, "--stop_after", 1)
    assert stopped.status == 0, stopped.err
    ended = svi("--resume", home / "run")
    assert ended.status == 0, ended.err
    fitted = load_run(home / "run")
    assert type(fitted.guide.fusion).__name__ == "WeighedExperts"
    assert "own_fusion_of_a_run:WeighedExperts" in (home / "run" / "config.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("flag", "value", "message"),
    [
        ("--guide.fusion", "own_fusion_of_a_run:Weighted", "its fusions: WeighedExperts, nothing"),
        ("--guide.fusion", "own_fusion_of_a_run:nothing", "expected it to make a guides.fusion.Fusion, got NoneType"),
        ("--model.graph", "no_such_module_of_mine:Graph", "expected a module no_such_module_of_mine"),
        ("--model.prior", "own_fusion_of_a_run:WeighedExperts", "expected a PriorChoice, a subclass of LatentPrior"),
        (
            "--modality.image.encoder.kind",
            "own_fusion_of_a_run:nothing",
            "expected it to make a guides.encoders.Encoder",
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
