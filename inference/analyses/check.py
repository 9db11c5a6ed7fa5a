"""All controls of a run, one after the other, and what they found."""

from __future__ import annotations

import copy
import textwrap
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from causalpima.inference.analyses.controls import (
    Contribution,
    LabelAgreement,
    Refits,
    Sharing,
    bootstrap,
    contribution,
    edges_not_searched,
    independent_nodes,
    joined,
    permuted_labels,
    sharing,
)
from causalpima.inference.analyses.embedding import (
    EmbeddedRun,
    embedded_run,
    encode_modalities,
    kept_samples,
    unseen_cells,
)
from causalpima.inference.clusters.labels import UNKNOWN
from causalpima.inference.clusters.stability import STABLE
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.findings.verdicts import (
    Line,
    Verdict,
    counts,
    no_better_than,
    one_sided_lower,
    one_sided_upper,
    verdict_table,
    worst,
)
from causalpima.inference.store.text import printable, shorten
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.side_information import observed_labels

__all__ = [
    "CheckResult",
    "Checked",
    "check_embedded",
    "check_lines",
    "check_run",
]


_FEWEST_BATCHES = 5
_SHARE_OF_SHUFFLES = 5


@dataclass(frozen=True)
class Checked:
    """What the controls found.

    Attributes:
        run: What was checked.
        repetitions: Repetitions of resampling.
        seed: Seed.
        skipped: Why a control was left out, by its name: `edges`, `null`, `modalities`, `labels`, `groups`.
        edges: Which nodes the procedure joins in the run's own cells, bool `[L, L]`; None where not searched.
        null: Samples with independent nodes; None where skipped.
        bootstraps: By what is drawn: `samples`, `groups`, or a covariate.
        intact: Several modalities, none permuted: the same procedure on the samples as they are.
        permuted: Each modality permuted against the others.
        shuffled: All modalities shuffled against each other.
        sharing: Whether the modalities tell of each other.
        labels: Permuted labels; None where no labels name the clusters, or they are not known.
        seconds: How long it took.
    """

    run: EmbeddedRun
    repetitions: int
    seed: int
    skipped: Mapping[str, str]
    edges: np.ndarray | None
    null: Refits | None
    bootstraps: Mapping[str, Refits]
    intact: Contribution | None
    permuted: Mapping[str, Contribution]
    shuffled: Contribution | None
    sharing: Sharing | None
    labels: LabelAgreement | None
    seconds: float


def check_embedded(
    run: EmbeddedRun,
    repetitions: int = 20,
    seed: int = 0,
    codes: np.ndarray | None = None,
    done: Callable[[], object] = lambda: None,
) -> Checked:
    """Run every control that the run has data for.

    Args:
        run: The run.
        repetitions: Repetitions of resampling; of shuffles of modalities a fifth of them.
        seed: Seed of everything random.
        codes: Outcomes of the nodes by the labels that name the clusters, `[n, L]`, or None.
        done: Called after every refit.

    Raises:
        ValueError: Numbers out of range.
    """
    if repetitions < 1:
        raise ValueError(f"repetitions: expected at least 1, got {repetitions}")
    began, skipped = time.perf_counter(), _skipped(run, codes)
    edges = "edges" not in skipped
    several = "modalities" not in skipped
    fewer = max(1, repetitions // _SHARE_OF_SHUFFLES)
    return Checked(
        run=run,
        repetitions=repetitions,
        seed=seed,
        skipped=skipped,
        edges=joined(run, run.responsibilities, run.weights) if edges else None,
        null=None if "null" in skipped else independent_nodes(run, repetitions, seed, done),
        bootstraps={name: bootstrap(run, units, repetitions, seed, edges, done) for name, units in _units(run).items()},
        intact=contribution(run, (), 1, seed, False, done) if several else None,
        permuted={name: contribution(run, (name,), fewer, seed, False, done) for name in run.present if several},
        shuffled=contribution(run, tuple(run.present), fewer, seed, edges and run.is_told_once, done)
        if several
        else None,
        sharing=sharing(run, seed) if several else None,
        labels=None
        if codes is None or "labels" in skipped
        else permuted_labels(run.responsibilities, codes, run.outcomes, seed, run.groups),
        seconds=time.perf_counter() - began,
    )


def _skipped(run: EmbeddedRun, codes: np.ndarray | None) -> dict[str, str]:
    reasons = {
        "edges": edges_not_searched(run),
        "null": edges_not_searched(run) or _no_null(run),
        "modalities": _no_shuffles(run),
        "labels": None if codes is not None and (codes != UNKNOWN).any() else "no labels name the clusters",
    }
    return {name: reason for name, reason in reasons.items() if reason is not None}


def _no_null(run: EmbeddedRun) -> str | None:
    unseen = unseen_cells(run)
    if not len(unseen):
        return None
    return f"{len(unseen)} clusters that independent nodes would fill are empty: nobody knows what they look like"


def _no_shuffles(run: EmbeddedRun) -> str | None:
    if len(run.present) < 2:
        return "there is one modality"
    if not run.visible and not run.experts:
        return "the samples of the run are not known, which the encoders would have to see again"
    return None


def _units(run: EmbeddedRun) -> dict[str, np.ndarray | None]:
    """What is drawn: samples, or groups in their place, and covariates of enough levels."""
    first: dict[str, np.ndarray | None] = {"samples": None} if run.groups is None else {"groups": run.groups}
    return first | {name: codes for name, codes in run.batches.items() if len(np.unique(codes)) >= _FEWEST_BATCHES}


# What the controls found, line by line, with a verdict and what to do.


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
    lines = [*_fit(found), *_null(found), *_bootstraps(found), *_modality_lines(found), *_label_lines(found)]
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


def _modality_lines(found: Checked) -> Iterator[Line]:
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


def _label_lines(found: Checked) -> Iterator[Line]:
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


# The result of the checks: a table for people, plain values for machines, a figure.


_WIDTH = 100


@dataclass(frozen=True)
class CheckResult:
    """What came out where nothing can be found, and from other samples (docs/check.md).

    Attributes:
        found: What the controls found.
        lines: One line per control.
    """

    found: Checked
    lines: tuple[Line, ...]

    @classmethod
    def of(cls, found: Checked) -> CheckResult:
        """With the verdicts."""
        return cls(found, tuple(check_lines(found)))

    @property
    def verdict(self) -> str:
        """The worst of all lines."""
        return worst(line.verdict for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them; keys as in docs/check.md."""
        found = self.found
        return {
            "verdict": self.verdict,
            "lines": [line.to_plain() for line in self.lines],
            "n_samples": found.run.n_samples,
            "repetitions": found.repetitions,
            "seed": found.seed,
            "seconds": round(found.seconds, 2),
            "node_names": list(found.run.node_names),
            "skipped": dict(found.skipped),
            "edges": None if found.edges is None else found.edges.astype(int).tolist(),
            "null": _refits(found.null),
            "bootstrap": {name: _refits(refits) for name, refits in found.bootstraps.items()},
            "modalities": _modality_entries(found),
            "labels": _label_entries(found),
        }

    def text(self) -> str:
        """The table for a terminal, at most 100 columns."""
        found = self.found
        head = (
            f"{found.run.n_samples} training samples, {found.repetitions} repetitions, seed {found.seed}: "
            f"{counts(self.lines)} ({found.seconds:.0f} s)."
        )
        note = (
            "Networks are not trained again: what is checked is what clusters and edges make of this embedding. "
            "docs/check.md says what every line means."
        )
        return "\n".join([head, "", verdict_table(self.lines), "", *textwrap.wrap(note, _WIDTH)])

    def write_figures(self, folder: Path | str) -> list[Path]:
        """Write `check.png`: rates of edges and the agreement of clusters.

        Raises:
            OutputError: The disk is full, or the folder can't be written to.
        """
        from causalpima.inference.analyses.check_figures import draw_check
        from causalpima.inference.findings.drawing import figure_style, save_figure
        from causalpima.inference.store.files import make_folder

        with figure_style():
            return [save_figure(draw_check(self.to_dict()), make_folder(folder) / "check.png")]


def _refits(refits: Refits | None) -> dict[str, Any] | None:
    if refits is None:
        return None
    entry: dict[str, Any] = {
        "ari": refits.ari.tolist(),
        "ari_median": float(np.median(refits.ari)),
        "n": refits.n_units,
    }
    if refits.joined is not None:
        entry |= {
            "joined_frequency": refits.joined.mean(0).tolist(),
            "any_edge_rate": float(refits.joined.any((1, 2)).mean()),
        }
    return entry


def _modality_entries(found: Checked) -> dict[str, Any] | None:
    if found.intact is None:
        return None
    shared = found.sharing
    return {
        "intact": _contribution(found.intact),
        "permuted": {name: _contribution(entry) for name, entry in found.permuted.items()},
        "shuffled": _contribution(found.shuffled),
        "share": None
        if shared is None
        else {"ari": shared.ari, "ari_shuffled": float(shared.shuffled.mean()), "p_value": shared.p_value},
    }


def _contribution(entry: Contribution | None) -> Mapping[str, Any] | None:
    return None if entry is None else {"ari": float(entry.ari.mean()), "entropy": float(entry.entropy.mean())}


def _label_entries(found: Checked) -> Mapping[str, Any] | None:
    labels = found.labels
    if labels is None:
        return None
    permuted = float(labels.permuted.mean())
    return {"agreement": labels.share, "permuted": permuted, "p_value": labels.p_value, "n_labelled": labels.n_labelled}


# The checks of a fit: from its file, with its samples where they are known.


def check_run(
    fitted: FittedRun,
    posterior: xr.DataTree,
    summary: Mapping[str, Any],
    data: MultimodalData | None,
    repetitions: int = 20,
    seed: int = 0,
    done: Callable[[], object] = lambda: None,
) -> CheckResult:
    """Run all controls (docs/check.md).

    Args:
        fitted: Model and guide.
        posterior: As `read_posterior` reads it.
        summary: The summary of the run.
        data: The samples of the run; None leaves out what needs them: shuffles of fused modalities, groups, labels.
        repetitions: Repetitions.
        seed: Seed.
        done: Called after every refit.

    Raises:
        ValueError: The samples are not those of the run, or numbers are out of range.
    """
    kept = kept_samples(posterior)
    run = embedded_run(posterior, summary, fitted.config, data)
    if data is not None:
        fusion = copy.deepcopy(fitted.guide.fusion).double().cpu()  # as experts are
        run = embedded_run(posterior, summary, fitted.config, data, encode_modalities(fitted, data, kept), fusion)
    return CheckResult.of(check_embedded(run, repetitions, seed, _codes(fitted, data, kept), done))


def _codes(fitted: FittedRun, data: MultimodalData | None, kept: np.ndarray) -> np.ndarray | None:
    if data is None or not fitted.config.observe.variables:
        return None
    labels = observed_labels(fitted.config, data, kept)
    return None if labels is None else labels.codes[kept]
