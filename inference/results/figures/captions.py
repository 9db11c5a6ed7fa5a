"""What a reader is told beside each figure, by the name of its file."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

__all__ = ["Caption", "caption", "caption_order"]


class Caption(NamedTuple):
    """Where a figure belongs in a report, its title and its caption."""

    section: str
    title: str
    text: str


_CAPTIONS = {
    "latent_clusters": Caption(
        "clusters",
        "Latent space by cluster",
        "Each dot is a sample, coloured by its most probable cell; outlines are two standard deviations of the "
        "Gaussians of the model.",
    ),
    "latent_factors": Caption(
        "clusters",
        "Latent space by known factor",
        "The same dots, coloured by what is known about the samples. Clusters were found without "
        "these values, unless labels of --observe took part in the training; such labels may have named the clusters.",
    ),
    "nearest_samples": Caption(
        "appearance",
        "Nearest sample",
        "For each cell, the measured sample of that cell that lies nearest to its mean in the latent space.",
    ),
    "decoded_means": Caption(
        "appearance",
        "Decoded mean",
        "What the decoder makes of the mean of each cell.",
    ),
    "curves": Caption(
        "appearance",
        "Curves by cluster",
        "Measured curves of each cell, the curve that the model gives the cell (the physical law with the 95 % "
        "interval of its parameters, given the clusters; else the decoded mean), and two standard deviations of single "
        "curves about it: noise, and what varies within the cell.",
    ),
    "outcomes": Caption(
        "nodes",
        "What changes with a node",
        "Decoded means for each outcome of a node, averaged over the other nodes with the same weights, and how they "
        "differ from the first.",
    ),
    "variance_explained": Caption(
        "nodes",
        "Variance explained",
        "How much of the variance of every modality lies between the outcomes of every node, and between all cells.",
    ),
    "designed": Caption(
        "designed",
        "Effect of a designed node",
        "Means of the measured samples for each outcome that the experimenter set, and how they differ from the first, "
        "with 95 % intervals.",
    ),
    "node_factors": Caption(
        "scores",
        "Nodes and known factors",
        "What every node tells of every known factor; outlined are the nodes that stand for one, above chance.",
    ),
    "reliability": Caption(
        "scores",
        "Reliability",
        "How often the most probable cell is right, against the probability that q(N|X) gives it.",
    ),
    "missing": Caption(
        "data",
        "What is missing where",
        "A column for each sample, or for neighbours, in a row for each modality: blue is there, grey are elements "
        "that a measurement lacks, orange are samples without it.",
    ),
    "restart_agreement": Caption(
        "restarts",
        "Agreement of the starts",
        "Adjusted Rand index of the clusters of every pair of starts (1: the same), the clearest start first, and the "
        "mean entropy of q(N|X) of each.",
    ),
    "graph": Caption(
        "graph",
        "Graph over the nodes",
        "Where all nodes have a meaning, the equivalence class of an exact search, or the graph that interventions "
        "tell: an arrow where the direction is identified, else a line, with the mutual information of the two nodes "
        "under p(N). Of nodes without a meaning, there is none.",
    ),
    "conditionals": Caption(
        "graph",
        "Conditional probabilities",
        "How each node is distributed on its own, and given each outcome of each other node.",
    ),
    "check": Caption(
        "checks",
        "Negative controls",
        "How often edges are found where there are none, and how far clusters and edges stay the same when samples are "
        "drawn again (inference.check).",
    ),
    "k_hat": Caption(
        "checks",
        "k-hat",
        "How well q(Z|X) covers the posterior of every sample: below 0.7 importance weights can be trusted "
        "(inference.diagnose).",
    ),
    "predictive": Caption(
        "checks",
        "Predictive check",
        "What was measured, beside what the fit expects of such samples (inference.diagnose).",
    ),
    "rank_plots": Caption(
        "checks",
        "Rank plots",
        "Ranks of the draws of each start among those of all: even where all found the same (inference.diagnose).",
    ),
    "mcmc_ranks": Caption(
        "checks",
        "Ranks of the chains",
        "Ranks of the draws of each chain among those of all: even where the chains agree (inference.mcmc).",
    ),
    "mcmc_edges": Caption(
        "checks",
        "Edges by several routes",
        "Probability of every edge by the chains, beside the exact posterior (inference.mcmc).",
    ),
    "query": Caption(
        "checks",
        "Query",
        "What would happen if nodes were set, beside what was observed (inference.query).",
    ),
    "edge_probabilities": Caption(
        "graph",
        "Probabilities of edges",
        "Posterior probability of every edge, row to column, and how far it depends on the score (inference.graph).",
    ),
    "objective": Caption(
        "fit",
        "Course of the fit",
        "The objective and its terms over the epochs, the effective number of mixture components, the temperature "
        "of the graph, and the decoder variance.",
    ),
}


def caption(path: Path) -> Caption:
    """Caption of a figure; one that is not known goes to the end under the name of its file."""
    for name, known in _CAPTIONS.items():
        if path.stem == name:
            return known
        if path.stem.startswith(f"{name}_"):
            return known._replace(title=f"{known.title}: {path.stem.removeprefix(f'{name}_')}")
    return Caption("other", path.stem.replace("_", " "), "")


def caption_order(path: Path) -> tuple[int, str]:
    """Sorts figures as a reader meets them: by kind, then by the name of the file."""
    for place, name in enumerate(_CAPTIONS):
        if path.stem == name or path.stem.startswith(f"{name}_"):
            return place, path.stem
    return len(_CAPTIONS), path.stem
