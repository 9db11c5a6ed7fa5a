r"""How far the three objectives are apart on one fitted model: measured, and as theory predicts it.

    python benchmarks/objective_gaps.py runs/circles-001 runs/lattices-001 --json gaps.json

For every held-out sample, with r* of the mean field, γ(z) = p(N | z) and p(z) = p(N | z, X) (docs/objectives.md):

    collapsed - meanfield = E_q KL(r* || p(z))
    collapsed - paper     = E KL(γ(z₁) || γ(z₂)) + E KL(γ(z) || p(z))

The left sides are means of the closed forms of the bounds over draws of z, the same draws for all, with -log q(z) as a
control variate; the right sides are Gauss-Hermite quadrature over a grid of z, which needs Z of two dimensions. Where
no decoder knows the cell, p(z) is γ(z) and the last term is zero. The fit may have been trained with any of the
objectives: the bounds are evaluated on it as it is. Of every run: nats per sample, with standard errors of the draws
and the largest change of the predictions when the order of the quadrature is lowered by a quarter.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from causalpima.guides.encoders import GaussianParameters
from causalpima.inference.analyses.samples import fit_to_run
from causalpima.inference.command_line.run_data import data_of_run
from causalpima.inference.objectives import closed_form, responsibilities
from causalpima.inference.store.posterior_file import read_posterior
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.fitted_run import FittedRun, load_run
from causalpima.inference.training.state import surroundings
from causalpima.models.batch import Batch
from causalpima.models.program import CausalPIMA

__all__ = ["Gaps", "bounds", "gaps", "gaps_of_run", "predicted"]

_PAIRS = ("meanfield", "paper")


@dataclass(frozen=True)
class Gaps:
    """The objectives on one model, nats per sample.

    Attributes:
        trained_with: Objective of the fit.
        n_samples: Held-out samples.
        n_draws: Draws of z per sample.
        bounds: Mean of each bound.
        measured: By the looser bound, how far it is below `collapsed`.
        standard_error: Of `measured`, over draws.
        predicted: The same, by quadrature of the divergences.
        quadrature_error: Largest change of `predicted` with three quarters of the order.
    """

    trained_with: str
    n_samples: int
    n_draws: int
    bounds: Mapping[str, float]
    measured: Mapping[str, float]
    standard_error: Mapping[str, float]
    predicted: Mapping[str, float]
    quadrature_error: float


class _Bounds(NamedTuple):
    """Mean over samples of each bound at each draw, `[draws]`; and of -log q(z) minus the entropy of q."""

    collapsed: Tensor
    meanfield: Tensor
    paper: Tensor
    noise: Tensor

    def gap(self, name: str) -> tuple[float, float]:
        """How far a bound is below `collapsed`, and its standard error; `noise`, of mean 0, is a control variate."""
        apart, noise = self.collapsed - getattr(self, name), self.noise
        slope = torch.cov(torch.stack([apart, noise]))[0, 1] / noise.var()
        rest = apart - slope * noise
        return float(rest.mean()), float(rest.std() / len(rest) ** 0.5)


@torch.no_grad()
def bounds(model: CausalPIMA, posterior: GaussianParameters, batch: Batch, n_draws: int) -> _Bounds:
    """The three bounds at the same draws of z, `[draws]`: means over the samples of the batch."""
    draws = [_at_a_draw(model, posterior, batch) for _ in range(n_draws)]
    return _Bounds(*(torch.stack(values).double() for values in zip(*draws, strict=True)))


def _at_a_draw(model: CausalPIMA, posterior: GaussianParameters, batch: Batch) -> tuple[Tensor, ...]:
    sample = posterior.loc + posterior.scale * torch.randn_like(posterior.loc)
    parts, moments = responsibilities.components(model, batch), (posterior.loc, posterior.scale)
    likelihoods = {name: responsibilities.log_likelihood(model, name, sample, batch) for name in model.decoders}
    free = responsibilities.latent_free_log_likelihood(model, sample, batch)
    found = (
        closed_form.collapsed(sample, *moments, parts, likelihoods),
        closed_form.meanfield(*moments, parts, likelihoods, free),
        closed_form.paper(sample, *moments, parts, likelihoods),
    )
    one, two, three = (terms.total.mean() for terms in found)
    return one, two, three, (found[0].latent_entropy - found[1].latent_entropy).mean()


@torch.no_grad()
def predicted(model: CausalPIMA, posterior: GaussianParameters, batch: Batch, order: int) -> dict[str, float]:
    """The gaps to `collapsed` by quadrature of the divergences, mean over the samples of the batch.

    Args:
        model: The model.
        posterior: q(Z | X) of the samples, with Z of two dimensions.
        batch: The samples.
        order: Nodes of the Gauss-Hermite rule along each dimension.

    Raises:
        ValueError: If Z has another number of dimensions.
    """
    if posterior.loc.shape[-1] != 2:
        raise ValueError(
            f"latent_dim: expected 2, got {posterior.loc.shape[-1]}; the quadrature is over a plane, fit with "
            "--model.latent_dim 2"
        )
    sums = _Sums()
    for weight, noise in _plane(order, posterior.loc):
        sums.add(weight, *_log_posteriors(model, posterior, posterior.loc + posterior.scale * noise, batch))
    log_best = responsibilities.log_responsibilities("meanfield", model, posterior, posterior.loc, batch).double()
    return {"meanfield": float(sums.from_best(log_best).mean()), "paper": float(sums.from_sampled().mean())}


def _log_posteriors(
    model: CausalPIMA, posterior: GaussianParameters, sample: Tensor, batch: Batch
) -> tuple[Tensor, Tensor]:
    """log γ(z) and log p(N | z, X), `[B, K]` each."""
    kinds: tuple[responsibilities.ObjectiveName, ...] = ("paper", "collapsed")
    one, two = (responsibilities.log_responsibilities(kind, model, posterior, sample, batch) for kind in kinds)
    return one.double(), two.double()


class _Sums:
    """Expectations under q(Z | X), summed node by node."""

    def __init__(self) -> None:
        self.gamma: Tensor | float = 0.0
        self.log_gamma: Tensor | float = 0.0
        self.log_exact: Tensor | float = 0.0
        self.negative_entropy: Tensor | float = 0.0
        self.from_exact: Tensor | float = 0.0

    def add(self, weight: float, log_gamma: Tensor, log_exact: Tensor) -> None:
        """Count one node of the rule."""
        gamma = log_gamma.exp()
        self.gamma = self.gamma + weight * gamma
        self.log_gamma = self.log_gamma + weight * log_gamma
        self.log_exact = self.log_exact + weight * log_exact
        self.negative_entropy = self.negative_entropy + weight * (gamma * log_gamma).sum(-1)
        self.from_exact = self.from_exact + weight * (gamma * (log_gamma - log_exact)).sum(-1)

    def from_best(self, log_best: Tensor) -> Tensor:
        """E KL(r* || p(N | z, X)), `[B]`."""
        return (log_best.exp() * (log_best - self.log_exact)).sum(-1)

    def from_sampled(self) -> Tensor:
        """E KL(γ(z₁) || γ(z₂)) + E KL(γ(z) || p(N | z, X)), `[B]`."""
        product = torch.as_tensor(self.gamma) * self.log_gamma
        return self.negative_entropy - product.sum(-1) + self.from_exact


def _plane(order: int, like: Tensor) -> Iterator[tuple[float, Tensor]]:
    """Weights and standard normal nodes `[2]` of the product rule."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(order)
    weights = weights / weights.sum()
    for i in range(order):
        for j in range(order):
            yield float(weights[i] * weights[j]), torch.tensor([nodes[i], nodes[j]]).to(like)


def gaps(fitted: FittedRun, batch: Batch, n_draws: int = 256, order: int = 32, seed: int = 0) -> Gaps:
    """Measured and predicted gaps of a fitted model on samples.

    Args:
        fitted: The run.
        batch: The samples.
        n_draws: Draws of z per sample.
        order: Order of the quadrature.
        seed: Seed of the draws.
    """
    model = fitted.model
    with surroundings(fitted.device):
        torch.manual_seed(seed)
        posterior = _single_gaussian(fitted, batch)
        found = bounds(model, posterior, batch, n_draws)
        fine, coarse = (predicted(model, posterior, batch, n) for n in (order, 3 * order // 4))
    measured = {name: found.gap(name) for name in _PAIRS}
    return Gaps(
        trained_with=fitted.config.objective,
        n_samples=len(batch),
        n_draws=n_draws,
        bounds={name: float(getattr(found, name).mean()) for name in ("collapsed", *_PAIRS)},
        measured={name: mean for name, (mean, _) in measured.items()},
        standard_error={name: error for name, (_, error) in measured.items()},
        predicted=fine,
        quadrature_error=max(abs(fine[name] - coarse[name]) for name in _PAIRS),
    )


def _single_gaussian(fitted: FittedRun, batch: Batch) -> GaussianParameters:
    posterior = fitted.guide.encode(batch)
    if not isinstance(posterior, GaussianParameters):
        raise ValueError(
            f"fusion: expected one whose q(Z | X) is a single Gaussian, got {fitted.config.guide.fusion}; fit with "
            "--guide.fusion poe"
        )
    return posterior


def gaps_of_run(path: Path, n_draws: int = 256, order: int = 32, seed: int = 0) -> Gaps:
    """The gaps of a run on its held-out samples; other runs want another seed of the draws.

    Raises:
        ValueError: It is not finished, names no data, or has Z of other than two dimensions.
    """
    folder, fitted = RunFolder(path), load_run(path)
    data = data_of_run(folder)
    if data is None:
        raise ValueError(f"{path}: expected a run that names its data, got one of the Python call fit; fit it with svi")
    samples = fit_to_run(data, fitted)
    constant = read_posterior(folder.posterior)["constant_data"].dataset
    is_train = constant["split_level"].to_numpy().astype(str)[constant["split"].to_numpy()] == "train"
    _, whole = next(iter(samples.batches(data.n_samples, fitted.model.mixture.component_loc)))
    return gaps(fitted, whole.at(torch.from_numpy(np.flatnonzero(~is_train))), n_draws, order, seed)


def main(argv: Sequence[str] | None = None) -> None:
    """Print a line per run, and write all of them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path)
    parser.add_argument("--draws", type=int, default=256)
    parser.add_argument("--order", type=int, default=32)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args(argv)
    torch.set_num_threads(1)
    found = {}
    for seed, run in enumerate(arguments.runs):
        found[str(run)] = gaps_of_run(run, arguments.draws, arguments.order, seed)
        print(f"{run}: {_line(found[str(run)])}", flush=True)
    if arguments.json is not None:
        arguments.json.write_text(json.dumps({name: asdict(one) for name, one in found.items()}, indent=1))


def _line(found: Gaps) -> str:
    parts = (
        f"collapsed - {name}: {found.measured[name]:.4f} ± {found.standard_error[name]:.4f} measured, "
        f"{found.predicted[name]:.4f} predicted"
        for name in _PAIRS
    )
    return "; ".join(parts)


if __name__ == "__main__":
    main()
