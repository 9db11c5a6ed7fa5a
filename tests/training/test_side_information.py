"""From the configuration to the labeller of a run, and through a whole fit."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_fits import settings, tiny_samples

from causalpima.inference.clusters import identify as module
from causalpima.inference.clusters.labels import Clusters
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.fit import fit
from causalpima.inference.training.config import EnvironmentsConfig, FitConfig, ObserveConfig
from causalpima.inference.training.side_information import make_labeller, read_outs_of


@pytest.fixture(autouse=True)
def _of_quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a few epochs are unsure of their clusters; what is tested here is what names them."""
    monkeypatch.setattr(module, "TOO_UNCLEAR_ENTROPY", 1.0)


NAMES = ("observational", "do_A", "do_B")


def with_environments(data: MultimodalData) -> MultimodalData:
    """Cells as drawn; under do_A and do_B, half of each, which half being that of its samples whatever they are."""
    codes = np.arange(data.n_samples) % 3
    return dataclasses.replace(data, environment=codes, environment_names=NAMES)


def planted(n: int = 900, seed: int = 0) -> MultimodalData:
    """Four clusters, A causes B, in three environments."""
    rng = np.random.default_rng(seed)
    joints = np.array([[0.48, 0.12, 0.04, 0.36], [0.16, 0.04, 0.08, 0.72], [0.18, 0.42, 0.12, 0.28]])
    codes = np.arange(n) % 3
    cell = (rng.random(n)[:, None] > joints.cumsum(1)[codes]).sum(1)
    values = np.stack([4.0 * (cell // 2), 4.0 * (cell % 2)], axis=1) + 0.2 * rng.standard_normal((n, 2))
    return MultimodalData(
        name="planted",
        modalities={"x": values.astype(np.float32)},
        present={"x": np.ones(n, dtype=bool)},
        kinds={"x": "vector"},
        factors={"A": cell // 2, "B": cell % 2},
        factor_levels={"A": ("0", "1"), "B": ("0", "1")},
        environment=codes,
        environment_names=NAMES,
    )


def quick(**changes: Any) -> FitConfig:
    base = settings(training__epochs=3, graph__extra_steps=1)
    return dataclasses.replace(base, modality={"x": base.modality["spectrum"]}, **changes)


def fitted(**changes: Any) -> dict[str, Any]:
    return dict(fit(planted(), config=quick(**changes)).summary)


def test_nothing_names_clusters_by_itself() -> None:
    data = planted()
    assert make_labeller(quick(), data, np.arange(900)) is None


def test_a_fit_with_environments() -> None:
    found = fitted(environments=EnvironmentsConfig("do", {"do_A": "A", "do_B": "B"}))
    labelling = found["labelling"]
    assert labelling["source"] == "environments"
    assert labelling["named_nodes"] == ["A", "B"]
    assert labelling["details"]["graph"] == [[0, 1], [0, 0]]
    assert labelling["details"]["n_remaining"] == 1
    assert found["evaluation"]["node_accuracy_worst"] > 0.95
    # Graph and p(N) of the model are those without interventions; the pooled p(N) is another one.
    assert found["graph"]["adjacency"] == [[False, True], [False, False]]
    assert np.allclose(np.exp(found["graph"]["log_joint"]), labelling["joint"], atol=1e-6)
    observational = np.sort([0.48, 0.12, 0.04, 0.36])
    assert np.abs(np.sort(np.ravel(labelling["joint"])) - observational).max() < 0.08


def test_names_keep_what_the_environments_told() -> None:
    """Nodes exchanged: graph and p(N) without interventions move with them; torn apart: p(N) alone."""
    config = quick(environments=EnvironmentsConfig("do", {"do_A": "A", "do_B": "B"}))
    result = fit(
        planted(), config=dataclasses.replace(config, graph=dataclasses.replace(config.graph, start_steps=300))
    )
    joint = np.array(result.summary["labelling"]["joint"])
    exchanged = {2 * a + b: {"second": str(b), "first": str(a)} for a in (0, 1) for b in (0, 1)}
    named = result.named(exchanged, nodes=("second", "first"))
    assert named.summary["labelling"]["source"] == "names"
    assert named.summary["graph"]["adjacency"] == [[False, False], [True, False]]
    np.testing.assert_allclose(np.exp(named.summary["graph"]["log_joint"]), joint.T, atol=1e-6)
    assert named.summary["labelling"]["details"]["targets"] == {"do_A": "first", "do_B": "second"}
    assert named.summary["identifiability"]["is_named"]
    assert "Directed graph by the interventions: first -> second" in " ".join(named.table().split())
    order = np.array([0, 1, 3, 2])
    torn = {c: {"A": str(order[c] // 2), "B": str(order[c] % 2)} for c in range(4)}
    other = result.named(torn)
    assert "graph" not in other.summary["labelling"]["details"]
    found = np.exp(other.summary["graph"]["log_joint"]).reshape(-1)
    np.testing.assert_allclose(found[order], joint.reshape(-1), atol=0.01)
    assert other.arrays is not None
    pooled = other.arrays.responsibilities.mean(0)
    assert np.abs(found - pooled).max() > 0.05


def test_a_fit_with_read_outs_and_one_with_independence() -> None:
    found = fitted(read_outs={"x": "values"})["labelling"]
    assert found["source"] == "read_outs"
    assert len(found["named_nodes"]) == 2
    assert fitted(independent_nodes=True)["labelling"]["source"] == "independence"


def test_labels_come_first_and_environments_add_the_graph() -> None:
    found = fitted(observe=ObserveConfig({"A": "A", "B": "B"}), environments=EnvironmentsConfig("do"))["labelling"]
    assert found["source"] == "labels"
    assert found["details"]["targets"] == {"do_A": "A", "do_B": "B"}
    assert found["details"]["graph"] == [[0, 1], [0, 0]]


def test_environments_that_no_training_sample_was_taken_in_are_left_out() -> None:
    data = planted()
    rows = np.flatnonzero(np.arange(900) % 3 < 2)
    labeller = make_labeller(quick(environments=EnvironmentsConfig("do", {"do_B": "B"})), data, rows)
    assert labeller is not None
    clusters = Clusters(np.eye(4)[2 * data.factors["A"] + data.factors["B"]][rows], np.zeros((600, 1)))
    assert list(labeller(clusters).details["targets"]) == ["do_A"]


@pytest.mark.parametrize(
    ("data", "changes", "message"),
    [
        (tiny_samples(), {}, r"^environments.kind: expected samples of tiny with environments, got none; name the var"),
        (
            with_environments(tiny_samples()),
            {"targets": {"do_C": "A"}},
            r"^environments.targets: expected environments wi",
        ),
        (
            dataclasses.replace(with_environments(tiny_samples()), environment=np.ones(41, dtype=int)),
            {},
            r"^environments.kind: expected training samples of the environment 'observational', without",
        ),
        (
            dataclasses.replace(with_environments(tiny_samples()), environment=np.zeros(41, dtype=int)),
            {},
            r"^environments.kind: expected training samples under interventions, got observational ones alone",
        ),
        (
            with_environments(tiny_samples()),
            {},
            r"^environment: expected 20 training samples in each at least, got 13 in 'do_B'; leave its samples out",
        ),
    ],
)
def test_environments_that_do_not_fit_are_refused(data: MultimodalData, changes: dict[str, Any], message: str) -> None:
    config = dataclasses.replace(settings(), environments=EnvironmentsConfig("do", **changes))
    with pytest.raises(ValueError, match=message) as error:
        make_labeller(config, data, np.arange(41))
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    "changes",
    [{"environments": EnvironmentsConfig("do")}, {"read_outs": {"curve": "moments"}}, {"independent_nodes": True}],
)
def test_more_labellings_than_can_be_searched_are_refused_before_training(changes: dict[str, Any]) -> None:
    config = dataclasses.replace(settings(), nodes=dict.fromkeys("ABCD", 2), **changes)
    with pytest.raises(ValueError, match=r"^nodes: expected at most 100000 labellings"):
        make_labeller(config, with_environments(tiny_samples(60)), np.arange(60))


def test_read_outs_by_name_and_by_function(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "my_read_outs.py").write_text("def square(values):\n    return values[:, :2] ** 2\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    data = tiny_samples(missing=True)
    rows = np.array([0, 1, 2, 9])
    found = read_outs_of({"curve": "moments", "spectrum": "my_read_outs:square"}, data, rows)
    assert found.present.tolist() == [False, False, True, False]  # the curve of three, the spectrum of all but two
    assert found.values.shape == (1, 6)
    assert found.values[0, 4:] == pytest.approx(data.modalities["spectrum"][2, :2] ** 2)
    assert read_outs_of({"spectrum": "values"}, data, rows).values.shape == (2, 6)


BROKEN = """
def fails(x):
    raise KeyError("no\\nkey")

def short(x):
    return x[:1]

def empty(x):
    return x * float("nan")
"""


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({"picture": "moments"}, r"^read_outs: expected modalities of tiny \(spectrum, curve\), got 'picture'"),
        ({"spectrum": "moments"}, r"^read_outs.spectrum: expected values or module:function for a vector, got moments"),
        ({"spectrum": "mean"}, r"^read_outs.spectrum: expected moments, values or module:function, got 'mean'"),
        ({"spectrum": "no_such_module:f"}, r"^read_outs.spectrum: expected a module no_such_module"),
        ({"spectrum": "broken:nothing"}, r"^read_outs.spectrum: expected a function nothing in broken, got none"),
        ({"spectrum": "broken:fails"}, r"^read_outs.spectrum: broken:fails fails: KeyError: 'no.*key'"),
        (
            {"spectrum": "broken:short"},
            r"^read_outs.spectrum: expected numbers \[41, quantity\] of broken:short, got f",
        ),
        ({"spectrum": "broken:empty"}, r"^read_outs.spectrum: expected finite numbers of broken:empty, got NaN"),
    ],
)
def test_read_outs_that_do_not_work_are_refused(
    wanted: dict[str, str], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "broken.py").write_text(BROKEN, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=message) as error:
        read_outs_of(wanted, tiny_samples(), np.arange(41))
    assert "\n" not in str(error.value)


def test_read_outs_of_gaps_or_of_nothing_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^read_outs: expected a modality without missing elements, got 'curve'"):
        read_outs_of({"curve": "values"}, tiny_samples(gaps=True), np.arange(41))
    with pytest.raises(ValueError, match=r"^read_outs: expected samples that have curve, got none"):
        read_outs_of({"curve": "values"}, tiny_samples(missing=True), np.arange(10, 20))


@pytest.mark.parametrize("error", ["SystemExit(7)", "GeneratorExit('7')"])
def test_read_outs_that_leave_the_program_are_told_in_one_line(
    error: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = f"leaves_{error[:3].lower()}"
    (tmp_path / f"{name}.py").write_text(f"def leave(values):\n    raise {error}\n", encoding="utf-8")
    (tmp_path / f"{name}_at_once.py").write_text(f"raise {error}\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    kind = error.partition("(")[0]
    with pytest.raises(ValueError, match=rf"^read_outs.spectrum: {name}:leave fails: {kind}: 7$"):
        read_outs_of({"spectrum": f"{name}:leave"}, tiny_samples(), np.arange(41))
    with pytest.raises(ValueError, match=rf"^read_outs.spectrum: importing {name}_at_once fails: {kind}: 7$"):
        read_outs_of({"spectrum": f"{name}_at_once:leave"}, tiny_samples(), np.arange(41))


def test_ctrl_c_in_a_read_out_stays_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "interrupts.py").write_text("def f(values):\n    raise KeyboardInterrupt\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(KeyboardInterrupt):
        read_outs_of({"spectrum": "interrupts:f"}, tiny_samples(), np.arange(41))


def test_read_outs_that_are_the_same_in_all_samples_are_refused_before_training() -> None:
    data = planted()
    same = dataclasses.replace(data, modalities={"x": np.ones_like(data.modalities["x"])})
    training = np.arange(600)
    with pytest.raises(ValueError, match=r"^read_outs: expected quantities that differ .* in all 600 of x=values;"):
        make_labeller(quick(read_outs={"x": "values"}), same, training)
    assert make_labeller(quick(read_outs={"x": "values"}), data, training) is not None


def test_a_graph_of_nodes_that_stay_open_is_not_taken_over() -> None:
    """Without the environment upon B, two readings of B remain."""
    data, rows = planted(), np.flatnonzero(np.arange(900) % 3 != 2)
    labeller = make_labeller(quick(environments=EnvironmentsConfig("do", {"do_A": "A"})), data, rows)
    assert labeller is not None
    clusters = np.eye(4)[2 * data.factors["A"] + data.factors["B"]][rows]
    found = labeller(Clusters(clusters, np.zeros((len(rows), 2))))
    assert (found.named_nodes, found.joint) == (("A",), None)
    everything = make_labeller(
        quick(environments=EnvironmentsConfig("do", {"do_A": "A", "do_B": "B"})), data, np.arange(900)
    )
    assert everything is not None
    settled = everything(Clusters(np.eye(4)[2 * data.factors["A"] + data.factors["B"]], np.zeros((900, 2))))
    assert settled.joint is not None
