"""The settings and the samples of a run, from its folder."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from inference.command_line.svi_arguments import Arguments, parse_settings
from inference.data.multimodal import MultimodalData
from inference.results.run_folder import RunFolder
from inference.training.checkpoint import load_checkpoint
from inference.training.fitted_run import check_finished
from inference.training.run_samples import OtherDataError, check_samples

__all__ = ["data_of_run", "data_or_note", "naming_source", "settings_of_run"]


def settings_of_run(folder: RunFolder) -> Arguments:
    """What a run was started with; its file is looked for where it was, if it is not where the settings say.

    Raises:
        ValueError: The folder holds no run of the command line, or its data cannot be read.
    """
    settings = folder.read_config()
    if not _names_data(settings):
        raise ValueError(
            f"{folder.path}: expected a run of python -m inference.svi, got one of the Python call fit, whose "
            "config.yaml names no data; call fit again"
        )
    try:
        return parse_settings(_located(settings))
    except ValueError as error:
        raise ValueError(f"{folder.config}: {error}") from error


def data_of_run(folder: RunFolder, with_labels: bool = True) -> MultimodalData | None:
    """The samples of a finished run; None for one of the Python call `fit`, which names none.

    Args:
        folder: The folder of the run.
        with_labels: Whether labels have to be those of the fit, too.

    Raises:
        OtherDataError: They are not those that the run was fitted to.
        ValueError: They cannot be read any more.
    """
    if not _names_data(folder.read_config()):
        return None
    settings = settings_of_run(folder)
    data = settings.make_data()
    check_finished(folder)
    with naming_source(settings):
        # Final weights under names keep the fingerprint of the settings before there were any.
        checkpoint = load_checkpoint(folder.found_weights)
        check_samples(checkpoint, data, str(folder.path), with_labels)
    return data


@contextmanager
def naming_source(settings: Arguments) -> Iterator[None]:
    """Begin the message of an `OtherDataError` with the file, or the data set, that the samples come from."""
    try:
        yield
    except OtherDataError as error:
        source = settings.name if settings.file is None else settings.file.resolved
        raise OtherDataError(f"{source}: {error}") from error


def data_or_note(folder: RunFolder) -> MultimodalData | None:
    """The samples of a run; None, and a note on standard error, where they cannot be had.

    Raises:
        OtherDataError: There are some, and they are not those that the run was fitted to.
    """
    try:
        data = data_of_run(folder)
    except OtherDataError:
        raise
    except ValueError as error:
        print(f"note: without the samples of the run ({error}), what needs them is left out", file=sys.stderr)
        return None
    if data is None:
        print("note: the run names no data, so that what needs the samples is left out", file=sys.stderr)
    return data


def _names_data(settings: Mapping[str, Any]) -> bool:
    return bool({"dataset", "data"} & set(settings))


def _located(settings: Mapping[str, Any]) -> Mapping[str, Any]:
    """A run goes on with the file that it began with, from whichever folder it is told to."""
    resolved = settings.get("data_resolved")
    return {**settings, "data": resolved} if isinstance(resolved, str) and Path(resolved).exists() else settings
