"""What the controls found, line by line, with a verdict and what to do."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np

from inference.checks.check import Checked
from inference.checks.controls import Contribution, Refits
from inference.clusters.stability import STABLE
from inference.results.rates import one_sided_lower, one_sided_upper
from inference.results.text import printable, shorten
from inference.results.verdicts import Line, Verdict, no_better_than

__all__ = ["check_lines"]

_TOLERATED_LOWER, _TOLERATED_UPPER = 0.05, 0.15
_UNSTABLE = 0.7
_FREQUENT, _RARE = 0.9, 0.5
_SIGNIFICANT = 0.01
_CONTRIBUTES = 0.05


def check_lines(found: Checked) -> list[Line]:
    """One line per control; none passes for a fit that collapsed.

    - Rate of false edges: passes where its one-sided 95 % upper limit is at most 15 %; fails where the lower limit is
      above 5 %.
    - Stability of clusters: median adjusted Rand index from 0.9 on passes, below 0.7 fails.
    - An edge of the run: in at least 90 % of the bootstraps it passes, in fewer than half it fails.
    - Modalities: whether they agree on clusters beyond shuffling (p ≤ 0.01), and whether one adds to them.

    Args:
        found: What the controls found.
    """
    limit: Verdict = "passes" if found.run.status == "ok" else "unclear"
    lines = [*_fit(found), *_null(found), *_bootstraps(found), *_modalities(found), *_labels(found)]
    return [Line(line.key, line.name, line.found, no_better_than(limit, line.verdict), line.advice) for line in lines]


def _fit(found: Checked) -> Iterator[Line]:
    if found.run.status != "ok":
        text = f"its status is {found.run.status}: its clusters are no result"
        yield Line("fit", "the fit", text, "fails", "nothing below can be trusted: fit again (--restarts 4)")


def _null(found: Checked) -> Iterator[Line]:
    name = "false edges, nodes independent"
    if found.null is None or found.null.joined is None:
        reason = found.skipped["null"]
        advice = "name them: python -m inference.name RUN" if "unnamed" in reason else ""
        yield Line("false_edges", name, reason, "skipped", advice)
        return
    yield _rate("false_edges", name, np.any(found.null.joined & ~_required(found), axis=(1, 2)))


def _required(found: Checked) -> np.ndarray:
    """Pairs of nodes that are declared to be joined, bool `[L, L]`: there, an edge is no finding."""
    required = found.run.known.required
    return required | required.T


def _rate(key: str, name: str, has_edge: np.ndarray) -> Line:
    number, total = int(has_edge.sum()), len(has_edge)
    upper = one_sided_upper(number, total)
    text = f"an edge in {number} of {total} sets of samples that have none (rate at most {upper:.2f}, 95 %)"
    if one_sided_lower(number, total) > _TOLERATED_LOWER:
        advice = (
            "an edge is weak evidence here: clusters overlap or are wrong; fewer cells, or what separates them better"
        )
        return Line(key, name, text, "fails", advice)
    if upper > _TOLERATED_UPPER:
        return Line(key, name, text, "unclear", "too few repetitions to tell: --repetitions 100")
    return Line(key, name, text, "passes")


def _bootstraps(found: Checked) -> Iterator[Line]:
    for unit, refits in found.bootstraps.items():
        yield _stability(unit, refits)
    if found.edges is None:
        return
    for unit, refits in found.bootstraps.items():
        yield from _edges(found, unit, refits)


def _stability(unit: str, refits: Refits) -> Line:
    median, lowest = float(np.median(refits.ari)), float(refits.ari.min())
    text = (
        f"adjusted Rand index {median:.2f}, lowest {lowest:.2f} ({refits.n_units} drawn again {len(refits.ari)} times)"
    )
    key, name = f"clusters_{unit}", f"clusters, other {printable(unit)}"
    if median >= STABLE:
        return Line(key, name, text, "passes")
    verdict: Verdict = "unclear" if median >= _UNSTABLE else "fails"
    advice = "other samples would give other clusters: fewer cells (python -m inference.explore), or more samples"
    return Line(key, name, text, verdict, advice)


def _edges(found: Checked, unit: str, refits: Refits) -> Iterator[Line]:
    assert found.edges is not None
    assert refits.joined is not None
    frequency, names, required = refits.joined.mean(0), found.run.node_names, _required(found)
    for one, other in combinations(range(len(names)), 2):
        if required[one, other]:
            continue
        pair = f"{shorten(names[one], 11)} — {shorten(names[other], 11)}"
        key, share = f"edge_{unit}_{names[one]}_{names[other]}", float(frequency[one, other])
        if found.edges[one, other]:
            yield _edge(key, f"edge {pair}", unit, share)
        elif share >= _RARE:
            text = f"not joined in the run, but by {100 * share:.0f} % of other {printable(unit)}"
            yield Line(key, f"no edge {pair}", text, "unclear", "the samples do not settle it; take more of them")


def _edge(key: str, name: str, unit: str, share: float) -> Line:
    text = f"joined by {100 * share:.0f} % of other {printable(unit)}"
    if share >= _FREQUENT:
        return Line(key, name, text, "passes")
    verdict: Verdict = "unclear" if share >= _RARE else "fails"
    return Line(key, name, text, verdict, "do not rely on this edge: it depends on which samples there are")


def _modalities(found: Checked) -> Iterator[Line]:
    if found.intact is None:
        yield Line("modalities", "modalities shuffled", found.skipped["modalities"], "skipped")
        return
    yield _shared(found)
    if found.shuffled is not None and found.shuffled.joined is not None:
        wrong: np.ndarray = np.any(found.shuffled.joined & found.run.apart() & ~_required(found), axis=(1, 2))
        yield _rate("false_edges_shuffled", "false edges, modalities shuffled", wrong)
    for name, permuted in found.permuted.items():
        yield _contributes(name, found.intact, permuted)


def _shared(found: Checked) -> Line:
    key, name, shared = "modalities_share", "modalities tell of each other", found.sharing
    if shared is None:
        return Line(key, name, "no two modalities are in ten samples together", "skipped")
    text = (
        f"clusters of single modalities agree with adjusted Rand index {shared.ari:.2f}, shuffled "
        f"{shared.shuffled.mean():.2f} (p = {shared.p_value:.3f})"
    )
    if shared.p_value <= _SIGNIFICANT:
        return Line(key, name, text, "passes")
    advice = "nothing says that the modalities share a feature: are their rows the same samples, in the same order?"
    return Line(key, name, text, "unclear", advice)


def _contributes(name: str, intact: Contribution, permuted: Contribution) -> Line:
    drop = float(intact.ari.mean() - permuted.ari.mean())
    key, title = f"without_{name}", f"{printable(name)} permuted"
    text = f"agreement with the clusters falls from {intact.ari.mean():.2f} to {permuted.ari.mean():.2f}"
    if drop >= _CONTRIBUTES:
        return Line(key, title, text, "passes")
    advice = f"{printable(name)} adds nothing to the clusters; its weight may be too small (docs/fair_weights.md)"
    return Line(key, title, text, "unclear", advice)


def _labels(found: Checked) -> Iterator[Line]:
    if found.labels is None:
        yield Line("labels", "labels permuted", found.skipped["labels"], "skipped")
        return
    labels = found.labels
    text = (
        f"{100 * labels.share:.0f} % of {labels.n_labelled} labels agree with the clusters that they name, permuted "
        f"labels {100 * labels.permuted.mean():.0f} % (p = {labels.p_value:.3f})"
    )
    if labels.p_value <= _SIGNIFICANT:
        yield Line("labels", "labels permuted", text, "passes")
        return
    advice = "the labels have nothing to do with the clusters: the names that they give mean nothing"
    yield Line("labels", "labels permuted", text, "fails", advice)
