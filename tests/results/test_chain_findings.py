"""Verdicts on chains that are known to agree, to disagree, or to stand still."""

from __future__ import annotations

import numpy as np
import pytest

from causalpima.inference.findings.chains import LABELLING_NOTE, ChainFindings, chain_report, write_chain_figures
from causalpima.inference.graphs.chains import Chains
from causalpima.inference.store.arviz import convergence, energy_fraction


def findings(edge: np.ndarray | None = None, shift: float = 0.0, diverging: int = 0) -> ChainFindings:
    rng = np.random.default_rng(0)
    shape = (4, 400)
    cells = rng.dirichlet(np.ones(4), shape)
    edges = np.zeros((*shape, 2, 2))
    edges[..., 0, 1] = rng.random(shape) if edge is None else edge
    diverged = np.zeros(shape, dtype=bool)
    diverged.flat[:diverging] = True
    density = rng.normal(size=shape) + shift * np.arange(4)[:, None]
    chains = Chains(cells, edges, density, rng.normal(size=shape), diverged, np.full(4, 0.1), {})
    return ChainFindings(("A", "B"), ("0,0", "0,1", "1,0", "1,1"), chains, is_indicator=True)


def verdicts(found: ChainFindings) -> dict[str, str]:
    return {line.key: line.verdict for line in found.lines()}


def test_chains_that_agree_pass() -> None:
    assert set(verdicts(findings()).values()) == {"passes"}


def test_chains_that_are_apart_fail_where_they_are() -> None:
    found = verdicts(findings(shift=2.0, diverging=100))
    assert (found["log density"], found["cell probabilities"], found["divergences"]) == ("fails", "passes", "fails")


def test_edges_that_no_chain_leaves_fail_where_chains_disagree_and_pass_where_they_agree() -> None:
    apart = np.broadcast_to(np.array([0.0, 1.0, 1.0, 1.0])[:, None], (4, 400))
    assert verdicts(findings(edge=apart))["edges"] == "fails"
    plain = findings(edge=apart).to_plain()
    assert plain["edge_probability"][0][1] == 0.75
    assert plain["r_hat"]["A->B"] is None  # infinite: JSON has no form for it
    assert verdicts(findings(edge=np.ones((4, 400))))["edges"] == "passes"


def test_convergence_is_that_of_independent_draws() -> None:
    r_hat, bulk, tail = convergence(np.random.default_rng(1).normal(size=(4, 500, 3)))
    assert (r_hat < 1.01).all()
    assert ((bulk > 1200) & (tail > 1200)).all()
    one_chain, _, _ = convergence(np.random.default_rng(1).normal(size=(1, 500, 3)))
    assert np.isnan(one_chain).all()


def test_energy_fraction_of_independent_energies_is_two_and_of_a_walk_is_small() -> None:
    energies = np.random.default_rng(2).normal(size=(1, 20000))
    assert energy_fraction(energies) == pytest.approx(2.0, abs=0.1)
    assert energy_fraction(energies.cumsum(1))[0] < 0.01


def test_report_names_the_labelling_and_figures_are_written(tmp_path: object) -> None:
    exact = np.array([[0.0, 0.6], [0.4, 0.0]])
    text = chain_report(findings(), "hodge", exact, exact, is_named=False)
    assert LABELLING_NOTE in text
    assert LABELLING_NOTE not in chain_report(findings(), "hodge", exact, exact, is_named=True)
    written = write_chain_figures(findings(), {"chains": exact, "exact": exact}, tmp_path)  # type: ignore[arg-type]
    assert [path.name for path in written] == ["mcmc_ranks.png", "mcmc_edges.png"]
