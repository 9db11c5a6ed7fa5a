"""The generative model as a Pyro program: densities by brute force, conditioning, draws, masks."""

from __future__ import annotations

import dataclasses
from itertools import product
from typing import Any

import pyro
import pytest
import torch
from pyro import poutine
from pyro.infer import Predictive
from pyro.poutine.enum_messenger import EnumMessenger
from small_model import LATENT, OUTCOMES, SHAPES, VARIANCES, N, make_batch, make_model
from torch import Tensor
from torch.distributions import MultivariateNormal, Normal

from causalpima.models.batch import Batch
from causalpima.models.decoders.base import Decoder, DecoderVariance
from causalpima.models.decoders.networks import mlp_decoder
from causalpima.models.distributions import ComponentNormal
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.mixture import Covariance, GaussianMixture
from causalpima.models.program import CausalPIMA, CellSites


def trace_of(model: CausalPIMA, batch: Batch, **data: Tensor) -> poutine.Trace:
    """Trace with N enumerated and these sites fixed; log-densities computed."""
    with pyro.settings.context(module_local_params=True), EnumMessenger(first_available_dim=-2):
        trace = poutine.trace(poutine.condition(model, data)).get_trace(batch)
    trace.compute_log_prob()
    return trace


def sample_sites(trace: poutine.Trace) -> dict[str, dict[str, Any]]:
    return {name: trace.nodes[name] for name in trace.stochastic_nodes + trace.observation_nodes if name != "data"}


def log_marginal(trace: poutine.Trace) -> Tensor:
    """log p(Z, X) per sample: all sites added, the enumerated dimensions summed out."""
    log_prob: Tensor = sum(site["log_prob"] for site in sample_sites(trace).values())
    return torch.logsumexp(log_prob.reshape(-1, N), 0)


def brute_force(model: CausalPIMA, batch: Batch, latent: Tensor) -> Tensor:
    """The same from the table of p(N), torch's Gaussians and the decoders' means, one component at a time."""
    mixture, joint = model.mixture, model.graph.log_joint()
    terms = []
    for k, cell in enumerate(mixture.component_cell.tolist()):
        normal = MultivariateNormal(mixture.component_loc[k], covariance_matrix=mixture.covariance()[k])
        outcome = divmod(cell, OUTCOMES[1])
        term = joint[outcome] + mixture.component_log_share[k] + normal.log_prob(latent)
        for name, decoder in model.decoders.items():
            mean, scale = decoder(latent, torch.tensor(cell)).mean, VARIANCES[name] ** 0.5
            log_prob = Normal(mean, scale).log_prob(batch.values[name]).flatten(1).sum(1)
            present = batch.present[name]
            term = term + (log_prob if present is None else torch.where(present, log_prob, 0.0))
        terms.append(term)
    return torch.logsumexp(torch.stack(terms), 0)


variants = pytest.mark.parametrize(
    ("covariance", "several"), list(product(["diagonal", "full"], [False, True])), ids=lambda value: str(value)
)
both_sites = pytest.mark.parametrize("sites", ["cells", "nodes"])


# N1 -> N2
#   \   /
#     Z ----> image
#      \--+-> curve <- N
@both_sites
@variants
def test_enumeration_gives_the_density_of_brute_force(sites: CellSites, covariance: Covariance, several: bool) -> None:
    model, batch, latent = make_model(sites, covariance, several), make_batch(), torch.randn(N, LATENT)
    ours = log_marginal(trace_of(model, batch, Z=latent))
    torch.testing.assert_close(ours, brute_force(model, batch, latent), rtol=1e-12, atol=1e-12)


# N1 -> N2              cells with one, two and three Gaussians, some of them 1e6 nats away
@both_sites
def test_unused_places_of_cells_with_fewer_gaussians_count_for_nothing(sites: CellSites) -> None:
    model, batch, latent = make_model(sites), make_batch(), torch.randn(N, LATENT)
    model.mixture.component_loc[[0, 1, 4]] += 1e3
    ours = log_marginal(trace_of(model, batch, Z=latent))
    torch.testing.assert_close(ours, brute_force(model, batch, latent), rtol=1e-12, atol=1e-12)


# N1 -> N2, N2 -> N1, and no edge between them
@variants
@pytest.mark.parametrize("score", [(-0.4, 0.6), (0.8, -0.1), (0.2, 0.2)])
def test_cells_and_nodes_are_the_same_model(covariance: Covariance, several: bool, score: tuple[float, float]) -> None:
    batch, latent, bounds = make_batch(), torch.randn(N, LATENT), []
    for sites in ("cells", "nodes"):
        model = make_model(sites, covariance, several)
        model.graph.node_score.data = torch.tensor(score)
        value = log_marginal(trace_of(model, batch, Z=latent))
        bounds.append((value, torch.autograd.grad(value.sum(), list(model.parameters()))))
    torch.testing.assert_close(bounds[0][0], bounds[1][0], rtol=0, atol=1e-12)
    for first, second in zip(bounds[0][1], bounds[1][1], strict=True):
        torch.testing.assert_close(first, second, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize(
    ("sites", "several", "expected"),
    [
        ("cells", False, ["N", "Z", "X_image", "X_curve"]),
        ("cells", True, ["N", "component", "Z", "X_image", "X_curve"]),
        ("nodes", False, ["N_N1", "N_N2", "Z", "X_image", "X_curve"]),
    ],
)
def test_names_of_sites(sites: CellSites, several: bool, expected: list[str]) -> None:
    found = sample_sites(trace_of(make_model(sites, several=several), make_batch()))
    assert sorted(found) == sorted(expected)
    assert [name for name, site in found.items() if site["is_observed"]] == ["X_image", "X_curve"]


def test_a_part_of_the_data_counts_for_all_of_it() -> None:
    latent, batch, larger = torch.randn(N, LATENT), make_batch(), make_batch(n_samples=40)
    larger = Batch(batch.values, batch.present, batch.index, 40)
    small, large = (trace_of(make_model(), b, Z=latent) for b in (batch, larger))
    for name in ("N", "Z", "X_image", "X_curve"):
        torch.testing.assert_close(large.nodes[name]["log_prob_sum"], 8 * small.nodes[name]["log_prob_sum"])


def test_what_is_absent_counts_for_nothing_whatever_stands_in_its_place() -> None:
    model, batch, latent = make_model(), make_batch(), torch.randn(N, LATENT, requires_grad=True)
    value = log_marginal(trace_of(model, batch, Z=latent))
    gradient = torch.autograd.grad(value.sum(), [latent, *model.parameters()])
    present = batch.present["curve"]
    assert present is not None
    filled = torch.where(present.unsqueeze(-1), batch.values["curve"], 1e20)
    other = Batch({**batch.values, "curve": filled}, batch.present, batch.index, batch.n_samples)
    again = log_marginal(trace_of(model, other, Z=latent))
    torch.testing.assert_close(again, value, rtol=0, atol=0)
    for before, after in zip(gradient, torch.autograd.grad(again.sum(), [latent, *model.parameters()]), strict=True):
        torch.testing.assert_close(before, after, rtol=0, atol=0)


@both_sites
def test_condition_on_everything(sites: CellSites) -> None:
    model, batch, latent = make_model(sites, several=False), make_batch(), torch.randn(N, LATENT)
    values = torch.tensor([0, 1, 1, 0, 1]), torch.tensor([2, 0, 1, 1, 2])
    cell = values[0] * 3 + values[1]
    nodes = {"N": cell} if sites == "cells" else {"N_N1": values[0], "N_N2": values[1]}
    trace = trace_of(model, batch, Z=latent, **nodes)
    prior = sum(trace.nodes[name]["log_prob"] for name in nodes)
    torch.testing.assert_close(prior, model.graph.log_joint()[values])
    torch.testing.assert_close(trace.nodes["Z"]["log_prob"], model.mixture.log_density(latent)[torch.arange(N), cell])
    curve = Normal(model.decoders["curve"](latent, cell).mean, 0.3**0.5).log_prob(batch.values["curve"]).sum(-1)
    present = batch.present["curve"]
    assert present is not None
    torch.testing.assert_close(trace.nodes["X_curve"]["log_prob"], torch.where(present, curve, 0.0))


@both_sites
@pytest.mark.parametrize("parallel", [False, True])
def test_predictive_draws_all_sites(sites: CellSites, parallel: bool) -> None:
    model, batch = poutine.uncondition(make_model(sites)), make_batch()
    with pyro.settings.context(module_local_params=True):
        draws = Predictive(model, num_samples=7, parallel=parallel)(batch)
    assert draws["Z"].shape == (7, N, LATENT)
    assert draws["X_image"].shape == (7, N, *SHAPES["image"])
    assert draws["X_curve"].shape == (7, N, *SHAPES["curve"])
    assert draws["X_image"].flatten(0, 1).unique(dim=0).shape[0] == 7 * N


# N1 -> N2 -> ...       ancestral draws of one large batch
@both_sites
def test_draws_have_the_moments_of_the_model(sites: CellSites) -> None:
    model, n = make_model(sites), 20_000
    batch = Batch.whole({name: torch.zeros(n, *shape) for name, shape in SHAPES.items()})
    with pyro.settings.context(module_local_params=True):
        trace = poutine.trace(poutine.uncondition(model)).get_trace(batch)
    names = ["N"] if sites == "cells" else ["N_N1", "N_N2"]
    values = [trace.nodes[name]["value"] for name in names]
    cell = values[0] if sites == "cells" else values[0] * 3 + values[1]
    joint = model.graph.log_joint().exp().reshape(-1)
    assert ((torch.bincount(cell, minlength=6) / n - joint).abs() < 4.5 * (joint * (1 - joint) / n).sqrt()).all()
    mixture, latent = model.mixture, trace.nodes["Z"]["value"]
    weight = mixture.log_weight(model.graph.log_joint()).exp()
    mean = weight @ mixture.component_loc
    second = torch.einsum("k,kij->ij", weight, mixture.covariance())
    second = second + torch.einsum("k,ki,kj->ij", weight, mixture.component_loc, mixture.component_loc)
    variance = second.diagonal() - mean.square()
    assert ((latent.mean(0) - mean).abs() < 4.5 * (variance / n).sqrt()).all()
    products = latent.unsqueeze(-1) * latent.unsqueeze(-2)
    assert ((products.mean(0) - second).abs() < 4.5 * products.std(0) / n**0.5).all()
    error = trace.nodes["X_curve"]["value"] - model.decoders["curve"](latent, cell).mean
    assert (error.mean(0).abs() < 4.5 * (0.3 / n) ** 0.5).all()
    assert ((error.square().mean(0) - 0.3).abs() < 4.5 * 0.3 * (2 / n) ** 0.5).all()


def test_batch_of_a_whole_data_set() -> None:
    batch = Batch.whole({"image": torch.randn(4, 3)})
    assert (len(batch), batch.n_samples, batch.present) == (4, 4, {"image": None})
    assert batch.index.tolist() == [0, 1, 2, 3]


def test_another_number_of_cells_is_refused() -> None:
    with pytest.raises(ValueError, match="mixture: expected 6 cells as the graph has, got 5"):
        CausalPIMA(HodgeGraph(OUTCOMES), GaussianMixture(5, LATENT), {})


@pytest.mark.parametrize("names", [["a"], ["a", "a"], ["a", "b", "c"]])
def test_other_names_than_one_per_node_are_refused(names: list[str]) -> None:
    with pytest.raises(ValueError, match="node_names: expected 2 different names, got"):
        CausalPIMA(HodgeGraph(OUTCOMES), GaussianMixture(6, LATENT), {}, names)


# Elements that are missing, weights, covariates, other decoders


def with_gaps(batch: Batch, filler: float = 0.0) -> Batch:
    """Two fifths of the elements of the curve are missing."""
    observed = torch.rand(N, *SHAPES["curve"]) < 0.6
    curve = torch.where(observed, batch.values["curve"], filler)
    return dataclasses.replace(batch, values={**batch.values, "curve": curve}, observed={"curve": observed})


def test_likelihood_is_of_the_measured_elements_raised_to_the_weight() -> None:
    model, batch, latent = make_model(), with_gaps(make_batch()), torch.randn(N, LATENT)
    model.weights["curve"] = 0.25
    cell = torch.arange(6).unsqueeze(-1)
    mean = model.decoders["curve"](latent, cell).mean
    elements = Normal(mean, VARIANCES["curve"] ** 0.5).log_prob(batch.values["curve"])
    by_hand = 0.25 * torch.where(batch.observed["curve"], elements, 0.0).sum(-1)
    found = model.likelihood("curve", latent, cell, batch).log_prob(batch.values["curve"])
    torch.testing.assert_close(found, by_hand, rtol=1e-12, atol=1e-12)
    complete = Normal(model.decoders["image"](latent, cell).mean, VARIANCES["image"] ** 0.5)
    found = model.likelihood("image", latent, cell, batch).log_prob(batch.values["image"])
    torch.testing.assert_close(found, complete.log_prob(batch.values["image"]).flatten(1).sum(1))


@both_sites
def test_the_program_observes_what_likelihood_says(sites: CellSites) -> None:
    torch.manual_seed(2)
    model, batch, latent = make_model(sites, several=False), with_gaps(make_batch()), torch.randn(N, LATENT)
    model.weights |= {"image": 3.0, "curve": 0.25}
    nodes = {"N": torch.zeros(N).long()} if sites == "cells" else {n: torch.zeros(N).long() for n in ("N_N1", "N_N2")}
    trace = trace_of(model, batch, Z=latent, **nodes)
    for name in SHAPES:
        given = model.likelihood(name, latent, torch.zeros(N).long(), batch).log_prob(batch.values[name])
        present = batch.present[name]
        expected = given if present is None else torch.where(present, given, 0.0)
        torch.testing.assert_close(trace.nodes[f"X_{name}"]["log_prob"], expected)


def test_filler_of_missing_elements_gets_a_gradient_of_exactly_zero() -> None:
    model, batch, latent = make_model(), with_gaps(make_batch(), filler=1e20), torch.randn(N, LATENT)
    values = {name: value.clone().requires_grad_() for name, value in batch.values.items()}
    value = log_marginal(trace_of(model, dataclasses.replace(batch, values=values), Z=latent))
    (gradient,) = torch.autograd.grad(value.sum(), values["curve"])
    assert batch.present["curve"] is not None
    measured = batch.observed["curve"] & batch.present["curve"].unsqueeze(-1)
    assert (gradient[~measured] == 0).all()
    assert (gradient[measured] != 0).all()


class Correlated(Decoder):
    """A decoder of somebody who knows nothing of missing elements."""

    def __init__(self) -> None:
        super().__init__()
        self.event_shape, self.depends_on_cell, self.depends_on_latent = torch.Size(SHAPES["curve"]), False, True

    def forward(self, latent: Tensor, cell: Tensor) -> ComponentNormal:
        loc = latent.sum(-1, keepdim=True).expand(*latent.shape[:-1], 4)
        return ComponentNormal(loc, torch.ones_like(loc))


def test_a_decoder_that_cannot_leave_out_elements_is_refused_where_some_are_missing() -> None:
    model, batch, latent = make_model(), make_batch(), torch.randn(N, LATENT)
    other = model.with_decoders({"curve": Correlated()})
    cell = torch.zeros(1).long()
    assert other.likelihood("curve", latent, cell, batch).log_prob(batch.values["curve"]).isfinite().all()
    with pytest.raises(ValueError, match=r"^modality curve: expected an ElementDistribution"):
        other.likelihood("curve", latent, cell, with_gaps(batch))


def seeing_covariates() -> CausalPIMA:
    """A model whose image depends on a covariate of three levels next to Z."""
    model = make_model()
    image = mlp_decoder(LATENT + 3, SHAPES["image"], (5,), DecoderVariance("fixed", 0.5))
    return CausalPIMA(model.graph, model.mixture, {"image": image}, mean_covariates=torch.tensor([0.5, 0.3, 0.2]))


def test_decoders_see_the_covariates_of_every_sample() -> None:
    model, latent, cell = seeing_covariates(), torch.randn(N, LATENT), torch.zeros(1).long()
    levels = torch.eye(3)[torch.tensor([0, 2, 1, 1, 0])]
    expected = model.decoders["image"](torch.cat([latent, levels], -1), cell).mean
    batch = dataclasses.replace(make_batch(), covariates=levels)
    torch.testing.assert_close(model.decode("image", latent, cell, levels).mean, expected)
    torch.testing.assert_close(model.likelihood("image", latent, cell, batch).mean, expected)
    drawn = model.decode("image", latent.expand(7, N, LATENT), cell, levels).mean
    torch.testing.assert_close(drawn, expected.expand(7, *expected.shape))


def test_without_them_decoders_see_the_average() -> None:
    model, latent, cell = seeing_covariates(), torch.randn(N, LATENT), torch.zeros(1).long()
    average = torch.tensor([0.5, 0.3, 0.2]).expand(N, 3)
    expected = model.decoders["image"](torch.cat([latent, average], -1), cell).mean
    torch.testing.assert_close(model.decode("image", latent, cell).mean, expected)
    torch.testing.assert_close(model.likelihood("image", latent, cell, make_batch()).mean, expected)
    torch.testing.assert_close(model.decode("image", latent, cell, torch.tensor([0.5, 0.3, 0.2])).mean, expected)
    assert "mean_covariates" in model.state_dict()


def test_other_decoders_on_the_same_graph_and_mixture() -> None:
    model = CausalPIMA(
        make_model().graph,
        make_model().mixture,
        dict(make_model().decoders.items()),  # type: ignore[arg-type]
        ("a", "b"),
        "nodes",
        {"curve": 0.3},
        torch.tensor([0.4, 0.6]),
    )
    decoder = Correlated()
    other = model.with_decoders({"image": model.decoders["image"], "curve": decoder})  # type: ignore[dict-item]
    assert other.graph is model.graph
    assert other.mixture is model.mixture
    assert other.decoders["image"] is model.decoders["image"]
    assert other.decoders["curve"] is decoder
    assert model.decoders["curve"] is not decoder
    assert (other.node_names, other.sites, other.weights) == (("a", "b"), "nodes", {"image": 1.0, "curve": 0.3})
    assert other.mean_covariates is not None
    assert other.mean_covariates.tolist() == [0.4, 0.6]
