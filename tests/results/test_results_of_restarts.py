"""Several starts side by side: alignment, agreement, graphs, chains in the file, sentences, figure."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fit_arrays_example import example_fit
from matplotlib.patches import Rectangle

from causalpima.inference.clusters.clustering import DISAGREE_ARI
from causalpima.inference.findings.arrays import FitArrays, FoundStart, StartArrays, read_start, write_start
from causalpima.inference.findings.clusters import fit_verdict
from causalpima.inference.findings.restarts import (
    Comparison,
    aligned,
    alignment,
    chains,
    draw_restart_agreement,
    restart_rows,
    restart_sentences,
    restart_summary,
)

CELLS = np.array([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]])
N = 3000


def chained(seed: int = 0) -> np.ndarray:
    """Cells of samples of nodes type -> response, row-major over (2, 3)."""
    rng = np.random.default_rng(seed)
    table = np.array([[0.42, 0.06, 0.02], [0.03, 0.17, 0.30]])
    return rng.choice(6, N, p=table.ravel())


def start_of(cells: np.ndarray, fit: FitArrays, sharpness: float = 0.98) -> StartArrays:
    """A start that is sure of these cells, with draws of them for the samples of the fit."""
    r = np.full((len(cells), 6), (1 - sharpness) / 5)
    r[np.arange(len(cells)), cells] = sharpness
    share = r.mean(0).reshape(2, 3)
    drawn = np.broadcast_to(CELLS[cells[fit.draws.samples]], (len(fit.draws.latent), len(fit.draws.samples), 2))
    return StartArrays(r, drawn.copy(), fit.draws.log_weight, fit.draws.log_likelihood, np.log(share))


@pytest.fixture
def fit() -> FitArrays:
    base = example_fit()
    made = start_of(chained(), base)
    draws, graph = replace(base.draws, nodes=made.nodes), replace(base.graph, log_joint=made.log_joint)
    return replace(base, responsibilities=made.responsibilities, split=np.full(N, "train"), draws=draws, graph=graph)


def found(folder: Path, starts: list[StartArrays | None], **more: Any) -> list[FoundStart]:
    """Starts in files; None diverged."""
    made = []
    for number, start in enumerate(starts):
        summary: dict[str, Any] = {"status": "diverged" if start is None else "ok", "seconds": {"total": 1.0}, **more}
        file = folder / f"{number}.npz"
        if start is not None:
            write_start(file, start)
            r = start.responsibilities
            summary["clusters"] = {"entropy": float(-(r * np.log(r)).sum(1).mean())}
        made.append(FoundStart(number, summary, None if start is None else file))
    return made


def renumbered(start: StartArrays, permutation: list[int]) -> StartArrays:
    return aligned(start, np.array(permutation))


def test_arrays_of_a_start_come_back(fit: FitArrays, tmp_path: Path) -> None:
    start = start_of(chained(), fit)
    write_start(tmp_path / "start.npz", start)
    back = read_start(tmp_path / "start.npz")
    np.testing.assert_array_equal(back.responsibilities, start.responsibilities)
    np.testing.assert_array_equal(back.nodes, start.nodes)
    assert list(back.log_likelihood) == ["picture", "stress µ"]
    np.testing.assert_array_equal(back.log_likelihood["stress µ"], start.log_likelihood["stress µ"])


def test_cells_draws_and_probabilities_are_renumbered_together(fit: FitArrays) -> None:
    start, permutation = start_of(chained(), fit), np.array([4, 2, 0, 5, 1, 3])
    new = aligned(start, permutation)
    for cell in range(6):
        np.testing.assert_array_equal(new.responsibilities[:, permutation[cell]], start.responsibilities[:, cell])
        assert new.log_joint.ravel()[permutation[cell]] == start.log_joint.ravel()[cell]
    old_cells = np.ravel_multi_index(tuple(np.moveaxis(start.nodes, -1, 0)), (2, 3))
    new_cells = np.ravel_multi_index(tuple(np.moveaxis(new.nodes, -1, 0)), (2, 3))
    np.testing.assert_array_equal(new_cells, permutation[old_cells])


@pytest.mark.parametrize(
    ("labelling", "permutation", "is_undone"),
    [
        ({}, [3, 0, 5, 1, 2, 4], True),
        ({"source": "labels", "named_nodes": ["type", "response"]}, [3, 0, 5, 1, 2, 4], False),
        ({"source": "labels", "named_nodes": ["type"]}, [1, 2, 0, 5, 3, 4], True),  # within each type
        ({"source": "labels", "named_nodes": ["type"]}, [3, 4, 5, 0, 1, 2], False),
        ({"source": "mask", "named_nodes": ["type", "response"]}, [5, 3, 4, 2, 0, 1], True),  # outcomes of both
        ({"source": "mask", "named_nodes": ["type", "response"]}, [3, 0, 5, 1, 2, 4], False),
    ],
)
def test_only_what_has_no_name_is_renumbered(
    fit: FitArrays, labelling: dict[str, Any], permutation: list[int], is_undone: bool
) -> None:
    other = renumbered(start_of(chained(), fit), permutation)
    back = alignment(fit, other, labelling)
    assert np.array_equal(np.array(back)[permutation], np.arange(6)) == is_undone


def test_names_of_a_person_are_of_the_chosen_start_alone(fit: FitArrays) -> None:
    other, permutation = renumbered(start_of(chained(), fit), [3, 0, 5, 1, 2, 4]), [3, 0, 5, 1, 2, 4]
    named = replace(fit, labelling={"source": "names", "named_nodes": ["type", "response"]})
    back = alignment(named, other, {"source": "none", "named_nodes": []})
    np.testing.assert_array_equal(back[permutation], np.arange(6))


@pytest.fixture
def comparison(fit: FitArrays, tmp_path: Path) -> Comparison:
    """The chosen start (1), one like it under other numbers (0), one that diverged (2), one that differs (3)."""
    cells = chained()
    wrong = np.where(cells == 0, np.arange(N) % 2, cells)  # splits the largest cell, and merges its half with another
    starts = [
        renumbered(start_of(cells, fit, 0.975), [3, 0, 5, 1, 2, 4]),
        start_of(cells, fit, 0.98),
        None,
        start_of(wrong, fit, 0.979),
    ]
    return Comparison.of(found(tmp_path, starts))


def test_what_is_compared(comparison: Comparison) -> None:
    assert comparison.chosen == 1
    assert comparison.near_tied == [3]  # start 0 is less clear by more than the margins
    assert comparison.disagreeing == [3]
    assert comparison.chain == [1, 0, 3]
    assert comparison.ari[0, 1] == pytest.approx(1.0)
    assert comparison.ari[1, 3] < DISAGREE_ARI
    assert np.isnan(comparison.ari[2]).all()


def test_chains_are_numbered_alike(comparison: Comparison, fit: FitArrays) -> None:
    made = chains(comparison, fit)
    assert made.chain.tolist() == [1, 0, 3]
    np.testing.assert_array_equal(made.nodes[0], made.nodes[1])
    # Responsibilities that differ by 0.005 at most.
    np.testing.assert_allclose(np.exp(made.log_joint[0]), np.exp(made.log_joint[1]), rtol=0, atol=0.005)
    np.testing.assert_array_equal(made.node_agreement[:2], 1.0)
    assert (made.node_agreement[2] < 1.0).any()
    assert made.responsibilities.shape == (3, len(fit.draws.samples), 6)
    assert made.cpdag is not None
    #  type - response: two nodes, no direction
    np.testing.assert_array_equal(made.cpdag[:2], [[[0, 1], [1, 0]]] * 2)


def test_graphs_are_searched_on_observational_training_samples(comparison: Comparison, fit: FitArrays) -> None:
    is_first = CELLS[chained()][:, 0] == 0  # of one type alone, nothing is seen of a dependence
    marked = replace(fit, environment=np.where(is_first, 0, 1))
    held_out = replace(fit, split=np.where(is_first, "train", "test"))
    for part, joined in ((fit, 1), (marked, 0), (held_out, 0)):
        made = chains(comparison, part).cpdag
        assert made is not None
        assert made[0, 0, 1] == made[0, 1, 0] == joined


def summary_of(comparison: Comparison, fit: FitArrays) -> dict[str, Any]:
    entry = restart_summary(comparison, chains(comparison, fit), "processes", fit.graph.node_names)
    clusters = {"entropy": entry["entropies"][entry["chosen"]]}
    names = {"node_names": list(fit.graph.node_names)}
    return {"status": "ok", "clusters": clusters, "graph": names, "restarts": entry}


def test_the_entry_of_the_summary(comparison: Comparison, fit: FitArrays) -> None:
    entry = summary_of(comparison, fit)["restarts"]
    assert (entry["n"], entry["mode"], entry["chosen"]) == (4, "processes", 1)
    assert entry["statuses"] == ["ok", "ok", "diverged", "ok"]
    assert entry["entropies"][2] is None
    assert entry["agreement"]["n_compared"] == 2
    assert entry["agreement"]["ari"] == pytest.approx((1.0 + comparison.ari[1, 3]) / 2)
    assert set(entry["agreement"]["nodes"]) == {"type", "response"}
    assert entry["edge_frequency"]["n_graphs"] == 3
    assert entry["edge_frequency"]["directed"] == [[0.0, 0.0], [0.0, 0.0]]
    assert entry["edge_frequency"]["joined"][0][1] == entry["edge_frequency"]["joined"][1][0] >= 2 / 3
    assert "cluster_accuracies" not in entry


def test_what_is_said(comparison: Comparison, fit: FitArrays) -> None:
    summary = summary_of(comparison, fit)
    said = " ".join(restart_sentences(summary))
    assert said.startswith("Start 1 of 0 to 3 (each on its own) is kept: 6 cells are occupied")
    assert "1 diverged of 4 starts." in said
    assert "type - response" not in said, "nodes without a meaning have no edges"
    named = {"identifiability": {"is_named": True}}
    assert "type - response" in " ".join(restart_sentences(summary | named))
    first, second = fit_verdict(summary).reasons
    assert first.startswith("Clusters are not clean: the mean entropy of q(N|X) is 0.13")
    assert second.startswith("Start 3 separates its clusters about as well as the kept start 1")
    assert [row[0] for row in restart_rows(summary)] == ["1 (kept)", "3", "0", "2"]
    assert restart_rows(summary)[-1] == ["2", "diverged", "-", "0", "-", "-"]


def test_nothing_is_said_of_a_single_start() -> None:
    assert [restart_sentences({}), restart_rows({})] == [[], []]
    assert fit_verdict({"status": "ok"}).reasons == ()


def test_clear_starts_that_agree_warn_of_nothing(fit: FitArrays, tmp_path: Path) -> None:
    clear = Comparison.of(found(tmp_path, [start_of(chained(), fit, 0.995)] * 2))
    assert clear.near_tied == [1]
    assert fit_verdict(summary_of(clear, fit)).state == "clear"


def test_too_many_nodes_for_a_search_leave_the_graphs_out(fit: FitArrays, tmp_path: Path) -> None:
    outcomes = (2,) * 5
    r = np.random.default_rng(0).dirichlet(np.full(32, 0.05), N) + 1e-9
    r /= r.sum(1, keepdims=True)
    nodes = np.zeros((len(fit.draws.latent), len(fit.draws.samples), 5), dtype=int)
    start = StartArrays(r, nodes, fit.draws.log_weight, fit.draws.log_likelihood, np.log(r.mean(0)).reshape(outcomes))
    names = tuple("ABCDE")
    graph = replace(fit.graph, node_names=names, log_joint=start.log_joint)
    large = replace(fit, responsibilities=r, graph=graph, draws=replace(fit.draws, nodes=nodes))
    pair = Comparison.of(found(tmp_path, [start, start]))
    made = chains(pair, large)
    assert made.cpdag is None
    assert restart_summary(pair, made, "batched", names)["edge_frequency"] is None


def test_the_figure_orders_starts_by_entropy(comparison: Comparison, fit: FitArrays) -> None:
    figure = draw_restart_agreement(chains(comparison, fit))
    matrix, bars = figure.axes
    assert [label.get_text() for label in matrix.get_yticklabels()] == ["1 (kept)", "3", "0"]
    widths = [bar.get_width() for bar in bars.patches if isinstance(bar, Rectangle)]
    assert widths == sorted(widths)
    assert any("1 that diverged is not shown" in text.get_text() for text in figure.texts)
