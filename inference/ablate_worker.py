"""One fit of an ablation in a process of its own: begin, or go on, or nothing; then its scores where asked for.

`python -m inference.ablate_worker FOLDER (scores|-) WORDS`, with the words of `inference.svi`. Exit
status: 0 done, 2 settings or data were refused, 4 the machine was not up to it, others those of `inference.svi`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from causalpima.inference import evaluate, svi
from causalpima.inference.command_line.parsing import ALLOW_CODE, FAILED_FIT, run_command
from causalpima.inference.store.files import is_of_the_machine
from causalpima.inference.store.run_folder import RunFolder

__all__ = [
    "main",
]


_MACHINE = 4


def main(argv: Sequence[str]) -> int:
    """Run the fit; returns the exit status of what failed first."""
    path, scores, *words = argv
    folder = RunFolder(path)
    if not folder.is_complete:
        status = run_command("svi", _fit, _words(folder, words))
        if status not in (0, FAILED_FIT):
            return status
    if scores == "scores" and folder.posterior.is_file():
        return evaluate.main([path, "--json", str(folder.path / "evaluate.json"), *_permission(words)])
    return 0


def _fit(words: Sequence[str]) -> int:
    """A full disk, or a folder that another process is at, refuses no setting."""
    try:
        return svi.command(words)
    except (ValueError, OSError, MemoryError, RuntimeError) as error:
        if not is_of_the_machine(error):
            raise
        print(f"svi: error: {' '.join(str(error).split()) or type(error).__name__}", file=sys.stderr)
        return _MACHINE


def _words(folder: RunFolder, words: Sequence[str]) -> list[str]:
    """A folder with a configuration holds a run that was stopped: its settings were compared before."""
    place = "--resume" if folder.config.is_file() else "--output_dir"
    return [*(words if place == "--output_dir" else _permission(words)), f"{place}={folder.path}", "--quiet"]


def _permission(words: Sequence[str]) -> list[str]:
    """`--allow_code`, if the ablation has it: what the user typed is remembered where the user has a folder for it."""
    return [ALLOW_CODE] if ALLOW_CODE in words else []


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
