"""Data sets as files for `--data` and `--config`: the handwritten digits of ../shared, and any as a single vector.

    python benchmarks/data_files.py --dataset mfeat --file mfeat.nc
    python benchmarks/data_files.py --dataset lattices --seed 3 --one_vector --file lattices-3.nc
    python -m inference.svi --data mfeat.nc --config mfeat.yaml

Beside FILE.nc with the samples, FILE.yaml has the settings of the experiment. `mfeat`: six feature views of 2000 digits
(benchmarks/shared_data.py). `--one_vector` is for methods that know a single modality: every modality with the
transform of the experiment, of mean 0 and variance 1 over its measured elements, one after the other; elements that
were not measured are missing. Where every modality counts alike in the experiment (`likelihood_scaling: dimension`),
each is divided by the root of its number of elements, too. `--labels` keeps these factors alone, so that scores are of
these: the resins of resin_coupons are not to be found together with how they were sterilised.
"""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr
import yaml
from multimodal import views_config
from shared_data import MFEAT_VIEWS, mfeat

from causalpima.inference.command_line.flags import DATASETS
from causalpima.inference.data.multimodal import MultimodalData
from causalpima.inference.data.tensors import Scale, to_tensors
from causalpima.inference.training.config import DistillationConfig, FitConfig, ModalityConfig

__all__ = ["OWN", "as_dataset", "of_one_vector", "one_vector", "samples", "settings", "write"]

OWN = ("mfeat",)
"""Data sets that are here alone; the others are those of `inference.svi`."""

_ONE = "all"


def samples(dataset: str, seed: int = 0) -> tuple[MultimodalData, FitConfig]:
    """A data set with the settings of its experiment.

    Args:
        dataset: Of `OWN`, or as `inference.svi` names it.
        seed: Seed of generated data.

    Raises:
        ValueError: There is none of this name.
    """
    if dataset in OWN:
        return mfeat(), views_config(MFEAT_VIEWS, {"digit": 10})
    if dataset not in DATASETS:
        raise ValueError(f"dataset: expected one of {', '.join([*OWN, *DATASETS])}, got {dataset!r}; choose one")
    experiment = DATASETS[dataset]
    return experiment.make(**{**experiment.options, "seed": seed}), experiment.config


def one_vector(data: MultimodalData, config: FitConfig) -> MultimodalData:
    """All modalities of the samples as a single one, `all`.

    Args:
        data: The samples.
        config: Transforms of the modalities, and whether they count alike.
    """
    scales = {name: Scale(True, entry.transform, entry.transform_knee) for name, entry in config.modality.items()}
    tensors = to_tensors(data, np.ones(data.n_samples, dtype=bool), scales, torch.device("cpu"))
    whole = tensors.batch(torch.arange(data.n_samples))
    n_elements = {name: value[0].numel() for name, value in whole.values.items()}
    alike = config.model.likelihood_scaling == "dimension"
    values = [value.flatten(1) / (n_elements[name] ** 0.5 if alike else 1.0) for name, value in whole.values.items()]
    measured = np.concatenate([data.measured(name).reshape(data.n_samples, -1) for name in whole.values], axis=1)
    return dataclasses.replace(
        data,
        modalities={_ONE: torch.cat(values, dim=1).float().numpy()},
        present={_ONE: np.ones(data.n_samples, dtype=bool)},
        observed={} if measured.all() else {_ONE: measured},
        kinds={_ONE: "vector"},
        axes={},
        units={},
    )


def of_one_vector(config: FitConfig) -> FitConfig:
    """The settings of the experiment with a perceptron for the single modality, and nothing that takes several."""
    model = dataclasses.replace(config.model, likelihood_scaling="none")
    none = DistillationConfig(0)
    return dataclasses.replace(config, model=model, distillation=none, modality={_ONE: ModalityConfig()}, mask={})


def as_dataset(data: MultimodalData, labels: Sequence[str] | None = None) -> xr.Dataset:
    """Samples with their factors and groups, as `--data` reads them; what was not measured is NaN.

    Args:
        data: The samples.
        labels: Factors to keep; None: all.
    """
    columns: dict[str, tuple[object, ...]] = {}
    for name, values in data.modalities.items():
        dims = ("sample", *(f"{name}_{axis}" for axis in range(values.ndim - 1)))
        attributes = {"kind": data.kinds[name], "units": data.units.get(name, "")}
        columns[name] = (dims, np.where(data.measured(name), values, np.nan).astype(np.float32), attributes)
    for name in data.factors if labels is None else labels:
        words = np.array([*data.factor_levels[name], ""])[data.factors[name]]  # -1, not known, is the last
        columns[name] = ("sample", words, {"role": "label"})
    if data.groups is not None:
        columns["specimen"] = ("sample", data.groups, {"role": "group"})
    return xr.Dataset(columns, {f"{name}_0": _positions(data, name) for name in data.axes})


def _positions(data: MultimodalData, name: str) -> tuple[str, np.ndarray, Mapping[str, str]]:
    axis = data.axes[name]
    return f"{name}_0", axis.values, {"units": axis.unit}


def settings(config: FitConfig) -> dict[str, Any]:
    """What stands in FILE.yaml: all settings but the seeds, which flags give."""
    return {name: value for name, value in config.to_dict().items() if name not in ("seed", "restart")}


def write(data: MultimodalData, config: FitConfig, path: Path, labels: Sequence[str] | None = None) -> None:
    """Write samples and settings; a file that is there stays until the new one is whole.

    Args:
        data: The samples.
        config: Their settings.
        path: FILE.nc; FILE.yaml stands beside it.
        labels: Factors to keep; None: all.
    """
    partial = path.with_name(f".{path.name}.partial")
    as_dataset(data, labels).to_netcdf(partial, engine="h5netcdf")
    path.with_suffix(".yaml").write_text(yaml.safe_dump(settings(config), sort_keys=False), encoding="utf-8")
    partial.replace(path)


def main(argv: Sequence[str] | None = None) -> None:
    """Write a file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--dataset", required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--one_vector", action="store_true")
    parser.add_argument("--labels", nargs="+")
    parser.add_argument("--file", type=Path, required=True)
    arguments = parser.parse_args(argv)
    data, config = samples(arguments.dataset, arguments.seed)
    if arguments.one_vector:
        data, config = one_vector(data, config), of_one_vector(config)
    write(data, config, arguments.file, arguments.labels)


if __name__ == "__main__":
    main()
