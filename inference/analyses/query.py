"""From a finished fit and a question to an answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from causalpima.inference.analyses.answer import (
    FEW_SAMPLES,
    ModalityAnswer,
    QueryAnswer,
    assumptions_of,
    counterfactual_assumptions,
    warnings_of,
)
from causalpima.inference.analyses.counterfactual import (
    Counterfactual,
    counterfactual_of,
    find_sample,
    predicted_sample,
)
from causalpima.inference.analyses.query_sampling import Estimate, cell_means, estimate, sample_scenario
from causalpima.inference.analyses.scenarios import (
    CellShares,
    GraphSet,
    QuerySource,
    Question,
    Scenario,
    cell_shares,
    check_named,
    effects_given,
    graph_set,
    no_graph,
    read_question,
    scenarios_of,
    thinnest_row,
)
from causalpima.inference.data.multimodal import Axis
from causalpima.inference.data.reading import DataLike
from causalpima.inference.graphs.interventions import Setting, node_marginals
from causalpima.inference.store.text import format_number, printable
from causalpima.models.batch import Modality

__all__ = [
    "QueryOptions",
    "answer_query",
]


_SAME_ANSWER = 0.01


@dataclass(frozen=True)
class QueryOptions:
    """How a question is answered.

    Attributes:
        draws: Draws under the intervention, and of Z for the mean of a modality in a cell.
        seed: Of all that is drawn.
        sampled: Whether draws are returned.
        counterfactual: Name or number of a sample, or None.
        data: New samples that it is one of; None: those of the run.

    Raises:
        ValueError: Less than one draw, or a negative seed.
    """

    draws: int = 1000
    seed: int = 0
    sampled: bool = True
    counterfactual: str | int | None = None
    data: DataLike | None = None

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ValueError(f"draws: expected at least 1, got {self.draws}")
        if self.seed < 0:
            raise ValueError(f"seed: expected an integer >= 0, got {self.seed}")


def answer_query(
    source: QuerySource,
    do: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
    options: QueryOptions | None = None,
) -> QueryAnswer:
    """p(N | do, given) and what it makes of every modality, beside p(N | given) (docs/query.md).

    Args:
        source: The fit.
        do: Outcome by node that is set.
        given: Outcome by node that is conditioned on after that.
        options: How it is answered.

    Raises:
        ValueError: Nodes without a meaning, names that are not there, a condition that cannot come about, no such
            sample.
    """
    chosen = options or QueryOptions()
    check_named(source.summary, "do" if do else "given")
    question = read_question(source.outcomes, do, given)
    _check_counterfactual(question, chosen)
    graphs = graph_set(source.summary, source.given_graph()) if question.do else no_graph(len(source.nodes))
    shares = cell_shares(source, graphs, chosen.seed)
    scenarios = scenarios_of(question, graphs, shares, lambda kind, setting: _label(source, kind, setting))
    counterfactual = _counterfactual(source, question, chosen, graphs, shares)
    thinnest = thinnest_row(question, graphs, shares)
    asked = scenarios.get("do", scenarios["observed"])
    answers = _answers(asked.cells, graphs.weights)
    return QueryAnswer(
        _named(source, question.do),
        _named(source, question.given),
        source.outcomes,
        graphs,
        _nodes(source, scenarios),
        {name: _modality(source, name, scenarios, answers, chosen) for name in source.fitted.modalities},
        answers,
        {name: scenario.label for name, scenario in scenarios.items()},
        tuple(_assumptions(source, question, graphs, thinnest, counterfactual)),
        tuple(_notes(source, question, graphs, thinnest, asked)),
        counterfactual,
        sample_scenario(source, asked, graphs, chosen.draws, chosen.seed) if chosen.sampled else None,
        chosen.seed,
        tuple(warnings_of(source.summary)),
    )


def _check_counterfactual(question: Question, options: QueryOptions) -> None:
    if options.counterfactual is None:
        if options.data is not None:
            raise ValueError("data: expected --counterfactual with new samples, got none; say which sample is meant")
        return
    if not question.do:
        raise ValueError("counterfactual: expected a node that would have been set, got none; name it with --do")
    if question.given:
        raise ValueError("given: expected none beside --counterfactual, which conditions on the sample; leave it out")


def _named(source: QuerySource, setting: Setting) -> dict[str, str]:
    return {source.nodes[node]: source.outcomes[source.nodes[node]][outcome] for node, outcome in setting.items()}


def _label(source: QuerySource, kind: str, setting: Setting) -> str:
    """`do(A=1)`, or `A=1` where it is seen."""
    pairs = ", ".join(f"{printable(node)}={printable(outcome)}" for node, outcome in _named(source, setting).items())
    return f"do({pairs})" if kind == "do" else f"where {pairs}"


def _nodes(source: QuerySource, scenarios: Mapping[str, Scenario]) -> dict[str, dict[str, Estimate]]:
    """Probabilities of the outcomes of every node: indicators of the outcomes are the functions of the cell."""
    found: dict[str, dict[str, Estimate]] = {}
    every = np.eye(int(np.prod(source.sizes))).reshape(-1, *source.sizes)
    for node, indicator in zip(source.nodes, node_marginals(every, len(source.sizes)), strict=True):
        found[node] = {name: estimate(indicator, scenario) for name, scenario in scenarios.items()}
    return found


def _modality(
    source: QuerySource,
    name: str,
    scenarios: Mapping[str, Scenario],
    answers: tuple[tuple[int, ...], ...],
    options: QueryOptions,
) -> ModalityAnswer:
    modality, values = source.fitted.modalities[name], cell_means(source.fitted, name, options.draws, options.seed)
    asked = scenarios.get("do", scenarios["observed"])
    others = [scenarios[key] for key in scenarios if key not in ("do", "seen")] if "do" in scenarios else []
    return ModalityAnswer(
        modality.kind,
        modality.unit,
        _axis(modality),
        source.fitted.config.modality[name].decoder.likelihood == "categorical",
        {key: estimate(values, scenario) for key, scenario in scenarios.items()},
        {f"{asked.label} - {other.label}": estimate(values, asked, other) for other in others},
        np.tensordot(asked.cells[[graphs[0] for graphs in answers]], values, axes=1),
    )


def _axis(modality: Modality) -> Axis | None:
    if modality.positions is None:
        return None
    return Axis(modality.position_name, modality.positions.double().cpu().numpy(), modality.position_unit)


def _answers(cells: np.ndarray, weights: np.ndarray) -> tuple[tuple[int, ...], ...]:
    """Graphs by their answer `[G, C]`: those that differ by less than 0.01 in every cell go together."""
    found: list[list[int]] = []
    for graph in np.argsort(-weights, kind="stable"):
        place = next((same for same in found if np.abs(cells[graph] - cells[same[0]]).max() < _SAME_ANSWER), None)
        if place is None:
            found.append([int(graph)])
        else:
            place.append(int(graph))
    found.sort(key=lambda graphs: -float(weights[graphs].sum()))
    return tuple(map(tuple, found))


def _counterfactual(
    source: QuerySource, question: Question, options: QueryOptions, graphs: GraphSet, shares: CellShares
) -> Counterfactual | None:
    if options.counterfactual is None:
        return None
    if options.data is None:
        sample = find_sample(source, options.counterfactual)
    else:
        sample = predicted_sample(source.fitted, options.data, options.counterfactual, options.draws, options.seed)
    return counterfactual_of(source, sample, question.do, graphs, shares)


def _assumptions(
    source: QuerySource, question: Question, graphs: GraphSet, thinnest: float, found: Counterfactual | None
) -> Iterator[str]:
    yield from assumptions_of(source.summary, graphs if question.do else None, thinnest)
    if found is not None:
        yield from counterfactual_assumptions(found.is_sharp)
        yield from () if found.linear is None else (found.linear.sentence,)


def _notes(
    source: QuerySource, question: Question, graphs: GraphSet, thinnest: float, asked: Scenario
) -> Iterator[str]:
    for node, count in effects_given(question, graphs).items():
        where = "" if count == len(graphs.dags) else f" in {count} of {len(graphs.dags)} graphs"
        yield (
            f"{printable(source.nodes[node])} is an effect of what is set{where}: conditioning on it selects samples "
            "by what the intervention did"
        )
    if question.do and thinnest < FEW_SAMPLES:
        yield (
            f"a table that the answer rests on is known from {format_number(thinnest, 1)} expected samples: beyond "
            "what the data hold, it is the model's guess"
        )
    if not np.isfinite(asked.cells).all():
        yield "undefined (nan): no sample has the combination of causes that the answer would rest on"
    if source.fitted.description.covariate_levels:
        yield f"modalities: the average over {', '.join(source.fitted.description.covariate_levels)} in training"
    yield "modalities: their mean in each cell counts as known; intervals are for p(N)"
