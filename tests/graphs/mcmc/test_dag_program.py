"""The program over all graphs against closed forms: BDeu, and brute force over what is hidden."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from exact import bdeu, edge_probability, hidden, observed

from causalpima.inference.graphs.chains import CellEvidence, Chain, DagProgram, Settings, run_chain
from causalpima.inference.graphs.dags import all_dags
from causalpima.inference.store.arviz import convergence

OUTCOMES = (2, 2, 2)


def certain(counts: np.ndarray) -> np.ndarray:
    with np.errstate(divide="ignore"):
        return np.log(np.eye(counts.size))[np.repeat(np.arange(counts.size), counts.ravel())]


def weak_dependence(n: int, seed: int) -> np.ndarray:
    """Counts of 0 -> 1 -> 2, so weak that no graph is certain."""
    rng = np.random.default_rng(seed)
    first = rng.random(n) < 0.5
    second = rng.random(n) < np.where(first, 0.6, 0.4)
    third = rng.random(n) < np.where(second, 0.65, 0.35)
    return np.histogramdd(np.stack([first, second, third], 1).astype(float), bins=(2, 2, 2))[0].astype(int)


def edges_of(program: DagProgram, chain: Chain) -> np.ndarray:
    draws = [{name: value[i] for name, value in chain.draws.items()} for i in range(len(chain.energy))]
    return np.stack(
        [program.edge_probability(program.graph_probability(program.tables_of(draw))).numpy() for draw in draws]
    )


def assert_agrees(found: np.ndarray, exact: np.ndarray) -> None:
    """Means over draws `[draw, L, L]` equal the exact probabilities, to four Monte Carlo standard errors."""
    away = ~np.eye(exact.shape[0], dtype=bool)
    values = found[:, away]
    _, bulk, _ = convergence(values[None])
    error = values.std(0) / np.sqrt(bulk)
    assert error.max() < 0.12
    assert (np.abs(values.mean(0) - exact[away]) < 4 * error + 1e-9).all()


@pytest.mark.parametrize("s", [1.0, 5.0])
def test_weights_are_bdeu_at_any_tables_where_nodes_are_observed(s: float) -> None:
    counts = weak_dependence(200, 0)
    program = DagProgram.of(CellEvidence(certain(counts)), OUTCOMES, s)
    pseudo = [
        a + m for a, m in zip(program.prior, program.families.counts(torch.tensor(counts.ravel() * 1.0)), strict=True)
    ]
    program = replace(program, pseudo_prior=pseudo)
    tables = [torch.distributions.Dirichlet(torch.ones_like(part)).sample() for part in pseudo]
    assert np.allclose(program.log_weights(tables).numpy(), observed(counts, s))


def test_a_wrong_prior_is_told() -> None:
    counts = weak_dependence(200, 0)
    assert not np.allclose(observed(counts, 1.0), observed(counts, 5.0))
    assert np.isclose(bdeu(counts, all_dags(3)[0], 1.0), bdeu(counts, np.zeros((3, 3)), 1.0))


def test_chain_agrees_with_the_sum_over_hidden_cells() -> None:
    rng = np.random.default_rng(2)
    counts, unclear = weak_dependence(25, 3), rng.normal(scale=1.5, size=(5, 8))
    program = DagProgram.of(CellEvidence(np.concatenate([certain(counts), unclear])), OUTCOMES, 2.0)
    # A pseudo-prior that is off: with the best one draws hardly differ where nodes are all but observed.
    off = [a + 0.6 * (p - a) for a, p in zip(program.prior, program.pseudo_prior, strict=True)]
    program = replace(program, pseudo_prior=off)
    chain = run_chain(program, Settings(60, 150), seed=1)
    assert not chain.diverging.any()
    exact = edge_probability(hidden(unclear, counts, 2.0), all_dags(3))
    without = edge_probability(observed(counts, 2.0), all_dags(3))
    assert np.abs(exact - without).max() > 0.02  # the unclear samples count
    assert_agrees(edges_of(program, chain), exact)
