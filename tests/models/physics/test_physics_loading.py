"""Laws by name and from a user's own file: what works, and one line for everything that does not."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from causalpima.models.batch import Modality
from causalpima.models.decoders.physics.law import LawCurve
from causalpima.models.decoders.physics.laws import LAWS, load_law

HEAD = """
import torch
from causalpima.models.decoders.physics import PhysicalParameter, PhysicsLaw
"""
GOOD = (
    HEAD
    + """
class Saturation(PhysicsLaw):
    def __init__(self, with_offset=False):
        offset = (PhysicalParameter("offset"),) if with_offset else ()
        limit, rate = (PhysicalParameter(name, lower=0.0, start=2.0) for name in ("limit", "rate"))
        self.parameters = (limit, rate, *offset)

    def mean(self, position, limit, rate, offset=0.0):
        return offset + limit * (1 - torch.exp(-rate * position))
"""
)
WriteModule = Callable[[str], str]


@pytest.fixture
def write_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> WriteModule:
    """Write a module in an empty current directory; gives its name."""
    monkeypatch.chdir(tmp_path)

    def write(source: str) -> str:
        name = f"own_law_{abs(hash((source, str(tmp_path))))}"
        (tmp_path / f"{name}.py").write_text(source, encoding="utf-8")
        return name

    return write


def one_parameter(mean: str, declared: str = '(PhysicalParameter("a", start=1.0),)') -> str:
    body = f"    parameters = {declared}\n    def mean(self, position, a):\n        {mean}\n"
    return f"{HEAD}\nclass Law(PhysicsLaw):\n{body}"


@pytest.mark.parametrize("name", LAWS)
def test_shipped_laws_load_by_name(name: str) -> None:
    assert type(load_law(name)) is LAWS[name]


def test_options_reach_the_law() -> None:
    assert len(load_law("piecewise_linear", {"n_pieces": 4, "through_origin": True}).parameters) == 7


def test_a_law_of_the_current_directory_loads(write_module: WriteModule) -> None:
    path = list(sys.path)
    module = write_module(GOOD.replace(", offset=0.0", ", **more").replace("offset + limit", "limit"))
    law = load_law(f"{module}:Saturation")
    assert [parameter.name for parameter in law.parameters] == ["limit", "rate"]
    assert law.mean(torch.tensor([0.0, 1e9]), limit=torch.tensor([3.0]), rate=torch.tensor([1.0])).tolist() == [0, 3]
    assert sys.path == path


def test_a_law_in_a_package_loads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own_package").mkdir()
    (tmp_path / "own_package" / "laws.py").write_text(one_parameter("return a * position"), encoding="utf-8")
    assert load_law("own_package.laws:Law").parameters[0].name == "a"


def test_unknown_names_are_told() -> None:
    with pytest.raises(ValueError, match=r"law: expected one of piecewise_linear, .*module:Class.* got 'cubic'"):
        load_law("cubic")


@pytest.mark.parametrize("name", ["no_such_module:Law", "no_such.module:Law", "mylab.py:Law", ":Law", "module:"])
def test_missing_modules_are_told(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=f"law {name}: expected a module"):
        load_law(name)


@pytest.mark.parametrize(
    ("source", "cls", "message"),
    [
        (GOOD, "Satiation", "expected a class of .*, got 'Satiation'; its laws: Saturation"),
        (GOOD, "torch", "expected a subclass of causalpima.PhysicsLaw, got <module"),
        (GOOD, "PhysicsLaw", "expected a subclass of causalpima.PhysicsLaw"),
        ("import no_such_thing", "Law", "needs a module that is not there: no_such_thing"),
        ("1 / 0", "Law", "fails: ZeroDivisionError: division by zero"),
        ("x = (", "Law", "fails: SyntaxError"),
        (HEAD + "class Law(PhysicsLaw):\n    pass", "Law", "abstract .*mean"),
        (one_parameter("return position"), "Law", "expected mean.. to be differentiable in its parameters"),
        (one_parameter("return a.sum() * position[:3]"), "Law", r"to be a tensor \[2, 7\], got \[3\]"),
        (one_parameter("return 1.0"), "Law", r"to be a tensor \[2, 7\], got float"),
        (one_parameter("raise KeyError('b')"), "Law", "mean.. fails at the starting values: KeyError: 'b'"),
        (
            one_parameter("return a", '(PhysicalParameter("b"),)'),
            "Law",
            r"mean\(position, b\).*got mean\(pos",
        ),
        (one_parameter("return a", "('a',)"), "Law", r"`parameters` as a tuple of PhysicalParameter, got \('a',\)"),
        (one_parameter("return a", "()"), "Law", "expected one or more with different names"),
    ],
)
def test_wrong_files_are_told(write_module: WriteModule, source: str, cls: str, message: str) -> None:
    name = f"{write_module(source)}:{cls}"
    with pytest.raises(ValueError, match=message) as told:
        load_law(name)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("mean", "message"),
    [
        ("return torch.log(a * (position - 2))", "expected a finite mean.. .* from 1 to 3, got nan"),
        ("return torch.sqrt(a - 1) * position", "expected finite derivatives of mean.. at the starting values"),
    ],
)
def test_curves_that_are_not_finite_on_the_data_are_told(write_module: WriteModule, mean: str, message: str) -> None:
    position = torch.tensor([1.0, 2.0, 3.0])
    law = load_law(f"{write_module(one_parameter(mean))}:Law")
    with pytest.raises(ValueError, match=message):
        LawCurve(law, Modality("curve", position.shape, "curve", position))


def test_laws_that_need_the_positions_of_the_data_load(write_module: WriteModule) -> None:
    name = write_module(one_parameter("return torch.log(a * (position - 300))"))
    position = torch.tensor([400.0, 500.0])
    LawCurve(load_law(f"{name}:Law"), Modality("curve", position.shape, "curve", position))


def test_wrong_options_are_told(write_module: WriteModule) -> None:
    name = f"{write_module(GOOD)}:Saturation"
    with pytest.raises(ValueError, match="unexpected keyword argument 'speed'; its options: with_offset"):
        load_law(name, {"speed": 3})
    with pytest.raises(ValueError, match=r"law linear: .*'speed'; its options: through_origin"):
        load_law("linear", {"speed": 3})


def test_the_same_file_can_be_asked_for_twice(write_module: WriteModule) -> None:
    name = f"{write_module(one_parameter('return a * position'))}:Law"
    assert type(load_law(name)) is type(load_law(name))


def test_a_module_or_class_that_leaves_the_program_is_told_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "leaving_module.py").write_text("raise SystemExit(7)\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=r"^law leaving_module:Law: importing leaving_module fails: SystemExit: 7$"):
        load_law("leaving_module:Law")
