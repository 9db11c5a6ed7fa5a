"""Soft interventions upon named nodes, from the configuration through a whole fit; refused upon others."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest
from tiny_fits import settings

from causalpima.inference.clusters import identify as module
from causalpima.inference.clusters.labels import Clusters
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.fit import fit
from causalpima.inference.training.config import EnvironmentsConfig, FitConfig, ObserveConfig
from causalpima.inference.training.side_information import make_labeller

NODES = {"h": 2, "r": 2, "s": 2}
LABELS = ObserveConfig({name: name for name in NODES})
SOFT = EnvironmentsConfig("soft", {"heated": "r"})


@pytest.fixture(autouse=True)
def _of_quick_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fits of a few epochs are unsure of their clusters; what is tested here is what directs edges."""
    monkeypatch.setattr(module, "TOO_UNCLEAR_ENTROPY", 1.0)


def chain(n: int = 1600, seed: int = 0) -> MultimodalData:
    """h -> r -> s in eight clear clusters; in the second half, heated, r = 1 is more probable for every h."""
    rng = np.random.default_rng(seed)
    heated = np.arange(n) % 2
    h = (rng.random(n) < 0.5).astype(int)
    r = (rng.random(n) < np.array([[0.2, 0.8], [0.55, 0.95]])[heated, h]).astype(int)
    s = (rng.random(n) < np.array([0.2, 0.75])[r]).astype(int)
    values = 4.0 * np.stack([h, r, s], axis=1) + 0.3 * rng.standard_normal((n, 3))
    return MultimodalData(
        name="chain",
        modalities={"x": values.astype(np.float32)},
        present={"x": np.ones(n, dtype=bool)},
        kinds={"x": "vector"},
        factors={"h": h, "r": r, "s": s},
        factor_levels=dict.fromkeys(NODES, ("0", "1")),
        environment=heated,
        environment_names=("observational", "heated"),
    )


def config(**changes: Any) -> FitConfig:
    base = settings(
        training__epochs=3,
        training__batch_size=64,
        pretraining__epochs=15,
        pretraining__kl_warmup=15,
        model__latent_dim=3,
        graph__extra_steps=1,
    )
    return dataclasses.replace(base, nodes=NODES, modality={"x": base.modality["spectrum"]}, **changes)


@pytest.mark.parametrize("graph", ["hodge", "exact"])
def test_a_soft_intervention_upon_a_named_node_directs_both_edges_of_a_chain(graph: str) -> None:
    model = dataclasses.replace(config().model, graph=graph)
    result = fit(chain(), config=config(observe=LABELS, environments=SOFT, model=model))
    summary = result.summary
    details, told = summary["labelling"]["details"], " ".join(result.table().split())
    assert summary["labelling"]["source"] == "labels"
    assert summary["identifiability"]["is_named"]
    assert details["graph"] == details["class"] == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]
    assert details["targets"] == {"heated": "r"}
    assert summary["graph"]["adjacency"] == [[False, True, False], [False, False, True], [False, False, False]]
    np.testing.assert_allclose(np.exp(summary["graph"]["log_joint"]), summary["labelling"]["joint"], atol=1e-5)
    marginal = np.sum(summary["labelling"]["joint"], axis=(0, 2))  # r without the intervention; 0.6 with both halves
    assert abs(marginal[1] - 0.5) < 0.06
    assert "Directed graph by the interventions: h -> r, r -> s" in told


def test_without_the_declaration_no_edge_is_directed() -> None:
    summary = fit(chain(), config=config(observe=LABELS)).summary
    assert summary["graph"]["equivalence_class"]["cpdag"] == [[0, 1, 0], [1, 0, 1], [0, 1, 0]]


def test_a_mask_names_nodes_as_well() -> None:
    data = chain()
    values, seen = data.modalities["x"], {"one": ("h", "r"), "two": ("r", "s"), "three": ("h", "s")}
    views = {name: values[:, [list(NODES).index(node) for node in nodes]] for name, nodes in seen.items()}
    data = dataclasses.replace(
        data,
        modalities=views,
        present=dict.fromkeys(views, data.present["x"]),
        kinds=dict.fromkeys(views, "vector"),
    )
    base = config()
    masked = dataclasses.replace(
        base,
        mask=seen,
        modality=dict.fromkeys(views, base.modality["x"]),
        environments=SOFT,
    )
    labeller = make_labeller(masked, data, np.arange(1600))
    assert labeller is not None
    cells = np.ravel_multi_index(tuple(data.factors.values()), (2, 2, 2))
    found = labeller(Clusters(np.eye(8)[cells], np.zeros((1600, 1))))
    assert found.details["graph"] == [[0, 1, 0], [0, 0, 1], [0, 0, 0]]


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"observe": ObserveConfig({"h": "h", "r": "r"})} | {"nodes": {"h": 2, "r": 2, "s": 2, "t": 2}},
        {"mask": {"x": ("h", "r", "s")}},
    ],
    ids=["nothing", "two of four", "a mask that says nothing"],
)
def test_where_nothing_names_every_node_soft_interventions_are_refused(changes: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^environments\.kind: expected do, or soft beside a mask or labels") as error:
        dataclasses.replace(config(), environments=EnvironmentsConfig("soft"), **changes)
    assert "\n" not in str(error.value)


def test_more_nodes_than_graphs_can_be_listed_of_are_refused() -> None:
    nodes = dict.fromkeys("abcdef", 2)
    with pytest.raises(ValueError, match=r"^environments\.kind: expected at most 5 nodes with soft inter.*got 6"):
        dataclasses.replace(
            config(),
            nodes=nodes,
            observe=ObserveConfig({name: name for name in nodes}),
            environments=EnvironmentsConfig("soft"),
        )
