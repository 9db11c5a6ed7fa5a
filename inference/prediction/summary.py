"""A short account of a prediction, for machines and for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from inference.prediction.predict import PredictionOptions
from inference.prediction.samples import RunSamples

__all__ = ["prediction_table", "summarise_prediction"]

_MOST_SHOWN = 5


def summarise_prediction(
    samples: RunSamples, log_likelihood: np.ndarray, options: PredictionOptions, output: str
) -> dict[str, Any]:
    """Counts, and the least likely samples.

    Args:
        samples: The samples.
        log_likelihood: log p(x), `[sample]`; NaN for samples without any modality.
        options: How the prediction was computed.
        output: The file that was written.
    """
    known = np.isfinite(log_likelihood)
    names = samples.data.sample_names
    least = [int(row) for row in np.argsort(np.where(known, log_likelihood, np.inf))[:_MOST_SHOWN] if known[row]]
    return {
        "output": output,
        "n_samples": samples.n_samples,
        "present": {name: int(mask.sum()) for name, mask in samples.present.items()},
        "draws": options.draws,
        "seed": options.seed,
        "interval": options.interval,
        "log_likelihood": {
            "median": float(np.median(log_likelihood[known])) if known.any() else None,
            "least": [
                {"sample": str(row) if names is None else str(names[row]), "value": float(log_likelihood[row])}
                for row in least
            ],
        },
        "notes": list(samples.notes),
    }


def prediction_table(summary: Mapping[str, Any]) -> str:
    """Lines for people."""
    present = ", ".join(f"{name} {count}" for name, count in summary["present"].items())
    likelihood = summary["log_likelihood"]
    lines = [f"{summary['n_samples']} samples; with {present}"]
    if likelihood["median"] is not None:
        least = ", ".join(f"{entry['sample']} ({entry['value']:.1f})" for entry in likelihood["least"])
        lines.append(f"log-likelihood: median {likelihood['median']:.1f} nats; lowest {least}")
    return "\n".join([*lines, summary["output"]])
