"""What is undetermined of the nodes of a finished fit: the report before it, recounted with what it found."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from inference.clusters.choice import TOO_UNCLEAR_ENTROPY
from inference.clusters.occupancy import fit_status, mean_entropy
from inference.identifiability.found_levels import recount_found
from inference.identifiability.identify import identify_known
from inference.identifiability.recount import Recount
from inference.identifiability.report import IdentifiabilityReport
from inference.identifiability.side_information import SideInformation

__all__ = ["claimed", "identification", "unclear"]

_MOST_SUGGESTED = 3


def identification(
    known: SideInformation, labelling: Mapping[str, Any] | None, cells: np.ndarray, levels: Sequence[np.ndarray]
) -> dict[str, Any]:
    """The entry `identifiability` of a summary.

    Environments, read-outs and independence leave the labellings that their own search could not tell from the best;
    everything else is counted with the cells that occur and the levels that the modalities tell apart. The modality
    that sees all, where there is no mask, tells the cells apart as well as they are. Labels too few to settle the
    outcomes of their node count as none.

    Clusters that collapsed identify nothing, whatever labels or names say of them; clusters that are not clean
    (`unclear`) identify nothing but what labels or names say.

    Args:
        known: Nodes and side information.
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`), or None.
        cells: q(N|X), `[n, C]`.
        levels: Under a mask, per modality, the posterior of its levels given it alone; else empty.
    """
    before, settled = identify_known(known), _settled(known, labelling)
    if settled != known:
        return {**identification(settled, labelling, cells, levels), "before": before.to_dict()}
    named = tuple((labelling or {}).get("named_nodes", ()))
    remaining = ((labelling or {}).get("details") or {}).get("n_remaining")
    if reason := unclear(cells, (labelling or {}).get("source", "none")):
        return _entry(before, Recount(None, 1, reason), ())
    if remaining is not None and (named or remaining > 1):
        found = Recount(remaining, remaining) if named else Recount(None, remaining)
        return _entry(before, found, named)
    visible = known.visible_positions
    found = recount_found(
        known.outcomes, visible, cells, levels if levels else [cells], labelled=known.positions(known.labels)
    )
    return _entry(before, found, _identified(before, found))


def unclear(cells: np.ndarray, source: str = "none") -> str:
    """Why clusters are too unclear for anything to be said of nodes; empty where they are not.

    What people say of clusters by names and labels holds for overlapping ones, too, as long as they are there.

    Args:
        cells: q(N|X), `[n, C]`.
        source: Where the meaning of the cells comes from.
    """
    if fit_status(cells) != "ok":
        return "the clusters collapsed"
    if source not in ("labels", "names") and (entropy := mean_entropy(cells)) > TOO_UNCLEAR_ENTROPY:
        return f"the clusters are not clean: mean entropy {entropy:.2f} nats, more than {TOO_UNCLEAR_ENTROPY}"
    return ""


def claimed(labelling: Mapping[str, Any], identifiability: Mapping[str, Any], cells: np.ndarray) -> dict[str, Any]:
    """The entry `labelling` of a summary: nodes named are those that `identification` identifies, no other.

    Where clusters are `unclear`, `details.withheld` has the nodes that would have been named, and the reason.

    Args:
        labelling: Where the meaning of the cells comes from (`Labelling.to_plain`).
        identifiability: That of `identification`.
        cells: q(N|X), `[n, C]`.
    """
    told = list(labelling["named_nodes"])
    named = [name for name in told if name in identifiability["identified_nodes"]]
    reason = "" if labelling["source"] == "none" else unclear(cells, labelling["source"])
    withheld = {"withheld": {"nodes": told, "reason": reason}} if reason else {}
    return {**labelling, "named_nodes": named, "details": {**labelling["details"], **withheld}}


def _settled(known: SideInformation, labelling: Mapping[str, Any] | None) -> SideInformation:
    """What is known, without labels that are too few to settle the outcomes of their node."""
    if labelling is None or labelling["source"] != "labels":
        return known
    return replace(known, labels=tuple(name for name in known.labels if name in labelling["named_nodes"]))


def _identified(before: IdentifiabilityReport, found: Recount) -> tuple[str, ...]:
    """Those of before, as long as the fit found what was presupposed; else those that have labels."""
    if found.count is not None and found.count == before.equivalent_labellings:
        return before.identified_nodes
    return before.known.names if found.count == 1 else tuple(before.known.labels)


def _entry(before: IdentifiabilityReport, found: Recount, identified: Sequence[str]) -> dict[str, Any]:
    names = before.known.names
    is_named = set(identified) == set(names)
    return {
        "equivalent_labellings": found.count,
        "at_least": found.at_least,
        "reason": found.reason,
        "identified_nodes": [name for name in names if name in identified],
        "is_named": is_named,
        "suggestions": [] if is_named else [s.text for s in before.suggestions[:_MOST_SUGGESTED]],
        "before": before.to_dict(),
    }
