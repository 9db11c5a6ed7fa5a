"""`python -m MODULE` in a copy of this process: it imports the project anew, but has other people's modules already."""

from __future__ import annotations

import os
import runpy
import sys
import tempfile
import traceback

__all__ = ["run_afresh"]

_OURS = {"causalpima", "models", "guides", "inference", "examples"}


def run_afresh(module: str, *arguments: str) -> tuple[int, str]:
    """Run a module as `python -m` does, without the seconds that it takes to import torch.

    Modules of the project are forgotten first, so that one that can be imported only after another is seen.

    Returns:
        The exit status, and what was said on standard output and standard error.
    """
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if child == 0:
            _run(module, arguments, said.fileno())
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        return status, said.read()


def _run(module: str, arguments: tuple[str, ...], output: int) -> None:
    """In the copy; never returns."""
    status = 1
    try:
        for target in (1, 2):
            os.dup2(output, target)
        sys.stdout, sys.stderr = (os.fdopen(target, "w", closefd=False) for target in (1, 2))
        _forget_the_project()
        sys.argv = [module, *arguments]
        runpy.run_module(module, run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        status = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)


def _forget_the_project() -> None:
    """With the hooks on its imports, which check shapes: `python -m` has none."""
    sys.meta_path[:] = [finder for finder in sys.meta_path if "jaxtyping" not in type(finder).__module__]
    for name in [name for name in sys.modules if name.partition(".")[0] in _OURS]:
        del sys.modules[name]
