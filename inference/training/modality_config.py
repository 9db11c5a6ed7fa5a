"""How one modality enters a fit: encoder, decoder, scaling."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from models.decoders.likelihoods import LikelihoodName
from models.decoders.physics import ParameterSource
from models.decoders.variance import VarianceKind, VariancePer
from models.standardisation import Transform

__all__ = ["DecoderConfig", "EncoderConfig", "ModalityConfig"]


@dataclass(frozen=True)
class EncoderConfig:
    """Encoder of one modality.

    Attributes:
        kind: `mlp` for anything, `convolutional` for images, `curve` for curves, or your own as `module:function`
            (docs/components.md).
        sizes: Widths of the hidden layers, or channels of the convolutions, from X to Z.
    """

    kind: str = "mlp"
    sizes: tuple[int, ...] = (128, 64, 32, 16)


@dataclass(frozen=True)
class DecoderConfig:
    """Decoder of one modality.

    Attributes:
        kind: `mlp` for anything, `convolutional` for images; for curves a physics law: `piecewise_linear`, `linear`,
            `power_law`, `peaks`, `damped_oscillation`, or your own as `module:Class` (docs/physics.md); a network of
            your own as `module:function` (docs/components.md).
        sizes: Widths of the hidden layers, or three channel numbers, from Z to X; of a physics law those behind
            `source` latent.
        per_cell: One output head per cell instead of one on Z alone; not for physics laws.
        likelihood: `normal`, `student_t` (outliers), `bernoulli` (masks), `categorical`, `poisson` or
            `negative_binomial` (counts); physics laws are normal (docs/likelihoods.md).
        source: What the parameters of a physics law come from: a table per `cell`, a network of the `latent`, or
            `both`.
        options: Arguments of a physics law.
        variance: `analytic` (maximises the objective), `learned` by gradient, or `fixed`.
        variance_initial: Variance before the first update (the value, if fixed), in standardised units.
        variance_floor: Smallest variance while training, in standardised units.
        variance_per: What the variance that is reported after training is one number for: every `element` of the
            modality, or the whole `modality`. These four are of the likelihood `normal`.
    """

    kind: str = "mlp"
    sizes: tuple[int, ...] = (16, 32, 64, 128)
    per_cell: bool = False
    likelihood: LikelihoodName = "normal"
    source: ParameterSource = "cell"
    options: dict[str, Any] = field(default_factory=dict)
    variance: VarianceKind = "analytic"
    variance_initial: float = 1.0
    variance_floor: float = 0.05
    variance_per: VariancePer = "element"


@dataclass(frozen=True)
class ModalityConfig:
    """How one modality enters the model.

    Attributes:
        encoder: q(Z | X_m).
        decoder: p(X_m | Z, N).
        standardise: Subtract the mean and divide by the standard deviation of all elements (training split), after the
            transform; by median and median distance where the likelihood is `student_t`; not at all where it is neither
            this nor `normal`.
        transform: `identity`, `log` (positive values over decades) or `asinh` (the same, touching zero).
        transform_knee: Size at which `asinh` turns from linear to logarithmic, in the unit of the data; 0: the 10 %
            quantile of the sizes of the training values.
        weight: Power that the likelihood is raised to: how much the modality counts (docs/fair_weights.md).
    """

    encoder: EncoderConfig = field(default_factory=EncoderConfig)
    decoder: DecoderConfig = field(default_factory=DecoderConfig)
    standardise: bool = True
    transform: Transform = "identity"
    transform_knee: float = 0.0
    weight: float = 1.0
