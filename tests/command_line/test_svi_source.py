"""Defaults that follow the number of samples of a named data set."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.command_line.flags import DATASETS
from causalpima.inference.command_line.svi_parser import parse, parse_settings


def batch_size(*words: str) -> int:
    return parse(["--dataset", *words]).config.training.batch_size


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["circles"], 256),
        (["circles", "--dataset_options.n_samples", "4096"], 256),
        (["circles", "--dataset_options.n_samples=9000"], 256),
        (["circles", "--dataset_options.n_samples", "600"], 37),
        (["circles_edge", "--dataset_options.n_samples=600"], 37),
        (["circles", "--dataset_options.n_samples", "600", "--dataset_options.n_samples", "4096"], 256),
        (["circles", "--dataset_options.n_samples", "10"], 8),
        (["lattices"], 16),
        (["lattices", "--dataset_options.n_samples", "91"], 16),
        (["circles_environments", "--dataset_options.n_samples", "600"], 93),
        (["circles_environments", "--dataset_options.n_samples=600", "--dataset_options.n_per_environment=40"], 45),
        (["circles_environments", "--dataset_options.n_per_environment", "40"], 256),
    ],
)
def test_data_that_are_made_smaller_have_smaller_batches(words: list[str], expected: int) -> None:
    assert batch_size(*words) == expected


@pytest.mark.parametrize("given", ["256", "64"])
def test_a_batch_size_that_is_given_stays(given: str) -> None:
    assert batch_size("circles", "--dataset_options.n_samples", "600", "--training.batch_size", given) == int(given)


def test_a_file_of_settings_says_so_too(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("dataset: circles\ndataset_options:\n  n_samples: 600\n")
    assert parse(["--config", str(file)]).config.training.batch_size == 37
    assert parse(["--config", str(file), "--dataset_options.n_samples", "4096"]).config.training.batch_size == 256


def test_settings_that_were_written_down_are_kept() -> None:
    before = parse(["--dataset", "circles", "--dataset_options.n_samples", "600", "--training.batch_size", "256"])
    assert parse_settings(before.to_config()).config == before.config


def test_only_the_size_of_batches_changes() -> None:
    config = parse(["--dataset", "circles", "--dataset_options.n_samples", "600"]).config
    usual = DATASETS["circles"].config.to_dict()
    changed = config.to_dict()
    changed["training"]["batch_size"] = 256
    assert changed == usual


def test_a_number_that_is_none_is_refused_by_its_own_name() -> None:
    with pytest.raises(ValueError, match="n_samples"):
        parse(["--dataset", "circles", "--dataset_options.n_samples", "many"])
