"""The fit as such: status, empty clusters, how clear clusters are, noise that training could not learn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from inference.clusters.choice import UNCLEAR_ENTROPY
from inference.clusters.occupancy import collapse_reason
from inference.diagnostics.finding import Finding
from inference.results.calibration_findings import calibrations
from inference.results.text import printable
from inference.results.verdicts import FEW_SCORED, Line, Verdict, worst
from inference.training.fitted_run import FittedRun

__all__ = ["calibration", "clusters", "decoder_variances"]

_FAR_OVERLAPPING = 5 * UNCLEAR_ENTROPY
_MOST_FACTORS = 8
_AT_FLOOR = 1.01

Summary = Mapping[str, Any]


def clusters(summary: Summary) -> Finding:
    """Status, occupied clusters, and the entropy of q(N|X).

    Args:
        summary: The summary of the run.
    """
    found = summary["clusters"]
    kept = {key: found[key] for key in ("n_requested", "n_occupied", "entropy")}
    lines = (_status(summary), _occupied(found), _entropy(found))
    return Finding(lines, {"status": summary["status"], "clusters": kept})


def _status(summary: Summary) -> Line:
    status = str(summary["status"])
    if status == "ok":
        return Line("status", "the fit", "its status is ok", "passes")
    found = summary["clusters"]
    reason = collapse_reason(found["n_requested"], found["n_occupied"], found.get("uncertainty_coefficient"))
    text = f"its status is {status}{f': {reason}' if reason else ''}"
    return Line("status", "the fit", text, "fails", "fit again: --restarts 4, more pretraining, or fewer cells")


def _occupied(found: Summary) -> Line:
    text = f"{found['n_occupied']} of {found['n_requested']} are occupied"
    if found["n_occupied"] == found["n_requested"]:
        return Line("occupied", "clusters", text, "passes")
    verdict: Verdict = "unclear" if 2 * found["n_occupied"] >= found["n_requested"] else "fails"
    return Line("occupied", "clusters", text, verdict, "fewer cells, if no combination is known to be impossible")


def _entropy(found: Summary) -> Line:
    entropy = float(found["entropy"])
    text = f"entropy of q(N|X) {entropy:.3f} nats per sample (clear: up to {UNCLEAR_ENTROPY:g})"
    if entropy <= UNCLEAR_ENTROPY:
        return Line("entropy", "clear clusters", text, "passes")
    verdict: Verdict = "unclear" if entropy <= _FAR_OVERLAPPING else "fails"
    return Line("entropy", "clear clusters", text, verdict, "clusters overlap or are merged: --restarts 4, fewer cells")


def calibration(summary: Summary) -> Finding:
    """Whether q(N|X) says how often it is right, where labels are known, factor by factor (docs/evaluate.md).

    Args:
        summary: The summary of the run.
    """
    name, each = "calibration of q(N|X)", calibrations(summary.get("evaluation"))
    if not each:
        advice = "python -m inference.evaluate RUN --labels TABLE.csv"
        return Finding.skipped("calibration", name, "no label of the samples is known", advice)
    judged = [one for one in each if not one.skipped]
    if not judged:
        advice = f"{FEW_SCORED} or more samples with labels: python -m inference.evaluate RUN --labels TABLE.csv"
        return Finding.skipped("calibration", name, "; ".join(one.skipped for one in each[:_MOST_FACTORS]), advice)
    text = ", ".join(f"{one.factor} {one.error:.3f} ({one.expected:.3f})" for one in judged[:_MOST_FACTORS])
    others = "".join(f"; {one.skipped}" for one in each[:_MOST_FACTORS] if one.skipped)
    text = f"expected calibration error (of a right q): {text}{others}"
    values: dict[str, Any] = {"factors": {one.factor: asdict(one) | {"verdict": one.verdict} for one in each}}
    joint = (summary.get("evaluation") or {}).get("calibration") or {}
    values |= {key: joint[key] for key in ("ece", "ece_if_calibrated") if key in joint}
    verdict = worst(one.verdict for one in judged)
    advice = "" if verdict == "passes" else "probabilities of clusters are not how often they are right: no odds"
    return Finding((Line("calibration", name, text, verdict, advice),), {"calibration": values})


def decoder_variances(summary: Summary, fitted: FittedRun) -> Finding:
    """Whether the variance of a Gaussian decoder stayed at its floor while training.

    Args:
        summary: The summary of the run.
        fitted: For the floors, and the scale on which they are stated.
    """
    found = {
        name: _variance(name, entry["decoder_variance"], fitted)
        for name, entry in summary["modalities"].items()
        if entry["decoder_variance"]["training"] is not None
    }
    values = {name: entry for name, (_, entry) in found.items()}
    return Finding(tuple(line for line, _ in found.values()), {"decoder_variance": values})


def _variance(name: str, variance: Summary, fitted: FittedRun) -> tuple[Line, dict[str, Any]]:
    decoder, scale = fitted.config.modality[name].decoder, fitted.modalities[name].standardisation.scale
    floor = decoder.variance_floor * scale**2
    at_floor = decoder.variance != "fixed" and variance["training"] <= _AT_FLOOR * floor
    values = {**variance, "floor": floor, "at_floor": at_floor}
    key, title = f"variance_{name}", f"noise of {printable(name)}"
    if not at_floor:
        text = f"variance {variance['training']:.3g} while training, above its floor"
        return Line(key, title, text, "passes"), values
    text = (
        f"at its floor while training ({variance['training']:.3g}); the data have {variance['reported']:.3g}, "
        "which is what is reported"
    )
    verdict: Verdict = "passes" if variance["reported"] >= floor / 4 else "unclear"
    advice = f"differences below the floor stay unseen: lower decoder.variance_floor of {printable(name)}"
    return Line(key, title, text, verdict, "" if verdict == "passes" else advice), values
