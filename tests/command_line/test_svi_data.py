"""`--data FILE`: what is parsed, written down, found again, and refused."""

from __future__ import annotations

import dataclasses
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
import yaml
from hypothesis import given
from hypothesis import strategies as st
from jsonargparse import Namespace

from causalpima.inference.command_line import svi_parser
from causalpima.inference.command_line.flags import DataFile
from causalpima.inference.command_line.svi_parser import Arguments, parse, parse_settings
from causalpima.inference.command_line.svi_settings import flag_names
from causalpima.inference.data.reading import as_multimodal
from causalpima.inference.training.config import EncoderConfig, ModalityConfig, default_config, default_modality

N = 40


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).normal(2.0, 3.0, shape)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working folder, with a file of samples."""
    monkeypatch.chdir(tmp_path)
    variables = {
        "load": (("sample", "strain"), numbers(N, 9)),
        "stress [MPa]": (("sample", "element"), numbers(N, 3)),
        "photo": (("sample", "y", "x"), numbers(N, 4, 4)),
        "alloy": ("sample", np.arange(N) % 2),
        "plate": ("sample", np.arange(N) // 4),
    }
    xr.Dataset(variables, {"strain": np.arange(9.0)}).to_netcdf("coupons.nc", engine="h5netcdf")
    return tmp_path


def parsed(words: str) -> Arguments:
    return parse(["--data", "coupons.nc", "--nodes", "2,3", *shlex.split(words)])


FULL = "--modalities load,photo --labels alloy --groups plate --covariates alloy,plate --kinds load=vector"


@pytest.mark.usefixtures("home")
def test_a_file_brings_its_own_defaults() -> None:
    arguments = parsed("")
    data = arguments.make_data()
    assert arguments.name == data.name == "coupons"
    assert arguments.config == default_config(data, {"N1": 2, "N2": 3})
    assert arguments.config.modality["load"] == default_modality("curve", (32,)) != ModalityConfig()
    assert arguments.config.training.batch_size == 8


@pytest.mark.usefixtures("home")
def test_lists_are_typed_with_commas() -> None:
    for words in (
        FULL,
        FULL.replace(" --", "\0").replace(" ", "=").replace("\0", " --"),
        FULL.replace("groups", "group"),
    ):
        data = parsed(words).make_data()
        assert list(data.modalities) == ["load", "photo"]
        assert data.kinds == {"load": "vector", "photo": "image"}
        assert list(data.factors) == ["alloy"]
        assert list(data.covariates) == ["alloy", "plate"]
        assert data.groups is not None


@pytest.mark.usefixtures("home")
def test_every_modality_has_its_flags() -> None:
    config = parsed(
        "--modality.load.encoder.sizes 4,8 --modality.stress_MPa.weight 0.5 --modality.photo.encoder.kind convolutional"
    ).config
    assert config.modality["load"].encoder == EncoderConfig("curve", (4, 8))
    assert config.modality["stress [MPa]"].weight == 0.5
    assert config.modality["photo"].encoder.kind == "convolutional"


@pytest.mark.parametrize("words", ["", FULL, "--modality.stress_MPa.weight 3 --seed 4 --sample_dim sample"])
def test_written_settings_come_back(home: Path, words: str) -> None:
    arguments = parsed(words)
    (home / "config.yaml").write_text(yaml.safe_dump(arguments.to_config(), sort_keys=False))
    assert parse(["--config", "config.yaml"]) == arguments
    assert parse_settings(yaml.safe_load((home / "config.yaml").read_text())) == arguments
    changed = parse(["--config", "config.yaml", "--seed", "9"])
    assert changed.config == dataclasses.replace(arguments.config, seed=9)


def test_printed_settings_come_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        parsed(f"{FULL} --print_config")
    (home / "config.yaml").write_text(capsys.readouterr().out)
    assert parse(["--config", "config.yaml"]).make_data().kinds == {"load": "vector", "photo": "image"}


def test_flags_go_over_files(home: Path) -> None:
    (home / "config.yaml").write_text("data: absent.nc\ndata_resolved: /absent.nc\nlabels: [plate]\nnodes: 2,2\n")
    arguments = parse(["--config", "config.yaml", "--data", "coupons.nc", "--labels", "alloy", "--modalities=load"])
    assert list(arguments.make_data().factors) == ["alloy"]
    assert list(arguments.config.modality) == ["load"]


def test_the_file_is_found_from_another_folder(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = parsed("").to_config()
    assert settings["data"] == "coupons.nc"
    (home / "elsewhere").mkdir()
    monkeypatch.chdir(home / "elsewhere")
    assert DataFile.read(settings).samples.n_samples == N
    with pytest.raises(ValueError, match=r"readable \.nc file, got 'others.nc'"):
        DataFile.read({**settings, "data": "others.nc"})
    (home / "config.yaml").write_text(yaml.safe_dump(settings))
    assert parse(["--config", str(home / "config.yaml")]).make_data().n_samples == N
    with pytest.raises(ValueError, match=r"readable \.nc file, got 'coupons.nc'"):  # a flag means this folder
        parse(["--config", str(home / "config.yaml"), "--data", "coupons.nc"])
    (home / "coupons.nc").unlink()
    with pytest.raises(ValueError, match=r"readable \.nc file, got 'coupons.nc'"):
        DataFile.read(settings)


@pytest.mark.parametrize(
    ("words", "match"),
    [
        ("--data coupons.nc", r"^nodes: expected outcomes per node, .*got none; give --nodes$"),
        ("--data", r"^data: expected a value after --data, got none$"),
        ("--data absent.nc --nodes 2", r"^data: expected a readable \.nc file, got 'absent.nc' \(No such file or dir"),
        (
            "--data coupons.csv --nodes 2",
            r"^data: expected the path of a \.nc, \.npz or \.zarr file, got 'coupons.csv'",
        ),
        ("--data . --nodes 2", r"^data: expected the path of a \.nc, \.npz or \.zarr file, got '\.'"),
        (
            "--data coupons.nc --dataset circles",
            "^data: expected either --dataset or --data, got circles and coupons.nc",
        ),
        ("--dataset circles --labels hue", "^labels: expected it with a file of samples, got none; name .* --data$"),
        ("--modalities a", "^modalities: expected it with a file of samples, got none; name the file with --data$"),
        ("--data coupons.nc --nodes 2 --labels", "^labels: expected a value after --labels, got none$"),
        ("--data coupons.nc --nodes 2 --labels a,", "^labels: expected names of variables, .*got .*''"),
        ("--data coupons.nc --nodes 2 --labels alloy,alloy", "^labels: expected every name once, got 'alloy' twice$"),
        (
            "--data coupons.nc --nodes 2 --modalities lode",
            "^coupons.nc: modalities: expected variables .*there is load$",
        ),
        (
            "--data coupons.nc --nodes 2 --kinds load",
            "^kinds: expected NAME=KIND, with commas between them, got 'load'$",
        ),
        ("--data coupons.nc --nodes 2 --kinds load=sound", "^coupons.nc: load: expected the kind image, curve, vector"),
        ("--data coupons.nc --nodes 2 --sample_dim a", "^coupons.nc: sample_dim: expected a dimension .*got 'a'"),
        ("--data coupons.nc --nodes 2 --modality.lode.weight 2", "flag that there is, got --modality.lode.weight; did"),
        ("--data coupons.nc --nodes 2 --dataset_options.seed 2", "flag that there is, got --dataset_options.seed"),
        ("--data coupons.nc --resume x", "^resume: expected no other flags than device, .*, got data; a resumed"),
    ],
)
@pytest.mark.usefixtures("home")
def test_refused(words: str, match: str) -> None:
    with pytest.raises(ValueError, match=match) as error:
        parse(words.split())
    assert "\n" not in str(error.value)


# ------------------------------------------------------------------------------------------------ flag names


@given(st.lists(st.text(min_size=1, max_size=8), unique=True, max_size=6))
def test_flags_have_words_of_their_own(modalities: list[str]) -> None:
    words = flag_names(modalities)
    assert list(words) == modalities
    assert len(set(words.values())) == len(modalities)
    for word in words.values():
        assert word.replace("_", "a").isalnum()
        assert not hasattr(Namespace, word)


@pytest.mark.parametrize(
    "name", ["force-displacement", "get", "a b", "a=b", "°", "Größe", "class_path", "1", "null", "--x"]
)
def test_odd_names_can_be_set(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    arrays: Any = {name: numbers(N, 3)}
    np.savez("odd.npz", **arrays)
    assert list(as_multimodal("odd.npz").modalities) == [name]
    word = flag_names([name])[name]
    arguments = parse(["--data", "odd.npz", "--nodes", "2", f"--modality.{word}.weight", "2"])
    assert arguments.config.modality[name].weight == 2
    assert parse_settings(arguments.to_config()) == arguments


def test_the_parser_does_not_grow_with_the_number_of_modalities(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """What parsers take grows with the square of the number of their flags: 44 s with a hundred modalities."""
    monkeypatch.chdir(tmp_path)
    build, sizes = svi_parser.build_parser, []

    def counted(*arguments: Any, **keywords: Any) -> Any:
        parser = build(*arguments, **keywords)
        sizes.append(len(parser._actions))
        return parser

    monkeypatch.setattr(svi_parser, "build_parser", counted)
    for n in (1, 30):
        arrays: Any = {f"m{index}": numbers(N, 2) for index in range(n)}
        np.savez("many.npz", **arrays)
        words = ["--data", "many.npz", "--nodes", "2", f"--modality.m{n - 1}.weight=2"]
        arguments = parse(words)
        assert [config.weight for config in arguments.config.modality.values()] == [1.0] * (n - 1) + [2.0]
        assert parse_settings(arguments.to_config()) == arguments
    assert max(sizes[len(sizes) // 2 :]) == max(sizes[: len(sizes) // 2])
    for flag, last in (("--print_config", "  m29:"), ("--help_all", "for m8, m9,")):
        with pytest.raises(SystemExit):
            parse([*words, flag])
        assert last in capsys.readouterr().out


def test_later_settings_of_a_modality_go_over_earlier_ones(home: Path) -> None:
    (home / "config.yaml").write_text("modality: {load: {weight: 3, encoder: {sizes: [4]}}}\n")
    load = parsed("--modality.load.weight 2 --config config.yaml --modality.load.encoder.sizes 5,6").config.modality[
        "load"
    ]
    assert (load.weight, load.encoder.sizes, load.encoder.kind) == (3, (5, 6), "curve")


@pytest.mark.parametrize(
    ("content", "match"),
    [
        ("modality: {lode: {weight: 3}}", "^config: expected settings that there are, got modality.lode.weight; did"),
        ("modality: {load: {wait: 3}}", "^config: expected settings that there are, got modality.load.wait"),
        ("modality: {load: {weight: x}}", "^modality.load.weight: expected a number, got x \\(in config.yaml\\)$"),
        ("modality: 3", "^modality: expected settings, each by its name, got 3; .*\\(in config.yaml\\)$"),
        ("modality: [x]", "^modality: expected settings, each by its name, got \\['x'\\]; .*\\(in config.yaml\\)$"),
        ("modality: {load: 3}", "^modality.load: expected settings, each by its name, got 3"),
        ("modality: {load: [x]}", "^modality.load: expected settings, each by its name, got \\['x'\\]"),
        ("modality: {load: {encoder: [x]}}", "^modality.load.encoder: expected settings, each by its name, got"),
        ("training: [x]", "^training: expected settings, each by its name, got \\['x'\\]; .*\\(in config.yaml\\)$"),
        ("guide: 3", "^guide: expected settings, each by its name, got 3"),
    ],
)
def test_settings_of_modalities_that_are_refused(home: Path, content: str, match: str) -> None:
    (home / "config.yaml").write_text(content)
    with pytest.raises(ValueError, match=match):
        parsed("--config config.yaml")
