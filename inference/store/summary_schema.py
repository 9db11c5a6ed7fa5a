"""What stands in `summary.json`: the kinds of its entries, as every reader counts on them.

The types are read by mypy, by `checked_summary`, and by `json_schema`, which `docs/summary.schema.json` is written by:
`python -m causalpima.inference.store.summary_schema docs/summary.schema.json`.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec

from causalpima.inference.store.files import write_text

__all__ = [
    "MissingEntryError",
    "Summary",
    "check_facts",
    "checked_summary",
    "json_schema",
]


Count = Annotated[int, msgspec.Meta(ge=0)]
"""How many there are."""
Size = Annotated[int, msgspec.Meta(ge=1)]
"""Of what cannot be empty."""
Number = float | None
"""Null where it is NaN or infinite, or not known."""
Table = list[list[Number]]
"""`[row][column]`; of edges, the row is the cause."""
Graph = list[list[Literal[0, 1]]]
"""A row and a column per node, 1 for an edge from row to column; both ways where the direction is open."""
Pairs = list[Annotated[list[str], msgspec.Meta(min_length=2, max_length=2)]]
"""Pairs of nodes."""


class Variance(TypedDict, total=False):
    """Of the Gaussian decoder of a modality, in squared units of the data; null where the likelihood has none."""

    training: Number
    reported: Number


class Axis(TypedDict, total=False):
    """What the positions of a curve are."""

    name: str | None
    unit: str | None


class Estimate(TypedDict, total=False):
    """A parameter of a law in a cluster: least squares with its 95 % interval."""

    value: Number
    standard_error: Number
    lower: Number
    upper: Number
    unit: str | None
    status: str
    effective_samples: Number


class Modality(TypedDict, total=False):
    """One kind of measurement, and how it was modelled."""

    shape: list[Size]
    kind: str | None
    unit: str | None
    present: Count
    missing_elements: Number
    likelihood: str
    transform: str
    decoder_variance: Variance
    axis: Axis
    physics: dict[str, dict[str, Estimate]]
    """By cluster and parameter."""


class Bound(TypedDict, total=False):
    """Nats per sample, with the standard error over samples."""

    per_sample: Number
    standard_error: Number


class HeldOut(Bound, total=False):
    """log p(x) of samples that were not trained on, by importance sampling."""

    n_samples: Count | None
    n_draws: Count | None
    split: str
    collapsed_bound: Bound | None


class LatentPrior(HeldOut, total=False):
    """The same under a prior without clusters, before clusters were read out."""

    name: str | None


class Objective(TypedDict, total=False):
    """The bound that was maximised: its best value over epochs, in nats."""

    name: str
    value: Number
    per_sample: Number
    split: str | None
    kl_weight: float
    latent_prior: LatentPrior


class Clusters(TypedDict, total=False):
    """How many clusters there are, and how clearly samples belong to them."""

    n_requested: Size
    n_occupied: Count
    effective_number: Number
    sizes: list[Count]
    n_groups: list[Count] | None
    entropy: Number
    uncertainty_coefficient: Number


class Withheld(TypedDict, total=False):
    """Nodes that would have been named, and why they were not."""

    nodes: list[str]
    reason: str


class EquivalentGraphs(TypedDict, total=False):
    """A class of graphs, `behind_nats` of BIC behind the best."""

    cpdag: Graph
    behind_nats: Number
    probability: Number


_Class = TypedDict("_Class", {"class": Graph}, total=False)  # a word of the language, no name of a field


class LabellingDetails(_Class, total=False):
    """What the source of the names says of them: labels, environments, read-outs or independence."""

    variables: dict[str, str]
    n_labelled: Count
    n_labelled_by_node: dict[str, Count]
    n_groups: Count
    groups_without_label: list[str]
    gap: Number
    unsettled_groups: list[str]
    left_out_agreement: dict[str, float]
    no_better_than_chance: list[str]
    levels_without_label: dict[str, list[str]]
    withheld: Withheld
    n_remaining: Count
    targets: dict[str, str]
    known_targets: list[str]
    target_probability: dict[str, dict[str, float]]
    kind: str
    samples: dict[str, Count]
    graph: Graph
    edge_probability: Table
    compelled_probability: Table
    graph_gap: Number
    labelling_gap: Number
    n_searched: dict[str, Count]
    classes: list[EquivalentGraphs]
    read_outs: list[str]
    n_read_outs: Count
    is_refuted: bool
    residual: Number
    noise: Number
    runner_up_residual: Number
    total_correlation: Number
    runner_up_total_correlation: Number
    chance_limit: Number
    window: float
    clusters: list[Count]
    """Of names: the number that every cluster had before."""


class Labelling(TypedDict, total=False):
    """Where the meaning of the clusters comes from, and of which nodes."""

    source: str
    named_nodes: list[str]
    details: LabellingDetails
    joint: list[Any]
    """p(N) that the source told, `[C_1, ..., C_L]`."""
    environment_joint: dict[str, list[Any]]


class Identifiability(TypedDict, total=False):
    """How many label assignments fit equally well, and which nodes are identified."""

    identified_nodes: list[str]
    is_named: bool
    equivalent_labellings: Count | None
    at_least: Count
    reason: str
    suggestions: list[str]
    before: dict[str, Any]


class EquivalenceClass(TypedDict, total=False):
    """The best class of graphs by exact search on the likelihood of the mixture."""

    cpdag: Graph
    node_names: list[str]
    gap_nats: Number
    near: list[EquivalentGraphs]
    score: str
    n_samples: Count
    n_independent: Number


class EdgeTables(TypedDict, total=False):
    """Probabilities of edges."""

    edge_probability: Table
    compelled_probability: Table


class Sensitivity(TypedDict, total=False):
    """Posteriors by several scores, and the pairs on which they disagree."""

    scores: dict[str, EdgeTables]
    changes: Pairs


class GraphPosterior(TypedDict, total=False):
    """How probable every edge and class of graphs is."""

    nodes: list[str]
    edge_probability: Table
    adjacency_probability: Table
    compelled_probability: Table
    cpdag: Graph
    score: str
    equivalent_sample_size: Number
    log_marginal_likelihood: Number
    classes: list[EquivalentGraphs]
    n_classes: Count
    method: str
    n_samples: Count
    n_independent: Number
    too_few_samples: Pairs
    knowledge: dict[str, list[str]]
    sensitivity: Sensitivity | None
    diagnostics: dict[str, Any]


class LinearModel(TypedDict, total=False):
    """The linear structural equation model over the nodes."""

    strength: Table
    adjacency: Graph
    threshold: float
    acyclicity: Number
    label_fit: dict[str, Number]
    ordered_levels: list[str]


class Posthoc(TypedDict, total=False):
    """What a classical learner finds on the nodes."""

    method: str
    settings: str
    node_names: list[str]
    cpdag: list[list[int]]
    conflicts: Pairs
    n_samples: Count


class Variational(TypedDict, total=False):
    """q(edge) of a guide over graphs."""

    edge_probability: Table
    prior: dict[str, Any]


class FoundGraph(TypedDict, total=False):
    """The graph that was trained along, and, where nodes have a meaning, the ones to believe."""

    node_names: list[str]
    edge_strength: Table
    adjacency: Graph
    log_joint: list[Any]
    mutual_information: Table
    temperature: Number
    equivalent_labellings: Count | None
    given: list[str]
    variational: Variational
    linear_scm: LinearModel
    equivalence_class: EquivalenceClass
    posterior: GraphPosterior
    posthoc: Posthoc
    posthoc_left_out: dict[str, str]


class Explained(TypedDict, total=False):
    """Shares of the variance of a modality: by every node alone, named at random, and by all clusters together."""

    nodes: dict[str, float]
    random_labelling: dict[str, float]
    all_cells: Number


class Calibration(TypedDict, total=False):
    """Expected calibration error of q(N|X), and what it would be if q(N|X) were right."""

    ece: Number
    ece_equal_mass: Number
    ece_if_calibrated: Number
    ece_95_if_calibrated: Number
    confidence: list[Number]
    accuracy: list[Number]
    count: list[Count]


class FactorScores(TypedDict, total=False):
    """The clusters against one known factor."""

    n_samples: Count
    n_levels: Count
    accuracy: Number
    guess: float
    cluster_accuracy: Number
    nmi: Number
    ari: Number
    calibration: Calibration | None


class RandomLabelling(TypedDict, total=False):
    """The same clusters with their categories named at random."""

    mean: Number
    worst: Number
    node_accuracy: dict[str, Number]


class ScoredGraph(TypedDict, total=False):
    """A graph against the truth."""

    cpdag: Graph
    shd: Number
    skeleton_f1: Number
    v_structure_f1: Number
    orientation: Number
    bic_gap: Number
    n_tied: Count
    n_classes: Count


class GraphScores(TypedDict, total=False):
    """Graphs after the best assignment of nodes to factors, which uses the truth."""

    true_cpdag: Graph
    edge_strength: ScoredGraph | None
    exact_search: ScoredGraph | None
    random_labelling: dict[str, Number] | None
    joint_kl: dict[str, Number] | None


class Evaluation(TypedDict, total=False):
    """Scores against known factors."""

    factors: dict[str, FactorScores]
    cluster_accuracy: Number
    nmi: Number
    ari: Number
    node_accuracy: dict[str, Number]
    node_accuracy_mean: Number
    node_accuracy_worst: Number
    random_labelling_baseline: RandomLabelling | None
    named_accuracy: dict[str, Number]
    named_accuracy_worst: Number
    named_accuracy_random: Number
    bayes_ceiling: Number
    split: str
    n_samples: Count
    assignment: dict[str, str | None]
    node_names: list[str]
    factor_levels: dict[str, list[str]]
    node_factor_nmi: Table
    node_factor_accuracy: Table
    disentanglement: dict[str, Any] | None
    calibration: Calibration | None
    cpdag_shd: Number
    graph: GraphScores | None


class Agreement(TypedDict, total=False):
    """How far the other starts found what the kept one did: means."""

    n_compared: Count
    ari: Number
    nodes: dict[str, Number]


class EdgeFrequency(TypedDict, total=False):
    """Share of the starts whose best class of graphs has an edge."""

    n_graphs: Count
    directed: Table
    joined: Table


class Restarts(TypedDict, total=False):
    """Several starts of one fit."""

    n: Size
    mode: str
    chosen: Count | None
    statuses: list[str]
    entropies: list[Number]
    n_occupied: list[Count]
    seconds: list[Number]
    ari: Table
    near_tied: Any
    disagreeing: Any
    agreement: Agreement | None
    edge_frequency: EdgeFrequency | None
    cluster_accuracies: list[Number]


class DesignedEffect(TypedDict, total=False):
    """What a designed node does to a modality: differences to its first category."""

    n_samples: list[Count]
    n_independent: list[Count]
    explained: float
    p_value: float
    n_permutations: Count
    standardised_difference: list[Any]
    mean: list[Any]
    standard_error: list[Any]
    difference: list[Any]
    lower: list[Any]
    upper: list[Any]


class DesignedNode(TypedDict, total=False):
    """A node that the experimenter set."""

    variable: str | None
    n_labelled: Count
    n_training: Count
    n_groups: Count | None
    outcomes: list[str]
    modalities: dict[str, DesignedEffect]


class Environments(TypedDict, total=False):
    """Samples under interventions."""

    n_besides_observational: Count
    kind: str


class FitVerdict(TypedDict, total=False):
    """`clear`, `doubtful` or `failed`, and a sentence for everything that speaks against the fit."""

    state: str
    reasons: list[str]


class Summary(TypedDict, total=False):
    """`summary.json`. Runs of earlier versions lack entries; who needs one that is not there is told so."""

    causalpima_format: int
    dataset: str
    seed: int
    status: str
    reason: str
    verdict: FitVerdict
    n_samples: Count
    modalities: dict[str, Modality]
    nodes: Annotated[dict[str, Size], msgspec.Meta(max_length=64)]
    objective: Objective
    epochs: Count
    seconds: dict[str, Number]
    clusters: Clusters
    labelling: Labelling
    identifiability: Identifiability
    graph: FoundGraph
    variance_explained: dict[str, Explained]
    held_out_log_likelihood: HeldOut | None
    environments: Environments
    designed: dict[str, DesignedNode]
    evaluation: Evaluation
    restarts: Restarts
    versions: dict[str, str]
    checksums: dict[str, str]
    fingerprint: str
    """Of one of several starts: that of its settings and data."""
    output_dir: str


_ALWAYS, _OF_RESULTS = ("status", "dataset", "nodes", "modalities"), ("clusters", "graph")


_OF_POSTERIOR = ("edge_probability", "adjacency_probability", "compelled_probability", "cpdag")


class MissingEntryError(ValueError, KeyError):
    """An entry of a run's file is not there; the message is one line, and names file and entry."""

    def __str__(self) -> str:
        return str(self.args[0])


class _Entries(dict[str, Any]):
    """Entries by name that were read from a file: one that is missing is no fault of the program, and says so."""

    def __init__(self, entries: Mapping[str, Any], place: str) -> None:
        super().__init__({name: _with_place(entry, f"{place}/{name}") for name, entry in entries.items()})
        self._place = place

    def __missing__(self, name: object) -> Any:
        raise MissingEntryError(f"{self._place}: expected an entry {name}, got none; fit again")


def _with_place(value: Any, place: str) -> Any:
    if isinstance(value, Mapping):
        return _Entries(value, place)
    return [_with_place(entry, place) for entry in value] if isinstance(value, list) else value


def checked_summary(content: Any, place: str) -> dict[str, Any]:
    """A summary whose entries are of the kinds that readers count on; ones that no reader knows may be anything.

    Entries of the schema may be missing, as in runs of earlier versions: who needs one gets a `MissingEntryError`.

    Args:
        content: What `summary.json` holds.
        place: The file, for messages.

    Raises:
        ValueError: An entry is of another kind, or does not go with the others; the message says which.
    """
    _check(content, Summary)
    needed = (*_ALWAYS, *(() if content.get("status") == "diverged" else _OF_RESULTS))
    missing = [name for name in needed if name not in content]
    if missing:
        raise ValueError(f"expected an entry {', '.join(missing)}, got none")
    _check_sizes(content)
    return _Entries(content, place)


def json_schema() -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of `summary.json`."""
    (reference,), components = msgspec.json.schema_components([Summary], ref_template="#/$defs/{name}")
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **reference, "$defs": components}


class _KnowledgeFacts(TypedDict, total=False):
    tiers: list[list[str]]
    forbid: list[str]
    require: list[str]
    designed: list[str]


class _GraphFacts(TypedDict, total=False):
    temperature_end: float
    edge_rate: float


class _ConfigFacts(TypedDict, total=False):
    graph: _GraphFacts
    knowledge: _KnowledgeFacts


class _Facts(TypedDict, total=False):
    config: _ConfigFacts


def check_facts(facts: Any) -> None:
    """Refuse what cannot be the attribute `facts` of a `posterior.nc`.

    Raises:
        ValueError: An entry is of another kind; the message says which.
    """
    _check(facts, _Facts)


def _check(content: Any, kind: Any) -> None:
    try:
        msgspec.convert(content, kind)
    except msgspec.ValidationError as error:
        what, _, where = str(error).partition(" - at ")
        path = re.sub(r"[`$]", "", where).lstrip(".")
        said = what[:1].lower() + what[1:].replace("`", "")
        raise ValueError(f"{path}: {said}" if path else said) from error


def _check_sizes(summary: Mapping[str, Any]) -> None:
    """That tables have a row and a column per node, and names stand for nodes."""
    nodes, graph = list(summary["nodes"]), summary.get("graph", {})
    if graph.get("node_names", nodes) != nodes:
        raise ValueError(f"graph/node_names: expected the nodes {', '.join(nodes)}, got {graph['node_names']}")
    posterior = graph.get("posterior") or {}
    tables = {f"graph/{name}": graph.get(name) for name in ("edge_strength", "adjacency", "mutual_information")}
    tables |= {f"graph/posterior/{name}": posterior.get(name) for name in _OF_POSTERIOR}
    tables["graph/equivalence_class/cpdag"] = (graph.get("equivalence_class") or {}).get("cpdag")
    classes = enumerate(posterior.get("classes") or ())
    tables |= {f"graph/posterior/classes/{rank}": found.get("cpdag") for rank, found in classes}
    for name, table in tables.items():
        if table is not None and [len(row) for row in table] != [len(nodes)] * len(nodes):
            raise ValueError(f"{name}: expected a row and a column for each of {len(nodes)} nodes, got another table")
    identified = (summary.get("identifiability") or {}).get("identified_nodes", [])
    named = (summary.get("labelling") or {}).get("named_nodes") or []
    strange = sorted({*identified, *named} - set(nodes))
    if strange:
        raise ValueError(f"expected names of nodes, {', '.join(nodes)}, got {strange[0]!r}")


def main(argv: list[str]) -> int:
    """Write the JSON Schema to the file that is named."""
    write_text(Path(argv[0]), json.dumps(json_schema(), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
