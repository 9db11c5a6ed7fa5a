"""One file and one line add a component: by its table, by `module:name` on the command line, as an object."""

from __future__ import annotations

import dataclasses
import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import own_components as own
import pytest
import torch
from tiny_fits import settings, tiny_samples, with_settings

from causalpima.guides.encoders import Encoder, mlp_encoder
from causalpima.guides.fusion import FUSIONS, ProductOfExperts, mixture_of_experts, mixture_of_products
from causalpima.inference.command_line import svi_parser
from causalpima.inference.command_line.svi_settings import source_of
from causalpima.inference.fit import fit
from causalpima.inference.graphs.dags import KnowledgeConfig
from causalpima.inference.result import FitResult, rebuild_result
from causalpima.inference.run import Run
from causalpima.inference.training.components import GRAPHS, PRIORS, Components, PriorChoice, known_of_graph
from causalpima.inference.training.config import EncoderConfig, FitConfig, ObserveConfig
from causalpima.inference.training.fitted_run import load_run
from causalpima.models.block_mixture import BlockMixture
from causalpima.models.graph.base import EdgeConstraints
from causalpima.models.graph.hodge import HodgeGraph
from causalpima.models.graph.table import FreeGraph
from causalpima.models.mixture import GaussianMixture

pytestmark = [
    pytest.mark.float32,
    pytest.mark.filterwarnings("ignore::RuntimeWarning"),  # the verdict on starts so short
]

EXPECTED: dict[str, Callable[[Run], bool]] = {
    "model__graph": lambda run: isinstance(run.state.model.graph, own.Chain),
    "guide__fusion": lambda run: isinstance(run.state.guide.fusion, own.DoubledPrecision),
    "model__prior": lambda run: isinstance(run.state.model.latent_prior, own.WidePrior),
}
"""Of every setting that the next tests set: whether the component of our own is at work."""


MASK = {"spectrum": ("A",), "curve": ("B",)}
OF_CHAINS = PriorChoice(lambda config: own.Chain(config.outcomes), PRIORS["dag"].mixture)


def blocks(config: FitConfig, modalities: tuple[str, ...]) -> BlockMixture:
    """A block per modality, whether there is a mask or not."""
    return BlockMixture(config.outcomes, dict.fromkeys(modalities, (0, 1)), config.model.latent_dim)


def trained(run: Run) -> FitResult:
    run.train()
    result = run.finish()
    assert result.status in ("ok", "collapsed")
    assert np.isfinite(run.state.history[-1]["objective"])
    return result


@pytest.mark.parametrize("name", EXPECTED)
def test_a_line_in_a_table_adds_a_component(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table: dict[str, dict[str, Any]] = {
        "model__graph": {"own": lambda config: own.Chain(config.outcomes)},
        "guide__fusion": {"own": own.DoubledPrecision},
        "model__prior": {"own": dataclasses.replace(PRIORS["dag"], latent=lambda c: own.WidePrior(c.model.latent_dim))},
    }
    shipped: dict[str, Any] = {"model__graph": GRAPHS, "guide__fusion": FUSIONS, "model__prior": PRIORS}
    monkeypatch.setitem(shipped[name], "own", table[name]["own"])
    run = Run(tiny_samples(), settings(**{name: "own"}))
    trained(run)
    assert EXPECTED[name](run)


QUICK = "--nodes 2,2 --pretraining.epochs 1 --training.epochs 2 --training.batch_size 16 --read_out.n_init 1"


@pytest.mark.parametrize("name", EXPECTED)
def test_a_flag_names_a_class_of_a_file(name: str) -> None:
    flag = {"model__graph": "Chain", "guide__fusion": "DoubledPrecision", "model__prior": "WidePrior"}[name]
    words = [f"--{name.replace('__', '.')}", f"own_components:{flag}", *QUICK.split()]
    parsed = svi_parser.parse(["--dataset", "circles", *words]).config
    run = Run(tiny_samples(), with_settings(parsed, {"modality": settings().modality, "read_out__shape": "curved"}))
    trained(run)
    assert EXPECTED[name](run)


def test_flags_name_encoders_and_networks_of_a_file() -> None:
    words = ["--modality.image.encoder.kind", "own_components:narrow_encoder"]
    words += ["--modality.image.decoder.kind", "own_components:bilinear", *QUICK.split()]
    entry = svi_parser.parse(["--dataset", "circles", *words]).config.modality["image"]
    run = Run(tiny_samples(), settings(modality={"spectrum": entry, "curve": settings().modality["curve"]}))
    trained(run)
    assert len(list(run.state.guide.encoders["spectrum"].parameters())) == 2
    assert any(isinstance(part, own._WithProducts) for part in run.state.model.decoders["spectrum"].modules())


@pytest.mark.parametrize("likelihood", ["normal", "student_t"])
@pytest.mark.parametrize("per_cell", [False, True])
def test_a_network_of_a_file_serves_every_likelihood(likelihood: str, per_cell: bool) -> None:
    changes = {"decoder__kind": "own_components:bilinear", "decoder__likelihood": likelihood}
    trained(Run(tiny_samples(), settings(**changes, decoder__per_cell=per_cell)))


def no_fusion(*_: object) -> Any:
    return own.Chain((2, 2))


def encoder_of_a_seed() -> Encoder:
    """Made while tests are collected, where nothing else has seeded the generator."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return mlp_encoder((8,), (4,), 2)


OBJECTS: dict[str, Components] = {
    "classes": Components(graph=own.Chain, fusion=own.DoubledPrecision, prior=own.WidePrior),
    "functions": Components(graph=own.wide_chain, prior=own.round_cells, encoders={"curve": own.narrow_encoder}),
    "modules": Components(
        graph=own.Chain((2, 2)),
        fusion=own.DoubledPrecision(2, 2, False),
        prior=own.WidePrior(2),
        encoders={"curve": encoder_of_a_seed()},
    ),
    "parts": Components(prior=own.PRIOR),
    "a mixture": Components(prior=GaussianMixture(4, 2)),
}


@pytest.mark.parametrize("name", OBJECTS)
def test_objects_take_the_place_of_configured_components(name: str, tmp_path: Path) -> None:
    result = fit(tiny_samples(), config=settings(), components=OBJECTS[name])
    run = rebuild_result(result)
    at_work = {"model.graph": run.model.graph, "guide.fusion": run.guide.fusion, "model.prior": run.model.latent_prior}
    for setting, part in OBJECTS[name].by_setting().items():
        if setting in at_work and isinstance(part, type):
            assert isinstance(at_work[setting], part)
    assert set(run.description.components) == set(OBJECTS[name].by_setting())


def test_modules_are_copied() -> None:
    encoder = mlp_encoder((8,), (4,), 2)
    before = {name: value.clone() for name, value in encoder.state_dict().items()}
    result = fit(
        tiny_samples(), config=settings(), components=Components(encoders={"curve": encoder}), restarts=2, jobs=1
    )
    assert all(torch.equal(value, before[name]) for name, value in encoder.state_dict().items())
    trained_encoder = rebuild_result(result).guide.encoders["curve"]
    assert not torch.equal(trained_encoder.state_dict()["network.1.weight"], before["network.1.weight"])


def test_a_run_asks_for_its_objects_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("causalpima.inference.result.write_figures", lambda *_, **__: {})
    monkeypatch.setattr("causalpima.inference.result.write_report", lambda *_: None)
    objects = Components(graph=own.Chain)
    fit(tiny_samples(), config=settings(), components=objects).save(tmp_path / "run")
    with pytest.raises(ValueError, match=r"components: expected the object Chain in place of model.graph"):
        load_run(tmp_path / "run")
    with pytest.raises(ValueError, match=r"components: expected none in place of guide.fusion"):
        load_run(tmp_path / "run", components=dataclasses.replace(objects, fusion=ProductOfExperts()))
    assert isinstance(load_run(tmp_path / "run", components=objects).model.graph, own.Chain)


def test_starts_take_objects_along_into_processes() -> None:
    both = fit(tiny_samples(), config=settings(), components=OBJECTS["classes"], restarts=2, jobs=2)
    assert isinstance(rebuild_result(both).model.graph, own.Chain)
    local = Components(graph=lambda config: own.Chain(config.outcomes))
    with pytest.raises(ValueError, match="components: expected objects that can be sent to other processes"):
        fit(tiny_samples(), config=settings(), components=local, restarts=2, jobs=2)
    with pytest.raises(ValueError, match=r"expected processes, since model\.graph is an object of your own"):
        fit(tiny_samples(), config=settings(), components=OBJECTS["classes"], restarts=2, restart_mode="batched")


@pytest.mark.parametrize(
    ("changes", "components", "message"),
    [
        (
            {"model__graph": "own_components:Ring"},
            None,
            "model.graph own_components:Ring: expected a class or func",
        ),
        (
            {"model__graph": "own_components:PRIOR"},
            None,
            "expected a subclass of causalpima.models.graph.NodeGraph or a function",
        ),
        ({"model__graph": "own_components:bilinear"}, None, "model.graph own_components:bilinear: missing a required"),
        ({"model__prior": "no_such_module:X"}, None, "model.prior no_such_module:X: expected a module no_such_module"),
        ({"model__prior": "own_components:Chain"}, None, "expected a PriorChoice, a subclass of LatentPrior"),
        (
            {"guide__fusion": "own_components:WidePrior"},
            None,
            "guide.fusion .*: expected a subclass of causalpima.guides.fusion",
        ),
        ({"guide__fusion": "own_components:wide_chain"}, None, "guide.fusion .*: too many positional arguments"),
        (
            {"decoder__kind": "own_components:sequential"},
            None,
            "^decoder own_components:sequential: expected it to make a causalpima.models.decoders.networks.Network"
            "\\(body, head\\), got Sequential; docs/components.md shows one$",
        ),
        ({"decoder__kind": "own_components:wide_chain"}, None, "decoder own_components:wide_chain: too many"),
        ({}, Components(graph=own.Chain((3, 3))), r"components.graph: expected outcomes \[2, 2\], got \[3, 3\]"),
        ({}, Components(graph=ProductOfExperts()), "components.graph: expected a NodeGraph or what makes one"),
        (
            {},
            Components(fusion=no_fusion),
            "components.fusion: expected it to make a causalpima.guides.fusion.Fusion, got .*; docs/components.md",
        ),
        ({"decoder__per_cell": True}, Components(prior=own.WidePrior), "components.prior has no cells, .* per_cell"),
        (
            {"observe": ObserveConfig({"A": "cluster"}, use="training"), "nodes": {"A": 4, "B": 2}},
            Components(prior=own.WidePrior),
            "^components.prior has no cells, as standard has none: observe.use: expected names with model.prior "
            "standard, got training; while it is trained there is no N that labels could tell; leave it at names$",
        ),
        (
            {"mixture__updates": "gradient", "model__prior": "own_components:WidePrior"},
            None,
            "has no cells, as standard",
        ),
        ({}, Components(prior=lambda *_: None), "components.prior: expected it to make a mixture, got NoneType"),
        ({}, Components(encoders={"curves": own.narrow_encoder}), "components.encoders: expected modalities"),
        ({"model__graph": "empty"}, Components(graph=own.Chain), "model.graph: expected hodge beside an object"),
        ({"guide__graph": "bayesian"}, Components(graph=own.Chain), "guide.graph: expected point beside an object"),
        (
            {"guide__graph": "bayesian"},
            Components(prior=OF_CHAINS),
            "guide.graph: expected point with a prior that",
        ),
        (
            {"mask": MASK},
            Components(prior=own.PRIOR),
            "model.prior: expected a BlockMixture with a mask",
        ),
        (
            {"model__graph": "exact"},
            Components(prior=OF_CHAINS),
            "^model.graph: expected its default hodge with a prior that makes a graph of its own, got exact; leave one",
        ),
        (
            {"knowledge": KnowledgeConfig(forbid=("A->B",))},
            Components(graph=own.Chain),
            "^components.graph: expected a graph that keeps to what is known of edges, got A->B; leave the knowledge",
        ),
        (
            {"knowledge": KnowledgeConfig(require=("B->A",)), "model__graph": "own_components:Chain"},
            None,
            "^model.graph own_components:Chain: expected a graph that keeps to .*, got no B->A; leave the",
        ),
        (
            {"knowledge": KnowledgeConfig(forbid=("A->B",))},
            Components(prior=OF_CHAINS),
            "^model.prior: expected a graph that keeps to what is known of edges, got A->B; leave the knowledge",
        ),
        (
            {"knowledge": KnowledgeConfig(forbid=("A->B",))},
            Components(graph=own.wide_chain),
            "^components.graph: expected .*, got a HodgeGraph that does not hold it as constraints; leave the knowl",
        ),
        ({}, Components(prior=blocks), "model.prior: expected no BlockMixture without a mask"),
        ({"mask": MASK}, Components(fusion=own.DoubledPrecision), "guide.fusion: expected no object with a mask"),
        ({}, Components(prior=own.WidePrior(5)), "latent_prior: expected Z of 2 dimensions, as the mixture has, got 5"),
    ],
)
def test_what_is_no_component_is_told(changes: dict[str, Any], components: Components | None, message: str) -> None:
    with pytest.raises(ValueError, match=message) as told:
        Run(tiny_samples(), settings(**changes), components=components)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("kind", "message"),
    [
        (
            "own_components:WidePrior",
            r"subclass of causalpima.guides.encoders.Encoder or a function that makes one \(docs/components.md",
        ),
        (
            "own_components:sequential",
            r"expected it to make a causalpima.guides.encoders.Encoder, got Sequential; docs/components.md shows one$",
        ),
    ],
)
def test_what_is_no_encoder_is_told_with_where_there_is_one(kind: str, message: str) -> None:
    plain = settings()
    entry = dataclasses.replace(plain.modality["curve"], encoder=EncoderConfig(kind=kind, sizes=(8,)))
    with pytest.raises(ValueError, match=message) as told:
        Run(tiny_samples(), dataclasses.replace(plain, modality={**plain.modality, "curve": entry}))
    assert "\n" not in str(told.value)


def told_chain(config: FitConfig) -> HodgeGraph:
    """A graph that is told of what is known."""
    known = known_of_graph(config)
    fixed = EdgeConstraints(*map(torch.from_numpy, (known.forbidden, known.required)))
    return HodgeGraph(config.outcomes, constraints=fixed)


@pytest.mark.parametrize(
    ("graph", "knowledge"),
    [
        (told_chain, KnowledgeConfig(forbid=("A->B",))),
        (own.Chain, KnowledgeConfig(require=("A->B",))),
        (lambda config: FreeGraph(config.outcomes), KnowledgeConfig(forbid=("A->B",))),
    ],
)
def test_a_graph_of_ones_own_that_keeps_to_what_is_known_is_taken(graph: Any, knowledge: KnowledgeConfig) -> None:
    Run(tiny_samples(), settings(knowledge=knowledge), components=Components(graph=graph))


@pytest.mark.parametrize(
    ("fusion", "epochs"),
    [
        (own.DoubledPrecision, 20),
        (own.TaughtAlone, 0),
        (own.TaughtAlone(2, 2, False), 0),
        (mixture_of_experts, 0),
        (lambda *facts: mixture_of_products(*facts), 0),
    ],
)
def test_defaults_distil_nothing_into_a_mixture_of_ones_own(
    fusion: Any, epochs: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    class SettledError(Exception):
        pass

    def settled(_samples: object, config: FitConfig, *_: object) -> Run:
        found.append(config.distillation.epochs)
        raise SettledError

    found: list[int] = []
    monkeypatch.setattr(importlib.import_module("causalpima.inference.fit"), "Run", settled)
    state = torch.get_rng_state()
    with pytest.raises(SettledError):
        fit(tiny_samples(), nodes={"A": 2, "B": 2}, components=Components(fusion=fusion))
    assert found == [epochs]
    assert torch.equal(torch.get_rng_state(), state)


def test_distillation_that_was_asked_for_is_refused_beside_a_mixture_of_ones_own() -> None:
    with pytest.raises(ValueError, match=r"^distillation.epochs: expected 0 with TaughtAlone, .* set it to 0"):
        Run(tiny_samples(), settings(distillation__epochs=3), components=Components(fusion=own.TaughtAlone))


def test_defaults_of_the_command_line_distil_nothing_into_a_class_that_says_so() -> None:
    def epochs(fusion: str) -> int:
        source = source_of({"dataset": "resin_coupons", "guide.fusion": f"own_components:{fusion}"})
        assert source is not None
        return source.experiment.config.distillation.epochs

    assert [epochs(name) for name in ("DoubledPrecision", "TaughtAlone")] == [20, 0]


def test_files_and_methods_of_graphs_are_no_modules() -> None:
    for name in ("fixed:graph.json", "posthoc:nonsense"):
        with pytest.raises(ValueError, match=r"model\.graph: expected hodge, .* or module:Class, got"):
            settings(model__graph=name)
