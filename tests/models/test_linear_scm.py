"""The linear structural equation model on Z: covariance, labels, its constraint, counterfactuals."""

from __future__ import annotations

import itertools

import pyro
import pytest
import torch
from pyro import poutine
from torch import Tensor

from causalpima.models.batch import Batch
from causalpima.models.graph.base import EdgeConstraints
from causalpima.models.graph.table import TableGraph
from causalpima.models.latent_priors import LinearSCM, abducted, counterfactual, mixing, propagated, told_outcomes
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

OUTCOMES, BLOCK = (2, 3, 2), 2
NAMES = ("hue", "radius", "shift")

# hue -> shift <- radius
COLLIDER = torch.tensor([[0.0, 0.0, 1.5], [0.0, 0.0, -0.8], [0.0, 0.0, 0.0]], dtype=torch.float64)


def prior_of(weight: Tensor, block: int = BLOCK, **options: object) -> LinearSCM:
    prior = LinearSCM(NAMES, OUTCOMES, block, **options)  # type: ignore[arg-type]
    prior.weight.data = weight.clone()
    for parameter in (prior.label_loading, prior.label_offset):
        parameter.data = torch.randn_like(parameter)
    return prior


def cells_of(codes: list[list[int]]) -> Tensor:
    """Cells that labels by sample and node leave possible; -1: no label."""
    grid = torch.tensor(list(itertools.product(*map(range, OUTCOMES))))
    wanted = torch.tensor(codes)
    return ((wanted[:, None] == grid) | (wanted[:, None] < 0)).all(-1)


def batch_of(codes: list[list[int]], n_samples: int | None = None) -> Batch:
    return Batch({}, {}, torch.arange(len(codes)), n_samples or len(codes), cells=cells_of(codes))


def test_covariance_of_a_chain_by_hand() -> None:
    # hue -> radius -> shift
    a, b = 0.5, -2.0
    weight = torch.tensor([[0.0, a, 0.0], [0.0, 0.0, b], [0.0, 0.0, 0.0]])
    p = prior_of(weight, block=1).distribution()
    by_hand = torch.tensor(
        [[1, a, a * b], [a, 1 + a**2, b * (1 + a**2)], [a * b, b * (1 + a**2), 1 + b**2 * (1 + a**2)]]
    )
    torch.testing.assert_close(p.scale @ p.scale.T, by_hand)
    torch.testing.assert_close(mixing(weight)[2], torch.tensor([a * b, b, 1.0]))


def test_density_is_that_of_the_noise_by_change_of_variables_with_cycles_and_blocks() -> None:
    prior = prior_of(0.4 * torch.randn(3, 3))
    weight = prior.adjacency_weight()
    assert weight.diagonal().tolist() == [0, 0, 0]
    z = torch.randn(5, 3, BLOCK)
    noise = torch.stack([z[:, node] - sum(weight[k, node] * z[:, k] for k in range(3)) for node in range(3)], 1)
    jacobian = BLOCK * torch.linalg.slogdet(torch.eye(3) - weight)[1]
    by_hand = torch.distributions.Normal(0.0, 1.0).log_prob(noise).sum((1, 2)) + jacobian
    torch.testing.assert_close(prior.distribution().log_prob(z.flatten(1)), by_hand)
    torch.testing.assert_close(abducted(z, weight), noise)


def test_labels_are_told_by_the_cells_that_are_left() -> None:
    codes = [[1, 2, 0], [-1, 1, -1], [0, -1, 1], [-1, -1, -1]]
    outcome, is_told = told_outcomes(cells_of(codes), OUTCOMES)
    for row, expected in enumerate(codes):
        assert is_told[row].tolist() == [code >= 0 for code in expected]
        assert [int(outcome[row, node]) for node in range(3) if expected[node] >= 0] == [c for c in expected if c >= 0]
    outcome, is_told = told_outcomes(torch.tensor([[False, True, False], [True, True, True]]), (3,))
    assert (outcome[0].tolist(), is_told.tolist()) == ([1], [[True], [False]])


def _trace(prior: LinearSCM, batch: Batch, latent: Tensor) -> poutine.Trace:
    def program() -> None:
        with pyro.plate("data", len(batch)):
            prior.sample(batch)

    traced = poutine.trace(poutine.condition(program, {"Z": latent})).get_trace()
    traced.compute_log_prob()
    return traced


def test_label_sites_have_the_density_by_hand_where_labels_are_and_nothing_elsewhere() -> None:
    prior, codes = prior_of(COLLIDER), [[1, 2, 0], [-1, 1, -1], [0, -1, 1]]
    latent = torch.randn(3, 3 * BLOCK)
    traced = _trace(prior, batch_of(codes), latent)
    standardised = [(-1.0, 1.0), (-(1.5**0.5), 0.0, 1.5**0.5), (-1.0, 1.0)]
    for node, name in enumerate(NAMES):
        found = traced.nodes[f"label_{name}"]["log_prob"]
        loc = latent.reshape(3, 3, BLOCK)[:, node] @ prior.label_loading[node] + prior.label_offset[node]
        for row in range(3):
            if codes[row][node] < 0:
                assert float(found[row].detach()) == 0
                continue
            value = torch.tensor(standardised[node][codes[row][node]])
            torch.testing.assert_close(found[row], torch.distributions.Normal(loc[row], 0.1).log_prob(value))


def test_labels_are_data_whatever_the_weight_of_the_prior() -> None:
    """β times the bound of the program is E log p(u|z) - β KL: a label has log p(u|z) / β in the program."""
    graph, mixture = TableGraph(OUTCOMES), GaussianMixture(12, 3 * BLOCK)
    model = CausalPIMA(graph, mixture, {}, NAMES, latent_prior=prior_of(COLLIDER))
    latent, batch = torch.randn(3, 3 * BLOCK), batch_of([[1, 2, 0], [-1, 1, -1], [0, -1, 1]])
    found = []
    for beta in (1.0, 4.0):
        model.kl_weight = beta
        traced = poutine.trace(poutine.condition(model, {"Z": latent})).get_trace(batch)
        traced.compute_log_prob()
        found.append({name: traced.nodes[name]["log_prob"] for name in ("Z", *(f"label_{node}" for node in NAMES))})
    for name in NAMES:
        assert bool(found[0][f"label_{name}"].any())
        torch.testing.assert_close(4 * found[1][f"label_{name}"], found[0][f"label_{name}"])
    torch.testing.assert_close(found[1]["Z"], found[0]["Z"])


def test_samples_without_any_labels_have_no_label_sites() -> None:
    batch = Batch({}, {}, torch.arange(4), 4)
    assert [n for n in _trace(prior_of(COLLIDER), batch, torch.randn(4, 6)).nodes if n.startswith("label")] == []


def test_bound_with_labels_is_that_of_the_prior_given_labels() -> None:
    """-KL(q || p(Z)) + E_q log p(u | z) = -KL(q || p(Z | u)) + log p(u): what makes it CausalVAE's prior."""
    prior = prior_of(COLLIDER, block=1)
    q_loc, q_scale = torch.randn(3), torch.rand(3) + 0.2
    covariance = prior.distribution().scale @ prior.distribution().scale.T
    w, noise = torch.diag(prior.label_loading[:, 0]), 0.1**2 * torch.eye(3)
    u = torch.tensor([1.0, 1.5**0.5, -1.0]) - prior.label_offset
    gain = covariance @ w @ torch.linalg.inv(w @ covariance @ w + noise)
    given = torch.distributions.MultivariateNormal(gain @ u, covariance - gain @ w @ covariance)
    evidence = torch.distributions.MultivariateNormal(torch.zeros(3), w @ covariance @ w + noise).log_prob(u)
    q = torch.distributions.MultivariateNormal(q_loc, torch.diag(q_scale.square()))
    kl = torch.distributions.kl_divergence
    z = torch.randn(2000, 3) * q_scale + q_loc
    z = (z - z.mean(0)) / z.std(
        0, correction=0
    ) * q_scale + q_loc  # exact first and second moments: no Monte Carlo error
    rows = Batch({}, {}, torch.arange(2000), 2000, cells=cells_of([[1, 2, 0]] * 2000))
    traced = _trace(prior, rows, z)
    labels = sum(traced.nodes[f"label_{name}"]["log_prob"].mean() for name in NAMES)
    none = torch.distributions.MultivariateNormal(torch.zeros(3), covariance)
    torch.testing.assert_close(labels - kl(q, none), evidence - kl(q, given))


def test_levels_are_in_the_numbers_of_the_outcomes() -> None:
    prior = prior_of(COLLIDER)
    prior.label_loading.data = torch.tensor([[1.0, 0.0]]).repeat(3, 1)
    prior.label_offset.data.zero_()
    z = torch.zeros(3, BLOCK)
    z[:, 0] = torch.tensor([1.0, 1.5**0.5, -1.0])  # the standardised numbers of levels 1, 2, 0
    torch.testing.assert_close(prior.level(z.flatten()), torch.tensor([1.0, 2.0, 0.0]))


def test_constraint_is_per_sample_times_the_samples_of_the_training_set_and_the_rate_counts_once() -> None:
    prior = prior_of(0.3 * torch.ones(3, 3), edge_rate=2.0)
    prior.train()
    _trace(prior, batch_of([[1, 2, 0]], n_samples=100), torch.randn(1, 6))
    h = float(prior.violation().detach())
    assert float(prior.log_prior().detach()) == pytest.approx(-2 * 6 * 0.3 - 100 * 0.5 * h**2)
    prior.end_epoch()
    assert float(prior.log_prior().detach()) == pytest.approx(-3.6 - 100 * (h * h + 0.5 * h**2))
    prior.eval()
    _trace(prior, batch_of([[1, 2, 0]], n_samples=7), torch.randn(1, 6))  # held-out samples do not count
    assert float(prior.n_samples) == 100


def test_known_edges_are_kept_to() -> None:
    forbidden, required = torch.zeros(3, 3, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.bool)
    forbidden[0, 1], required[2, 0] = True, True
    prior = prior_of(torch.full((3, 3), 0.9), constraints=EdgeConstraints(forbidden, required))
    prior.weight.data[2, 0] = 0.01
    assert float(prior.adjacency_weight()[0, 1].detach()) == 0
    edges = prior.edges()
    assert bool(edges[2, 0])
    assert not bool(edges[0, 2])
    torch.testing.assert_close(prior.claimed_weight()[2, 0].detach(), torch.tensor(0.01))


def test_counterfactual_of_a_chain_by_hand() -> None:
    # z = (1, 2, 3), radius = .5 hue + 1.5, shift = -2 radius + 7. Had radius been -1: shift = 2 + 7 = 9, hue as it is.
    weight = torch.tensor([[0.0, 0.5, 0.0], [0.0, 0.0, -2.0], [0.0, 0.0, 0.0]])
    z = torch.tensor([[1.0], [2.0], [3.0]])
    torch.testing.assert_close(abducted(z, weight).flatten(), torch.tensor([1.0, 1.5, 7.0]))
    found = counterfactual(z, weight, {1: torch.tensor([-1.0])})
    torch.testing.assert_close(found.flatten(), torch.tensor([1.0, -1.0, 9.0]))
    # Had hue been 3: radius 3, shift 1. Where it is set to what it is, nothing changes.
    torch.testing.assert_close(
        counterfactual(z, weight, {0: torch.tensor([3.0])}).flatten(), torch.tensor([3.0, 3.0, 1.0])
    )
    torch.testing.assert_close(counterfactual(z, weight, {0: torch.tensor([1.0])}), z)


@pytest.mark.parametrize("seed", range(5))
def test_propagation_is_the_recursion_along_the_order(seed: int) -> None:
    torch.manual_seed(seed)
    weight, noise, value = torch.randn(4, 4).triu(1), torch.randn(6, 4, BLOCK), torch.randn(BLOCK)
    z: list[Tensor] = []
    for node in range(4):
        causes = sum((weight[k, node] * z[k] for k in range(node)), torch.zeros(6, BLOCK))
        z.append(value.expand(6, -1) if node == 2 else causes + noise[:, node])
    torch.testing.assert_close(propagated(noise, weight, {2: value}), torch.stack(z, 1))


def test_counterfactuals_follow_the_claimed_edges_alone() -> None:
    prior = prior_of(COLLIDER + torch.tensor([[0.0, 0.2, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), block=1)
    z = torch.tensor([1.0, 1.0, 1.0])
    found = prior.counterfactual(z, {0: torch.tensor([-1.0])})
    torch.testing.assert_close(found, torch.tensor([-1.0, 1.0, 1.0 - 2 * 1.5]))


def test_gradients_reach_every_parameter() -> None:
    prior = prior_of(0.4 * torch.randn(3, 3))
    traced = _trace(prior, batch_of([[1, 2, 0], [0, 1, 1]]), torch.randn(2, 6))
    (traced.log_prob_sum() + prior.log_prior()).backward()
    assert all(parameter.grad is not None and bool(parameter.grad.any()) for parameter in prior.parameters())


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 0, 1)])
def test_a_known_graph_comes_out_of_its_exact_covariance(order: tuple[int, ...]) -> None:
    """With noise of equal variances (Peters and Bühlmann 2014) the likelihood has one maximum without cycles."""
    truth = COLLIDER[list(order)][:, list(order)]
    covariance = mixing(truth) @ mixing(truth).T
    prior = prior_of(0.01 * torch.randn(3, 3), block=1)
    prior.train()
    prior.n_samples.fill_(1.0)
    optimiser = torch.optim.Adam([prior.weight], 2e-2)
    for _ in range(30):
        for _ in range(30):
            whole = torch.eye(3) - prior.adjacency_weight()
            loss = 0.5 * (whole.T @ covariance @ whole).trace() - torch.linalg.slogdet(whole)[1] - prior.log_prior()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        prior.end_epoch()
    assert torch.equal(prior.edges(), truth != 0)
    torch.testing.assert_close(prior.claimed_weight().detach(), truth, atol=0.02, rtol=0)
    assert float(prior.violation().detach()) < 1e-5
