"""Graphs that penalties keep from cycles: penalties against dense references, p(N) with cycles, the hard end."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest
import scipy.linalg
import torch
from torch import Tensor

from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.graph_updates import settle_relaxed
from causalpima.models import dag
from causalpima.models.dag import curl_free_potential, log_determinant_cycles, polynomial_cycles, spectral_radius
from causalpima.models.graph.base import EdgeConstraints
from causalpima.models.graph.relaxed import DagmaGraph, NocurlGraph, NotearsGraph, RelaxedGraph, chain_tables

OUTCOMES = (2, 3, 2)
KINDS: dict[str, Callable[..., RelaxedGraph]] = {"notears": NotearsGraph, "dagma": DagmaGraph, "nocurl": NocurlGraph}
CHAIN = torch.tensor([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


@pytest.fixture(params=KINDS)
def graph(request: pytest.FixtureRequest) -> RelaxedGraph:
    found = KINDS[request.param](OUTCOMES)
    with torch.no_grad():
        found.edge.uniform_(0.1, 0.6)
        found.project()
    return found


def fitting(steps: int = 150) -> FitConfig:
    settings = SimpleNamespace(start_steps=steps, learning_rate=0.03, pseudo_count=0.5)
    return cast(FitConfig, SimpleNamespace(graph=settings))


def test_measures_of_cycles_are_those_of_dense_references() -> None:
    strength = 0.6 * torch.rand(4, 4)
    squared = strength.square().numpy()
    power = np.linalg.matrix_power(np.eye(4) + squared / 4, 4)
    np.testing.assert_allclose(float(polynomial_cycles(strength)), np.trace(power) - 4)
    roots = np.linalg.eigvals(1.3 * np.eye(4) - squared)
    np.testing.assert_allclose(
        float(log_determinant_cycles(strength, 1.3)), 4 * math.log(1.3) - np.log(roots.prod().real)
    )
    np.testing.assert_allclose(spectral_radius(strength), np.abs(np.linalg.eigvals(squared)).max())


def test_gradients_of_the_measures_have_their_closed_forms() -> None:
    """2 E ∘ (sI - E∘E)^-T (Bello et al. 2022, theorem 1), and 2 E ∘ ((I + E∘E / L)^(L-1))^T (Yu et al. 2019)."""
    strength = (0.4 * torch.rand(3, 3)).requires_grad_()
    squared = strength.detach().square().numpy()
    (found,) = torch.autograd.grad(log_determinant_cycles(strength, 1.0), strength)
    np.testing.assert_allclose(found, 2 * strength.detach().numpy() * np.linalg.inv(np.eye(3) - squared).T)
    (found,) = torch.autograd.grad(polynomial_cycles(strength), strength)
    power = np.linalg.matrix_power(np.eye(3) + squared / 3, 2)
    np.testing.assert_allclose(found, 2 * strength.detach().numpy() * power.T)


def test_measures_are_zero_without_cycles_and_positive_with_one() -> None:
    acyclic = torch.rand(4, 4).triu(1)
    cyclic = acyclic.clone()
    cyclic[3, 0] = 0.3
    for measure in (polynomial_cycles, lambda e: log_determinant_cycles(e, 1.0)):
        torch.testing.assert_close(measure(acyclic), torch.tensor(0.0), atol=1e-14, rtol=0)
        assert float(measure(cyclic)) > 1e-6
    assert spectral_radius(acyclic) == 0
    assert spectral_radius(cyclic) > 0


def test_the_potential_is_the_gradient_nearest_to_who_leads_where() -> None:
    """Against least squares over all potentials; and it grows along every edge of a graph without cycles."""
    edges = torch.rand(5, 5).triu(1) > 0.5
    edges = edges[[2, 0, 4, 1, 3]][:, [2, 0, 4, 1, 3]]
    leads = np.linalg.matrix_power(np.eye(5) + edges.numpy(), 5) > 0
    wanted = leads.astype(float) - leads.T
    pairs = list(itertools.combinations(range(5), 2))
    gradient = np.array([[float(k == j) - float(k == i) for k in range(5)] for i, j in pairs])
    best = np.linalg.lstsq(gradient, np.array([wanted[i, j] for i, j in pairs]), rcond=None)[0]
    found = curl_free_potential(edges).numpy()
    np.testing.assert_allclose(found - found.mean(), best - best.mean(), atol=1e-12)
    assert all(found[i] < found[j] for i, j in np.argwhere(edges.numpy()))


def test_p_of_n_is_the_normalised_product_of_tables_with_cycles(graph: RelaxedGraph) -> None:
    strength = graph.edge_strength()
    product = dag.log_joint(graph.conditional_logits, strength).detach().exp()
    assert abs(float(product.sum()) - 1) > 1e-6, "with cycles the product itself is no distribution"
    joint = graph.log_joint().detach().exp()
    torch.testing.assert_close(joint, product / product.sum())
    torch.testing.assert_close(joint.sum(), torch.tensor(1.0))


def test_tables_along_the_nodes_are_those_of_p_of_n() -> None:
    joint = torch.rand(OUTCOMES)
    joint = joint / joint.sum()
    tables = chain_tables(joint.log())
    torch.testing.assert_close(tables.sum(0).exp(), joint)
    first, second = joint.sum((1, 2)), joint.sum(2)
    torch.testing.assert_close(tables[0].exp(), first[:, None, None].expand(OUTCOMES))
    torch.testing.assert_close(tables[1].exp(), (second / first[:, None])[:, :, None].expand(OUTCOMES))
    torch.testing.assert_close(tables[2].exp(), joint / second[:, :, None])


def test_the_program_sees_the_same_p_of_n(graph: RelaxedGraph) -> None:
    torch.testing.assert_close(graph.sample_log_tables().sum(0), graph.log_joint())
    assert graph.causal_order() == [0, 1, 2]


def test_the_log_prior_is_the_penalties_of_all_samples(graph: RelaxedGraph) -> None:
    graph.n_samples.fill_(50.0)
    e, logits = graph.soft_strength().detach(), graph.conditional_logits.detach()
    squared = e.square().numpy()
    h = {
        NotearsGraph: 0.5 * (np.trace(scipy.linalg.expm(squared)) - 3) ** 2,
        DagmaGraph: -np.linalg.slogdet(np.eye(3) - squared)[1] / 0.1,
        NocurlGraph: 10 * (np.trace(np.linalg.matrix_power(np.eye(3) + squared / 3, 3)) - 3),
    }[type(graph)]
    expected = -50 * (0.01 * float(e.sum()) + 0.005 * float(logits.square().sum()) + h)
    np.testing.assert_allclose(float(graph.log_prior().detach()), expected)
    graph.log_prior().backward()
    assert graph.edge.grad is not None
    assert torch.isfinite(graph.edge.grad).all()


def test_the_augmented_lagrangian_has_the_schedule_of_its_paper() -> None:
    graph = NotearsGraph((2, 2))

    def stage(strength: float) -> tuple[float, float]:
        with torch.no_grad():
            graph.edge.fill_(strength)
        graph.end_epoch()
        return float(graph.multiplier), float(graph.stiffness)

    h = [2 * math.cosh(e * e) - 2 for e in (0.5, 0.4, 0.2)]
    np.testing.assert_allclose(stage(0.5), (h[0], 1.0))
    np.testing.assert_allclose(stage(0.4), (h[0], 10.0))  # h is above a quarter of what it was
    np.testing.assert_allclose(stage(0.2), (h[0] + 10 * h[2], 10.0))
    assert not graph.is_done()
    assert stage(0.0) == stage(0.0)
    assert graph.is_done()


def test_the_central_path_has_the_weights_of_its_paper_and_stays_in_the_domain() -> None:
    graph = DagmaGraph((2,) * 5)
    weights = []
    while not graph.is_done():
        weights.append(graph.path_weight())
        graph.end_epoch()
    np.testing.assert_allclose(weights, [0.1, 0.01, 0.001, 0.0001])
    with torch.no_grad():
        graph.edge.fill_(0.9)
    graph.project()
    assert 0.7 < spectral_radius(graph.soft_strength()) < 1


def test_nocurl_keeps_to_the_order_of_its_potential_in_its_second_step() -> None:
    graph = NocurlGraph((2,) * 3)
    with torch.no_grad():
        graph.edge.copy_(torch.tensor([[0.0, 0.1, 0.0], [0.8, 0.0, 0.5], [0.2, 0.1, 0.0]]))
    graph.end_epoch()
    graph.end_epoch()
    np.testing.assert_allclose(graph.potential.numpy(), [1 / 3, -2 / 3, 1 / 3])
    strength = graph.soft_strength()
    assert (strength > 0).tolist() == [[False, False, False], [True, False, True], [False, False, False]]
    assert float(graph.cycle_penalty(strength).detach()) == 0
    assert not graph.is_done()
    graph.end_epoch()
    assert graph.is_done()


def test_it_ends_hard_without_cycles_with_tables_in_closed_form(graph: RelaxedGraph) -> None:
    count = torch.rand(12) * 100
    settle_relaxed(graph, count, fitting(5))
    strength = graph.edge_strength()
    assert graph.is_settled
    assert set(strength.flatten().tolist()) <= {0.0, 1.0}
    assert spectral_radius(strength) == 0
    families = [[k for k in range(3) if strength[k, node]] for node in range(3)]
    joint = torch.ones(OUTCOMES)
    for node, parents in enumerate(families):
        absent = [k for k in range(3) if k != node and k not in parents]
        n = count.reshape(OUTCOMES).sum(absent, keepdim=True) + 0.5 if absent else count.reshape(OUTCOMES) + 0.5
        joint = joint * n / n.sum(node, keepdim=True)
    torch.testing.assert_close(graph.log_joint().exp(), joint)
    assert graph.end_epoch() == {}


@pytest.mark.parametrize("kind", KINDS)
def test_a_chain_is_recovered_from_its_p_of_n(kind: str) -> None:
    """Its class: p(N) tells no more. Flips with a tenth; independence where there is no edge is a negative control."""
    flip = torch.tensor([[0.9, 0.1], [0.1, 0.9]])
    chain = 0.5 * flip[:, :, None] * flip[None, :, :]
    for joint, expected in ((chain, [(0, 1), (1, 2)]), (torch.full((2, 2, 2), 0.125), [])):
        graph = KINDS[kind]((2, 2, 2))
        settle_relaxed(graph, 1000 * joint.reshape(-1), fitting())
        edges = graph.adjacency()
        joined = [tuple(pair) for pair in (edges | edges.T).triu(1).nonzero().tolist()]
        assert joined == expected
        assert not (edges[0, 1] and edges[2, 1]), "a chain has no collider"


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_known_holds_at_all_times(kind: str) -> None:
    forbidden, required = torch.zeros(3, 3, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.bool)
    forbidden[0, 1] = forbidden[1, 2] = required[2, 0] = True
    graph = KINDS[kind](OUTCOMES, constraints=EdgeConstraints(forbidden, required))
    told = []
    step: Callable[[], Any] = graph.project

    def project() -> None:
        step()
        told.append(graph.edge_strength().detach())

    graph.project = project  # type: ignore[method-assign]
    settle_relaxed(graph, torch.rand(12) * 100, fitting(5))
    assert told
    for strength in (*told, graph.edge_strength()):
        assert strength[0, 1] == strength[1, 2] == 0
        assert strength[2, 0] == 1
    with pytest.raises(ValueError, match="agrees with what is known"):
        graph.take_over(CHAIN, torch.full(OUTCOMES, 1 / 12))


@pytest.mark.parametrize("kind", KINDS)
def test_state_goes_through_a_file_form_soft_and_hard(kind: str) -> None:
    def copied(one: RelaxedGraph) -> RelaxedGraph:
        other = KINDS[kind](OUTCOMES)
        other.load_state_dict(one.state_dict())
        return other

    def descended(one: RelaxedGraph) -> Tensor:
        (-one.log_joint()[0, 0, 0] - one.log_prior()).backward()
        one.end_epoch()
        assert one.edge.grad is not None
        return one.edge.grad

    graph = KINDS[kind](OUTCOMES)
    for _ in range(2):
        graph.end_epoch()
    other = copied(graph)
    torch.testing.assert_close(descended(other), descended(graph), rtol=0, atol=0)
    assert all(torch.equal(other.state_dict()[name], value) for name, value in graph.state_dict().items())
    settle_relaxed(graph, torch.rand(12), fitting(1))
    again = copied(graph)
    assert again.is_settled
    torch.testing.assert_close(again.log_joint(), graph.log_joint(), rtol=0, atol=0)
    again.load_state_dict(other.state_dict())
    assert not again.is_settled
