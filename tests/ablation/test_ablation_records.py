"""Numbers of a fit from its folder, and how it ended."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from causalpima.inference.ablation.plan import Cell, Fit, Plan, PlannedCell
from causalpima.inference.ablation.records import (
    DEFAULT_METRICS,
    METRICS,
    STATUSES,
    Metric,
    Record,
    metric_named,
    read_records,
    record_of_fit,
    records_of,
    write_records,
)

SUMMARY: dict[str, Any] = {
    "status": "ok",
    "dataset": "d",
    "nodes": {"N1": 2},
    "modalities": {"a": {}, "b": {}},
    "graph": {},
    "clusters": {"entropy": 0.25, "n_occupied": 1, "n_requested": 4},
    "evaluation": {"cluster_accuracy": 0.75, "cpdag_shd": None},
    "seconds": {"total": 12.5},
}
CHOSEN = [METRICS[name] for name in ("cluster_accuracy", "cpdag_shd", "cross_modal_r2", "entropy", "seconds")]


def fit_in(folder: Path) -> Fit:
    return Fit("cell", 3, (), folder / "runs" / "cell" / "seed-3")


def found(tmp_path: Path, status: int | None = None) -> Record:
    return record_of_fit(fit_in(tmp_path), {"p": "1"}, CHOSEN, status, tmp_path)


def write(tmp_path: Path, summary: dict[str, Any]) -> Path:
    folder = fit_in(tmp_path).folder
    folder.mkdir(parents=True)
    (folder / "summary.json").write_text(json.dumps(summary))
    return folder


def test_numbers_come_from_summary_and_scores(tmp_path: Path) -> None:
    folder = write(tmp_path, SUMMARY)
    (folder / "evaluate.json").write_text(json.dumps({"cross_modal": {"a": {"r2": 0.5}, "b": {"r2": 0.25}}}))
    record = found(tmp_path, 0)
    assert record.metrics == {
        "cluster_accuracy": 0.75,
        "cpdag_shd": None,
        "cross_modal_r2": 0.375,
        "entropy": 0.25,
        "seconds": 12.5,
    }
    assert (record.status, record.reason, record.run) == ("ok", "", "runs/cell/seed-3")


def test_a_collapsed_fit_keeps_its_numbers(tmp_path: Path) -> None:
    write(tmp_path, {**SUMMARY, "status": "collapsed"})
    record = found(tmp_path, 3)
    assert (record.status, record.reason) == ("collapsed", "1 of 4 cells are occupied")
    assert record.metrics["cluster_accuracy"] == 0.75


def test_a_diverged_fit_says_why(tmp_path: Path) -> None:
    summary = {name: SUMMARY[name] for name in ("dataset", "nodes", "modalities")}
    write(tmp_path, {**summary, "status": "diverged", "reason": "loss is NaN", "seconds": {"total": 1.0}})
    record = found(tmp_path, 3)
    assert (record.status, record.reason) == ("diverged", "loss is NaN")
    assert set(record.metrics.values()) == {None}


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (None, ("unfinished", "it has not run to its end")),
        (2, ("refused", "data: expected more, got less")),
        (1, ("error", "svi: error: data: expected more, got less (exit status 1)")),
        (-9, ("error", "its process was killed by signal 9, perhaps for want of memory: try fewer --jobs")),
    ],
)
def test_without_a_summary_the_process_tells(tmp_path: Path, status: int | None, expected: tuple[str, str]) -> None:
    log = fit_in(tmp_path).log
    log.parent.mkdir(parents=True)
    log.write_text("first\nsvi: error: data: expected more,  got less\n\n")
    record = found(tmp_path, status)
    assert (record.status, record.reason) == expected
    assert record.status in STATUSES


def test_refused_cells_are_records_of_every_seed(tmp_path: Path) -> None:
    cells = (PlannedCell(Cell("a", {"p": "1"}), (), {}), PlannedCell(Cell("b", {"p": "2"}), (), None, "p: no"))
    records = records_of(Plan(tmp_path, cells, (3, 4), "a"), CHOSEN, {})
    assert [(r.cell, r.seed, r.status) for r in records] == [
        ("a", 3, "unfinished"),
        ("a", 4, "unfinished"),
        ("b", 3, "refused"),
        ("b", 4, "refused"),
    ]
    assert records[2].reason == "p: no"


def test_failures_of_an_earlier_session_keep_their_reasons(tmp_path: Path) -> None:
    """Only the process told them; of other settings, or of a fit that ended since, they are told no more."""
    plan = Plan(tmp_path, (PlannedCell(Cell("cell", {"p": "1"}), (), {}),), (3,), "cell")
    failed = records_of(plan, CHOSEN, {plan.fits[0].folder: 1})
    write_records(tmp_path / "records.jsonl", failed)
    earlier = read_records(tmp_path / "records.jsonl")
    assert [r.status for r in failed] == ["error"]
    with (tmp_path / "records.jsonl").open("ab") as file:
        file.write(b"garb\xffage\n")
    assert read_records(tmp_path / "records.jsonl") == earlier
    assert records_of(plan, CHOSEN, {}, earlier) == failed
    assert records_of(plan, CHOSEN, {plan.fits[0].folder: 2}, earlier)[0].status == "refused"
    other = Plan(tmp_path, (PlannedCell(Cell("cell", {"p": "2"}), (), {}),), (3,), "cell")
    assert records_of(other, CHOSEN, {}, earlier)[0].status == "unfinished"
    write(tmp_path, SUMMARY)
    assert records_of(plan, CHOSEN, {}, earlier)[0].status == "ok"


@pytest.mark.parametrize("text", ["", "[]\n", "no json", '{"a": 1}\n'])
def test_what_are_no_records_tells_nothing(tmp_path: Path, text: str) -> None:
    assert read_records(tmp_path / "records.jsonl") == {}
    (tmp_path / "records.jsonl").write_text(text)
    assert read_records(tmp_path / "records.jsonl") == {}


def test_records_are_lines_of_json(tmp_path: Path) -> None:
    write(tmp_path, SUMMARY)
    write_records(tmp_path / "records.jsonl", [found(tmp_path)] * 2)
    lines = (tmp_path / "records.jsonl").read_text().splitlines()
    assert len(lines) == 2
    assert json.loads(lines[0])["metrics"]["entropy"] == 0.25


def test_a_metric_takes_the_first_path_with_a_number() -> None:
    trained, held_out = METRICS["held_out_as_trained"], {"held_out_log_likelihood": {"per_sample": 1.0}}
    assert trained.of({"summary": {**held_out, "objective": {"per_sample": 3.0}}}) == 1.0
    assert trained.of({"summary": {**held_out, "objective": {"latent_prior": {"per_sample": 2.0}}}}) == 2.0
    assert trained.of({"summary": {**held_out, "objective": {"latent_prior": {"per_sample": None}}}}) == 1.0
    assert trained.of({"summary": {"status": "diverged"}}) is None


def test_the_collapsed_bound_is_beside_the_held_out_likelihood() -> None:
    held_out = {"per_sample": 1.0, "collapsed_bound": {"per_sample": 0.5, "standard_error": 0.1}}
    assert METRICS["held_out_bound"].of({"summary": {"held_out_log_likelihood": held_out}}) == 0.5


def test_a_path_is_a_metric_and_its_sign_says_what_is_better() -> None:
    assert metric_named("summary.clusters.effective_number").better == 0
    assert metric_named("-summary.seconds.training") == Metric(
        "summary.seconds.training", "seconds.training", ("summary.seconds.training",), -1
    )
    assert metric_named("+evaluate.ari").better == 1


@pytest.mark.parametrize("name", ["accuracy", "", "summary", "posterior.x", "-nmi"])
def test_what_is_no_metric_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^metrics: expected cluster_accuracy"):
        metric_named(name)


def test_metrics_by_default_are_metrics() -> None:
    assert set(DEFAULT_METRICS) <= set(METRICS)


def test_no_objective_is_called_better_than_another() -> None:
    assert METRICS["objective"].better == 0
