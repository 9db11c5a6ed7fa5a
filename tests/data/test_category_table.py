from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.data.tables import read_category_table


def written(folder: Path, text: str) -> Path:
    path = folder / "table.csv"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("separator", [",", ";", "\t", " ", "   "])
def test_words_and_numbers_are_levels(tmp_path: Path, separator: str) -> None:
    lines = [("smoker", "dose"), ("yes", "10"), ("no", "9"), ("no", "10")]
    table = read_category_table(written(tmp_path, "\n".join(map(separator.join, lines)) + "\n\n"))
    assert table.nodes == ("smoker", "dose")
    assert table.levels == (("no", "yes"), ("9", "10"))
    assert table.outcomes == (2, 2)
    assert table.codes.tolist() == [[1, 1], [0, 0], [0, 1]]


def test_quoted_entries_and_spaces_inside_them(tmp_path: Path) -> None:
    table = read_category_table(written(tmp_path, 'a,"b, c"\n"x, y",1\n None ,2\n'))
    assert table.nodes == ("a", "b, c")
    assert table.levels == (("None", "x, y"), ("1", "2"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "expected a line of names and at least 2 rows, got 2 lines"),
        ("", "got 0 lines"),
        ("a,b\n1,2\n1,\n2,1\n", r"line 3: b: expected an entry, got none"),
        ("a,b\n1,2\n\n1,1\nNA,1\n", r"line 5: a: expected an entry, got 'NA'"),
        ("a,b\n1,2\n?,1\n", r"line 3: a: expected an entry, got '\?'"),
        ("a,b\n1,2\n1\n", r"line 3: b: expected an entry"),
        ("a,b\n1,2\n1,2,3\n", "as many fields in every row"),
        ("a,b\n1,2\n1,3\n", "a: expected at least 2 different entries, got 1 alone"),
        ("a,\n1,2\n1,3\n", "expected a name for column 2"),
        ("a,a\n1,2\n1,3\n", "got a twice"),
        ("1,2\n1,2\n2,3\n", "got numbers alone"),
        ("a\n1\n2\n", "expected at least 2 columns .* got a alone"),
        ('"a\nx",b\n1,2\n2,3\n3,2\n', "expected every row on a line of its own"),
        (
            ",".join(f"c{k}" for k in range(21)) + "\n" + ",".join("0" * 21) + "\n" + ",".join("1" * 21),
            "at most 20 col",
        ),
        (
            "a,b\n" + "\n".join(f"x{k % 300},{k % 2}" for k in range(900)),
            "a: expected at most 200 different entries, got 300",
        ),
        (
            "a,b\n" + "\n".join(f"{k / 7:.3f},{k % 2}" for k in range(150)),
            r"a: expected categories, got 150 different numbers in 150 rows; put them into classes \(such as pandas",
        ),
        ("a,b\n" + "\n".join(f"{k % 36},{k % 2}" for k in range(150)), "a: expected categories, got 36 different numb"),
        (
            "a,b\n" + "\n".join(f"S{k},{k % 2}" for k in range(150)),
            r"a: expected categories, got 150 different entries in 150 rows, .*leave the column out \(--columns",
        ),
        ("a,b\n1,2\nn.d.,1\n", r"line 3: a: expected an entry, got 'n.d.'"),
        (",b\n1,2\n2,3\n", "expected a name for column 1, got none; .*--columns"),
    ],
)
def test_what_is_no_table_of_categories_is_one_line(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(ValueError, match=words) as error:
        read_category_table(written(tmp_path, text))
    assert "\n" not in str(error.value)
    assert str(error.value).startswith(str(tmp_path / "table.csv"))


def test_levels_that_look_like_gaps_are_named(tmp_path: Path) -> None:
    lines = ["gram,dose,strain", "+,1,a", "-,2,-", "+,-999,b", "-,1,<LOD", "+,2,a"]
    table = read_category_table(written(tmp_path, "\n".join(lines)))
    assert [note.partition(";")[0] for note in table.notes] == [
        "dose: '-999' in 1 of 5 rows looks like a missing entry, and counts as a level",
        "strain: '-' in 1 of 5 rows looks like a missing entry, and counts as a level",
        "strain: '<LOD' in 1 of 5 rows looks like a missing entry, and counts as a level",
    ]
    assert table.outcomes == (2, 3, 4)


def test_columns_that_are_named(tmp_path: Path) -> None:
    """Others may have anything: no name, names of samples, gaps."""
    path = written(tmp_path, ",id,a,b\n" + "\n".join(f"{k},,{k % 2},{k % 3}" for k in range(12)))
    table = read_category_table(path, ("b", "a"))
    assert (table.nodes, table.outcomes) == (("b", "a"), (3, 2))
    with pytest.raises(ValueError, match=r"columns: expected columns of the table \(, id, a, b\), got none for c"):
        read_category_table(path, ("a", "c"))


def test_a_file_that_is_not_there_or_no_text(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="got none"):
        read_category_table(tmp_path / "none.csv")
    path = tmp_path / "bytes.csv"
    path.write_bytes(b"\0\1\2")
    with pytest.raises(ValueError, match="it is no text"):
        read_category_table(path)
