"""The guide as a Pyro program: q(Z|X) from the modalities that are present, q(N|X) where it is asked for."""

from __future__ import annotations

import dataclasses

import pyro
import pytest
import torch
from pyro import poutine
from pyro.poutine.enum_messenger import EnumMessenger
from torch import Tensor
from torch.distributions import Normal

from causalpima.guides.encoders import GaussianParameters, convolutional_encoder, curve_encoder, mlp_encoder
from causalpima.guides.fusion import product_of_experts
from causalpima.guides.guide import CellLogits, Guide
from causalpima.models.batch import Batch
from causalpima.models.program import CellSites

N, LATENT, OUTCOMES = 6, 2, (2, 3)
SHAPES = {"image": (6, 7, 2), "curve": (9,), "table": (4,)}
PRESENT = {
    "image": torch.tensor([True, True, False, True, False, True]),
    "curve": None,
    "table": torch.tensor([False, True, True, False, False, True]),
}


def make_guide(prior_expert: bool = False) -> Guide:
    torch.manual_seed(0)
    encoders = {
        "image": convolutional_encoder(SHAPES["image"], (4, 5), LATENT),
        "curve": curve_encoder(SHAPES["curve"], (4,), LATENT),
        "table": mlp_encoder(SHAPES["table"], (5,), LATENT),
    }
    return Guide(encoders, prior_expert)


def make_batch(present: dict[str, Tensor | None] | None = None, n_samples: int = N) -> Batch:
    torch.manual_seed(1)
    values = {name: torch.randn(N, *shape) for name, shape in SHAPES.items()}
    return Batch(values, PRESENT if present is None else present, torch.arange(N), n_samples)


def filled(batch: Batch, filler: float) -> Batch:
    """The same batch with other values where nothing was measured."""
    values = {}
    for name, value in batch.values.items():
        mask = batch.present[name]
        rows = torch.zeros(N, dtype=torch.bool) if mask is None else ~mask
        values[name] = value.masked_fill(rows.reshape(-1, *[1] * (value.dim() - 1)), filler)
    return Batch(values, batch.present, batch.index, batch.n_samples)


@pytest.mark.parametrize("prior_expert", [True, False])
def test_encoding_is_the_product_over_what_is_present(prior_expert: bool) -> None:
    guide, batch = make_guide(prior_expert), make_batch()
    fused = guide.encode(batch)
    for row in range(N):
        seen = [name for name in SHAPES if (mask := PRESENT[name]) is None or bool(mask[row])]
        experts = [guide.encoders[name](batch.values[name][row : row + 1]) for name in seen]
        alone = product_of_experts(experts, [None] * len(seen), prior_expert)
        torch.testing.assert_close(fused.loc[row], alone.loc[0])
        torch.testing.assert_close(fused.log_variance[row], alone.log_variance[0])


@pytest.mark.parametrize("filler", [1e30, float("inf"), float("nan")])
def test_values_of_absent_samples_reach_neither_value_nor_gradient(filler: float) -> None:
    results = []
    for batch in (make_batch(), filled(make_batch(), filler)):
        guide = make_guide()
        encoded = guide.encode(batch)
        (encoded.loc.square().sum() + encoded.log_variance.sum()).backward()
        results.append((encoded.loc, [p.grad for p in guide.parameters()]))
    assert torch.equal(results[0][0], results[1][0])
    for before, after in zip(results[0][1], results[1][1], strict=True):
        assert before is not None
        assert after is not None
        assert torch.equal(before, after)
        assert before.isfinite().all()


@pytest.mark.parametrize("name", ["image", "curve", "table"])
def test_a_modality_that_is_never_present_gives_its_encoder_no_gradient(name: str) -> None:
    guide = make_guide()
    batch = filled(make_batch({**dict.fromkeys(SHAPES), name: torch.zeros(N, dtype=torch.bool)}), 1e30)
    encoded = guide.encode(batch)
    (encoded.loc.square().sum() + encoded.log_variance.sum()).backward()
    for modality, encoder in guide.encoders.items():
        gradients = [parameter.grad for parameter in encoder.parameters()]
        assert all(gradient is not None and gradient.isfinite().all() for gradient in gradients)
        moved = [gradient is not None and gradient.count_nonzero() > 0 for gradient in gradients]
        assert not any(moved) if modality == name else all(moved)


def test_a_batch_of_one() -> None:
    guide = make_guide()
    values = {name: torch.randn(1, *shape) for name, shape in SHAPES.items()}
    encoded = guide.encode(Batch.whole(values, {**dict.fromkeys(SHAPES), "image": torch.tensor([False])}))
    assert encoded.loc.shape == (1, LATENT)


def test_a_sample_without_modalities_needs_the_prior_expert() -> None:
    nothing: dict[str, Tensor | None] = {name: torch.ones(N, dtype=torch.bool) for name in SHAPES}
    for mask in nothing.values():
        assert mask is not None
        mask[2] = False
    with pytest.raises(ValueError, match="expected at least one modality per sample, got none for 1 samples"):
        make_guide().encode(make_batch(nothing))
    encoded = make_guide(prior_expert=True).encode(make_batch(nothing))
    assert encoded.loc[2].count_nonzero() == encoded.log_variance[2].count_nonzero() == 0


# The program


def trace_of(guide: Guide, batch: Batch) -> poutine.Trace:
    with pyro.settings.context(module_local_params=True), EnumMessenger(first_available_dim=-2):
        trace = poutine.trace(guide).get_trace(batch)
    trace.compute_log_prob()
    return trace


def test_latent_is_drawn_from_the_encoding_and_scaled_to_the_data_set() -> None:
    guide, batch = make_guide(), make_batch(n_samples=30)
    site = trace_of(guide, batch).nodes["Z"]
    encoded = guide.encode(batch)
    expected = Normal(encoded.loc, encoded.scale).log_prob(site["value"]).sum(-1)
    torch.testing.assert_close(site["unscaled_log_prob"], expected)
    torch.testing.assert_close(site["log_prob"], 5 * expected)
    gradients = torch.autograd.grad(site["value"].sum(), list(guide.parameters()))
    assert all(gradient.count_nonzero() > 0 for gradient in gradients), "reparametrised"


def test_draws_of_latent_have_the_moments_of_the_encoding() -> None:
    guide, batch, n = make_guide(), make_batch(), 3000
    encoded = guide.encode(batch)
    with pyro.settings.context(module_local_params=True), torch.no_grad():
        draws = torch.stack([poutine.trace(guide).get_trace(batch).nodes["Z"]["value"] for _ in range(60)])
        site = poutine.trace(guide).get_trace(batch).nodes["Z"]["fn"]
        draws = torch.cat([draws, site.rsample((n - 60,))])
    standard = (draws - encoded.loc) / encoded.scale
    assert (standard.mean(0).abs() < 4.5 / n**0.5).all()
    assert ((standard.square().mean(0) - 1).abs() < 4.5 * (2 / n) ** 0.5).all()


def test_without_a_posterior_over_cells_there_is_latent_only() -> None:
    nodes = trace_of(make_guide(), make_batch()).nodes
    assert [name for name, node in nodes.items() if node["type"] == "sample"] == ["data", "Z"]


def with_cells(sites: CellSites, several: bool, cell: Tensor, component: Tensor) -> Guide:
    guide = make_guide()

    def posterior(encoded: GaussianParameters, sample: Tensor, batch: Batch) -> CellLogits:
        assert encoded.loc.shape == sample.shape == (len(batch), LATENT)
        return CellLogits(cell, component if several else None)

    return Guide(dict(guide.encoders.items()), False, posterior, ["a", "b"], sites)  # type: ignore[arg-type]


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("sites", ["cells", "nodes"])
def test_cells_are_enumerated_with_the_probabilities_asked_for(sites: CellSites, several: bool) -> None:
    cell, component = 2 * torch.randn(N, *OUTCOMES), torch.randn(N, 6, 2)
    trace = trace_of(with_cells(sites, several, cell, component), make_batch())
    names = {"cells": ["N"], "nodes": ["N_a", "N_b"]}[sites] + ["component"] * several
    assert [n for n, node in trace.nodes.items() if node["type"] == "sample" and n not in ("data", "Z")] == names
    log_prob = sum(trace.nodes[name]["log_prob"] for name in names)
    assert isinstance(log_prob, Tensor)
    torch.testing.assert_close(torch.logsumexp(log_prob.reshape(-1, N), 0), torch.zeros(N), rtol=0, atol=1e-12)
    expected = torch.log_softmax(cell.flatten(1), -1).unsqueeze(-1)
    expected = expected + (torch.log_softmax(component, -1) if several else 0)
    ours, theirs = log_prob.reshape(-1, N).sort(0).values, expected.flatten(1).T.sort(0).values
    torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-12)


def test_sites_per_node_need_names() -> None:
    encoders = {"table": mlp_encoder(SHAPES["table"], (5,), LATENT)}
    with pytest.raises(ValueError, match="node_names: expected the names of the nodes"):
        Guide(encoders, cell_posterior=lambda *_: CellLogits(torch.zeros(N, 2), None), sites="nodes")


def test_two_guides_with_local_parameters_share_nothing() -> None:
    first, second = make_guide(), make_guide()
    trace_of(first, make_batch()).nodes["Z"]["value"].sum().backward()
    assert all(parameter.grad is None for parameter in second.parameters())
    assert len(pyro.get_param_store()) == 0


# Modalities that are hidden while training, and encoders for samples with one modality alone


def hiding(batch: Batch, **rows: list[int]) -> Batch:
    hidden = {name: torch.zeros(N, dtype=torch.bool).index_fill(0, torch.tensor(r), True) for name, r in rows.items()}
    return dataclasses.replace(batch, hidden=hidden)


def test_hidden_is_as_good_as_absent_to_encoders() -> None:
    guide, batch = make_guide(), make_batch()
    hidden = hiding(batch, curve=[1, 5], image=[0])
    image = PRESENT["image"]
    assert image is not None
    absent: dict[str, Tensor | None] = {
        **PRESENT,
        "image": image & torch.tensor([0, 1, 1, 1, 1, 1]).bool(),
        "curve": torch.tensor([1, 0, 1, 1, 1, 0]).bool(),
    }
    torch.testing.assert_close(guide.encode(hidden), guide.encode(make_batch(absent)), rtol=0, atol=0)
    assert not torch.equal(guide.encode(hidden).loc, guide.encode(batch).loc)


def test_hiding_all_of_a_sample_needs_the_prior_expert() -> None:
    batch = hiding(make_batch(), image=[3], curve=[3], table=[3])
    with pytest.raises(ValueError, match="got none for 1 samples"):
        make_guide().encode(batch)
    assert make_guide(prior_expert=True).encode(batch).loc[3].count_nonzero() == 0


def taught() -> Guide:
    """A guide whose unimodal encoders are other than its encoders."""
    guide = make_guide()
    guide.copy_encoders()
    with torch.no_grad():
        for parameter in guide.unimodal.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return guide


# Which modalities the six samples have, and those that have one alone: with a complete modality, and without one.
#     image  1 1 0 1 0 1       alone: curve in sample 4
#     curve  1 1 1 1 1 1
#     table  0 1 1 0 0 1
WITHOUT_COMPLETE: dict[str, Tensor | None] = {
    "image": torch.tensor([1, 1, 0, 1, 0, 1]).bool(),
    "curve": torch.tensor([0, 1, 1, 0, 1, 0]).bool(),
    "table": torch.tensor([0, 1, 1, 0, 0, 1]).bool(),
}


@pytest.mark.parametrize(
    ("present", "alone"),
    [
        (PRESENT, {4: "curve"}),
        (WITHOUT_COMPLETE, {0: "image", 3: "image", 4: "curve"}),
        (dict.fromkeys(SHAPES), {}),
        (
            {"image": torch.zeros(N).bool(), "curve": None, "table": torch.zeros(N).bool()},
            dict.fromkeys(range(N), "curve"),
        ),
    ],
    ids=["a complete modality", "none complete", "all complete", "one modality throughout"],
)
def test_unimodal_encoders_take_over_exactly_where_a_sample_has_their_modality_alone(
    present: dict[str, Tensor | None], alone: dict[int, str]
) -> None:
    guide, batch = taught(), make_batch(present)
    found = guide.encode(batch)
    without = Guide(dict(guide.encoders.items()))  # type: ignore[arg-type]
    fused = without.encode(batch)
    for row in range(N):
        expected = GaussianParameters(*(part[row : row + 1] for part in fused))
        if row in alone:
            before, expected = expected, guide.unimodal[alone[row]](batch.values[alone[row]][row : row + 1])
            assert not torch.allclose(before.loc, expected.loc)
        atol = 1e-12 if row in alone else 0
        torch.testing.assert_close(found.loc[row], expected.loc[0], rtol=0, atol=atol)
        torch.testing.assert_close(found.log_variance[row], expected.log_variance[0], rtol=0, atol=atol)


def test_copies_encode_as_their_originals_and_share_nothing_with_them() -> None:
    guide, batch = make_guide(), make_batch(WITHOUT_COMPLETE)
    before = guide.encode(batch)
    guide.copy_encoders()
    torch.testing.assert_close(guide.encode(batch), before, rtol=0, atol=1e-12)
    pairs = list(zip(guide.encoders.parameters(), guide.unimodal.parameters(), strict=True))
    assert all(torch.equal(one, copy) and one.data_ptr() != copy.data_ptr() for one, copy in pairs)
    assert len(list(guide.parameters())) == 2 * len(pairs)


@pytest.mark.parametrize("filler", [1e30, float("nan")])
def test_unimodal_encoders_see_nothing_of_absent_samples(filler: float) -> None:
    gradients = []
    for batch in (make_batch(WITHOUT_COMPLETE), filled(make_batch(WITHOUT_COMPLETE), filler)):
        torch.manual_seed(5)
        guide = taught()
        encoded = guide.encode(batch)
        (encoded.loc.square().sum() + encoded.log_variance.sum()).backward()
        gradients.append([torch.zeros_like(p) if p.grad is None else p.grad for p in guide.parameters()])
    torch.testing.assert_close(gradients[1], gradients[0], rtol=0, atol=0)
    assert all(gradient.isfinite().all() for gradient in gradients[0])
