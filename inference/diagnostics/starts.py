"""Several starts: how far they agree, and whether what can be compared mixes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import xarray as xr

from inference.clusters.occupancy import occupied
from inference.clusters.stability import STABLE
from inference.diagnostics.finding import Finding
from inference.results.arviz_compat import convergence
from inference.results.text import printable
from inference.results.verdicts import Line, Verdict

__all__ = ["invariants", "starts"]

_UNSTABLE = 0.7
_MIXED = 1.05


def starts(posterior: xr.DataTree) -> Finding:
    """Agreement of starts; R-hat of what is the same quantity in all of them after their cells are numbered alike.

    Starts are no chains of a sampler: R-hat above 1 says that they differ by more than the guide's own draws, not that
    longer chains would mend it. By how much they differ is what the agreement says, so that it decides.

    Args:
        posterior: As `read_posterior` reads it.
    """
    if "restarts" not in posterior.children:
        advice = "python -m inference.svi ... --restarts 4 (docs/restarts.md)"
        return Finding.skipped("restarts", "several starts", "one start: how far another agrees is not known", advice)
    group = posterior["restarts"].dataset
    chains, ari = group["start_of_chain"].to_numpy().astype(int), group["ari"].to_numpy()
    others = ari[chains[0]][chains[1:]]
    if not len(others):
        return Finding.skipped("restarts", "several starts", "all starts but one failed", "fit again with more of them")
    found = {name: convergence(values) for name, values in invariants(posterior).items()}
    r_hat = {name: _largest(parts[0]) for name, parts in found.items()}
    ess = {name: _smallest(parts[1]) for name, parts in found.items()}
    agreement = _agreement(others, group)
    values = {
        "restarts": {
            "ari": others.tolist(),
            "n": len(ari),
            "node_agreement": group["node_agreement"].to_numpy().tolist(),
        },
        "r_hat": r_hat,
        "ess": ess,
    }
    return Finding((agreement, _mixing(r_hat, agreement.verdict)), values)


def _largest(values: np.ndarray) -> float | None:
    return float(np.nanmax(values)) if np.isfinite(values).any() else None


def _smallest(values: np.ndarray) -> float | None:
    return float(np.nanmin(values)) if np.isfinite(values).any() else None


def _agreement(others: np.ndarray, group: xr.Dataset) -> Line:
    median, lowest = float(np.median(others)), float(others.min())
    nodes = group["node_agreement"].to_numpy()[1:].min(0)
    named = ", ".join(f"{printable(n)} {v:.2f}" for n, v in zip(group["node"].to_numpy(), nodes, strict=True))
    text = f"{len(others)} others agree with the kept one with adjusted Rand index {median:.2f}, lowest {lowest:.2f}"
    text = f"{text}; least share of samples with the same outcome: {named}"
    if lowest >= STABLE:
        return Line("restarts", "several starts", text, "passes")
    verdict: Verdict = "unclear" if median >= _UNSTABLE else "fails"
    return Line(
        "restarts", "several starts", text, verdict, "these data do not tell which clusters are right: fewer cells"
    )


def _mixing(r_hat: Mapping[str, float | None], agreement: Verdict) -> Line:
    known = {name: value for name, value in r_hat.items() if value is not None}
    name = "R-hat over starts"
    if not known:
        return Line("r_hat", name, "nothing that starts have in common varies", "skipped")
    text = ", ".join(f"{printable(key)} {value:.2f}" for key, value in known.items())
    if max(known.values()) <= _MIXED:
        return Line("r_hat", name, text, agreement)
    if agreement == "passes":
        return Line(
            "r_hat", name, text, "unclear", "starts agree on clusters; in these they differ by more than their draws"
        )
    return Line("r_hat", name, text, agreement, "starts found different solutions: read the line on several starts")


def invariants(posterior: xr.DataTree) -> dict[str, np.ndarray]:
    """What does not depend on names or on the latent space of a start, `[chain, draw, ...]`.

    Mean log-likelihood of every modality over the samples that have it, mean log p(x, z) - log q(z|x), and the share of
    samples in every cell that is occupied.

    Args:
        posterior: As `read_posterior` reads it.
    """
    found = {"log_weight": posterior["sample_stats"].dataset["log_weight"].to_numpy().mean(-1)}
    for variable, values in posterior["log_likelihood"].dataset.variables.items():
        if values.dims[:2] == ("chain", "draw") and "sum_of" not in values.attrs:
            found[f"log_likelihood {variable}"] = values.to_numpy().mean(-1)
    return {**found, "shares of the clusters": _shares(posterior)}


def _shares(posterior: xr.DataTree) -> np.ndarray:
    nodes = posterior["posterior"].dataset["N"].to_numpy()
    joint = posterior["variational"].dataset["log_joint"]
    cells = np.ravel_multi_index(tuple(np.moveaxis(nodes, -1, 0)), joint.shape)
    shares = np.stack([(cells == cell).mean(-1) for cell in range(joint.size)], axis=-1)
    return shares[..., occupied(shares.mean((0, 1)) * cells.shape[-1])]
