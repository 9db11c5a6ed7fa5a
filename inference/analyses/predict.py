"""From a finished fit and new samples to clusters, latent positions, predictions of every modality, and likelihoods."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import h5netcdf
import h5py
import numpy as np
import torch
import xarray as xr
from torch import Tensor

from causalpima.inference.analyses.predictive_moments import (
    Drawn,
    Noise,
    all_parts,
    category_probabilities,
    conditional_log_likelihood,
    count_present,
    draw,
    mixture_moments,
    mixture_quantiles,
    one_per_draw,
    responsibilities,
)
from causalpima.inference.analyses.samples import SAMPLE, Layout, RunSamples, Variable, fit_to_run, make_layout
from causalpima.inference.data.formats import is_large, read_file
from causalpima.inference.data.multimodal import MASK_SUFFIX
from causalpima.inference.data.reading import DataLike, as_multimodal
from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.store.files import FORMAT, FORMAT_KEY, write_atomically
from causalpima.inference.store.hdf5 import survives_full_disk
from causalpima.inference.training.fitted_run import FittedRun
from causalpima.inference.training.state import seed_generators, surroundings
from causalpima.models.batch import Batch
from causalpima.models.decoders.base import Decoder

__all__ = [
    "PredictionOptions",
    "blocks",
    "predict",
    "prediction_table",
    "read_samples",
    "summarise_prediction",
    "write_blocks",
    "write_predictions",
]


_ELEMENTS_AT_ONCE = 2**21
_MOST_ROWS = 512


@dataclass(frozen=True)
class PredictionOptions:
    """How a prediction is computed.

    Attributes:
        draws: Draws of Z per sample.
        seed: Seed of the draws.
        interval: Probability of the central predictive interval.

    Raises:
        ValueError: Less than one draw, a negative seed, or a probability that is none.
    """

    draws: int = 100
    seed: int = 0
    interval: float = 0.9

    def __post_init__(self) -> None:
        if self.draws < 1:
            raise ValueError(f"draws: expected at least 1, got {self.draws}")
        if self.seed < 0:
            raise ValueError(f"seed: expected an integer >= 0, got {self.seed}")
        if not 0 < self.interval < 1:
            raise ValueError(f"interval: expected a probability between 0 and 1, got {self.interval}")

    @property
    def tails(self) -> tuple[float, float]:
        """Probabilities of the two ends of the interval."""
        return (1 - self.interval) / 2, (1 + self.interval) / 2


def read_samples(fitted: FittedRun, data: DataLike, options: ReadOptions | None = None) -> RunSamples:
    """New samples in whatever form `fit` takes; of a file, only what the run knows is read.

    Args:
        fitted: The run.
        data: The samples, or the path of a file.
        options: Names of the dimension of the samples, of labels and of the variable of environments, and whether
            modalities are read when needed.

    Raises:
        ValueError: Samples that the run cannot take; one line that names the file and the variable.
    """
    asked = options or ReadOptions()
    if isinstance(data, xr.Dataset | Mapping):
        return _read(fitted, data, asked)
    if not isinstance(data, str | Path):
        return fit_to_run(as_multimodal(data, for_fitting=False, like=fitted.modalities), fitted)
    path = Path(data).expanduser()
    content = read_file(path, asked.in_memory)
    try:
        return _read(fitted, content, asked)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _read(fitted: FittedRun, content: xr.Dataset | Mapping[str, Any], options: ReadOptions) -> RunSamples:
    wanted = _wanted(fitted, content, options)
    samples = fit_to_run(as_multimodal(content, wanted, for_fitting=False, like=fitted.modalities), fitted)
    ignored = _ignored(content, {*wanted.modalities, *wanted.labels, *wanted.covariates, *wanted.environment})
    left_out = [f"left out, since the run does not know them: {', '.join(ignored)}"] if ignored else []
    return dataclasses.replace(samples, notes=(*left_out, *samples.notes, *samples.data.notes))


def _ignored(content: xr.Dataset | Mapping[str, Any], used: set[str]) -> list[str]:
    """Variables of no role that play no part: neither used, nor masks of those that are."""
    if isinstance(content, xr.Dataset):
        there = [str(name) for name, values in content.data_vars.items() if "role" not in values.attrs]
    else:
        there = [name for name in content if name != "sample"]
    return [name for name in there if name not in used and name.removesuffix(MASK_SUFFIX) not in used]


def _wanted(fitted: FittedRun, content: xr.Dataset | Mapping[str, Any], options: ReadOptions) -> ReadOptions:
    there = [str(name) for name in (content.variables if isinstance(content, xr.Dataset) else content)]
    modalities = tuple(name for name in fitted.modalities if name in there)
    if not modalities:
        raise ValueError(f"expected a variable of the run ({', '.join(fitted.modalities)}), got {', '.join(there)}")
    return ReadOptions(
        sample_dim=options.sample_dim,
        modalities=modalities,
        labels=options.labels,
        covariates=tuple(name for name in fitted.description.covariate_levels if name in there),
        environment=options.environment,
        kinds={name: fitted.modalities[name].kind for name in modalities},  # type: ignore[misc]
        in_memory="no" if isinstance(content, xr.Dataset) and is_large(content, options.in_memory) else "yes",
    )


def predict(fitted: FittedRun, samples: RunSamples, options: PredictionOptions | None = None) -> xr.Dataset:
    """All that the fit says of new samples, in memory (docs/predict.md).

    Args:
        fitted: The run.
        samples: The samples.
        options: How it is computed.
    """
    chosen = options or PredictionOptions()
    layout = make_layout(fitted, samples, _attributes(fitted, chosen))
    arrays = {v.name: _empty(v, layout) for v in layout.variables}
    for rows, block in blocks(fitted, samples, chosen):
        for name, values in layout.arranged(block).items():
            arrays[name][rows] = values
    variables = {v.name: (v.dims, arrays[v.name], dict(v.attributes or {})) for v in layout.variables}
    coordinates = {v.name: (v.dims, v.values, dict(v.attributes or {})) for v in layout.coordinates}
    return xr.Dataset(variables, coordinates, dict(layout.attributes))


def _empty(variable: Variable, layout: Layout) -> np.ndarray:
    if variable.values is not None:
        return variable.values
    return np.full([layout.sizes[dim] for dim in variable.dims], np.nan, dtype=variable.dtype)


def write_predictions(
    fitted: FittedRun, samples: RunSamples, path: Path | str, options: PredictionOptions | None = None
) -> np.ndarray:
    """Write what `predict` returns as netCDF, a block of samples at a time, whole or not at all.

    Args:
        fitted: The run.
        samples: The samples.
        path: The file; an older one is replaced.
        options: How it is computed.

    Returns:
        `log_likelihood`, `[sample]`.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    chosen = options or PredictionOptions()
    layout = make_layout(fitted, samples, _attributes(fitted, chosen))
    evidence = np.full(samples.n_samples, np.nan)

    def counted() -> Iterator[tuple[slice, Mapping[str, np.ndarray]]]:
        for rows, block in blocks(fitted, samples, chosen):
            evidence[rows] = block["log_likelihood"]
            yield rows, layout.arranged(block)

    write_atomically(path, lambda temporary: write_blocks(temporary, layout, counted()))
    return evidence


def _attributes(fitted: FittedRun, options: PredictionOptions) -> dict[str, str | int | float]:
    return {
        FORMAT_KEY: FORMAT,
        "fitted_to": fitted.description.dataset,
        "draws": options.draws,
        "seed": options.seed,
        "interval": options.interval,
    }


def blocks(
    fitted: FittedRun, samples: RunSamples, options: PredictionOptions
) -> Iterator[tuple[slice, dict[str, np.ndarray]]]:
    """The variables of a block of samples at a time, and where the samples stand.

    Args:
        fitted: The run.
        samples: The samples.
        options: How it is computed.
    """
    like = fitted.model.mixture.component_loc
    with surroundings(fitted.device):
        seed_generators(options.seed, fitted.device)
        noise = Noise.make(options.draws, fitted.model)
    size = _rows_at_once(fitted, options.draws)
    for number, (rows, batch) in enumerate(samples.batches(size, like)):
        # Around each block, not the generator: between blocks the process is the caller's.
        with surroundings(fitted.device), torch.no_grad():
            seed_generators(options.seed + number + 1, fitted.device)
            block = _predict_batch(fitted, batch, noise, options)
        yield rows, {name: value.cpu().numpy() for name, value in block.items()}


def _rows_at_once(fitted: FittedRun, draws: int) -> int:
    """So that the values of a modality at all draws (and in all cells, where both matter) stay below a bound."""
    largest = max(_values_per_draw(fitted, cast(Decoder, decoder)) for decoder in fitted.model.decoders.values())
    return max(1, min(_MOST_ROWS, _ELEMENTS_AT_ONCE // (draws * largest)))


def _values_per_draw(fitted: FittedRun, decoder: Decoder) -> int:
    both = decoder.depends_on_cell and decoder.depends_on_latent
    return max(1, decoder.event_shape.numel()) * (fitted.model.mixture.n_cells if both else 1)


def _predict_batch(fitted: FittedRun, batch: Batch, noise: Noise, options: PredictionOptions) -> dict[str, Tensor]:
    drawn = draw(fitted, batch, noise)
    log_evidence = torch.where(count_present(batch) > 0, drawn.log_evidence, torch.nan)
    block = {
        "responsibilities": responsibilities(fitted, batch, drawn),
        "latent_loc": drawn.loc,
        "latent_scale": drawn.scale,
        "log_likelihood": log_evidence,
    }
    for name in fitted.modalities:
        block |= _predict_modality(fitted, name, drawn, batch.covariates, noise, options)
        block[f"{name}_log_likelihood"] = conditional_log_likelihood(fitted, batch, name, log_evidence, noise)
    return block


def _predict_modality(
    fitted: FittedRun,
    name: str,
    drawn: Drawn,
    covariates: Tensor | None,
    noise: Noise,
    options: PredictionOptions,
) -> dict[str, Tensor]:
    model, standardisation = fitted.model, fitted.modalities[name].standardisation
    if fitted.config.modality[name].decoder.likelihood == "categorical":
        return {f"{name}_probability": category_probabilities(all_parts(model, name, drawn, covariates))}
    mean, deviation = mixture_moments(all_parts(model, name, drawn, covariates), standardisation)
    part = one_per_draw(model, name, drawn, covariates, noise)
    lower, upper = mixture_quantiles(part, options.tails, standardisation)
    return {f"{name}_mean": mean, f"{name}_std": deviation, f"{name}_lower": lower, f"{name}_upper": upper}


# A short account of a prediction, for machines and for people.


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


# A netCDF file of predictions, written a block of samples at a time.


_CHUNK_BYTES = 2**18
_ROWS_AT_ONCE = 1024


def write_blocks(path: Path, layout: Layout, blocks: Iterable[tuple[slice, Mapping[str, np.ndarray]]]) -> None:
    """Create a file and fill it.

    Args:
        path: New file.
        layout: Its dimensions and variables.
        blocks: Where samples stand, and the values of all variables that come in blocks.

    Raises:
        OSError: The disk is full.
    """
    with survives_full_disk(path) as raw, h5netcdf.File(raw, "w") as file:
        file.attrs.update(layout.attributes)
        file.dimensions = dict(layout.sizes)
        for variable in (*layout.coordinates, *layout.variables):
            _create(file, variable, layout)
        for rows, block in blocks:
            for name, values in block.items():
                file[name][rows] = values
            raw.check()


def _create(file: h5netcdf.File, variable: Variable, layout: Layout) -> None:
    dtype = h5py.string_dtype() if variable.dtype == "str" else np.dtype(variable.dtype)
    shape = [layout.sizes[dim] for dim in variable.dims]
    is_block = variable.values is None and variable.dims[0] == SAMPLE
    chunks = _chunks(shape, np.dtype(variable.dtype).itemsize) if is_block else None
    fill = np.nan if is_block else None
    created = file.create_variable(variable.name, variable.dims, dtype=dtype, fillvalue=fill, chunks=chunks)
    created.attrs.update(variable.attributes or {})
    if variable.values is not None:
        created[...] = variable.values


def _chunks(shape: list[int], item_bytes: int) -> tuple[int, ...]:
    row_bytes = int(np.prod(shape[1:])) * item_bytes
    return (max(1, min(_ROWS_AT_ONCE, shape[0], _CHUNK_BYTES // row_bytes)), *shape[1:])
