"""p(N) of graphs that interventions told: each table from the environments that left its node alone."""

from __future__ import annotations

from typing import Any

import numpy as np
from linear_source import NODES, chain_joint, linear_source, summary_of

from causalpima.inference.analyses.query import QueryOptions, answer_query
from causalpima.inference.analyses.scenarios import cell_shares, graph_set
from causalpima.inference.graphs.interventions import intervened

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]])


def test_interventions_tell_graph_and_tables() -> None:
    """400 samples as they are and 4000 with heat set at random: p(hard | heat) comes from all, p(heat | alloy) not."""
    rng, joint = np.random.default_rng(0), chain_joint()
    shifted = sum(0.5 * intervened(joint, CHAIN, {1: value}) for value in (0, 1))
    cells = [rng.choice(8, n, p=p.reshape(-1)) for n, p in ((400, joint), (4000, np.asarray(shifted)))]
    environment = np.repeat([0, 1], [400, 4000])
    details: dict[str, Any] = {
        "targets": {"set heat": "heat"},
        "known_targets": ["set heat"],
        "graph": CHAIN.tolist(),
        "graph_gap": 12.0,
        "n_searched": {"graphs": 25},
        "n_remaining": 1,
        "edge_probability": CHAIN.tolist(),
    }
    labelling = {"source": "environments", "named_nodes": list(NODES), "details": details}
    source = linear_source(
        4400,
        summary=summary_of(labelling=labelling),
        responsibilities=np.eye(8)[np.concatenate(cells)],
        environment=environment,
    )
    shares = cell_shares(source, graph_set(source.summary), 0)
    counts = [np.bincount(part, minlength=8).reshape(2, 2, 2) for part in cells]
    np.testing.assert_allclose(shares.best[0].sum((1, 2)), (counts[0] + counts[1]).sum((1, 2)) / 4400)
    heat = counts[0].sum(2)
    both = shares.best[0].sum(2)
    np.testing.assert_allclose(both / both.sum(1, keepdims=True), heat / heat.sum(1, keepdims=True))
    hard = (counts[0] + counts[1]).sum(0)
    both = shares.best[0].sum(0)
    np.testing.assert_allclose(both / both.sum(1, keepdims=True), hard / hard.sum(1, keepdims=True))
    assert shares.n_samples == 400

    found = answer_query(source, {"heat": "yes"}, options=QueryOptions(draws=10))
    assert found.is_identified
    assert found.graphs.basis == "interventions"
    done = found.node_probabilities["hard"]["do"]
    np.testing.assert_allclose(done.value, hard[1] / hard[1].sum())
    # p(hard | heat) rests on about 2100 samples: a binomial interval.
    error = np.sqrt(0.25 * 0.75 / hard[1].sum())
    assert 2 * 1.3 * error < done.upper[1] - done.lower[1] < 2 * 2.0 * error
    assert "interventions that were declared" in found.assumptions[0]
