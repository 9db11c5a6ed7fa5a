"""Names of the files of a run, and of what later commands leave beside them."""

from __future__ import annotations

__all__ = ["LATER", "RESULTS", "WRITTEN"]

# What a run writes, in the order in which `--force` removes it. The configuration is not here: it is replaced in one
# step, so that the folder can be told for a run at every moment.
WRITTEN = (
    "summary.json",
    "posterior.nc",
    "report.html",
    "metrics.jsonl",
    "figures/latent_*.png",
    "figures/nearest_samples_*.png",
    "figures/decoded_means_*.png",
    "figures/curves_*.png",
    "figures/missing.png",
    "figures/outcomes_*.png",
    "figures/traversal_*.png",  # of earlier versions
    "figures/variance_explained.png",
    "figures/designed_*.png",
    "figures/node_factors.png",
    "figures/reliability.png",
    "figures/graph.png",
    "figures/conditionals.png",
    "figures/objective.png",
    "figures/restart_agreement.png",
    "checkpoint/epoch-*",
    "checkpoint/final",
    "checkpoint/unnamed",
    "names/contact_sheet*.png",
    "restarts/[0-9]*",
    "unnamed",
)
# What a result consists of, which a later one of the same run replaces as a whole.
RESULTS = (*WRITTEN[: WRITTEN.index("checkpoint/epoch-*")], "checkpoint/final")
# What later commands leave about a run; `--force` and other names for its clusters make it void.
LATER = (
    "check.json",
    "diagnose.json",
    "evaluate.json",
    "mcmc.json",
    "mcmc.nc",
    "query.json",
    "folds/fold-*.json",
    "figures/check.png",
    "figures/k_hat.png",
    "figures/predictive_*.png",
    "figures/rank_plots.png",
    "figures/mcmc_*.png",
    "figures/query_*.png",
    "figures/edge_probabilities*.png",
)
