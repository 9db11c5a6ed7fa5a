"""The direct contraction, the rule for it, and what is handed over to Pyro's own."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pyro
import pytest
import torch
from foreign_programs import (
    Program,
    amortised,
    amortised_with_auxiliary,
    amortised_with_auxiliary_cluster,
    amortised_with_chain,
    amortised_with_cluster,
    chain,
    cluster_seen_directly,
    impossible_cluster,
    impossible_cluster_in_guide,
    independent_of_cluster,
    masked_where_missing,
    mixture,
    no_latent,
    nothing,
    program,
    rescaled_everywhere,
    unclustered,
    with_factor,
)
from ladder_example import Outcome, assert_same, outcome_of
from programs_for_pyro import (
    amortised_with_global,
    cluster_masked,
    drawn_cluster,
    latent_given_cluster,
    many_draws,
    no_latent_in_a_square,
    one_site_rescaled,
    partly_reparametrised,
    plates_in_a_row,
    plates_in_each_other,
    positive,
    score_function,
    two_clusters,
    with_global,
)
from pyro.infer import TraceEnum_ELBO

from causalpima.inference.objectives.enumerated import CollapsedELBO

KEEP_THE_RULE: dict[str, Callable[[], Program]] = {
    "a global latent": program(with_global, amortised_with_global),
    "a mixture": program(mixture, amortised),
    "a chain of three": program(chain, amortised),
    "a chain of three, in the guide as well": program(chain, amortised_with_chain),
    "a cluster in the guide": program(mixture, amortised_with_cluster),
    "nothing independent of the cluster": program(cluster_seen_directly, amortised),
    "a cluster and nothing else to infer": program(no_latent, nothing),
    "an auxiliary cluster in the guide": program(unclustered, amortised_with_auxiliary_cluster),
    "masks on observed sites": program(masked_where_missing, amortised),
    "no cluster": program(unclustered, amortised, strict_enumeration_warning=False),
    "a cluster that nothing depends on": program(independent_of_cluster, amortised),
    "a factor": program(with_factor, amortised),
    "an impossible cluster": program(impossible_cluster, amortised),
    "an impossible cluster, in the guide as well": program(impossible_cluster, impossible_cluster_in_guide),
    "an auxiliary site in the guide": program(mixture, amortised_with_auxiliary),
    "one scale around everything": program(
        partial(rescaled_everywhere, scale=0.5, program=mixture),
        partial(rescaled_everywhere, scale=0.5, program=amortised),
    ),
    "plate nesting guessed": program(mixture, amortised, max_plate_nesting=float("inf")),
    "room for a second plate": program(mixture, amortised_with_cluster, max_plate_nesting=2),
}

BREAK_THE_RULE: dict[str, Callable[[], Program]] = {
    "two plates in a row": program(plates_in_a_row, amortised),
    "two plates in each other": program(plates_in_each_other, amortised, max_plate_nesting=2),
    "two plates around everything": program(no_latent_in_a_square, nothing, max_plate_nesting=2),
    "a scale on one site": program(one_site_rescaled, amortised),
    "a tensor as scale": program(
        partial(rescaled_everywhere, scale=torch.tensor(0.5, dtype=torch.float64), program=mixture),
        partial(rescaled_everywhere, scale=torch.tensor(0.5, dtype=torch.float64), program=amortised),
    ),
    "a mask on an enumerated site": program(cluster_masked, amortised),
    "a guide site without reparametrisation": program(mixture, score_function),
    "a guide site reparametrised in part": program(positive, partly_reparametrised),
    "sequential enumeration": program(mixture, partial(amortised_with_cluster, enumerate="sequential")),
    "several draws of one site": program(mixture, many_draws),
    "several draws of the only latent": program(unclustered, many_draws),
    "one cluster in the guide, one in the model": program(two_clusters, amortised_with_cluster),
    "a latent given the cluster, in the guide": program(mixture, latent_given_cluster),
    "vectorised particles": program(mixture, amortised, num_particles=2, vectorize_particles=True),
    "a joint table worth eliminating": program(partial(chain, length=12, emissions=False), amortised),
}

BOTH = KEEP_THE_RULE | BREAK_THE_RULE


def options(foreign: Program) -> dict[str, Any]:
    return {"max_plate_nesting": 1, **foreign.options}


def stock(make: Callable[[], Program]) -> Outcome:
    foreign = make()
    pyro.set_rng_seed(8)
    loss = TraceEnum_ELBO(**options(foreign)).differentiable_loss(foreign.model, foreign.guide)
    return outcome_of(loss, foreign.leaves)


def ours(make: Callable[[], Program], direct: bool = True) -> list[Outcome]:
    """`loss`, `differentiable_loss` and `loss_and_grads`, each from the same seed."""
    foreign = make()
    outcomes = []
    for way in ("loss", "differentiable_loss", "loss_and_grads"):
        elbo = CollapsedELBO(direct=direct, **options(foreign))
        pyro.set_rng_seed(8)
        value = getattr(elbo, way)(foreign.model, foreign.guide)
        outcomes.append(outcome_of(value, foreign.leaves) if way == "differentiable_loss" else Outcome(value, None))
    graded = {name: torch.zeros_like(p) if p.grad is None else p.grad for name, p in foreign.leaves.items()}
    return [*outcomes[:2], Outcome(outcomes[2].value, graded)]


def is_direct(make: Callable[[], Program]) -> bool:
    foreign = make()
    return CollapsedELBO(**options(foreign)).evaluate(foreign.model, foreign.guide).terms is not None


@pytest.mark.parametrize("validate", [True, False], ids=["validated", "not validated"])
@pytest.mark.parametrize("name", list(BOTH))
def test_values_and_gradients_are_those_of_pyro(name: str, validate: bool) -> None:
    with pyro.validation_enabled(validate):
        expected = stock(BOTH[name])
        for outcome in ours(BOTH[name]):
            assert_same(outcome, expected)
    assert any(bool((g != 0).any()) for g in (expected.gradients or {}).values())


@pytest.mark.parametrize("name", list(BOTH))
def test_the_rule(name: str) -> None:
    assert is_direct(BOTH[name]) == (name in KEEP_THE_RULE)


def test_several_draws_of_a_cluster_in_the_model_go_to_pyro() -> None:
    make = program(partial(drawn_cluster, num_samples=2), amortised)
    with pytest.warns(RuntimeWarning, match="multiply sampled in model"):
        expected = stock(make)
    with pyro.validation_enabled(False):
        assert not is_direct(make)
        for outcome in ours(make):
            assert_same(outcome, expected)


def test_without_the_direct_contraction_all_goes_to_pyro() -> None:
    make = KEEP_THE_RULE["a mixture"]
    for outcome in ours(make, direct=False):
        assert_same(outcome, stock(make))
    foreign = make()
    assert CollapsedELBO(direct=False).evaluate(foreign.model, foreign.guide).terms is None


@pytest.mark.parametrize("name", ["a mixture", "a global latent"])
def test_several_particles_are_averaged(name: str) -> None:
    make = BOTH[name]
    foreign = make()._replace(options={"num_particles": 3})
    assert CollapsedELBO(num_particles=3).evaluate(foreign.model, foreign.guide).terms is None
    for outcome in ours(lambda: foreign):
        assert_same(outcome, stock(lambda: foreign))
