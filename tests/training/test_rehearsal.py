"""Components of a user's own that fail, or give something else than they should: one line that names the setting."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest
import torch
from own_components import Chain, DoubledPrecision, WidePrior, narrow_encoder
from tiny_fits import settings, tiny_samples
from torch import Tensor, nn

from causalpima.guides.encoders import Encoder, GaussianParameters, mlp_encoder
from causalpima.guides.graph import MixtureParameters
from causalpima.inference.command_line.parsing import WRONG_INPUT
from causalpima.inference.run import Run
from causalpima.inference.svi import main
from causalpima.inference.training.components import Components
from causalpima.models.decoders.networks import Network
from causalpima.models.graph.base import NodeGraph, ScoreForm
from causalpima.models.latent_priors import LatentPrior

pytestmark = pytest.mark.float32

HERE = __name__


class ReturnsTensor(DoubledPrecision):
    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        return experts[0].loc


class Fails(DoubledPrecision):
    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        return experts[7]


class WritesToOnePlace(DoubledPrecision):
    """Torch tells of it with the word "memory", of which nothing lacks."""

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        return torch.zeros(1).expand(4).add_(1)


class FailsLater(DoubledPrecision):
    """After the rehearsal."""

    n_calls = 0

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        FailsLater.n_calls += 1
        if FailsLater.n_calls > 20:
            raise LookupError("no more\nof this")
        return super().forward(experts, present)


class Halves(DoubledPrecision):
    """Both experts with a weight of one."""

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        locs, log_variances = (torch.stack(part, -2) for part in zip(*experts, strict=True))
        return MixtureParameters(locs, log_variances, torch.zeros_like(locs[..., 0]))


class LearnedWeights(Halves):
    """Weights that depend on the encodings."""

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        mixture = super().forward(experts, present)
        return mixture._replace(log_weights=mixture.locs[..., 0].log_softmax(-1))


class EqualWeights(Halves):
    """A mixture as it should be."""

    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        mixture = super().forward(experts, present)
        return mixture._replace(log_weights=mixture.log_weights.log_softmax(-1))


class OneRow(DoubledPrecision):
    def forward(self, experts: Sequence[GaussianParameters], present: Sequence[Tensor | None]) -> Any:
        return GaussianParameters(*(part[:1] for part in super().forward(experts, present)))


class OfNothing(DoubledPrecision):
    def __init__(self, n: int) -> None:
        super().__init__(n, 1, False)


class Unfinished(NodeGraph):
    def edge_strength(self) -> Any: ...


class UnfinishedPrior(LatentPrior):
    pass


class NoOrder(Chain):
    def causal_order(self) -> list[int]:
        return [0, 0]


class FlatTables(Chain):
    def conditional_log_tables(self) -> Tensor:
        return torch.zeros(3)


class Unnormalised(Chain):
    def log_joint(self) -> Tensor:
        return super().log_joint() + 1.0


class OtherTables(Chain):
    def conditional_log_tables(self) -> Tensor:
        return super().conditional_log_tables().flip(-1) * 2.0

    def log_joint(self) -> Tensor:
        return torch.full((2, 2), 0.25).log()


class NoScores(Chain):
    def score_form(self) -> ScoreForm:
        return super().score_form()._replace(edge_weight=torch.zeros(2))


class FailsAtTheEnd(Chain):
    def adjacency(self) -> Tensor:
        raise NotImplementedError("soon")


class TensorPrior(WidePrior):
    def distribution(self) -> Any:
        return torch.zeros(2)


class FailingPrior(WidePrior):
    def log_prior(self) -> Tensor:
        return self.scale @ torch.zeros(7)


class Pairs(Encoder):
    def forward(self, value: Tensor, observed: Tensor | None = None) -> Any:
        return tuple(super().forward(value, observed))


def pairs(*facts: Any) -> Encoder:
    plain = narrow_encoder(*facts)
    return Pairs(plain.network, plain.inputs)


class Short(Encoder):
    """Z of one dimension."""

    def forward(self, value: Tensor, observed: Tensor | None = None) -> Any:
        return GaussianParameters(*(part[..., :1] for part in super().forward(value, observed)))


class WithoutVariance(Encoder):
    def forward(self, value: Tensor, observed: Tensor | None = None) -> Any:
        return GaussianParameters(super().forward(value, observed).loc, cast(Tensor, None))


class Doubles(Encoder):
    def forward(self, value: Tensor, observed: Tensor | None = None) -> Any:
        return GaussianParameters(*(part.double() for part in super().forward(value, observed)))


def short(*facts: Any) -> Encoder:
    plain = narrow_encoder(*facts)
    return Short(plain.network, plain.inputs)


def without_variance(*facts: Any) -> Encoder:
    plain = narrow_encoder(*facts)
    return WithoutVariance(plain.network, plain.inputs)


def doubles(*facts: Any) -> Encoder:
    plain = narrow_encoder(*facts)
    return Doubles(plain.network, plain.inputs)


def odd_network(latent_dim: int, shape: Sequence[int], sizes: Sequence[int], n_heads: int, n_outputs: int) -> Network:
    return Network(nn.Linear(latent_dim, 3), nn.Linear(3, 5))


TOLD: dict[str, tuple[dict[str, Any], str]] = {
    "a fusion of another type": (
        {"guide__fusion": f"{HERE}:ReturnsTensor"},
        r"^guide.fusion \S+:ReturnsTensor: expected forward\(\) to return GaussianParameters .* a tensor \[16, 2\]$",
    ),
    "a fusion that fails": (
        {"guide__fusion": f"{HERE}:Fails"},
        r"^guide.fusion \S+:Fails: forward\(\) fails in line \d+ of test_rehearsal.py: IndexError: list index",
    ),
    "a fusion that writes to places that are one": (
        {"guide__fusion": f"{HERE}:WritesToOnePlace"},
        r"^guide.fusion \S+:WritesToOnePlace: forward\(\) fails in line \d+ of test_rehearsal.py: .* single memory loc",
    ),
    "a fusion of other arguments": (
        {"guide__fusion": f"{HERE}:OfNothing"},
        r"^guide.fusion \S+:OfNothing: .* called with 3 \(n_modalities, latent_dim, prior_expert\); its arguments: n$",
    ),
    "a fusion of other rows": (
        {"guide__fusion": f"{HERE}:OneRow"},
        r"^guide.fusion \S+:OneRow: expected .* loc as a tensor \[16, 2\] .*, got a tensor \[1, 2\] of torch.float32$",
    ),
    "weights of a mixture that are none": (
        {"guide__fusion": f"{HERE}:Halves"},
        r"^guide.fusion \S+:Halves: expected weights that sum to 1 for every sample, got a sum of 2$",
    ),
    "weights of a mixture that are learned": (
        {"guide__fusion": f"{HERE}:LearnedWeights"},
        r"^guide.fusion \S+:LearnedWeights: expected log_weights without gradient, .*, got learned ones; detach them$",
    ),
    "a mixture that encoders are to be taught by": (
        {"guide__fusion": f"{HERE}:EqualWeights", "distillation__epochs": 2},
        r"^guide.fusion \S+:EqualWeights: expected .* GaussianParameters with distillation.epochs 2, .* to 0$",
    ),
    "a graph that is no distribution": (
        {"model__graph": f"{HERE}:Unnormalised"},
        r"^model.graph \S+:Unnormalised: expected log_joint\(\) .* that sum to 1, got a sum of 2.718$",
    ),
    "a graph of tables of another distribution": (
        {"model__graph": f"{HERE}:OtherTables"},
        r"^model.graph \S+:OtherTables: expected conditional_log_tables\(\) to sum to log_joint.*, got prob.* apart$",
    ),
    "a graph of other scores": (
        {"model__graph": f"{HERE}:NoScores"},
        r"^model.graph \S+:NoScores: expected score_form.* \[2\] and \[2, 2\], got a tensor \[2\] and a tensor \[2\]$",
    ),
    "a graph without methods": (
        {"model__graph": f"{HERE}:Unfinished"},
        r"^model.graph \S+:Unfinished: expected a class with all methods, got one without adjacency, causal_order, ",
    ),
    "a graph without order": (
        {"model__graph": f"{HERE}:NoOrder"},
        r"^model.graph \S+:NoOrder: expected causal_order\(\) to return every node from 0 to 1 once, got \[0, 0\]$",
    ),
    "a graph of other tables": (
        {"model__graph": f"{HERE}:FlatTables"},
        r"^model.graph \S+:FlatTables: expected conditional_log_tables\(\) to return a tensor \[2, 2, 2\], got a tens",
    ),
    "a graph that fails where no step looks": (
        {"model__graph": f"{HERE}:FailsAtTheEnd"},
        r"^model.graph \S+:FailsAtTheEnd: adjacency\(\) fails in line \d+ of test_rehearsal.py: NotImpl.*: soon$",
    ),
    "a prior without methods": (
        {"model__prior": f"{HERE}:UnfinishedPrior"},
        r"^model.prior \S+:UnfinishedPrior: expected a class with all methods, got one without distribution;",
    ),
    "a prior of another type": (
        {"model__prior": f"{HERE}:TensorPrior"},
        r"^model.prior \S+:TensorPrior: expected distribution\(\) to return a ComponentNormal, got a Tensor",
    ),
    "a prior that fails": (
        {"model__prior": f"{HERE}:FailingPrior"},
        r"^model.prior \S+:FailingPrior: log_prior\(\) fails in line \d+ .*: RuntimeError: ",
    ),
    "a network of another shape": (
        {"decoder__kind": f"{HERE}:odd_network"},
        r"^modality.spectrum.decoder.kind \S+:odd_network, .*: the first steps of training fail: RuntimeError: ",
    ),
}


@pytest.mark.parametrize("name", TOLD)
def test_what_goes_wrong_is_one_line_before_the_run_begins(name: str) -> None:
    changes, message = TOLD[name]
    with pytest.raises(ValueError, match=message) as told:
        Run(tiny_samples(), settings(**changes))
    assert "\n" not in str(told.value)


def test_the_same_is_told_of_objects() -> None:
    with pytest.raises(ValueError, match=r"^components.fusion: expected forward\(\) to return Gauss.* got a tensor"):
        Run(tiny_samples(), settings(), components=Components(fusion=ReturnsTensor))
    with pytest.raises(ValueError, match=r"^components.encoders curve: .* to return GaussianParameters, got tuple"):
        Run(tiny_samples(), settings(), components=Components(encoders={"curve": pairs}))


@pytest.mark.parametrize(
    ("encoder", "message"),
    [
        (short, r"return loc as a tensor \[16, 2\] .*, got a tensor \[16, 1\] of torch.float32$"),
        (without_variance, r"return log_variance as a tensor \[16, 2\] of torch.float32, .*, got NoneType$"),
        (doubles, r"return loc as .* of torch.float32, a row per sample, got .* of torch.float64$"),
        (mlp_encoder((8,), (4,), 5), r"return loc as a tensor \[16, 2\] .*, got a tensor \[16, 5\] of torch.float32$"),
    ],
    ids=["another dimension", "no variance", "another precision", "a shipped class of another dimension"],
)
def test_what_an_encoder_gives_is_compared_with_what_the_fit_needs(encoder: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^components.encoders curve: expected forward.. to {message}") as told:
        Run(tiny_samples(), settings(), components=Components(encoders={"curve": encoder}))
    assert "\n" not in str(told.value)


def test_encoders_are_looked_at_under_a_mask_and_in_samples_without_their_modality() -> None:
    """There an encoder sees some of the rows, and its Z is a block."""
    encoders = Components(encoders={"curve": mlp_encoder((8,), (4,), 2)})
    Run(tiny_samples(missing=True), settings(mask={"spectrum": ("A",), "curve": ("B",)}), components=encoders)
    Run(tiny_samples(missing=True), settings(guide__prior_expert=True), components=encoders)


def test_a_mixture_of_ones_own_is_trained() -> None:
    run = Run(tiny_samples(), settings(guide__fusion=f"{HERE}:EqualWeights"))
    run.train()
    assert run.finish().status in ("ok", "collapsed")


def test_what_fails_later_is_one_line_too() -> None:
    FailsLater.n_calls = 0
    run = Run(tiny_samples(), settings(guide__fusion=f"{HERE}:FailsLater", training__epochs=20))
    with pytest.raises(
        ValueError, match=r"^guide.fusion \S+:FailsLater: forward\(\) fails in .*: LookupError: no more of"
    ):
        run.train()


def test_the_rehearsal_changes_no_number() -> None:
    """A fusion that is the shipped one gives the weights of the shipped one: none of its draws is left."""
    shipped, own = (Run(tiny_samples(), settings(guide__fusion=name)) for name in ("poe", f"{HERE}:plain"))
    for run in (shipped, own):
        run.train()
    assert own.weights().keys() == shipped.weights().keys()
    assert all(torch.equal(value, own.weights()[name]) for name, value in shipped.weights().items())


def plain(n_modalities: int, latent_dim: int, prior_expert: bool) -> Any:
    """The shipped product of experts."""
    return DoubledPrecision(n_modalities, latent_dim, prior_expert).product


def test_the_command_leaves_no_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--dataset", "circles", "--dataset_options.n_samples", "60"]
    folder = tmp_path / "run"
    assert main([*words, "--guide.fusion", f"{HERE}:ReturnsTensor", "--output_dir", str(folder)]) == WRONG_INPUT
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"svi: error: guide.fusion {HERE}:ReturnsTensor: expected forward() to return")
    assert not folder.exists()
