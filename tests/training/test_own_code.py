"""Which settings name code of a user's own, and that a run of other code is not gone on with."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tiny_fits import settings, tiny_samples

from causalpima.guides.fusion import ProductOfExperts
from causalpima.inference.run import Run
from causalpima.inference.store.run_folder import RunFolder
from causalpima.inference.training.checkpoint import CheckpointError
from causalpima.inference.training.components import Components
from causalpima.inference.training.config import FitConfig
from causalpima.inference.training.user_code import own_names, source_hashes

MODULE, DEFINED = "fusion_of_mine", "definition_of_mine"
SOURCE = "from causalpima.guides.fusion import ProductOfExperts\n\ndef mine(*facts): return ProductOfExperts()\n"
Write = Callable[..., None]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Write]:
    """Writes a module, as another process finds it."""
    monkeypatch.chdir(tmp_path)

    def write(text: str, module: str = MODULE) -> None:
        (tmp_path / f"{module}.py").write_text(text)
        for name in (MODULE, DEFINED):
            sys.modules.pop(name, None)
        importlib.invalidate_caches()

    yield write
    for name in (MODULE, DEFINED):
        sys.modules.pop(name, None)


def config(**changes: str) -> FitConfig:
    return settings(guide__fusion=f"{MODULE}:mine", **changes)


def test_settings_that_name_code() -> None:
    plain = config(model__graph="posthoc:pc", decoder__kind="laws:Relaxation").to_dict()
    assert own_names({**plain, "read_outs": {"curve": "mine:peaks", "spectrum": "values"}}) == {
        "guide.fusion": f"{MODULE}:mine",
        "modality.spectrum.decoder.kind": "laws:Relaxation",
        "modality.curve.decoder.kind": "laws:Relaxation",
        "read_outs.curve": "mine:peaks",
    }
    assert source_hashes(settings().to_dict()) == {} == source_hashes({})


def test_the_file_of_the_definition_counts_too(write: Write) -> None:
    plain = config().to_dict()
    write(SOURCE, DEFINED)
    write(f"from {DEFINED} import mine\n")
    before = source_hashes(plain)
    assert source_hashes(plain) == before
    write(f"{SOURCE}# changed\n", DEFINED)
    assert source_hashes(plain) != before


def test_a_run_of_other_code_is_not_gone_on_with(tmp_path: Path, write: Write) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.create({})
    write(SOURCE)
    Run(tiny_samples(), config()).train(1, folder)
    Run(tiny_samples(), config()).restore(folder)
    write(f"{SOURCE}# changed\n")
    with pytest.raises(CheckpointError, match=rf"the file of guide.fusion {MODULE}:mine counts as a setting") as told:
        Run(tiny_samples(), config()).restore(folder)
    assert "\n" not in str(told.value)


def test_no_file_is_named_where_objects_are_passed(tmp_path: Path) -> None:
    folder, objects = RunFolder(tmp_path / "run"), Components(fusion=ProductOfExperts())
    folder.create({})
    Run(tiny_samples(), settings(), components=objects).train(1, folder)
    with pytest.raises(CheckpointError, match="is of another configuration") as told:
        Run(tiny_samples(), settings(seed=1), components=objects).restore(folder)
    assert "the file of" not in str(told.value)


def test_runs_without_code_keep_their_fingerprint() -> None:
    assert settings().fingerprint("data", {}) == settings().fingerprint("data")
    assert settings().fingerprint("data", {"guide.fusion": "a"}) != settings().fingerprint("data")
