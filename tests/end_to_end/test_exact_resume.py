"""A run that stops and is resumed equals the uninterrupted one, bit for bit."""

from __future__ import annotations

from pathlib import Path

import pytest
from command import N_EPOCHS, TINY, contents, differences, svi

pytestmark = pytest.mark.usefixtures("without_figures")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory, without_figures: object) -> Path:
    folder = tmp_path_factory.mktemp("uninterrupted") / "run"
    assert svi(*TINY, "--output_dir", folder).status == 0
    return folder


#   epochs   pretraining | joint training | finish
#              1     2   |   3      4     |
#  stops    0     1     2       3        4
@pytest.mark.parametrize("stop", [[0], [1], [2], [3], [N_EPOCHS], [1, 1, 3, 2]])
def test_stopped_and_resumed(uninterrupted: Path, tmp_path: Path, stop: list[int]) -> None:
    folder = tmp_path / "run"
    first = svi(*TINY, "--output_dir", folder, "--stop_after", stop[0])
    assert first.status == 0
    for epochs in stop[1:]:
        assert svi("--resume", folder, "--stop_after", epochs).status == 0
    if stop[-1] < N_EPOCHS:
        assert f"stopped after epoch {stop[0]} of {N_EPOCHS}; go on with: python -m inference.svi --resume" in first.out
        assert not (folder / "summary.json").exists()
        assert svi("--resume", folder).status == 0
    assert differences(contents(uninterrupted), contents(folder)) == []
