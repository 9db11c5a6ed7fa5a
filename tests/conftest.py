"""What every test stands on: double precision, validation, a clean parameter store, seeds, checked shapes."""

from __future__ import annotations

import atexit
import gc
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

gc.disable()  # until everything is collected: a tenth of the time of imports
# One thread per process, and no window: before NumPy, torch and matplotlib are imported, and for commands run by tests.
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["MPLBACKEND"] = "Agg"
# What a user ran before must not decide what a test may run (models/user_code.py).
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)

import hypothesis
import pyro
import pytest
import torch
from jaxtyping import install_import_hook

torch.set_num_threads(1)

# The annotated shapes of these packages are executed, in tests only. The hook acts on imports that come after it.
SHAPED = ("causalpima.models", "causalpima.guides", "causalpima.inference.objectives")
install_import_hook(SHAPED, "beartype.beartype")

hypothesis.settings.register_profile("people", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "people")

ROOT = Path(__file__).resolve().parents[1]


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of whole commands by their folder, before `-m` selects; refuse marks that the Makefile misses."""
    for item in items:
        if (ROOT / "tests" / "end_to_end") in item.path.parents:
            item.add_marker(pytest.mark.end_to_end)
            item.add_marker(pytest.mark.xdist_group(item.path.stem))  # one worker per file: its runs are made once
        elif item.get_closest_marker("end_to_end") and (ROOT / "tests" / "documentation") not in item.path.parents:
            raise pytest.UsageError(
                f"{item.nodeid}: expected end_to_end only below tests/end_to_end and tests/documentation, where "
                "`make test-end-to-end` looks, got it here; move the test"
            )


def pytest_collection_finish() -> None:
    """Hide what imports and collection left from the garbage collector: a tenth of the time of fits."""
    gc.collect()
    gc.freeze()
    gc.enable()
    gc.set_threshold(20_000, 10, 20)


@pytest.fixture(autouse=True)
def _fresh_state(request: pytest.FixtureRequest) -> Iterator[None]:
    """Float64 (float32 where a test is marked so, or runs end to end), empty parameter store, seed 0, validation on."""
    single = any(request.node.get_closest_marker(name) for name in ("float32", "end_to_end"))
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32 if single else torch.float64)
    pyro.clear_param_store()
    pyro.set_rng_seed(0)
    with pyro.validation_enabled():
        yield
    pyro.clear_param_store()
    torch.set_default_dtype(before)


@pytest.fixture(autouse=True, scope="session")
def _summaries_have_their_schema() -> Iterator[None]:
    """Whatever summary a test writes holds what `summary_schema` says, and nothing else."""
    from summaries import unknown_entries

    from causalpima.inference.store.files import to_json
    from causalpima.inference.store.run_folder import RunFolder
    from causalpima.inference.store.summary_schema import checked_summary

    write = RunFolder.write_summary

    def checked(folder: RunFolder, summary: Mapping[str, Any]) -> None:
        plain = json.loads(to_json(summary))
        checked_summary(plain, str(folder.summary))
        assert unknown_entries(plain) == []
        write(folder, summary)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(RunFolder, "write_summary", checked)
        yield


@pytest.fixture(scope="module")
def without_figures() -> Iterator[None]:
    """Leave the figures out and draw little: two thirds of the time of a small run."""
    from causalpima.inference import result
    from causalpima.inference.findings import collect

    def no_figures(*_: object, **__: object) -> list[Path]:
        return []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(result, "write_figures", no_figures)
        patch.setattr(collect, "DrawBounds", partial(collect.DrawBounds, draws=8, predictive_elements=2**16))
        yield


@pytest.fixture(scope="session")
def shared() -> Path:
    """Folder of reference data beside the repository; tests that need it are skipped where it is not there."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        pytest.skip("no ../shared beside the repository: the reference data are not here")
    return path
