"""The table of names: what is written, what people make of it, and what is read back."""

from __future__ import annotations

from pathlib import Path

import pytest

from causalpima.inference.clusters.names import read_names, write_template

NODES = {"N1": 2, "N2": 2}
SIZES = (5, 4, 3, 2)
FILLED = [("red", "small"), ("red", "large"), ("blue", "small"), ("blue", "large")]


def written(path: Path, head: str, delimiter: str = ",", lines: list[tuple[str, str]] | None = None) -> Path:
    rows = [f"{c}{delimiter}{SIZES[c]}{delimiter}{a}{delimiter}{b}" for c, (a, b) in enumerate(lines or FILLED)]
    path.write_text("\n".join([head.replace(",", delimiter), *rows]) + "\n", encoding="utf-8-sig")
    return path


def test_the_template_has_a_row_per_cluster_and_a_column_per_node(tmp_path: Path) -> None:
    write_template(tmp_path / "names.csv", tuple(NODES), SIZES)
    text = (tmp_path / "names.csv").read_text()
    assert text == "cluster,size,N1,N2\n0,5,,\n1,4,,\n2,3,,\n3,2,,\n"
    with pytest.raises(ValueError, match=r"names.csv: names: expected a name in some column, got none"):
        read_names(tmp_path / "names.csv", NODES, SIZES)


def test_what_is_known_is_filled_in_and_can_be_read(tmp_path: Path) -> None:
    write_template(tmp_path / "names.csv", tuple(NODES), SIZES, FILLED)
    assert read_names(tmp_path / "names.csv", NODES, SIZES).outcomes == (("red", "blue"), ("small", "large"))


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_delimiters_of_spreadsheets_and_their_byte_order_mark(tmp_path: Path, delimiter: str) -> None:
    names = read_names(written(tmp_path / "n.csv", "cluster,size,N1,N2", delimiter), NODES, SIZES)
    assert names.permutation.tolist() == [0, 1, 2, 3]


def test_heads_rename_nodes(tmp_path: Path) -> None:
    names = read_names(written(tmp_path / "n.csv", "cluster,size,hue,N2"), NODES, SIZES)
    assert names.nodes == {"hue": 2, "N2": 2}
    assert names.named == ("hue", "N2")


def test_columns_with_known_names_may_change_places(tmp_path: Path) -> None:
    names = read_names(written(tmp_path / "n.csv", "cluster,size,N2,N1"), NODES, SIZES)
    assert names.nodes == NODES
    assert names.outcomes == (("small", "large"), ("red", "blue"))
    assert names.permutation.tolist() == [0, 2, 1, 3]


@pytest.mark.parametrize(
    ("head", "match"),
    [
        ("cluster,size,N1", "expected the columns cluster, size and one for each of N1, N2"),
        ("group,size,N1,N2", "expected the columns cluster, size and one"),
        ("cluster,size,N1,N1", "under different names, got"),
        ("cluster,size,N2,hue", "expected renamed columns in their places .*, got 'N2'"),
        ("cluster,size,the hue,N2", "expected names of nodes that are one word, got 'the hue'"),
    ],
)
def test_other_heads_are_refused(tmp_path: Path, head: str, match: str) -> None:
    with pytest.raises(ValueError, match=match):
        read_names(written(tmp_path / "n.csv", head), NODES, SIZES)


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "got an empty file"),
        ("cluster,size,N1,N2\n0,5,a,b\n0,5,a,c\n", "got two for one"),
        ("cluster,size,N1,N2\nzero,5,a,b\n", "expected the number of a cluster in the column cluster, got 'zero'"),
    ],
)
def test_other_tables_are_refused(tmp_path: Path, text: str, match: str) -> None:
    (tmp_path / "n.csv").write_text(text)
    with pytest.raises(ValueError, match=match):
        read_names(tmp_path / "n.csv", NODES, SIZES)


def test_a_table_that_is_not_there_is_refused_by_its_path(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"other.csv: names: expected a readable CSV file, got none"):
        read_names(tmp_path / "other.csv", NODES, SIZES)


def test_a_table_in_another_encoding_is_told_how_to_save_it(tmp_path: Path) -> None:
    table = tmp_path / "names.csv"
    table.write_bytes(b"cluster,size,type\n0,3,gr\xfcn\n")
    with pytest.raises(ValueError, match=r"got none \(it is no UTF-8 text; save it as CSV UTF-8\)$"):
        read_names(table, {"type": 2}, [3, 3])
