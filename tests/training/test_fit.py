"""The Python call: what it takes, what it gives back, and in which units."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
import xarray as xr
from tiny_fits import settings, tiny_samples

from causalpima.inference import result as fit_result
from causalpima.inference.fit import fit
from causalpima.inference.result import FitResult
from causalpima.inference.store.arviz import import_arviz
from causalpima.inference.store.files import OutputError
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.config import FitConfig

# Three epochs on 41 samples are not enough to find clusters, and a fit without says so.
pytestmark = pytest.mark.filterwarnings("ignore:The fit collapsed")


def no_figures(*_: object, **__: object) -> list[Path]:
    return []


@pytest.fixture(scope="module")
def result() -> FitResult:
    return fit(tiny_samples(missing=True), config=settings(nodes={"type": 2, "response": 3}))


def test_responsibilities_bear_the_names_of_the_outcomes(result: FitResult) -> None:
    found = result.responsibilities()
    assert found.dims == ("sample", "cell")
    assert found.sizes == {"sample": 41, "cell": 6}
    assert found.cell.values.tolist() == ["0,0", "0,1", "0,2", "1,0", "1,1", "1,2"]
    np.testing.assert_allclose(found.sum("cell"), 1, atol=1e-6)
    sizes = np.bincount(found.argmax("cell"), minlength=6)
    assert sizes.tolist() == result.summary["clusters"]["sizes"]


def test_the_graph_goes_from_cause_to_effect(result: FitResult) -> None:
    graph = result.graph()
    assert list(graph.nodes) == ["type", "response"]
    assert nx.is_directed_acyclic_graph(graph)
    strength = np.array(result.summary["graph"]["edge_strength"])
    edges = [(i, j) for i, j in np.ndindex(2, 2) if strength[i, j] > 0.5]
    names = list(graph.nodes)
    assert [(names.index(cause), names.index(effect)) for cause, effect in graph.edges] == edges
    for cause, effect, data in graph.edges(data=True):
        assert data["strength"] == pytest.approx(strength[names.index(cause), names.index(effect)])


def test_arviz_takes_it(result: FitResult) -> None:
    container = result.to_arviz()
    assert {"posterior", "log_likelihood", "observed_data"} <= set(container.groups())
    assert len(import_arviz().summary(container, var_names=["Z"], kind="stats")) > 0


def test_saved_and_opened(result: FitResult, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fit_result, "write_figures", no_figures)
    folder = tmp_path / "runs" / "mine"
    result.save(folder)
    assert RunFolder(folder).read_summary() == json.loads(json.dumps(result.summary))
    assert len((folder / "metrics.jsonl").read_text().splitlines()) == 3
    opened = import_arviz().from_netcdf(folder / "posterior.nc")
    np.testing.assert_array_equal(opened.variational.responsibilities, result.responsibilities())
    with pytest.raises(
        OutputError, match=r"^output_dir: expected a new or empty folder, got .*mine with files in it; name"
    ):
        result.save(folder)
    result.save(folder, force=True)


def test_a_run_folder_on_the_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, result: FitResult) -> None:
    monkeypatch.setattr(fit_result, "write_figures", no_figures)
    config = settings(nodes={"type": 2, "response": 3})
    found = fit(tiny_samples(missing=True), config=config, output_dir=tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoint").iterdir()) == [
        "epoch-000002",
        "epoch-000003",
        "final",
    ]
    assert all(torch.equal(value, found.weights[name]) for name, value in result.weights.items())
    with pytest.raises(OutputError, match=r"^output_dir: expected a new or empty folder"):
        fit(tiny_samples(), config=config, output_dir=tmp_path / "run")


def test_a_diverged_fit_is_saved_without_results(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match="^The fit diverged: the objective is nan, in epoch 1"):
        failed = fit(tiny_samples(), config=settings(training__learning_rate=1e20))
    failed.save(tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "config.yaml",
        "metrics.jsonl",
        "summary.json",
    ]
    assert "The fit diverged: the " in failed.table()
    assert failed.verdict.state == "failed"
    assert failed.summary["verdict"] == failed.verdict.to_plain()
    for ask in (failed.responsibilities, failed.graph, failed.to_arviz):
        with pytest.raises(ValueError, match=r"^the fit diverged"):
            ask()


def quick(**changes: Any) -> FitConfig:
    return settings(training__epochs=1, **changes)


SPECTRUM = tiny_samples().modalities["spectrum"]


@pytest.mark.parametrize(
    ("data", "modalities"),
    [
        (SPECTRUM, ["x"]),
        (torch.from_numpy(SPECTRUM), ["x"]),
        ({"a": SPECTRUM, "b": SPECTRUM[:, 0]}, ["a", "b"]),
        (xr.Dataset({"a": (("sample", "position"), SPECTRUM)}), ["a"]),
    ],
)
def test_every_form_of_data(data: Any, modalities: list[str]) -> None:
    result = fit(data, nodes=[2, 2], config=quick(modality={}))
    assert list(result.summary["modalities"]) == modalities
    assert result.summary["nodes"] == {"N1": 2, "N2": 2}


@pytest.mark.parametrize("nodes", [{"a": 2, "b": 3}, {"a": np.int64(2), "b": np.int32(3)}])
def test_nodes_and_seed_go_over_the_configuration(nodes: dict[str, int]) -> None:
    seed: Any = np.int64(7)
    result = fit(SPECTRUM, nodes=nodes, seed=seed, config=quick(modality={}))
    assert result.summary["nodes"] == {"a": 2, "b": 3}
    assert result.summary["seed"] == 7
    assert json.loads(json.dumps(result.config))["seed"] == 7


@pytest.mark.parametrize("nodes", [[2, 3], (2, 3), np.array([2, 3])])
def test_unnamed_nodes_have_numbers(nodes: Any) -> None:
    assert fit(SPECTRUM, nodes=nodes, config=quick(modality={})).config["nodes"] == {"N1": 2, "N2": 3}


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({}, "^nodes: expected the outcomes per node, for example"),
        ({"nodes": "2,3"}, r"^nodes: expected outcomes per node as .* or \[2, 3\], got '2,3'"),
        ({"nodes": 4}, r"^nodes: expected outcomes per node as .* or \[2, 3\], got 4"),
        ({"nodes": []}, "^nodes: expected at least one node, got none"),
        ({"nodes": [2, 1]}, "^nodes: expected at least 2 outcomes for N2, an integer, got 1$"),
        ({"nodes": [2.0]}, "^nodes: expected at least 2 outcomes for N1, an integer, got 2.0$"),
        ({"nodes": [True]}, "^nodes: expected at least 2 outcomes for N1, an integer, got True$"),
        ({"nodes": {"": 2}}, "^nodes: expected names that are words, got ''"),
        ({"nodes": [2], "seed": -1}, r"^seed: expected a number in \[0, 2\*\*32\), got -1$"),
        ({"nodes": [2], "seed": 1.5}, "^seed: expected a whole number, got 1.5$"),
        ({"nodes": [2], "seed": "x"}, "^seed: expected a number in .*, got x$"),
        ({"nodes": [2], "device": "foo"}, "^device: expected one that this machine has"),
    ],
)
def test_arguments_that_are_refused(arguments: dict[str, Any], match: str) -> None:
    with pytest.raises(ValueError, match=match):
        fit(SPECTRUM, **arguments)


# What the program says is in the units of the data: measured in another unit, everything scales with it.
@pytest.mark.parametrize("variance", ["analytic", "learned", "fixed"])
def test_another_unit(variance: str) -> None:
    one = fit(tiny_samples(missing=True), config=settings(decoder__variance=variance)).arrays
    thousand = fit(tiny_samples(missing=True, factor=1000.0), config=settings(decoder__variance=variance)).arrays
    assert one is not None
    assert thousand is not None
    np.testing.assert_allclose(thousand.responsibilities, one.responsibilities, atol=1e-2)
    for name, found in thousand.modalities.items():
        expected = one.modalities[name]
        np.testing.assert_allclose(found.decoded, 1000 * expected.decoded, rtol=2e-2)
        np.testing.assert_allclose(found.exemplars, 1000 * expected.exemplars, rtol=1e-5)
        for kind in ("variance", "variance_training"):
            assert getattr(found, kind) == pytest.approx(1e6 * getattr(expected, kind), rel=1e-2)
        n_elements = expected.decoded.shape[1]
        shift = thousand.draws.log_likelihood[name] - one.draws.log_likelihood[name]
        present = np.isfinite(shift)
        np.testing.assert_allclose(np.median(shift[present]), -n_elements * math.log(1000), atol=0.05)
        predictive = (one.draws.predictive[name], thousand.draws.predictive[name])
        np.testing.assert_allclose(predictive[1].mean((0, 1)), 1000 * predictive[0].mean((0, 1)), rtol=2e-2)
        np.testing.assert_allclose(predictive[1].std(), 1000 * predictive[0].std(), rtol=2e-2)
        np.testing.assert_allclose(thousand.observed[name], 1000 * one.observed[name], rtol=1e-5)


def test_an_exemplar_is_the_sample_of_the_cell_nearest_to_its_mean() -> None:
    data = tiny_samples(missing=True)
    arrays = fit(data, config=settings(mixture__gaussians="one")).arrays
    assert arrays is not None
    cell, found = arrays.responsibilities.argmax(1), 0
    for name, modality in arrays.modalities.items():
        for index in range(4):
            members = [int(i) for i in np.flatnonzero((cell == index) & data.present[name])]
            if not members:
                assert np.isnan(modality.exemplars[index]).all()
                continue
            distance = {i: float(np.linalg.norm(arrays.latent_loc[i] - arrays.mixture.loc[index])) for i in members}
            nearest = min(members, key=lambda i: distance[i])
            np.testing.assert_array_equal(modality.exemplars[index], data.modalities[name][nearest])
            found += 1
    assert found > 2


def test_the_weights_of_a_draw_shift_by_the_elements_that_are_present() -> None:
    data, scaled = tiny_samples(missing=True), tiny_samples(missing=True, factor=1000.0)
    one, thousand = fit(data, config=settings()).arrays, fit(scaled, config=settings()).arrays
    assert one is not None
    assert thousand is not None
    sizes = {name: values.shape[1] for name, values in data.modalities.items()}
    n_elements = sum(sizes[name] * data.present[name] for name in sizes)[one.draws.samples]
    shift = np.median(thousand.draws.log_weight - one.draws.log_weight, axis=0)
    np.testing.assert_allclose(shift, -n_elements * math.log(1000), atol=0.2)


def test_log_likelihood_is_the_density_of_the_values_as_they_were_measured() -> None:
    r"""By hand: E_z log p(x | z) with E_z (x - μ̂(z))² = E (x - x_drawn)² - σ̂², from the arrays alone."""
    data = tiny_samples(factor=1000.0)
    fitted = fit(data, config=settings()).arrays
    assert fitted is not None
    draws = fitted.draws
    for name, modality in fitted.modalities.items():
        measured = data.modalities[name][draws.predictive_samples]
        assert modality.noise_sd is not None
        variance = np.square(modality.noise_sd)
        squared_error = np.square(measured - draws.predictive[name]).mean(0) - variance
        by_hand = (-0.5 * np.log(2 * math.pi * variance) - 0.5 * squared_error / variance).sum(-1)
        kept = np.isin(draws.samples, draws.predictive_samples)
        np.testing.assert_allclose(draws.log_likelihood[name].mean(0)[kept].mean(), by_hand.mean(), atol=0.5)
