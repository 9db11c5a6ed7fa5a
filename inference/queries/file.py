"""The draws of an answer as a netCDF file."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

from inference.queries.answer import QueryAnswer
from inference.results.files import write_bytes
from inference.results.strict_json import to_json
from inference.results.versions import file_attributes

__all__ = ["draws_tree", "write_draws"]


def draws_tree(answer: QueryAnswer) -> xr.DataTree:
    """The draws as group `predictions` of the ArviZ schema; what was asked, warned of and assumed is in the attributes.

    Raises:
        ValueError: The answer holds no draws.
    """
    if answer.draws is None:
        raise ValueError("draws: expected an answer with draws, got one without; ask with sampled=True")
    tree = xr.DataTree.from_dict({"predictions": answer.draws})
    tree.attrs = {
        **file_attributes(),
        "do": to_json(dict(answer.do), indent=None),
        "given": to_json(dict(answer.given), indent=None),
        "warnings": to_json(list(answer.warnings), indent=None),
        "assumptions": to_json(list(answer.assumptions), indent=None),
        "outcomes": to_json({node: list(names) for node, names in answer.outcomes.items()}, indent=None),
        "seed": answer.seed,
    }
    return tree


def write_draws(answer: QueryAnswer, path: Path | str) -> None:
    """Write `draws_tree(answer)` as netCDF 4, whole or not at all.

    Raises:
        OutputError: The disk is full, the folder is missing or not writable.
    """
    write_bytes(path, bytes(draws_tree(answer).to_netcdf(engine="h5netcdf")))
