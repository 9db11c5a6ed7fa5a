"""The folder of a run: where it is, what may be overwritten, and what stands in it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from inference.results.files import OutputError, make_folder, remove_folder, write_text
from inference.results.strict_json import to_json

__all__ = ["RunFolder", "next_run_folder"]

_ENTRIES = ("config.yaml", "summary.json", "metrics.jsonl", "posterior.nc", "checkpoint", "figures", "report.html")


def next_run_folder(dataset: str, home: Path | str = "runs") -> Path:
    """`home/DATASET-001`, `-002`, ...: the first number after all that are there."""
    pattern = re.compile(rf"^{re.escape(dataset)}-(\d+)$")
    names = [path.name for path in Path(home).iterdir()] if Path(home).is_dir() else []
    taken = [int(match[1]) for match in map(pattern.match, names) if match]
    return Path(home) / f"{dataset}-{max(taken, default=0) + 1:03d}"


class RunFolder:
    """Paths of a run folder, and its small files.

    Args:
        path: The folder; it need not exist.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self.config = self.path / "config.yaml"
        self.summary = self.path / "summary.json"
        self.metrics = self.path / "metrics.jsonl"
        self.posterior = self.path / "posterior.nc"
        self.checkpoints = self.path / "checkpoint"
        self.final = self.checkpoints / "final"
        self.figures = self.path / "figures"
        self.report = self.path / "report.html"

    def create(self, force: bool = False) -> None:
        """Make the folder, empty of an earlier run.

        Raises:
            OutputError: There is something in it and `force` is off, or it can't be made.
        """
        if self.path.exists() and not self.path.is_dir():
            raise OutputError(f"output_dir: expected a folder, got the file {self.path}")
        if self.path.is_dir() and any(self.path.iterdir()):
            if not force:
                raise OutputError(
                    f"output_dir: {self.path} is not empty; name another folder, resume it with --resume, "
                    "or replace it with --force"
                )
            self._clear()
        make_folder(self.path)

    def _clear(self) -> None:
        for name in _ENTRIES:
            entry = self.path / name
            if entry.is_dir():
                remove_folder(entry)
            else:
                entry.unlink(missing_ok=True)

    def write_config(self, config: Mapping[str, Any]) -> None:
        """Write `config.yaml`."""
        write_text(self.config, yaml.safe_dump(json.loads(to_json(config)), sort_keys=False))

    def read_config(self) -> dict[str, Any]:
        """Read `config.yaml`.

        Raises:
            ValueError: The folder holds no readable configuration.
        """
        try:
            content = yaml.safe_load(self.config.read_text())
        except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
            raise ValueError(f"{self.path}: expected a run folder with a readable config.yaml ({_line(error)})") from error
        if not isinstance(content, dict):
            raise ValueError(f"{self.config}: expected settings by name, got {type(content).__name__}")
        return content

    def write_metrics(self, history: Iterable[Mapping[str, Any]]) -> None:
        """Write `metrics.jsonl`, one line per epoch."""
        write_text(self.metrics, "".join(to_json(record, indent=None) + "\n" for record in history))


def _line(error: Exception) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__
