"""What a command line asks for: defaults, files, lists, and what is refused."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest
import yaml

from causalpima.inference.command_line.flags import DATASETS
from causalpima.inference.command_line.svi_parser import Arguments, build_parser, parse, parse_settings
from causalpima.inference.command_line.svi_settings import Source
from causalpima.inference.training.config import FitConfig, ModalityConfig, paper_settings

CIRCLES = ["--dataset", "circles"]


def settings_of(arguments: Arguments) -> dict[str, Any]:
    return {f.name: getattr(arguments, f.name) for f in dataclasses.fields(arguments)}


@pytest.mark.parametrize("dataset", DATASETS)
def test_a_data_set_brings_its_own_defaults(dataset: str) -> None:
    arguments = parse(["--dataset", dataset])
    assert arguments.config == DATASETS[dataset].config
    assert DATASETS[dataset].options.items() <= arguments.options.items()


def test_every_setting_has_a_flag_with_its_default() -> None:
    parser = build_parser(Source.named("circles"))
    flags = {action.dest for action in parser._actions}
    config = FitConfig({"N1": 2}, modality={"image": ModalityConfig()})

    def leaves(part: Any, prefix: str) -> list[str]:
        if isinstance(part, dict) and prefix != "nodes.":
            return [leaf for name, entry in part.items() for leaf in leaves(entry, f"{prefix}{name}.")]
        return [prefix.removesuffix(".")]

    assert set(leaves(config.to_dict(), "")) <= flags


def test_lists_are_typed_with_commas() -> None:
    flags = [
        "--read_out.sizes",
        "12,16",
        "--modality.image.encoder.sizes=64,32",
        "--modality.image.decoder.sizes",
        "[8]",
    ]
    config = parse([*CIRCLES, *flags]).config
    assert config.read_out.sizes == (12, 16)
    assert config.modality["image"].encoder.sizes == (64, 32)
    assert config.modality["image"].decoder.sizes == (8,)


def test_the_seed_of_the_data_is_that_of_the_fit_unless_it_is_given() -> None:
    def first_image(*flags: str) -> float:
        data = parse([*CIRCLES, "--dataset_options.n_samples", "9", *flags]).make_data()
        return float(data.measurements["radius"].sum())

    same = first_image("--seed", "3")
    assert same == first_image("--seed", "5", "--dataset_options.seed", "3")
    assert same != first_image("--seed", "5")


def test_written_settings_come_back(tmp_path: Path) -> None:
    flags = (
        "--seed 3 --nodes a=2,b=3 --model.latent_dim 3 --read_out.sizes 9,12 --threads 2 --dataset_options.n_samples 50"
    )
    arguments = parse([*CIRCLES, *flags.split(), "--modality.image.decoder.sizes", "8"])
    file = tmp_path / "config.yaml"
    file.write_text(yaml.safe_dump(arguments.to_config(), sort_keys=False))
    assert settings_of(parse(["--config", str(file)])) == settings_of(arguments)
    assert settings_of(parse_settings(yaml.safe_load(file.read_text()))) == settings_of(arguments)
    changed = parse(["--config", str(file), "--seed", "4"])
    assert changed.config == dataclasses.replace(arguments.config, seed=4)
    assert list(changed.config.nodes) == ["a", "b"]


def test_paper_settings_go_over_all_others() -> None:
    arguments = parse([*CIRCLES, "--paper_settings", "--training.learning_rate", "1"])
    assert arguments.config == paper_settings(DATASETS["circles"].config)
    assert parse_settings(arguments.to_config()).config == arguments.config


def test_the_last_data_set_counts() -> None:
    assert parse(["--dataset", "circles", "--dataset=circles_edge"]).config == DATASETS["circles_edge"].config


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ("", r"^dataset: expected one of circles, .*, got none; name it with --dataset, or give a file with --data$"),
        (
            "--seed x",
            r"^dataset: expected one of circles, .*, got none; name it with --dataset, or give a file with --data$",
        ),
        (
            "--dataset_options.n_samples 9",
            r"^dataset: expected one of circles, .*, got none; name it with --dataset, or give a file with --data$",
        ),
        ("--dataset circles --seed -1", r"^seed: expected a number in \[0, 2\*\*32\), got -1$"),
        (
            "--dataset circles --training.batch_size 0",
            "^training.batch_size: expected a number > 0 and below .*, got 0$",
        ),
        (
            "--dataset circles --training.epochs 99999999999",
            "^training.epochs: expected a number >= 0 and below .*, got 9",
        ),
        (
            "--dataset circles --training.learning_rate .nan",
            "^training.learning_rate: expected a number > 0 .*, got nan$",
        ),
        (
            "--dataset circles --training.learning_rate .inf",
            "^training.learning_rate: expected a number > 0 .*, got inf$",
        ),
        ("--dataset circles --read_out.sizes 3", "^read_out.sizes: expected at least 8 Gaussians, one per cell, got"),
        ("--dataset circles --modality.image.encoder.sizes -8", "^modality.image.encoder.sizes: expected widths >= 1"),
        ("--dataset circles --stop_after -1", "^stop_after: expected a whole number >= 0, got -1$"),
        ("--dataset circles --threads 0", "^threads: expected a whole number >= 1 and <= 1024, got 0$"),
        ("--dataset circles --threads 9999", "^threads: expected a whole number >= 1 and <= 1024, got 9999$"),
        (
            "--resume x --seed 3 --nodes 2",
            "^resume: expected no other flags than device, .*, got nodes, seed; a resumed",
        ),
        ("--resume=x --modality.image.standardise true", "^resume: .*, got modality.image.standardise; a resumed run"),
        ("--resume x --force --output_dir y", "^resume: expected no other flags .*, got force, output_dir; a resumed"),
        (
            "--resume x --threads 2 --dry_run",
            "^resume: expected no other flags than .*, got dry_run, threads; a resumed",
        ),
    ],
)
def test_refused(words: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        parse(words.split())


def test_what_may_come_with_resume() -> None:
    arguments = parse(["--resume", "runs/x", "--device", "cpu", "--quiet", "--stop_after", "7", "--json", "s.json"])
    assert (arguments.resume, arguments.stop_after, arguments.quiet, arguments.json) == ("runs/x", 7, True, "s.json")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (
            b"a: [1, 2\nb: }{",
            r"^config: expected a readable YAML or JSON file, got .*settings.yaml \(line 2: did not find",
        ),
        (
            bytes(range(256)),
            r"^config: expected a readable YAML or JSON file, got .*settings.yaml \(it is no text in UTF-8\)$",
        ),
        (b"- 1\n- 2\n", "^config: expected settings by name in .*settings.yaml, got list$"),
        (b"", "^config: expected settings by name in .*settings.yaml, got NoneType$"),
        (b"dataset: [circles]\n", "^dataset: expected one of circles"),
        (
            b"dataset: circles\nresume: x\n",
            "^resume: expected no other flags than device, .*, got config(, dataset)?; a resumed",
        ),
    ],
)
@pytest.mark.parametrize("more", [[], CIRCLES])
def test_files_that_are_refused(content: bytes, match: str, more: list[str], tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_bytes(content)
    with pytest.raises(ValueError, match=match) as error:
        parse([*more, "--config", str(file)])
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("name", "reason"), [("absent.yaml", "No such file or directory"), ("", "Is a directory")])
def test_files_that_are_not_there(name: str, reason: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=rf"^config: expected a readable YAML or JSON file, got .* \({reason}\)$"):
        parse(["--config", str(tmp_path / name)])


@pytest.mark.parametrize(
    "change", [{"training": {"epochs": "x"}}, {"nodes": {"a": 1}}, {"wings": 2}, {"dataset": ["circles"]}]
)
def test_edited_settings_are_refused(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_settings(parse(CIRCLES).to_config() | change)


@pytest.mark.parametrize(("flag", "value"), [("restart_mode", "batched"), ("jobs", "2")])
def test_how_several_starts_run_is_refused_for_one(flag: str, value: str) -> None:
    words = [*CIRCLES, f"--{flag}", value]
    with pytest.raises(ValueError, match=rf"^{flag}: expected it with --restarts of 2 or more, got {value} for one"):
        parse(words)
    assert parse([*words, "--restarts", "2"]).restarts == 2


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("training:\n  kl_warmup: x\n", r"^training.kl_warmup: expected a whole number, got x \(in .*settings.yaml\)$"),
        ("training:\n  kl_warm: 3\n", r"^config: expected settings that there are, .* \(in .*settings.yaml\)$"),
        ("nodes: {N1: 0}\n", r"^nodes: expected .* got 0 for node 'N1' \(in .*settings.yaml\)$"),
        ("modality:\n  image:\n    weight: -1\n", r"^modality.image.weight: .* \(in .*settings.yaml\)$"),
    ],
)
def test_a_wrong_setting_of_a_file_is_said_to_be_in_it(tmp_path: Path, text: str, words: str) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text(text)
    with pytest.raises(ValueError, match=words):
        parse([*CIRCLES, "--config", str(file)])


def test_a_wrong_flag_is_in_no_file(tmp_path: Path) -> None:
    file = tmp_path / "settings.yaml"
    file.write_text("training: {kl_warmup: 3}\n")
    with pytest.raises(ValueError, match=r"^training.kl_warmup: expected a whole number, got x$"):
        parse([*CIRCLES, "--config", str(file), "--training.kl_warmup", "x"])
