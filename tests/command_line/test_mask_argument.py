"""The value of --mask."""

from __future__ import annotations

import pytest

from causalpima.inference.command_line.flags import mask_from_text, with_mask

EXPECTED = {"image": ("shape", "hue"), "curve": ("shape",)}


@pytest.mark.parametrize(
    "value",
    [
        "image=shape,hue curve=shape",
        ["image=shape,hue", "curve=shape"],
        ["image=shape,hue curve=shape"],
        {"image": ["shape", "hue"], "curve": ("shape",)},
        {"image": "shape, hue", "curve": "shape"},
    ],
)
def test_forms(value: object) -> None:
    assert mask_from_text(value) == EXPECTED  # type: ignore[arg-type]


def test_a_modality_may_have_an_equals_sign_in_its_name() -> None:
    assert mask_from_text("T=300=N1") == {"T=300": ("N1",)}


@pytest.mark.parametrize("value", ["a=N1,N2,b=N2", ["a=N1,N2,b=N2"], "a=N1,N2,b=N2 c=N1"])
def test_commas_between_modalities_are_told(value: str | list[str]) -> None:
    message = r"^mask: expected modalities separated by spaces, got commas, 'a=N1,N2,b=N2'; write --mask a=N1,N2 b=N2$"
    with pytest.raises(ValueError, match=message):
        mask_from_text(value)


def test_none() -> None:
    assert mask_from_text([]) == mask_from_text("") == {}


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("image", "mask: expected MODALITY=NODE,NODE, for example .*, got 'image'"),
        ("=N1", "mask: expected a modality and the nodes that it sees"),
        ("a=", "mask: expected a modality and the nodes that it sees"),
        ("a=N1,,N2", "mask: expected a modality and the nodes that it sees"),
        ("a=N1 a=N2", "mask: expected every modality once"),
        ("a=N1,N1", "mask: expected every node once per modality"),
    ],
)
def test_anything_else_is_refused(value: str, message: str) -> None:
    with pytest.raises(ValueError, match=message) as error:
        mask_from_text(value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--mask", "a=N1", "b=N2", "--quiet"], ["--mask", "a=N1 b=N2", "--quiet"]),
        (["--quiet", "--mask", "a=N1"], ["--quiet", "--mask", "a=N1"]),
        (["--mask", "--quiet", "--json", "x"], ["--mask", "--quiet", "--json", "x"]),
        (["--mask=a=N1", "--quiet"], ["--mask=a=N1", "--quiet"]),
        (["--json", "x"], ["--json", "x"]),
    ],
)
def test_pairs_after_the_flag_become_one_word(words: list[str], expected: list[str]) -> None:
    assert with_mask(words) == expected
