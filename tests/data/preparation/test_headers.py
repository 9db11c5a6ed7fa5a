from __future__ import annotations

import pytest

from causalpima.inference.data.preparation.fields import Header, clean_name, parse_header


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("strain [%]", Header("strain", "%")),
        ("Stress (MPa)", Header("Stress", "MPa")),
        ("Stress(MPa)", Header("Stress", "MPa")),
        ("  Yield  strength ( N/mm2 ) ", Header("Yield strength", "N/mm2")),
        ("Stress / MPa", Header("Stress", "MPa")),
        ("speed (max) [m/s]", Header("speed (max)", "m/s")),
        ("(mm)", Header("", "mm")),
        ("km/h", Header("km/h", "")),
        ("strain []", Header("strain", "")),
        ("f(x) value", Header("f(x) value", "")),
    ],
)
def test_name_and_units(text: str, expected: Header) -> None:
    assert parse_header(text) == expected


def test_names_have_letters_digits_and_underscores() -> None:
    assert clean_name("Zugversuch, längs / 2") == "Zugversuch_längs_2"
    assert clean_name("%") == ""
