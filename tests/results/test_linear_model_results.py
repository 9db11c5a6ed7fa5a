"""What a fit with a linear structural equation model leaves: summary, file, and the words beside them."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from circle_like_fit import circle_like_summary
from fit_arrays_example import example_fit

from causalpima.inference.findings.graph import Signs
from causalpima.inference.findings.linear_model import (
    LinearModelArrays,
    linear_model_arrays,
    linear_model_sentence,
    linear_model_summary,
)
from causalpima.inference.reporting.arviz import write_posterior
from causalpima.inference.reporting.terminal import summary_table
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.latent_priors import LinearSCM
from causalpima.models.mixture import GaussianMixture
from causalpima.models.program import CausalPIMA

# hue -> shift <- radius, and a weight that is too small to be an edge
WEIGHT = np.array([[0.0, 0.1, 0.8], [0.0, 0.0, -1.2], [0.0, 0.0, 0.0]])
ENTRY = {
    "strength": WEIGHT.tolist(),
    "adjacency": (np.abs(WEIGHT) > 0.3).astype(int).tolist(),
    "threshold": 0.3,
    "acyclicity": 0.0,
    "label_fit": {"hue": 0.9, "radius": 0.8, "shift": 0.6},
    "ordered_levels": [],
}


def summary_with(**changes: Any) -> dict[str, Any]:
    summary = circle_like_summary()
    graph = {**summary["graph"], "node_names": ["hue", "radius", "shift"], "linear_scm": {**ENTRY, **changes}}
    return {**summary, "graph": graph}


def test_the_arrays_are_those_of_the_prior() -> None:
    prior = LinearSCM(("hue", "radius", "shift"), (2, 3, 2), 1)
    prior.weight.data = torch.from_numpy(WEIGHT) + torch.eye(3)
    model = CausalPIMA(HodgeGraph((2, 3, 2)), GaussianMixture(12, 3), {}, latent_prior=prior)
    latent = np.array([[0.0, 1.0, -1.0], [1.0, 0.0, 2.0], [-1.0, 3.0, 0.0], [2.0, 0.5, 1.0]])
    labels = np.array([[0, 2, -1], [1, 0, -1], [0, -1, -1], [1, 1, -1]])
    found = linear_model_arrays(model, latent, labels)
    assert found is not None
    # Loading 1 and offset 0: levels are .5 + z / 2 of two outcomes, 1 + z sqrt(2 / 3) of three.
    residual = np.array([0.0 - 0.5, 1 - 1.0, 0.0, 1 - 1.5])
    assert found.label_fit[0] == pytest.approx(1 - np.square(residual).mean() / 0.25)
    residual = np.array([2 - 1 - np.sqrt(2 / 3), 0 - 1, 1 - 1 - 0.5 * np.sqrt(2 / 3)])
    assert found.label_fit[1] == pytest.approx(1 - np.square(residual).mean() / np.var([2, 0, 1]))
    assert np.isnan(found.label_fit[2])
    np.testing.assert_allclose(found.strength, WEIGHT)
    assert found.adjacency.tolist() == ENTRY["adjacency"]
    assert found.acyclicity == pytest.approx(0, abs=1e-12)
    assert linear_model_arrays(CausalPIMA(HodgeGraph((2, 2)), GaussianMixture(4, 2), {}), latent, None) is None


def test_the_summary_has_them_with_the_nodes_whose_levels_count_as_numbers() -> None:
    graph = example_fit().graph
    assert linear_model_summary(graph) == {}
    n = len(graph.node_names)
    weight = np.arange(n * n).reshape(n, n) / 10
    found = linear_model_summary(
        dataclasses.replace(graph, linear_model=LinearModelArrays(weight, weight > 0.3, 0.25, np.full(n, 0.5)))
    )["linear_scm"]
    assert (found["threshold"], found["acyclicity"], found["strength"]) == (0.3, 0.25, weight.tolist())
    assert found["ordered_levels"] == [
        node for node, names in zip(graph.node_names, graph.outcome_names, strict=True) if len(names) > 2
    ]


def test_the_file_has_weights_and_edges(tmp_path: Path) -> None:
    fit = example_fit()
    n = len(fit.graph.node_names)
    weight = np.arange(n * n, dtype=float).reshape(n, n)
    linear = LinearModelArrays(weight, (weight > 1).astype(int), 0.0, np.full(n, 0.5))
    write_posterior(
        dataclasses.replace(fit, graph=dataclasses.replace(fit.graph, linear_model=linear)), tmp_path / "p.nc"
    )
    found = read_posterior(tmp_path / "p.nc")["variational"].dataset
    np.testing.assert_array_equal(found["linear_scm_strength"], weight)
    np.testing.assert_array_equal(found["linear_scm_adjacency"], weight > 1)
    assert found["linear_scm_strength"].dims == ("node_from", "node_to")


def test_words_have_the_edges_by_weight_and_what_they_are_worth() -> None:
    assert linear_model_sentence(circle_like_summary()) == ""
    text = linear_model_sentence(summary_with())
    assert text == (
        "Linear model (weights above 0.3): radius -> shift -1.20, hue -> shift 0.80. It takes nodes to act linearly, "
        "and its edges are no evidence of causes."
    )
    assert "radius → shift" in linear_model_sentence(summary_with(), Signs("→", "←", "–"))
    none = linear_model_sentence(summary_with(adjacency=[[0] * 3] * 3, acyclicity=0.5))
    assert "no edge; weights have cycles (h = 0.5): train longer." in none
    few = linear_model_sentence(summary_with(label_fit={"hue": 0.9, "radius": None, "shift": 0.2}))
    assert few.endswith("Blocks of radius, shift do not follow the labels: the edges mean nothing.")
    assert "levels of hue to be equidistant" in linear_model_sentence(summary_with(ordered_levels=["hue"]))


def test_the_table_at_the_end_of_a_run_says_so() -> None:
    assert "edges are no evidence of causes" in " ".join(summary_table(summary_with()).split())
    assert "Linear model" not in summary_table(circle_like_summary())
