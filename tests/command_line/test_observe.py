"""The forms of `--observe`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import xarray as xr
import yaml

from causalpima.inference.command_line.flags import observe_from_text, observed_in, with_observed
from causalpima.inference.command_line.svi_parser import parse, parse_settings
from causalpima.inference.training.config import ObserveConfig

CIRCLES = ["--dataset", "circles"]


@pytest.mark.parametrize(
    ("words", "variables"),
    [
        (["--observe", "N1=hue,N2=radius"], {"N1": "hue", "N2": "radius"}),
        (["--observe=N1=hue", "--observe", "N2=radius"], {"N1": "hue", "N2": "radius"}),
        (["--observe", "hue , radius"], {"hue": "hue", "radius": "radius"}),
        (['--observe.variables={"N1": "hue"}'], {"N1": "hue"}),
        ([], {}),
    ],
)
def test_every_form_says_which_variable_a_node_has(words: list[str], variables: dict[str, str]) -> None:
    arguments = parse([*CIRCLES, *words, "--observe.fraction", "0.5"])
    assert arguments.config.observe == ObserveConfig(variables, 0.5)
    again = parse_settings(yaml.safe_load(yaml.safe_dump(arguments.to_config())))
    assert again.config == arguments.config


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--observe"], "observe: expected NODE or NODE=VARIABLE after --observe"),
        (["--observe", "--quiet"], "observe: expected NODE or NODE=VARIABLE after --observe"),
        (["--observe", "a=,b"], "observe: expected NODE or NODE=VARIABLE with commas between them"),
        (["--observe", "a=b,a=c"], "observe: expected every node once"),
        (["--observe", "a=b", "--observe", "a"], "observe: expected every node once"),
    ],
)
def test_other_forms_are_refused(words: list[str], message: str) -> None:
    with pytest.raises(ValueError, match=r"^observe: ") as error:
        parse([*CIRCLES, *words])
    assert message in str(error.value)


def test_other_words_are_left_alone() -> None:
    assert with_observed(["--a", "b", "--observed", "c"]) == ["--a", "b", "--observed", "c"]
    assert observe_from_text("type=a=b") == {"type": "a=b"}


def test_settings_of_a_file_and_flags_over_them() -> None:
    assert observed_in({"observe": {"variables": {"A": "x", "B": "y"}}}) == ("x", "y")
    assert observed_in({"observe": {"variables": {"A": "x"}}, "observe.variables": '{"A": "z"}'}) == ("z",)
    assert observed_in({"observe.variables": "no mapping"}) == ()
    assert observed_in({}) == ()


def test_an_observed_variable_of_a_file_is_a_label(tmp_path: Path) -> None:
    content = {
        "load": (("sample", "x"), np.random.default_rng(0).normal(size=(20, 3))),
        "alloy": ("sample", [""] * 5 + ["a", "b", "c"] * 5),
    }
    xr.Dataset(content).to_netcdf(tmp_path / "s.nc", engine="h5netcdf")
    words = ["--data", str(tmp_path / "s.nc"), "--nodes", "type=3"]
    arguments = parse([*words, "--modalities", "load", "--observe", "type=alloy"])
    assert arguments.make_data().factors["alloy"].tolist() == [-1] * 5 + [0, 1, 2] * 5
    settings = yaml.safe_load(yaml.safe_dump(arguments.to_config()))
    assert parse_settings(settings).make_data().factor_levels == {"alloy": ("a", "b", "c")}
    config = tmp_path / "c.yaml"
    config.write_text(yaml.safe_dump({"observe": {"variables": {"type": "alloy"}}, "modalities": ["load"]}))
    assert set(parse([*words, "--config", str(config)]).make_data().factors) == {"alloy"}
