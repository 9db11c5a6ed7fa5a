"""Controls against what was planted: frequencies, exact limits, and fits that are broken on purpose."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from planted_runs import OUTCOMES, planted, planted_views
from scipy.stats import binom

from causalpima.inference.analyses.check import Checked, check_embedded, check_lines
from causalpima.inference.analyses.controls import (
    bootstrap,
    contribution,
    edges_not_searched,
    independent_nodes,
    permuted_labels,
    refit,
    sharing,
)
from causalpima.inference.analyses.embedding import (
    EmbeddedRun,
    Expert,
    bootstrap_rows,
    embedding_with_permuted,
    null_rows,
    permuted,
    unseen_cells,
)
from causalpima.inference.clusters.labels import UNKNOWN
from causalpima.inference.findings.verdicts import Line, one_sided_lower, one_sided_upper, verdict_table
from causalpima.inference.graphs.dags import GraphKnowledge

SILENT = lambda: None  # noqa: E731


def fused(run: EmbeddedRun, noise: dict[str, float]) -> EmbeddedRun:
    """The run as the product of experts that see all of `loc` with this noise, absent nowhere."""
    rng = np.random.default_rng(3)
    present = {name: np.ones(run.n_samples, dtype=bool) for name in noise}
    experts = {
        name: Expert(run.loc + scale * rng.normal(size=run.loc.shape), np.full(run.loc.shape, 2 * np.log(scale)))
        for name, scale in noise.items()
    }
    return dataclasses.replace(run, present=present, experts=experts)


def verdicts(found: Checked) -> dict[str, str]:
    return {line.key: line.verdict for line in check_lines(found)}


def test_null_samples_have_the_product_of_the_marginals() -> None:
    run = planted(4000, 0.8, 0.5)
    rows = null_rows(run, np.random.default_rng(0))
    table = run.responsibilities[rows].mean(0).reshape(OUTCOMES)
    expected = np.outer(table.sum(1), table.sum(0))
    # Four standard errors of a share of 4000; the run itself is ten times as far off.
    assert np.abs(table - expected).max() < 4 * np.sqrt(0.25 * 0.75 / 4000)
    own = run.responsibilities.mean(0).reshape(OUTCOMES)
    assert np.abs(own - np.outer(own.sum(1), own.sum(0))).max() > 0.15
    # Marginals are kept but for drawing cells from q.
    assert np.allclose(table.sum(1), own.sum(1), atol=4 * np.sqrt(0.25 / 4000))


def test_cells_that_nobody_has_seen_are_told() -> None:
    run = planted(500, 1.0, 0.3)
    assert unseen_cells(run).tolist() == [1, 2]
    assert unseen_cells(planted(500, 0.5, 0.3)).tolist() == []
    assert "2 clusters" in check_embedded(run, 2).skipped["null"]


def test_bootstrap_draws_whole_units() -> None:
    units = np.array([5, 5, 9, 9, 9, 2])
    rows = bootstrap_rows(6, units, np.random.default_rng(1))
    counts = np.bincount(rows, minlength=6)
    assert counts[0] == counts[1]
    assert counts[2] == counts[3] == counts[4]
    assert counts[[0, 2, 5]].sum() == 3
    assert len(bootstrap_rows(6, None, np.random.default_rng(1))) == 6


@pytest.mark.parametrize(("number", "total"), [(0, 20), (3, 20), (19, 20)])
def test_upper_limit_is_where_so_few_have_five_per_cent(number: int, total: int) -> None:
    assert binom.cdf(number, total, one_sided_upper(number, total)) == pytest.approx(0.05, abs=1e-9)


def test_no_upper_limit_where_it_always_happened() -> None:
    assert one_sided_upper(4, 4) == 1.0
    assert binom.sf(2, 10, one_sided_lower(3, 10)) == pytest.approx(0.05, abs=1e-9)
    assert one_sided_lower(0, 4) == 0.0


@pytest.fixture(scope="module")
def checked() -> Checked:
    """Clear clusters with an edge, each control repeated 20 times."""
    return check_embedded(planted(300, 0.6, 0.6), 20)


def test_clear_clusters_with_an_edge_pass(checked: Checked) -> None:
    found = checked
    assert found.edges is not None
    assert found.edges[0, 1]
    assert found.null is not None
    assert found.null.joined is not None
    # BIC joins two independent binary nodes when chi² with one degree of freedom exceeds log n: 1 % of the time.
    assert found.null.joined.any((1, 2)).sum() <= binom.ppf(0.999, 20, 0.01)
    assert set(verdicts(found).values()) == {"passes", "skipped"}


def test_independent_nodes_have_no_edge_to_speak_of() -> None:
    found = check_embedded(planted(300, 0.0, 0.6, seed=1), 4)
    assert found.edges is not None
    assert not found.edges.any()
    assert not any(key.startswith("edge_") and value == "passes" for key, value in verdicts(found).items())


def test_overlapping_clusters_do_not_pass() -> None:
    found = check_embedded(planted(200, 0.4, 4.0), 6)
    told = verdicts(found)
    assert told["clusters_samples"] == "fails"
    line = next(line for line in check_lines(found) if line.key == "clusters_samples")
    assert "other samples would give other clusters" in line.advice


def test_a_collapsed_fit_passes_nothing() -> None:
    run = dataclasses.replace(planted(200, 0.5, 0.6), status="collapsed")
    told = verdicts(check_embedded(run, 2))
    assert told["fit"] == "fails"
    assert "passes" not in told.values()


def replicates(seed: int) -> EmbeddedRun:
    """Twelve specimens of 60 samples each, all of a specimen of one cell, whose nodes are independent."""
    cells, copies = np.random.default_rng(seed).permutation(np.arange(12) % 4), np.repeat(np.arange(12), 60)
    run = planted(4000, 0.0, 0.3)
    rows = np.concatenate([np.flatnonzero(run.cells == cell)[60 * place :][:60] for place, cell in enumerate(cells)])
    present = {"x": np.ones(720, dtype=bool)}
    responsibilities = run.responsibilities[rows]
    return dataclasses.replace(
        run, loc=run.loc[rows], responsibilities=responsibilities, groups=copies, present=present
    )


def test_groups_are_drawn_whole_and_counted_once() -> None:
    run = replicates(0)
    found = check_embedded(run, 2)
    assert list(found.bootstraps) == ["groups"]
    assert found.bootstraps["groups"].n_units == 12
    assert run.weights is not None
    assert run.weights.sum() == pytest.approx(12)


def test_replicates_stay_alike_where_nodes_are_independent() -> None:
    run = replicates(0)
    cells = run.cells[null_rows(run, np.random.default_rng(0))].reshape(12, 60)
    assert (cells == cells[:, :1]).mean() > 0.98
    split = run.cells[null_rows(dataclasses.replace(run, groups=None), np.random.default_rng(0))].reshape(12, 60)
    assert (split == split[:, :1]).mean() < 0.5


def test_unnamed_clusters_have_no_edges() -> None:
    run = planted(300, 0.5, 0.6, named=False)
    found = check_embedded(run, 3)
    assert found.edges is None
    assert found.null is None
    told = verdicts(found)
    assert told["false_edges"] == "skipped"
    assert told["clusters_samples"] == "passes"
    assert edges_not_searched(run) is not None
    assert "no meaning" in str(edges_not_searched(run))


def test_refits_are_repeatable() -> None:
    run = planted(100, 0.5, 2.0)
    one, two = (bootstrap(run, None, 2, 7, True, SILENT) for _ in range(2))
    assert np.array_equal(one.ari, two.ari)
    assert not np.array_equal(one.ari, bootstrap(run, None, 2, 8, True, SILENT).ari)
    assert not np.array_equal(one.ari, independent_nodes(run, 2, 7, SILENT).ari)


def test_fused_experts_are_the_product_of_gaussians() -> None:
    run = fused(planted(50, 0.5, 0.6), {"x": 0.2, "y": 0.4})
    precision = {name: np.exp(-expert.log_variance) for name, expert in run.experts.items()}
    expected = sum(precision[n] * run.experts[n].loc for n in precision) / sum(precision.values())
    assert np.allclose(embedding_with_permuted(run, (), None), expected, rtol=1e-12)


def test_only_the_named_modality_moves_and_only_where_it_is_present() -> None:
    run = planted_views(40, 0.5)
    present = {"a": np.ones(40, dtype=bool), "b": np.arange(40) % 4 > 0}
    run = dataclasses.replace(run, present=present)
    moved = embedding_with_permuted(run, ("b",), np.random.default_rng(0))
    assert np.array_equal(moved[:, 0], run.loc[:, 0])
    assert np.array_equal(moved[~present["b"], 1], run.loc[~present["b"], 1])
    assert np.array_equal(np.sort(moved[:, 1]), np.sort(run.loc[:, 1]))
    assert not np.array_equal(moved[:, 1], run.loc[:, 1])


def test_a_modality_that_adds_nothing_is_told() -> None:
    """One expert is so vague that the product is the other's."""
    found = check_embedded(fused(planted(200, 0.5, 0.4), {"sharp": 0.05, "vague": 50.0}), 1)
    told = verdicts(found)
    assert told["without_sharp"] == "passes"
    assert told["without_vague"] == "unclear"
    assert told["modalities_share"] == "unclear"


def test_shuffled_views_have_no_edge_and_do_not_share() -> None:
    found = check_embedded(planted_views(300, 0.7), 5)
    told = verdicts(found)
    assert told["modalities_share"] == "passes"
    assert told["false_edges_shuffled"] == "unclear"  # of a single shuffle
    assert found.shuffled is not None
    assert found.shuffled.joined is not None
    assert not found.shuffled.joined.any()
    apart = sharing(planted_views(300, 0.0, seed=5), 0)
    assert apart is not None
    assert apart.p_value > 0.01


def test_shuffled_views_keep_their_own_clusters_apart_from_those_of_the_run() -> None:
    run = planted_views(500, 0.9)
    intact, both = (contribution(run, names, 2, 0, False, SILENT) for names in ((), ("a", "b")))
    assert intact.ari.min() > 0.9
    assert both.ari.max() < 0.1


def test_sharing_needs_samples_with_both() -> None:
    run = planted_views(40, 0.5)
    first = np.arange(40) < 20
    assert sharing(dataclasses.replace(run, present={"a": first, "b": ~first}), 0) is None


def test_labels_that_mean_nothing_fail() -> None:
    run = planted(300, 0.3, 0.5)
    nodes = np.stack(np.unravel_index(run.cells, OUTCOMES), axis=1)
    codes = np.where(np.arange(300)[:, None] < 40, nodes, UNKNOWN)
    good = permuted_labels(run.responsibilities, codes, OUTCOMES, 0)
    assert good.share == 1.0
    assert good.p_value == pytest.approx(1 / 201)
    noise = np.where(codes == UNKNOWN, UNKNOWN, np.random.default_rng(0).integers(0, 2, codes.shape))
    told = verdicts(check_embedded(run, 1, codes=noise))
    assert told["labels"] == "fails"


def test_the_table_fits_and_says_what_to_do() -> None:
    lines = [Line("a", "a" * 50, "found " * 30, "fails", "do " * 40), Line("b", "b", "none", "skipped")]
    text = verdict_table(lines)
    assert max(map(len, text.splitlines())) <= 100
    assert "→ do" in text


def test_repetitions_are_checked() -> None:
    with pytest.raises(ValueError, match="repetitions: expected at least 1, got 0"):
        check_embedded(planted(50, 0.5, 0.6), 0)


def test_what_is_declared_of_the_graph_is_no_finding() -> None:
    required = np.array([[False, True], [False, False]])
    knowledge = GraphKnowledge(("A", "B"), np.zeros((2, 2), dtype=bool), required)
    found = check_embedded(dataclasses.replace(planted(200, 0.0, 0.5), knowledge=knowledge), 20)
    assert found.null is not None
    assert found.null.joined is not None
    assert found.null.joined.all((1, 2), where=~np.eye(2, dtype=bool)).all()
    told = verdicts(found)
    assert told["false_edges"] == "passes"
    assert not any(key.startswith("edge_") for key in told)


def test_edges_that_come_from_nothing_fail(checked: Checked) -> None:
    """A procedure that joins independent nodes in half of the sets is told, whatever the bootstrap says."""
    found = checked
    assert found.null is not None
    assert found.null.joined is not None
    wrong = np.broadcast_to(~np.eye(2, dtype=bool), (20, 2, 2)) & (np.arange(20) % 2 == 0)[:, None, None]
    told = verdicts(dataclasses.replace(found, null=dataclasses.replace(found.null, joined=wrong)))
    assert told["false_edges"] == "fails"
    few = dataclasses.replace(found.null, joined=wrong & (np.arange(20) < 1)[:, None, None])
    assert verdicts(dataclasses.replace(found, null=few))["false_edges"] == "unclear"
    rare = dataclasses.replace(found.bootstraps["samples"], joined=wrong & (np.arange(20) < 14)[:, None, None])
    told = verdicts(dataclasses.replace(found, bootstraps={"samples": rare}))
    assert told["edge_samples_A_B"] == "fails"


def test_groups_are_permuted_as_a_whole() -> None:
    groups = np.repeat(np.arange(40), 5)
    found = permuted(groups * 10, groups, np.random.default_rng(0))
    assert (found.reshape(40, 5) == found.reshape(40, 5)[:, :1]).all()
    assert sorted(found.tolist()) == (groups * 10).tolist()
    assert (found != groups * 10).any()


def test_replicates_do_not_make_labels_by_chance_look_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    """Clusters and labels of 12 specimens, independent of each other, 20 replicates each: p is uniform, not small."""
    monkeypatch.setattr("causalpima.inference.analyses.controls._N_PERMUTATIONS", 60)
    groups, rejected = np.repeat(np.arange(12), 20), {"whole": 0, "single": 0}
    for seed in range(20):
        generator = np.random.default_rng(seed)
        cluster, label = (generator.integers(0, 2, 12)[groups] for _ in range(2))
        r = np.eye(2)[cluster]
        rejected["whole"] += permuted_labels(r, label[:, None], (2,), seed, groups).p_value < 0.05
        rejected["single"] += permuted_labels(r, label[:, None], (2,), seed).p_value < 0.05
    most = binom.ppf(0.999, 20, 0.05)
    assert rejected["whole"] <= most < rejected["single"]


def test_labels_of_the_training_hold_in_what_is_read_out_anew() -> None:
    """Clusters that overlap until nothing is left of them; labels tell every sample's cell."""
    run = planted(400, 0.8, spread=6.0)
    told = np.eye(4, dtype=bool)[run.cells]
    known = dataclasses.replace(run, allowed=told)
    rows = np.random.default_rng(1).integers(0, 400, 300)
    assert np.array_equal(refit(known, rows, 0) > 0.5, told[rows])
    assert not np.array_equal(refit(run, rows, 0).argmax(1), run.cells[rows])
    moved = refit(known, rows, 0, loc=run.loc[::-1])
    assert not np.array_equal(moved.argmax(1), run.cells[rows])
