"""Errors of the argument parser in plain words: the parser itself says them, so that a new form of it is seen."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.command_line.flags import DATASETS
from causalpima.inference.command_line.svi_parser import parse
from causalpima.inference.command_line.words import choices_in_words, in_plain_words

CIRCLES = ("--dataset", "circles")
NAMES = choices_in_words(list(DATASETS))


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("--seed x", "seed: expected a whole number, got x"),
        ("--seed 1.5", "seed: expected a whole number, got 1.5"),
        ("--seed nan", "seed: expected a whole number, got nan"),
        ("--seed", "seed: expected a value after --seed, got none"),
        ("--training.epochs null", "training.epochs: expected a whole number, got None"),
        ("--training.learning_rate fast", "training.learning_rate: expected a number, got fast"),
        ("--training.learning_rate nan", "training.learning_rate: expected a number, got nan"),
        ("--objective best", "objective: expected one of collapsed, meanfield, paper, got best"),
        ("--pretraining.kind gan", "pretraining.kind: expected one of vae, reconstruction, none, got gan"),
        ("--guide.prior_expert maybe", "guide.prior_expert: expected true or false, got maybe"),
        ("--read_out.sizes a,b", "read_out.sizes: expected a whole number, got a"),
        ("--modality.image.decoder.sizes 8,x", "modality.image.decoder.sizes: expected a whole number, got x"),
        ("--dataset_options.n_samples many", "dataset_options.n_samples: expected a whole number, got many"),
        ("--dataset_options.seed x", "dataset_options.seed: expected a whole number or null, got x"),
        ("--dataset squares", f"dataset: expected one of {NAMES}, got squares"),
        ("--dataset circle_chain", f"dataset: expected one of {NAMES}, got circle_chain; did you mean circles_chain?"),
        ("--force=1", "force: expected no value after --force, got 1; leave it out"),
        ("--model 5", "model: expected a readable file of settings, got 5; --model.NAME sets one of them"),
        ("junk", "expected flags, which begin with --, got junk; --help lists them"),
        ("--quiet yes", "expected flags, which begin with --, got yes; --help lists them"),
        ("--wings 2", "expected a flag that there is, got --wings; --help lists all"),
        (
            "--epochs 3",
            "expected a flag that there is, got --epochs; did you mean --pretraining.epochs, --training.epochs, "
            "--distillation.epochs? --help lists all",
        ),
        (
            "--training.epoch=3",
            "expected a flag that there is, got --training.epoch; did you mean --training.epochs, "
            "--pretraining.epochs? --help lists all",
        ),
        (
            "--modality.photo.standardise true",
            "expected a flag that there is, got --modality.photo.standardise; did you mean "
            "--modality.image.standardise? --help lists all",
        ),
        (
            "--nodes 1",
            "nodes: expected whole numbers >= 2 and names that are one word, for example 2,3 or type=2,response=3, "
            "got '1' for node 'N1'",
        ),
    ],
)
def test_what_people_read(words: str, line: str) -> None:
    with pytest.raises(ValueError, match="expected") as error:
        parse([*CIRCLES, *words.split()])
    assert str(error.value) == line


@pytest.mark.parametrize(
    ("content", "line"),
    [
        (
            "training: {epoch: 3}",
            "config: expected settings that there are, got training.epoch; did you mean training.epochs, "
            "pretraining.epochs? --print_config shows all",
        ),
        (
            "noods: 3",
            "config: expected settings that there are, got noods; did you mean nodes? --print_config shows all",
        ),
        ("training: {epochs: three}", "training.epochs: expected a whole number, got three"),
        ("nodes: [2, 1]", "nodes: expected whole numbers >= 2 and names that are one word, "),
    ],
)
def test_what_people_read_about_a_file(content: str, line: str, tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(f"dataset: circles\n{content}\n")
    with pytest.raises(ValueError, match="expected") as error:
        parse(["--config", str(file)])
    assert str(error.value).startswith(line)


def test_an_unknown_form_is_put_on_one_line() -> None:
    assert in_plain_words("something\n  - went\twrong ", ["seed"]) == "something - went wrong"


def test_many_choices_are_shortened_to_those_that_are_no_variants() -> None:
    assert choices_in_words(["a", "a_b"]) == "a, a_b"
    several = [*"abcdefghijk", "a_x", "a_y", "ab"]
    assert (
        choices_in_words(several)
        == "a, b, c, d, e, f, g, h, i, j, k, ab or 2 variants that python -m inference.svi --help_all lists"
    )
