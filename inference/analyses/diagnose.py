"""All diagnostics of a finished run, from its folder."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from causalpima.inference.analyses.log_evidence import log_evidence
from causalpima.inference.analyses.predictive import Predictive, predictive_checks
from causalpima.inference.clusters.clustering import UNCLEAR_ENTROPY, collapse_reason, occupied
from causalpima.inference.clusters.stability import STABLE
from causalpima.inference.data.multimodal import MultimodalData, sample_subset
from causalpima.inference.findings.chains import ChainFindings
from causalpima.inference.findings.clusters import calibrations
from causalpima.inference.findings.collect import standard_error
from causalpima.inference.findings.names import variable_names
from causalpima.inference.findings.pareto import K_LIMIT, psis_khat
from causalpima.inference.findings.verdicts import (
    FEW_SCORED,
    Finding,
    Line,
    Verdict,
    counts,
    no_better_than,
    verdict_table,
    worst,
)
from causalpima.inference.graphs.chains import Chains
from causalpima.inference.store.arviz import convergence, loo
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.text import printable
from causalpima.inference.training.fitted_run import FittedRun

__all__ = [
    "Diagnosis",
    "FoundRun",
    "calibration",
    "chains",
    "clusters",
    "decoder_variances",
    "diagnose",
    "dimension_information",
    "fresh_bound",
    "held_out",
    "invariants",
    "k_hat",
    "latent_dimensions",
    "loo_per_modality",
    "read_chains",
    "split_of_draws",
    "starts",
]


# The fit as such: status, empty clusters, how clear clusters are, noise that training could not learn.


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


# Several starts: how far they agree, and whether what can be compared mixes.


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


# Markov chains of `python -m inference.mcmc`: whether they agree with each other and are long enough.


def read_chains(file: Path) -> ChainFindings | None:
    """What `python -m inference.mcmc` left, without the sampled sites; None where it was not run.

    Args:
        file: `mcmc.nc` of the run.

    Raises:
        ValueError: The file can't be read, or is another one.
    """
    if not file.exists():
        return None
    tree = read_posterior(file, file.parent)
    try:
        posterior, stats = tree["posterior"].dataset, tree["sample_stats"].dataset
        chains = Chains(
            cell_probability=posterior["cell_probability"].to_numpy(),
            edge=posterior["edge"].to_numpy(),
            log_density=stats["lp"].to_numpy(),
            energy=stats["energy"].to_numpy(),
            diverging=stats["diverging"].to_numpy().astype(bool),
            step_size=stats["step_size"].to_numpy()[:, 0],
            draws={},
        )
        nodes, cells = (tuple(map(str, posterior[name].to_numpy())) for name in ("node_from", "cell"))
        program = json.loads(tree.attrs["facts"])["program"]
    except KeyError as error:
        raise ValueError(
            f"{file}: expected the chains of python -m inference.mcmc, got a file without {error}; run it again"
        ) from error
    return ChainFindings(nodes, cells, chains, program == "hodge")


def chains(found: ChainFindings | None) -> Finding:
    """Lines and numbers of the chains, as `inference.mcmc` itself has them (docs/mcmc.md).

    Args:
        found: The chains, or None.
    """
    if found is None:
        return Finding.skipped(
            "mcmc",
            "chains (NUTS)",
            "no chains were there when this was run",
            "python -m inference.mcmc RUN, then this again",
        )
    lines = tuple(replace(line, key=f"mcmc_{line.key}", name=f"chains: {line.name}") for line in found.lines())
    keys = ("r_hat", "ess", "n_divergent", "e_bfmi", "n_chains", "n_draws")
    return Finding(lines, {"mcmc": {key: value for key, value in found.to_plain().items() if key in keys}})


# How much every dimension of Z tells of a sample.
#
# $$\frac{1}{n} \sum_n \mathrm{KL}\big(N(\mu_{nj}, \sigma_{nj}^2)\,\|\,N(m_j, v_j)\big)
# = \tfrac12 \log v_j - \tfrac1n \sum_n \log \sigma_{nj}, \qquad
# v_j = \mathrm{var}_n \mu_{nj} + \overline{\sigma_{nj}^2}$$
#
# with the Gaussian whose moments are those of all samples together: the mean of $(\sigma^2 + (\mu - m)^2) / v$ is 1 and
# cancels with the last term of the divergence.


_UNUSED = 0.05


def dimension_information(loc: np.ndarray, scale: np.ndarray) -> np.ndarray:
    """Mean divergence of every dimension from all samples together, in nats, `[J]`; 0 where a dimension tells nothing.

    Args:
        loc: Means of q(Z|X), `[n, J]`.
        scale: Standard deviations, `[n, J]`.
    """
    loc, scale = loc.astype(np.float64), scale.astype(np.float64)
    information: np.ndarray = np.log(loc.var(0) + np.square(scale).mean(0)) / 2 - np.log(scale).mean(0)
    return information


def latent_dimensions(posterior: xr.DataTree, block_dim: int | None = None) -> Finding:
    """Dimensions that are used; none is what posterior collapse looks like.

    Args:
        posterior: As `read_posterior` reads it.
        block_dim: Dimension of the blocks that Z consists of, of nodes or modalities; None: it is one block.
    """
    variational = posterior["variational"].dataset
    found = dimension_information(variational["latent_loc"].to_numpy(), variational["latent_scale"].to_numpy())
    unused = int((found < _UNUSED).sum())
    told = ", ".join(f"{value:.2f}" for value in found[:6]) + (", ..." if len(found) > 6 else "")
    text = f"{len(found) - unused} of {len(found)} used ({told} nats)"
    is_used = (found >= _UNUSED).reshape(-1, block_dim or len(found))
    return Finding((_line(text, is_used),), {"latent_information": found.tolist()})


def _line(text: str, is_used: np.ndarray) -> Line:
    """The verdict on dimensions by block, bool `[blocks, block_dim]`."""
    key, name, most, size = "latent", "latent dimensions", int(is_used.sum(1).max()), is_used.shape[1]
    if not most:
        advice = "the encoders tell nothing of the samples: longer --pretraining.epochs, lower decoder.variance_floor"
        return Line(key, name, text, "fails", advice)
    if most < size:
        return Line(key, name, text, "unclear", f"--model.latent_dim {most} would do")
    if not is_used.all():
        advice = f"some blocks of Z tell less than others, which need all {size}: leave --model.latent_dim as it is"
        return Line(key, name, text, "unclear", advice)
    return Line(key, name, text, "passes")


# Whether q(Z|X) is near the posterior, sample by sample; and how well held-out samples are predicted.


_FEW, _MANY = 0.05, 0.3
_FEWEST_DRAWS = 25
_FEWEST_SAMPLES = 20
_MOST_UNRELIABLE = 0.1
_CLEARLY = 3.0

_TOO_FEW = "fewer than 25 draws in posterior.nc"


def _log_weight(posterior: xr.DataTree) -> np.ndarray:
    """Of the kept start, `[draw, sample]`."""
    weight: np.ndarray = posterior["sample_stats"].dataset["log_weight"].to_numpy()[0].astype(np.float64)
    return weight


def k_hat(posterior: xr.DataTree) -> Finding:
    """PSIS k-hat of log p(x, z) - log q(z|x) for every sample that has draws.

    R-hat and effective sample size of draws from a guide say nothing: they are independent, of whatever distribution.

    Args:
        posterior: As `read_posterior` reads it.
    """
    weight, name = _log_weight(posterior), "guide, k-hat"
    if len(weight) < _FEWEST_DRAWS:
        return Finding.skipped("k_hat", name, _TOO_FEW)
    values = psis_khat(weight)
    share = float((values > K_LIMIT).mean())
    text = f"above {K_LIMIT} in {100 * share:.0f} % of {len(values)} samples (median {np.median(values):.2f})"
    entry = {
        "share_above": share,
        "limit": K_LIMIT,
        "median": float(np.median(values)),
        "n_draws": len(weight),
        "samples": posterior["sample_stats"].dataset["sample_id"].to_numpy().tolist(),
        "values": values.tolist(),
    }
    return Finding((_k_hat_line(name, text, share),), {"k_hat": entry})


def _k_hat_line(name: str, text: str, share: float) -> Line:
    if share <= _FEW:
        return Line("k_hat", name, text, "passes")
    verdict: Verdict = "unclear" if share <= _MANY else "fails"
    advice = (
        "q(Z|X) is not the posterior of the reported model there: bounds of log p(x) are too low; a lower "
        "decoder.variance_floor if the noise is at it, else train longer"
    )
    return Line("k_hat", name, text, verdict, advice)


def split_of_draws(posterior: xr.DataTree) -> np.ndarray:
    """Split of the samples that have draws, `[sample]` of str."""
    constant, samples = posterior["constant_data"].dataset, posterior["sample_stats"].dataset["sample_id"].to_numpy()
    return constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()][samples]


def held_out(posterior: xr.DataTree, summary: Mapping[str, Any], fresh: Mapping[str, Any] | None = None) -> Finding:
    """The importance-weighted bound of held-out log p(x), beside the same of training samples.

    Args:
        posterior: As `read_posterior` reads it.
        summary: The summary of the run, with `held_out_log_likelihood`.
        fresh: The bound with more draws, in the same form; None: that of the summary.
    """
    name, found = "held-out log p(x)", fresh or summary.get("held_out_log_likelihood")
    if found is None:
        advice = "hold some out: --training.validation_fraction 0.1; or python -m inference.diagnose RUN --folds 5"
        return Finding.skipped("held_out", name, "no samples, or groups, were held out", advice)
    text = f"bound {found['per_sample']:.2f} ± {found['standard_error']:.2f} nats per sample ({found['n_draws']} draws)"
    train, deviation, n_train = _training_bound(posterior)
    values: dict[str, Any] = {"held_out_log_likelihood": {**found, "training": train}}
    if train is None:
        return Finding((Line("held_out", name, text, "passes"),), values)
    # The error of a fit that is as good on new samples: those of the held-out ones, where a few that it gets wrong
    # have a spread of their own, would excuse them.
    error = deviation * np.sqrt(1 / n_train + 1 / _n_held_out(posterior, found))
    excess = (train - found["per_sample"]) / float(error)
    return Finding((_held_out_line(name, f"{text}; training samples {train:.2f}", excess),), values)


def _training_bound(posterior: xr.DataTree) -> tuple[float | None, float, int]:
    """Mean and deviation of the training samples with draws, and how many are independent; None of under twenty."""
    is_train = split_of_draws(posterior) == "train"
    weight = _log_weight(posterior)[:, is_train]
    if weight.shape[1] < _FEWEST_SAMPLES:
        return None, 0.0, 0
    bound = np.logaddexp.reduce(weight, axis=0) - np.log(len(weight))
    samples = posterior["sample_stats"].dataset["sample_id"].to_numpy()[is_train]
    return float(bound.mean()), float(bound.std(ddof=1)), _n_independent(posterior, samples)


def _n_held_out(posterior: xr.DataTree, found: Mapping[str, Any]) -> int:
    """How many of the held-out samples are independent."""
    constant = posterior["constant_data"].dataset
    split = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()]
    rows = np.flatnonzero(split == found.get("split"))
    return _n_independent(posterior, rows) if len(rows) else int(found["n_samples"])


def _n_independent(posterior: xr.DataTree, samples: np.ndarray) -> int:
    """Groups of replicates among these samples, else the samples themselves."""
    constant = posterior["constant_data"].dataset
    return len(np.unique(constant["group"].to_numpy()[samples])) if "group" in constant else len(samples)


def _held_out_line(name: str, text: str, excess: float) -> Line:
    if excess <= _CLEARLY:
        return Line("held_out", name, text, "passes")
    advice = "the fit is better on samples that it was trained on: fewer epochs, smaller networks, or more samples"
    return Line("held_out", name, f"{text}, higher by {excess:.0f} standard errors", "unclear", advice)


def loo_per_modality(posterior: xr.DataTree, summary: Mapping[str, Any]) -> Finding:
    """`loo` of log p(x_m | z, N), given the z of the sample itself: no estimate of how new samples are predicted.

    Args:
        posterior: As `read_posterior` reads it.
        summary: For the names of the modalities.
    """
    group = posterior["log_likelihood"].dataset
    lines, values = [], {}
    for name, variable in variable_names(summary["modalities"]).items():
        draws = group[variable].to_numpy()[:1] if variable in group else np.empty((1, 0, 0))
        title = f"loo of {printable(name)} given z"
        if draws.shape[1] < _FEWEST_DRAWS or not np.isfinite(draws).all():
            lines.append(Line(f"loo_{name}", title, _TOO_FEW, "skipped"))
            continue
        found = loo(draws)
        unreliable = float((found.pareto_k > K_LIMIT).mean())
        values[name] = {
            "elpd": found.elpd,
            "standard_error": found.standard_error,
            "p": found.p,
            "share_k_above": unreliable,
            "n_samples": draws.shape[-1],
            "conditional_on": "z",
        }
        lines.append(_loo_line(f"loo_{name}", title, values[name]))
    return Finding(tuple(lines), {"loo": values})


def _loo_line(key: str, title: str, found: Mapping[str, Any]) -> Line:
    text = (
        f"elpd {found['elpd']:.1f} ± {found['standard_error']:.1f} nats over {found['n_samples']} samples, conditional "
        f"on z: no estimate of generalisation; Pareto k above {K_LIMIT} in {100 * found['share_k_above']:.0f} %"
    )
    if found["share_k_above"] <= _MOST_UNRELIABLE:
        return Line(key, title, text, "passes")
    return Line(key, title, text, "unclear", "do not use this number; held-out log p(x) is what to compare fits by")


@dataclass(frozen=True)
class FoundRun:
    """What a finished run left.

    Attributes:
        fitted: Model and guide.
        posterior: As `read_posterior` reads it.
        summary: Its summary.
        chains_file: `mcmc.nc`, which need not be there; None where there is no folder.
    """

    fitted: FittedRun
    posterior: xr.DataTree
    summary: Mapping[str, Any]
    chains_file: Path | None = None


@dataclass(frozen=True)
class Diagnosis:
    """What the diagnostics found (docs/diagnose.md).

    Attributes:
        lines: One or more lines per diagnostic.
        values: Plain values by key.
        predictive: Checks per modality, for figures.
        ranks: What chains or starts are compared by, `[chain, draw]` by name; empty where there is one of them.
    """

    lines: tuple[Line, ...]
    values: Mapping[str, Any]
    predictive: Mapping[str, Predictive]
    ranks: Mapping[str, np.ndarray]

    @property
    def verdict(self) -> str:
        """The worst of all lines."""
        return worst(line.verdict for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, as `--json` writes them."""
        return {"verdict": self.verdict, "lines": [line.to_plain() for line in self.lines], **self.values}

    def text(self) -> str:
        """The table for a terminal."""
        return "\n".join([f"Diagnostics: {counts(self.lines)}.", "", verdict_table(self.lines)])

    def write_figures(self, folder: Path | str) -> list[Path]:
        """Write `k_hat.png`, `predictive_MODALITY.png` and `rank_plots.png`, of what there is.

        Raises:
            OutputError: The disk is full, or the folder can't be written to.
        """
        from causalpima.inference.analyses.diagnostic_figures import write_diagnostic_figures

        return write_diagnostic_figures(self, folder)


def diagnose(run: FoundRun, fresh: Mapping[str, Any] | None = None, folds: Finding | None = None) -> Diagnosis:
    """Run every diagnostic that there is something for.

    Args:
        run: The run.
        fresh: The bound of held-out log p(x) with more draws (`fresh_bound`), or None.
        folds: What refits without parts of the samples found, or None.
    """
    posterior, summary = run.posterior, run.summary
    checks, predictive = predictive_checks(posterior, summary)
    found = [
        clusters(summary),
        calibration(summary),
        latent_dimensions(posterior, run.fitted.config.model.latent_dim),
        decoder_variances(summary, run.fitted),
        k_hat(posterior),
        held_out(posterior, summary, fresh),
        *([folds] if folds is not None else []),
        loo_per_modality(posterior, summary),
        checks,
        starts(posterior),
        chains(None if run.chains_file is None else read_chains(run.chains_file)),
    ]
    limit: Verdict = "passes" if summary["status"] == "ok" else "unclear"
    lines = [
        Line(line.key, line.name, line.found, no_better_than(limit, line.verdict), line.advice)
        for finding in found
        for line in finding.lines
    ]
    values = {key: value for finding in found for key, value in finding.values.items()}
    return Diagnosis(tuple(lines), values, predictive, _ranks(posterior))


def _ranks(posterior: xr.DataTree) -> dict[str, np.ndarray]:
    if "restarts" not in posterior.children or posterior["restarts"].sizes["chain"] < 2:
        return {}
    found = invariants(posterior)
    shares = found.pop("shares of the clusters")
    return {**found, **{f"share of cluster {k + 1}": shares[..., k] for k in range(min(shares.shape[-1], 8))}}


def fresh_bound(run: FoundRun, data: MultimodalData, draws: int, seed: int) -> dict[str, Any] | None:
    """The importance-weighted bound with more draws than posterior.nc has, over all held-out samples.

    Args:
        run: The run.
        data: All its samples.
        draws: Draws of Z per sample.
        seed: Of the draws.

    Returns:
        As `held_out_log_likelihood` of a summary; None without held-out samples, or groups.

    Raises:
        ValueError: The samples are not those of the run.
    """
    constant = run.posterior["constant_data"].dataset
    split = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()]
    if data.n_samples != len(split):
        raise ValueError(f"data: expected the {len(split)} samples of the run, got {data.n_samples}; fit again")
    part = "test" if (split == "test").any() else "validation"
    rows = np.flatnonzero(split == part)
    units = rows if data.groups is None else data.groups[rows]
    if len(np.unique(units)) < 2:
        return None
    values = log_evidence(run.fitted, sample_subset(data, rows), draws, seed)
    error = standard_error(values, units)
    return {
        "per_sample": float(values.mean()),
        "standard_error": error,
        "n_samples": len(rows),
        "n_draws": draws,
        "split": part,
    }
