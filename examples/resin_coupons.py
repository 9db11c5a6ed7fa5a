"""Printed resin coupons, measured: a photo, a compression and a tension curve each."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from causalpima.inference.data.multimodal import Axis, MultimodalData
from causalpima.inference.training.config import (
    DecoderConfig,
    DistillationConfig,
    EncoderConfig,
    Experiment,
    FitConfig,
    ModalityConfig,
    ModelConfig,
    PretrainingConfig,
    TrainingConfig,
)

__all__ = ["EXPERIMENTS", "STRAIN", "resin_coupons"]

_FILE = Path(__file__).parent / "data" / "resin_coupons" / "resin_coupons.npz"
_PREFIX = {"compression": "comp", "tension": "tens"}
_LEVELS = {
    "resin": (
        "3DResyn Bioflex IPA",
        "3DResyn Bioflex UNW2",
        "Asiga DentaGuide",
        "Asiga DentaGum",
        "FormLabs Silicone IPA",
        "FormLabs Silicone Mix",
        "Liqcreate Biomed",
        "Phrozen AquaGray",
    ),
    "sterilization": ("NS", "EtOH", "Autoclave"),
    "type": ("Rigid", "Soft"),
}
_PLATES = 3
_SHRINKS = (1, 2, 3, 4, 6, 8, 12)


def _squared_steps(first: float, last: float) -> np.ndarray:
    return np.linspace(first**0.5, last**0.5, 100) ** 2


# Rigid resins are measured to strains of about 0.1, soft ones to 0.4 or 1.9: steps grow with the strain, so that both
# have a dozen points at least. Each position was reached by some coupon.
STRAIN: Mapping[str, np.ndarray] = {
    "compression": _squared_steps(2e-4, 0.39),
    "tension": _squared_steps(1e-3, 1.9),
}
"""Nominal strain at which curves are given, no unit, `[100]` each."""


def resin_coupons(seed: int = 0, shrink: int = 1) -> MultimodalData:
    """144 coupons of eight printed resins, sterilised in three ways (Liao et al., Scientific Data 2025; MIT licence).

    The tests went to a load, so the curves begin and end at strains of their own. All are interpolated linearly onto
    the strains `STRAIN`; positions outside of what was measured on a coupon are not observed. Nine coupons lack a curve
    (eight the tension, one the compression) and are used with what they have. Stresses span two to four decades; below
    about 0.05 MPa their scatter is that of the machine, above it is proportional to the stress, so that
    asinh(stress / 0.05 MPa) has nearly the same scatter everywhere.

    Photo and test pieces of a row share resin, sterilisation and plate, but are different pieces: the two rows of a
    plate could be paired either way and are one group. Resins and sterilisations are crossed by design, each pair six
    times: between them there is no edge.

    Args:
        seed: Plays no part: the data are measured.
        shrink: Average the photos over squares of so many pixels (1, 2, 3, 4, 6, 8 or 12).

    Returns:
        Modalities `image`, `[144, 72 / shrink, 96 / shrink, 3]` in [0, 1], `compression` and `tension`, nominal stress
        in MPa; factors resin, sterilization (NS is not sterilised) and type; groups and names.

    Raises:
        ValueError: If `shrink` is none of these.
    """
    if shrink not in _SHRINKS:
        raise ValueError(f"shrink: expected one of {', '.join(map(str, _SHRINKS))}, got {shrink}; choose one of these")
    with np.load(_FILE, allow_pickle=False) as archive:
        table = {name: archive[name] for name in archive.files}
    curves = {name: _on_grid(STRAIN[name], *_columns(table, name)) for name in _PREFIX}
    factors = {name: _codes(table[name], levels) for name, levels in _LEVELS.items()}
    present = {
        "image": np.ones(len(table["image"]), dtype=bool),
        **{name: table[f"has_{_PREFIX[name]}"] for name in _PREFIX},
    }
    image = _block_means(table["image"] / np.float32(255), shrink)
    return MultimodalData(
        name="resin_coupons",
        modalities={"image": image, **{name: stress for name, (stress, _) in curves.items()}},
        present=present,
        kinds={"image": "image", "compression": "curve", "tension": "curve"},
        factors=factors,
        factor_levels=_LEVELS,
        observed={name: seen for name, (_, seen) in curves.items()},
        axes={name: Axis("strain", strain) for name, strain in STRAIN.items()},
        units=dict.fromkeys(STRAIN, "MPa"),
        groups=_groups(table, factors),
        sample_names=_names(table),
    )


def _columns(table: Mapping[str, np.ndarray], name: str) -> tuple[np.ndarray, np.ndarray]:
    return table[f"{_PREFIX[name]}_strain"], table[f"{_PREFIX[name]}_stress"]


def _groups(table: Mapping[str, np.ndarray], factors: Mapping[str, np.ndarray]) -> np.ndarray:
    printed = factors["resin"] * len(_LEVELS["sterilization"]) + factors["sterilization"]
    return printed * _PLATES + table["plate"] - 1


def _on_grid(grid: np.ndarray, strain: np.ndarray, stress: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Stress on the grid, and where it was measured, `[sample, position]` each; rows of NaN were measured nowhere."""
    observed = (grid >= strain[:, :1]) & (grid <= strain[:, -1:])
    values = np.stack([np.interp(grid, *row) for row in zip(strain, stress, strict=True)])
    return np.where(observed, values, 0.0).astype(np.float32), observed


def _codes(names: np.ndarray, levels: tuple[str, ...]) -> np.ndarray:
    return np.array([levels.index(name) for name in names])


def _block_means(images: np.ndarray, shrink: int) -> np.ndarray:
    n_samples, height, width, channels = images.shape
    blocks = images.reshape(n_samples, height // shrink, shrink, width // shrink, shrink, channels)
    return blocks.mean(axis=(2, 4), dtype=np.float32)


def _names(table: Mapping[str, np.ndarray]) -> np.ndarray:
    columns = (table[name] for name in ("resin", "sterilization", "plate", "index"))
    return np.array(
        [f"{resin}, {how}, plate {plate}, index {index}" for resin, how, plate, index in zip(*columns, strict=True)]
    )


# Scatter of replicates: 0.004 MPa below, 7 % above.
_IMAGE = ModalityConfig(EncoderConfig(sizes=(64, 32)), DecoderConfig(sizes=(32, 64)))
_STRESS = dataclasses.replace(_IMAGE, transform="asinh", transform_knee=0.05)
# Stress = C (strain / 0.05)ⁿ, with C and n from Z: coupons of one resin differ more than one law per cell allows. At a
# strain within the data C and n are nearly independent; at 1, the default, gradient steps hardly get along their ridge.
_LAW = DecoderConfig("power_law", (32,), source="latent", options={"reference": 0.05})
_COMPRESSION = dataclasses.replace(_STRESS, decoder=_LAW)
_CONFIG = FitConfig(
    nodes={"N1": 8},
    model=ModelConfig(latent_dim=2, likelihood_scaling="dimension"),
    pretraining=PretrainingConfig(epochs=100, kl_warmup=100),
    training=TrainingConfig(epochs=20, batch_size=16),
    distillation=DistillationConfig(epochs=20),
    modality={"image": _IMAGE, "compression": _COMPRESSION, "tension": _STRESS},
)

EXPERIMENTS: Mapping[str, Experiment] = {"resin_coupons": Experiment(resin_coupons, _CONFIG, {"shrink": 4})}
