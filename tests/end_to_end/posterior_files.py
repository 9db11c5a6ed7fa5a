"""`posterior.nc` of tiny fits of shipped data sets, for other programs to open: `python posterior_files.py FOLDER`."""

from __future__ import annotations

import sys
import warnings
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import numpy as np

if TYPE_CHECKING:
    from causalpima.inference.findings.arrays import FitArrays
    from causalpima.inference.training.config import Experiment

__all__ = ["NAMES", "N_SAMPLES", "RESTARTS", "write_posterior_files"]

N_SAMPLES = 6
"""How many samples have draws: what ArviZ does takes a time for each."""

RESTARTS = "circles, three starts"
_OPTIONS: dict[str, dict[str, Any]] = {
    "circles": {"n_samples": 96},
    "circles_views_collider": {"n_samples": 40},
    "circles_environments": {"n_samples": 24, "n_per_environment": 8},
    "pendulum": {"n_samples": 40},
    "synthetic_nets_cancer": {"n_samples": 48},
    "lattices": {"n_samples": 32},
    "resin_coupons": {"shrink": 12},
}
NAMES = (*_OPTIONS, RESTARTS)
"""One of every kind of data set, named as in `--dataset`, and several starts."""


def write_posterior_files(folder: Path) -> None:
    """Write `NAME.nc` for every one of `NAMES`."""
    # Imported here, since those who read the files have no torch.
    from causalpima.inference.command_line.flags import DATASETS
    from causalpima.inference.reporting.arviz import write_posterior

    kinds = {DATASETS[name].make for name in _OPTIONS}
    missing = [name for name, experiment in DATASETS.items() if experiment.make not in kinds]
    if missing:
        raise LookupError(f"{', '.join(missing)}: expected a data set of every kind in _OPTIONS, got none like these")
    for name in NAMES:
        data_set = "circles" if name == RESTARTS else name
        arrays = _tiny_fit(DATASETS[data_set], _OPTIONS[data_set], 3 if name == RESTARTS else 1)
        write_posterior(arrays, folder / f"{name}.nc")


def _tiny_fit(experiment: Experiment, options: dict[str, Any], n_starts: int) -> FitArrays:
    from causalpima.inference import run as found_run
    from causalpima.inference.data.multimodal import sample_subset
    from causalpima.inference.findings import collect
    from causalpima.inference.findings.collect import DrawBounds
    from causalpima.inference.fit import fit
    from causalpima.inference.run import Run

    data = experiment.make(**{**experiment.options, **options})
    lacking = np.flatnonzero(~np.logical_and.reduce(list(data.present.values())))
    if len(lacking):  # so that draws are of such samples, too
        data = sample_subset(data, np.sort(np.concatenate([lacking, np.setdiff1d(np.arange(30), lacking)])))
    with ExitStack() as stack:
        few = partial(DrawBounds, samples=N_SAMPLES, predictive_elements=2**19)
        stack.enter_context(patch.object(collect, "DrawBounds", few))
        if n_starts == 1:  # the summary takes longer than the fit
            stack.enter_context(patch.object(found_run, "summarise", lambda *_: {}))
            run = Run(data, _tiny(experiment.config))
            run.train()
            arrays = run.finish().arrays
        else:
            stack.enter_context(warnings.catch_warnings())
            warnings.simplefilter("ignore")  # so short a fit is doubtful
            unknown = replace(data, factors={}, factor_levels={}, true_joint=None, true_adjacency=None)
            arrays = fit(unknown, config=_tiny(experiment.config), restarts=n_starts, restart_mode="batched").arrays
    assert arrays is not None
    return arrays


def _tiny(config: Any) -> Any:
    """The configuration with two epochs of each kind and small networks."""

    def small(network: Any) -> Any:
        return replace(network, sizes=(16,))

    nodes = {"N1": 2, "N2": 2} if config.nodes == {"N1": 2, "N2": 2, "N3": 2} and not config.mask else config.nodes
    modality = {
        name: replace(entry, encoder=small(entry.encoder), decoder=small(entry.decoder))
        for name, entry in config.modality.items()
    }
    return replace(
        config,
        nodes=nodes,
        pretraining=replace(config.pretraining, epochs=2, kl_warmup=min(config.pretraining.kl_warmup, 2)),
        training=replace(config.training, epochs=2, batch_size=16, learning_rate=1e-2),
        graph=replace(config.graph, start_steps=10, extra_steps=2),
        read_out=replace(config.read_out, n_init=1, sizes=()),
        distillation=replace(config.distillation, epochs=0),
        modality=modality,
    )


if __name__ == "__main__":
    write_posterior_files(Path(sys.argv[1]))
