"""The samples behind `--data FILE`, and where the file is."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from inference.data.convert import as_multimodal
from inference.data.multimodal import MultimodalData
from inference.data.options import ReadOptions

__all__ = ["OPTIONS", "DataFile"]

OPTIONS = tuple(option.name for option in dataclasses.fields(ReadOptions))
"""Names of the flags that go with `--data`."""


@dataclass(frozen=True)
class DataFile:
    """A file of samples, read.

    Attributes:
        given: The path as it was given.
        resolved: The path from the root, so that a run can be resumed from another folder.
        options: What was asked to be read, and as what.
        samples: What was read.
    """

    given: str
    resolved: str
    options: ReadOptions
    samples: MultimodalData = field(compare=False, repr=False)

    @classmethod
    def read(cls, settings: Mapping[str, Any], observed: Sequence[str] = ()) -> DataFile:
        """Read the file that settings name as `data`, with the options among them.

        Where it is not, the place that `data_resolved` says is tried, if that is a file of the same name.

        Args:
            settings: The settings.
            observed: Variables that tell nodes: labels, too, scored against beside those that the settings name.

        Raises:
            ValueError: Options or a file that cannot be used.
        """
        given = settings["data"]
        if not isinstance(given, str):
            raise ValueError(f"data: expected the path of a file, got {given!r}")
        options = ReadOptions(**{name: settings[name] for name in OPTIONS if settings.get(name) is not None})
        path = _existing(given, settings.get("data_resolved"))
        labels = (*options.labels, *(name for name in observed if name not in options.labels))
        samples = as_multimodal(path, dataclasses.replace(options, labels=labels))
        samples = dataclasses.replace(samples, scored=labels if options.labels else ())
        return cls(given, str(path.absolute()), options, samples)

    @property
    def name(self) -> str:
        """Name of the data set."""
        return self.samples.name

    def to_settings(self) -> dict[str, Any]:
        """What `read` takes, as plain values; options that say nothing are left out."""
        options = {name: _plain(getattr(self.options, name)) for name in OPTIONS}
        asked = {name: value for name, value in options.items() if value != _plain(getattr(ReadOptions(), name))}
        return {"data": self.given, "data_resolved": self.resolved, **asked}


def _existing(given: str, resolved: object) -> Path:
    path = Path(given).expanduser()
    other = Path(resolved) if isinstance(resolved, str) else path
    return other if not path.exists() and other.exists() and other.name == path.name else path


def _plain(value: Any) -> Any:
    return list(value) if isinstance(value, tuple) else value
