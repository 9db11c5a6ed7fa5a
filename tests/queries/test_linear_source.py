"""Answers on a fit in closed form: means, effects, draws, intervals over a class, and bounds of one sample."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest
import torch
import xarray as xr
from linear_source import CPDAG, NAMES, NODES, NOISE, SCALE, chain_joint, linear_source, summary_of, weight_of

from causalpima.inference.analyses.answer import QueryAnswer, answer_text, write_draws
from causalpima.inference.analyses.counterfactual import counterfactual_of, find_sample
from causalpima.inference.analyses.query import QueryOptions, answer_query
from causalpima.inference.analyses.query_sampling import cell_means
from causalpima.inference.analyses.scenarios import cell_shares, graph_set
from causalpima.inference.data.multimodal import Axis
from causalpima.inference.graphs.dags import class_members
from causalpima.inference.graphs.interventions import conditioned, intervened, node_marginals
from causalpima.inference.store.files import to_json
from causalpima.inference.training.components import make_graph
from causalpima.inference.training.config import ModelConfig
from causalpima.models.mixture import GaussianMixture

CORNERS = 2.0 * np.array(list(np.ndindex(2, 2, 2))) - 1


def exact_cell_means(name: str) -> np.ndarray:
    """u | c is Gaussian, `[C, elements]`; of a logarithmic modality x = exp u."""
    weight = weight_of(name)
    mean, variance = CORNERS @ weight.T, SCALE**2 * np.square(weight).sum(1) + NOISE**2
    if name == "curve":
        return np.exp(1.0 + 0.5 * mean + 0.5**2 * variance / 2)
    return 200 + 20 * mean if name == "hardness" else mean


def answer(do: dict[str, str], given: dict[str, str] | None = None, n: int = 2000, **options: object) -> QueryAnswer:
    return answer_query(linear_source(n), do, given, QueryOptions(**options))  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["image", "curve", "hardness"])
def test_means_of_cells_are_the_integrals(name: str) -> None:
    draws = 20_000
    found, exact = cell_means(linear_source(10).fitted, name, draws, 0).reshape(8, -1), exact_cell_means(name)
    spread = SCALE * np.linalg.norm(weight_of(name), axis=1)
    error = (20 if name == "hardness" else np.abs(exact).max() if name == "curve" else 1) * spread / np.sqrt(draws)
    assert (np.abs(found - exact) < 5 * error).all()


def test_probabilities_are_those_of_every_graph_of_the_class() -> None:
    """Of the tables that were fitted, and near those of the truth."""
    source, do, given = linear_source(), {1: 1}, {2: 1}
    found = answer({"heat": "yes"}, {"hard": "hard"})
    graphs = graph_set(source.summary)
    assert sorted(map(bytes, graphs.dags)) == sorted(map(bytes, class_members(np.array(CPDAG))))
    shares = cell_shares(source, graphs, 0)
    for joint, tolerance in ((shares.best[0], 1e-9), (chain_joint(), 0.06)):
        values = [node_marginals(conditioned(intervened(joint, dag, do), 3, given), 3)[0] for dag in graphs.dags]
        alloy = found.node_probabilities["alloy"]["do"]
        np.testing.assert_allclose(alloy.low, np.min(values, axis=0), atol=tolerance)
        np.testing.assert_allclose(alloy.high, np.max(values, axis=0), atol=tolerance)
    assert not alloy.is_identified.any()
    assert np.isnan(alloy.value).all()
    assert not found.is_identified


def test_what_all_graphs_agree_on_is_a_point() -> None:
    """A collider: its arrows are compelled, and setting a root is what seeing it is."""
    collider = {"cpdag": [[0, 1, 0], [0, 0, 0], [0, 1, 0]], "node_names": list(NODES), "gap_nats": 9.0, "near": []}
    graph = {"node_names": list(NODES), "equivalence_class": collider}
    found = answer_query(linear_source(summary=summary_of(graph=graph)), {"alloy": "steel"})
    assert found.is_identified
    for node in NODES:
        of_node = found.node_probabilities[node]
        np.testing.assert_allclose(of_node["do"].value, of_node["seen"].value, atol=1e-9)
    text = " ".join(answer_text(found).split())
    assert "not identified" not in text
    assert "the graph is one of 1 graph of the best equivalence class" in text


def test_effects_are_differences_of_means_in_the_unit_of_the_data() -> None:
    source = linear_source()
    found = answer_query(source, {"heat": "yes"}, options=QueryOptions(draws=4000))
    shares = cell_shares(source, graph_set(source.summary), 0)
    exact = exact_cell_means("hardness")[:, 0]
    effects, others = [], []
    for dag in found.graphs.dags:
        done, not_done = (intervened(shares.best[0], dag, {1: value}).reshape(-1) for value in (1, 0))
        effects.append((done - shares.best[0].reshape(-1)) @ exact)
        others.append((done - not_done) @ exact)
    hardness = found.modalities["hardness"]
    assert hardness.unit == "HV"
    to_observed = hardness.difference["do(heat=yes) - observed"]
    to_other = hardness.difference["do(heat=yes) - do(heat=no)"]
    for estimate, expected in ((to_observed, effects), (to_other, others)):
        np.testing.assert_allclose(estimate.low, min(expected), atol=0.05)
        np.testing.assert_allclose(estimate.high, max(expected), atol=0.05)
        assert (estimate.lower <= estimate.low).all()
        assert (estimate.upper >= estimate.high).all()


def test_draws_follow_the_answer() -> None:
    draws = 6000
    found = answer({"heat": "yes"}, draws=draws)
    drawn = found.draws
    assert drawn is not None
    nodes = drawn["N"].to_numpy()[0]
    assert (nodes[:, 1] == 1).all()
    weights = found.graphs.weights
    np.testing.assert_allclose(np.bincount(drawn["graph"].to_numpy()[0]) / draws, weights, atol=5 / np.sqrt(draws))
    hardness = drawn["hardness"].to_numpy()[0, :, 0]
    cells = np.ravel_multi_index(tuple(nodes.T), (2, 2, 2))
    expected = exact_cell_means("hardness")[cells, 0]
    error = 20 * np.sqrt(SCALE**2 * np.square(weight_of("hardness")).sum() + NOISE**2) / np.sqrt(draws)
    assert abs((hardness - expected).mean()) < 5 * error
    latent = drawn["Z"].to_numpy()[0]
    assert (np.abs((latent - CORNERS[cells]).mean(0)) < 5 * SCALE / np.sqrt(draws)).all()
    for number in range(len(weights)):  # within a graph: p(alloy | do)
        share = nodes[drawn["graph"].to_numpy()[0] == number, 0].mean()
        joint = chain_joint()
        exact = intervened(joint, found.graphs.dags[number], {1: 1}).sum((1, 2))[1]
        assert abs(share - exact) < 0.08


def test_draws_are_written_for_arviz(tmp_path: Path) -> None:
    path = tmp_path / "draws.nc"
    write_draws(answer({"heat": "yes"}, draws=30), path)
    with xr.open_datatree(path, engine="h5netcdf") as tree:
        predictions = tree["predictions"]
        assert predictions["curve"].dims == ("chain", "draw", "position_curve")
        assert predictions["curve"].attrs["units"] == "MPa"
        assert predictions["N"].sizes == {"chain": 1, "draw": 30, "node": 3}
        assert json.loads(tree.attrs["do"]) == {"heat": "yes"}
        assert any("no hidden common cause" in text for text in json.loads(tree.attrs["assumptions"]))


def test_plain_conditioning_needs_no_graph_and_no_causal_words() -> None:
    source = linear_source(summary=summary_of(graph={"node_names": list(NODES)}))
    found = answer_query(source, given={"heat": "yes"})
    exact = conditioned(chain_joint(), 3, {1: 1}).sum((1, 2))
    np.testing.assert_allclose(found.node_probabilities["alloy"]["observed"].value, exact, atol=0.06)
    assert list(found.node_probabilities["alloy"]) == ["observed"]
    text = answer_text(found)
    for word in ("cause", "effect", "do("):
        assert word not in text
    with pytest.raises(ValueError, match="graph: expected a run with a searched graph"):
        answer_query(source, {"heat": "yes"})


def test_text_says_what_is_open_and_what_it_rests_on() -> None:
    text = " ".join(answer_text(answer({"heat": "yes"}, {"hard": "hard"})).split())
    assert "p(N | do(heat=yes), hard=hard)" in text
    assert "alloy=steel: not identified: between" in text
    assert "over 3 graphs" in text
    for assumption in ("by labels of 50 training samples", "no hidden common cause", "no selection", "positivity"):
        assert assumption in text
    assert "hard is an effect of what is set in 2 of 3 graphs: conditioning on it selects" in text


def test_means_of_cells_alone_have_no_interval() -> None:
    """Every node is set: p(N) has no say, and an interval without width would look like certainty."""
    text = " ".join(answer_text(answer({"heat": "yes", "alloy": "steel"}, {"hard": "hard"})).split())
    among = text.split("hardness, ")[0].split("This rests on")[0]
    assert "(no interval: means of cells count as known)" in among
    text = " ".join(answer_text(answer({"heat": "yes"})).split())
    assert "no interval" not in text


def test_on_a_curve_the_largest_change_has_a_position() -> None:
    found = answer({"heat": "yes"})
    curve = dataclasses.replace(found.modalities["curve"], axis=Axis("strain", np.array([0.5, 1.25, 2.0, 3.0]), "%"))
    said = " ".join(answer_text(dataclasses.replace(found, modalities={"curve": curve})).split())
    size = np.abs(curve.difference["do(heat=yes) - observed"].high)
    assert f"at strain {curve.axis.values[size.argmax()]:g} %" in said  # type: ignore[union-attr]
    assert "in element" not in said
    assert "in element" in answer_text(dataclasses.replace(found, modalities={"image": found.modalities["image"]}))


def test_the_plain_form_is_strict_json() -> None:
    plain = json.loads(to_json(answer({"heat": "yes"}, counterfactual="S3", draws=20).to_plain()))
    assert plain["do"] == {"heat": "yes"}
    assert plain["graphs"]["n_graphs"] == 3
    of_alloy = plain["node_probabilities"]["alloy"]["steel"]["do"]
    assert of_alloy["value"] is None
    assert of_alloy["low"] < of_alloy["high"]
    assert plain["node_probabilities"]["heat"]["yes"]["do"]["value"] == pytest.approx(1.0, abs=1e-12)
    assert np.shape(plain["modalities"]["image"]["difference"]["do(heat=yes) - observed"]["low"]) == (3, 3, 1)
    assert plain["counterfactual"]["name"] == "S3"
    assert set(plain["counterfactual"]["node_bounds"]) == set(NAMES)


def test_a_sample_that_has_the_outcome_stays_as_it_is() -> None:
    source = linear_source()
    graphs = graph_set(source.summary)
    shares = cell_shares(source, graphs, 0)
    row = int(source.responsibilities.max(1).argmax())
    cell = int(source.responsibilities[row].argmax())
    alloy, heat, hard = np.unravel_index(cell, (2, 2, 2))
    same = counterfactual_of(source, find_sample(source, row), {1: int(heat)}, graphs, shares)
    assert [drawn.cell for drawn in same.cells] == [(NAMES["alloy"][alloy], NAMES["heat"][heat], NAMES["hard"][hard])]
    assert same.cells[0].lower == pytest.approx(1.0)
    # The residual is kept: in its own cell the sample is decoded where it is.
    expected = 200 + 20 * source.latent[row] @ weight_of("hardness").T
    np.testing.assert_allclose(same.cells[0].means["hardness"], expected, rtol=1e-6)
    np.testing.assert_allclose(same.factual_means["hardness"], expected, rtol=1e-6)

    other = counterfactual_of(source, find_sample(source, f"S{row}"), {1: 1 - int(heat)}, graphs, shares)
    assert other.is_sharp
    assert other.sample == row
    for drawn in other.cells:  # the same residual about the centre of another cell
        place = [NAMES[node].index(outcome) for node, outcome in zip(NODES, drawn.cell, strict=True)]
        moved = source.latent[row] + 2.0 * (np.array(place) - np.array([alloy, heat, hard]))
        np.testing.assert_allclose(drawn.means["hardness"], 200 + 20 * moved @ weight_of("hardness").T, rtol=1e-6)
    assert len(other.cells) > 1
    assert all(drawn.lower <= drawn.upper for drawn in other.cells)


def test_groups_and_environments_leave_their_mark() -> None:
    """Samples in groups of 10 alike: intervals wider by about sqrt(10). Other environments do not count."""
    source = linear_source(200)
    many = dataclasses.replace(
        source,
        responsibilities=np.repeat(source.responsibilities, 10, axis=0),
        latent=np.repeat(source.latent, 10, axis=0),
        is_training=np.ones(2000, dtype=bool),
        sample_names=None,
    )
    grouped = dataclasses.replace(many, groups=np.repeat(np.arange(200), 10))
    widths = []
    for one in (many, grouped):
        found = answer_query(one, given={"heat": "yes"}).node_probabilities["alloy"]["observed"]
        widths.append(float(found.upper[0] - found.lower[0]))
    assert 2.2 < widths[1] / widths[0] < 4.5
    environment = np.zeros(2000, dtype=np.int64)
    environment[1000:] = 1
    assert dataclasses.replace(many, environment=environment).log_likelihood().shape == (1000, 8)


@pytest.mark.parametrize(
    ("do", "given", "options", "message"),
    [
        ({}, {}, {}, "do: expected NODE=OUTCOME, got nothing to set"),
        ({"colour": "red"}, {}, {}, "do: expected a node of alloy, heat, hard, got colour"),
        ({"heat": "maybe"}, {}, {}, r"do: expected an outcome of heat \(no, yes\), got maybe"),
        ({"heat": "yes"}, {"heat": "no"}, {}, "given: expected no contradiction to --do"),
        ({"heat": "yes"}, {"heat": "yes"}, {}, "given: expected nodes that are not set, got heat in both"),
        ({}, {"heat": "yes"}, {"counterfactual": "S1"}, "counterfactual: expected a node that would have been set"),
        ({"heat": "yes"}, {"hard": "hard"}, {"counterfactual": "S1"}, "given: expected none beside --counterfactual"),
        ({"heat": "yes"}, {}, {"counterfactual": "S9999"}, "counterfactual: expected a sample of these, a name or"),
        ({"heat": "yes"}, {}, {"counterfactual": 50}, "a number below 50, got 50"),
        ({"heat": "yes"}, {}, {"data": {"hardness": [1.0]}}, "data: expected --counterfactual with new samples"),
        ({"heat": "yes"}, {}, {"draws": 0}, "draws: expected at least 1"),
        ({"heat": "yes"}, {}, {"seed": -1}, "seed: expected an integer >= 0"),
    ],
)
def test_wrong_questions_are_refused(
    do: dict[str, str], given: dict[str, str], options: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        answer(do, given, n=50, **options)


def test_unnamed_clusters_are_told_what_would_name_them() -> None:
    open_nodes = {"is_named": False, "identified_nodes": ["heat"], "suggestions": ["label some samples for alloy"]}
    source = linear_source(50, summary=summary_of(identifiability=open_nodes))
    for do, given, flag in (({"heat": "yes"}, {}, "do"), ({}, {"heat": "yes"}, "given")):
        with pytest.raises(ValueError, match=f"^{flag}: expected a run all of whose nodes have a meaning") as refusal:
            answer_query(source, do, given)
        text = str(refusal.value)
        assert "identified: heat" in text
        assert "python -m inference.name" in text
        assert "label some samples for alloy" in text
        assert "\n" not in text


def test_a_table_that_nobody_measured_is_undefined_and_told() -> None:
    """Nobody is brass with heat: p(hard | alloy, heat) under do is not known where the graph needs it."""
    joint = chain_joint()
    joint[0, 1] = 0
    source = linear_source(400)
    certain = np.eye(8)[np.random.default_rng(0).choice(8, 400, p=joint.reshape(-1) / joint.sum())]
    complete = {"cpdag": [[0, 1, 1], [0, 0, 1], [0, 0, 0]], "node_names": list(NODES), "gap_nats": 9.0, "near": []}
    summary = summary_of(graph={"node_names": list(NODES), "equivalence_class": complete})
    source = dataclasses.replace(source, responsibilities=certain, summary=summary)
    found = answer_query(source, {"heat": "yes"})
    text = answer_text(found)
    assert "undefined" in text
    assert "the thinnest row of a table rests on 0.0" in " ".join(text.split())
    assert np.isnan(found.node_probabilities["hard"]["do"].low).all()
    assert json.loads(to_json(found.to_plain()))["node_probabilities"]["hard"]["hard"]["do"]["low"] is None


def test_every_scenario_is_conditioned_on_the_same() -> None:
    source = linear_source()
    found = answer_query(source, {"heat": "yes"}, {"hard": "hard"}, QueryOptions(draws=10))
    shares = cell_shares(source, graph_set(source.summary), 0).best[0]
    for key, value in (("do", 1), ("do(heat=no)", 0)):
        exact = [conditioned(intervened(shares, dag, {1: value}), 3, {2: 1}).sum((1, 2)) for dag in found.graphs.dags]
        np.testing.assert_allclose(found.node_probabilities["alloy"][key].low, np.min(exact, axis=0), atol=1e-9)
        np.testing.assert_allclose(found.node_probabilities["hard"][key].low, [0, 1], atol=1e-9)


def test_means_and_residuals_with_full_covariance() -> None:
    """x = exp u of a logarithmic curve: the mean depends on the whole covariance of z."""
    draws, source = 20_000, linear_source(10)
    factor = torch.tensor([[0.5, 0.0, 0.0], [0.4, 0.3, 0.0], [-0.3, 0.2, 0.4]])
    mixture = GaussianMixture(8, 3, "full")
    mixture.replace(torch.from_numpy(CORNERS), factor.repeat(8, 1, 1), torch.arange(8), torch.zeros(8))
    source.fitted.model.mixture = mixture
    weight = weight_of("curve")
    variance = np.square(weight @ factor.numpy()).sum(1) + NOISE**2
    exact = np.exp(1.0 + 0.5 * CORNERS @ weight.T + 0.5**2 * variance / 2)
    found = cell_means(source.fitted, "curve", draws, 0)
    error = exact * 0.5 * np.linalg.norm(weight @ factor.numpy(), axis=1) / np.sqrt(draws)
    assert (np.abs(found - exact) < 6 * error).all()

    graphs = graph_set(source.summary)
    row = counterfactual_of(source, find_sample(source, 3), {1: 0}, graphs, cell_shares(source, graphs, 0))
    cell = int(source.responsibilities[3].argmax())
    for drawn in row.cells:  # the same covariance everywhere: the sample moves as the centres do
        place = np.ravel_multi_index(
            [NAMES[node].index(outcome) for node, outcome in zip(NODES, drawn.cell, strict=True)], (2, 2, 2)
        )
        moved = source.latent[3] + CORNERS[place] - CORNERS[cell]
        np.testing.assert_allclose(drawn.means["hardness"], 200 + 20 * moved @ weight_of("hardness").T, rtol=1e-6)


def test_the_given_graph_is_that_of_the_configuration() -> None:
    """The command line writes `fixed` and the edges in place of the name of the file."""
    fitted = linear_source(10).fitted
    assert linear_source(10).given_graph() is None
    model = ModelConfig(latent_dim=3, graph="fixed", edges=("heat->alloy",))
    config = dataclasses.replace(fitted.description.config, model=model)
    graph = make_graph(config)
    fitted.model.graph = graph
    told = dataclasses.replace(fitted, description=dataclasses.replace(fitted.description, config=config))
    found = answer_query(linear_source(500, fitted=told), {"heat": "yes"}, options=QueryOptions(draws=10))
    assert found.graphs.basis == "given"
    assert found.graphs.dags.tolist() == [[[0, 0, 0], [1, 0, 0], [0, 0, 0]]]


def test_labels_and_groups_count_as_they_do_for_the_graph() -> None:
    """Labels of alloy rule cells out; of a specimen that was measured many times, the samples share one weight."""
    source = linear_source(300)
    labels = np.full((300, 3), -1)
    labels[:, 0] = 1
    groups = np.concatenate([np.zeros(100, dtype=int), np.arange(1, 201)])
    labelled = dataclasses.replace(source, labels=labels)
    assert cell_shares(labelled, graph_set(source.summary), 0).best[0, 1].sum() == pytest.approx(1)
    cells = np.where(groups == 0, 0, 7)
    grouped = dataclasses.replace(source, responsibilities=np.eye(8)[cells], groups=groups)
    assert cell_shares(grouped, graph_set(source.summary), 0).best[0, 0, 0, 0] == pytest.approx(1 / 201)
