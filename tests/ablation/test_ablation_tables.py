"""The table of a small made-up ablation, in every form."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from ablation_records import CHOSEN, RECORDS, record, table
from PIL import Image

from causalpima.inference.ablation.records import METRICS, Record, metric_named
from causalpima.inference.ablation.sheets import (
    failure_lines,
    latex,
    markdown,
    mean_sheet,
    notes,
    parts_of,
    plain,
    sheets_of,
)
from causalpima.inference.ablation.table import csv_text, table_of
from causalpima.inference.ablation.writing import draw_metric, findings, status_line, terminal_text, write_results
from causalpima.inference.findings.base import Table
from causalpima.inference.findings.drawing import figure_style


def test_differences_are_over_the_seeds_of_both() -> None:
    found = {row.cell: row for row in table().rows}
    assert found["b"].differences["cluster_accuracy"].n == 3
    assert found["b"].differences["cluster_accuracy"].mean == pytest.approx(0.2)
    assert found["b"].differences["cpdag_shd"].n == 2
    assert found["a"].differences == {}
    assert found["c<i>"].spreads["cluster_accuracy"].n == 0


def test_failures_are_rows_and_counted() -> None:
    found = {row.cell: row for row in table().rows}
    assert found["b"].statuses == {"ok": 2, "collapsed": 1, "diverged": 1}
    assert found["c<i>"].statuses == {"refused": 4}
    assert [row.n_fits for row in table().rows] == [4, 4, 4]
    assert [row[1:3] for row in mean_sheet(table()).rows] == [
        ["4 of 4", "-"],
        ["2 of 4", "1 collapsed, 1 diverged"],
        ["0 of 4", "4 refused"],
    ]


def test_columns_that_are_empty_everywhere_are_left_out() -> None:
    assert [metric.name for metric in table().metrics] == ["cluster_accuracy", "cpdag_shd"]


def test_without_failures_there_is_no_column_for_them() -> None:
    found = table_of(RECORDS[:4], CHOSEN, "a")
    assert mean_sheet(found).head == ["cell", "ok", "cluster accuracy ↑", "SHD, best assignment ↓"]
    assert len(sheets_of(found)) == 1
    assert mean_sheet(found).rows[0][2:] == ["0.525 ± 0.330", "1.50 ± 0.71 (n=2)"]


def test_signs_are_of_the_digits_shown() -> None:
    records = [record(cell, 0, value) for cell, value in (("a", 0.5), ("b", 0.50001), ("c", 0.4))]
    found = sheets_of(table_of(records, CHOSEN, "a"))[1]
    assert found.rows == [["b", "0.000"], ["c", "−0.100"]]


def test_csv_has_every_digit_and_empty_places() -> None:
    rows = list(csv.DictReader(io.StringIO(csv_text(table()))))
    assert [row["cell"] for row in rows] == ["a", "b", "c<i>"]
    assert float(rows[1]["cluster_accuracy_difference"]) == pytest.approx(0.2, abs=1e-12)
    assert (rows[1]["collapsed"], rows[1]["diverged"], rows[1]["cluster_accuracy_n_pairs"]) == ("1", "1", "3")
    assert (rows[0]["cluster_accuracy_difference"], rows[2]["cluster_accuracy_mean"]) == ("", "")


def test_failures_are_told_with_their_seeds_and_reasons() -> None:
    assert failure_lines(RECORDS) == [
        "b: collapsed, seed 2: why it is collapsed",
        "b: diverged, seed 3: why it is diverged",
        "c<i>: refused, seed 0, 1, 2, 3: arm: expected one, got c_i & co",
    ]
    assert status_line(RECORDS) == "6 of 12 fits are ok; 1 collapsed; 1 diverged; 4 refused"


def test_findings_do_not_judge_on_few_seeds() -> None:
    first, second = findings(table())
    assert first == "b: cluster accuracy +0.200 against a, on 3 seeds: too few seeds to tell."
    assert second == "c<i>: no cluster accuracy to compare (4 refused of 4 fits)."
    assert all(
        "fewer than 6 seeds have no interval" in form(sheets_of(table())[1]) for form in (plain, markdown, latex)
    )


def test_scores_of_other_samples_have_no_difference() -> None:
    told = {"a": "600 samples", "b": "60 unlabelled samples"}
    fits = [replace(fit, scored_on=told.get(fit.cell, "")) for fit in RECORDS]
    found = {row.cell: row for row in table_of(fits, [*CHOSEN, METRICS["seconds"]], "a").rows}
    assert found["b"].differences["cluster_accuracy"].mean is None
    assert any("a: all samples; b: unlabelled samples" in note for note in notes(table_of(fits, CHOSEN, "a")))
    same = [replace(fit, scored_on="600 samples") for fit in RECORDS]
    assert notes(table_of(same, CHOSEN, "a")) == notes(table())
    assert table_of(same, CHOSEN, "a").rows[1].differences == table().rows[1].differences


def test_graphs_do_not_depend_on_which_samples_are_scored() -> None:
    fits = [replace(fit, scored_on=f"60 samples of {fit.cell}") for fit in RECORDS]
    assert table_of(fits, CHOSEN, "a").rows[1].differences["cpdag_shd"] == table().rows[1].differences["cpdag_shd"]
    is_of_labels = {
        name: metric_named(name).is_of_labels for name in ("summary.evaluation.calibration.ece", "evaluate.nmi")
    }
    assert all(is_of_labels.values())
    assert not metric_named("evaluate.cross_modal.*.r2_cluster_mean").is_of_labels
    assert not METRICS["reported_shd"].is_of_labels


def test_figures_show_no_difference_that_the_table_does_not_have() -> None:
    fits = [replace(fit, scored_on=f"60 samples of {fit.cell}") for fit in RECORDS]
    found = table_of(fits, CHOSEN, "a")
    with figure_style():
        _, right = draw_metric(found, CHOSEN[0]).axes
    assert not [line for line in right.lines if line.get_markerfacecolor() == "none"]


def test_scores_of_nodes_that_nobody_named_are_no_result() -> None:
    assert any("of nodes that nobody named they are no result" in note for note in notes(table()))
    assert not any("nobody named" in note for note in notes(table_of(RECORDS, CHOSEN[:1], "a")))


def test_many_seeds_are_judged() -> None:
    values = np.random.default_rng(0).normal(size=8)
    records = [
        record(cell, seed, value + shift) for cell, shift in (("a", 0), ("b", -1)) for seed, value in enumerate(values)
    ]
    (found,) = findings(table_of(records, CHOSEN, "a"))
    assert found.endswith(": worse.")


def test_plain_text_repeats_names_where_the_width_ends() -> None:
    sheet = Table("Caption.", ["cell", *(f"metric {i}" for i in range(6))], [["name", *("1.000 ± 0.100",) * 6]])
    text = plain(sheet, width=50)
    assert text.startswith("Caption.\n\ncell")
    assert max(map(len, text.splitlines())) <= 50
    assert text.count("name") == 2
    assert text.count("1.000") == 6


def test_markdown_escapes_what_has_a_meaning() -> None:
    text = markdown(Table("About a_b|c.", ["cell", "x"], [["a*b_c|<d>", "[1]"]]))
    assert text.splitlines() == [
        r"About a\_b\|c.",
        "",
        "| cell | x |",
        "|---|---:|",
        r"| a\*b\_c\|\<d\> | \[1\] |",
    ]


def test_latex_escapes_what_has_a_meaning() -> None:
    text = latex(Table("95 % of a_b.", ["cell", "R² ↑"], [[r"a_b&{c}\~^#$", "−0.1 ± 0.2"]]))
    assert r"\caption{95 \% of a\_b.}\label{tab:ablation}" in text
    assert r"cell & R$^2$ $\uparrow$ \\" in text
    row = r"a\_b\&\{c\}\textbackslash{}\textasciitilde{}\textasciicircum{}\#\$ & $-$0.1 $\pm$ 0.2 \\"
    assert row in text
    assert text.count(r"\begin{tabular}{lr}") == text.count(r"\bottomrule") == 1


def test_latex_is_no_wider_than_a_page() -> None:
    sheet = Table("C.", ["cell", *(f"metric {i}" for i in range(9))], [["name", *("+0.1 [+0.1, +0.2]",) * 9]])
    text = latex(sheet, "means")
    assert text.count(r"\begin{table}") == text.count("+0.1 [+0.1, +0.2]") // 3 == 3
    assert re.findall(r"\\label\{(.*?)\}", text) == ["tab:means", "tab:means-2", "tab:means-3"]
    assert re.findall(r"\\caption\{(.*)\}\\label", text) == [
        "C.",
        r"Table~\ref{tab:means}, part 2 of 3.",
        r"Table~\ref{tab:means}, part 3 of 3.",
    ]


def test_latex_has_formulas_in_math_mode() -> None:
    assert r"Log p" not in (text := latex(Table("Log p(x) and log p(x).", ["held-out log p(x) ↑", "x"], [])))
    assert text.count(r"$\log p(x)$") == 3


def test_parts_keep_the_columns_that_name_a_row() -> None:
    sheet = Table("C.", ["cell", "seed", *"abcd"], [["x", "0", "10000", "20000", "30000", "40000"]])
    parts = parts_of(sheet, 28, 2)
    assert [part.head for part in parts] == [["cell", "seed", "a", "b"], ["cell", "seed", "c", "d"]]
    assert [part.rows for part in parts] == [[["x", "0", "10000", "20000"]], [["x", "0", "30000", "40000"]]]
    assert [part.caption for part in parts] == ["C.", ""]
    assert parts_of(sheet, 90, 2) == [sheet]


def test_the_paper_is_told_the_data_and_the_failures_in_the_caption(tmp_path: Path) -> None:
    write_results(tmp_path, table(), RECORDS, "command", origin=("data coupons.nc", "96 samples"))
    text = (tmp_path / "table.tex").read_text()
    (caption,) = re.findall(r"\\caption\{(.*)\}\\label\{tab:ablation-means\}", text)
    assert "Fits of data coupons.nc, 96 samples." in caption
    assert "b: diverged, seed 3: why it is diverged." in caption
    assert "those that collapsed are in the means" in caption
    assert [line for line in text.splitlines() if line.startswith("%")] == [r"% \usepackage{booktabs}", "% command"]
    assert "data coupons.nc · 96 samples · 3 cells" in (tmp_path / "table.html").read_text("utf-8")


def test_absent_numbers_are_a_dash_and_negative_ones_have_a_minus() -> None:
    found = table_of([record("a", 0, -0.5, shd=1.0), record("b", 0, -0.25)], CHOSEN, "a")
    means, differences = sheets_of(found)
    assert [row[-2:] for row in means.rows] == [["−0.500", "1.00"], ["−0.250", "-"]]
    assert [row[1:] for row in differences.rows] == [["+0.250", "-"]]


def test_units_are_told_where_labels_have_none() -> None:
    metrics = [METRICS["entropy"], METRICS["held_out_log_likelihood"]]
    fits = [replace(record("a", 0, None), metrics={"entropy": 0.5, "held_out_log_likelihood": -3.0})]
    text = " ".join(notes(table_of(fits, metrics, "a")))
    assert "nats per sample" in text
    assert "Entropy is that of q(N | X) in nats" in text
    assert "nats" not in " ".join(notes(table()))


def test_findings_name_the_other_metrics_that_differ() -> None:
    shifted = [
        record(cell, seed, float(value) + shift, shd=float(-shift + seed % 2))
        for cell, shift in (("a", 0.0), ("b", 1.0))
        for seed, value in enumerate(np.random.default_rng(0).normal(size=8))
    ]
    (found,) = findings(table_of(shifted, CHOSEN, "a"))
    assert found.endswith(": better. Also better in SHD, best assignment.")


def test_settings_of_cells_are_told_at_the_terminal() -> None:
    text = terminal_text(table(), RECORDS)
    assert re.search(r"^c<i> +objective=c$", text, re.MULTILINE)


def test_all_files_are_written_and_the_page_stands_alone(tmp_path: Path) -> None:
    write_results(tmp_path, table(), RECORDS, "python -m inference.ablate <b>")
    written = {path.name for path in tmp_path.iterdir()}
    assert written == {"records.jsonl", "figures", *(f"table.{end}" for end in ("csv", "json", "md", "tex", "html"))}
    page = (tmp_path / "table.html").read_text("utf-8")
    assert "c&lt;i&gt;" in page
    assert "<i>" not in page
    assert "<b>" not in page
    assert not re.search(r"(src|href)=\"(?!data:|#)", page)
    assert page.count("data:image/png") == 2
    assert json.loads((tmp_path / "table.json").read_text())["cells"]["b"]["metrics"]["cluster_accuracy"]["n"] == 3
    with Image.open(tmp_path / "figures" / "cluster_accuracy.png") as picture:
        assert min(picture.size) > 100


def test_figures_show_every_seed_and_the_means() -> None:
    with figure_style():
        left, right = draw_metric(table(), CHOSEN[0]).axes
    assert [label.get_text() for label in left.get_yticklabels()] == ["a", "b\n(2 of 4 ok)", "c<i>\n(0 of 4 ok)"]
    rings = [
        sorted(np.asarray(line.get_xdata()).tolist()) for line in left.lines if line.get_markerfacecolor() == "none"
    ]
    assert rings == [[0.1, 0.5, 0.6, 0.9], [0.4, 0.6, 0.8]]
    differences = [np.asarray(line.get_xdata()) for line in right.lines if line.get_markerfacecolor() == "none"]
    assert len(differences) == 1
    np.testing.assert_allclose(np.sort(differences[0]), [0.1, 0.2, 0.3])


def test_the_terminal_shows_all_of_it() -> None:
    text = terminal_text(table(), RECORDS)
    for part in ("6 of 12 fits are ok", "1 collapsed, 1 diverged", "+0.200", "c_i & co", "are counted"):
        assert part in text


@pytest.mark.parametrize(
    ("values", "texts"), [((540, 540), "540 ± 0"), ((2, 3), "2.5 ± 0.7"), ((0.5, 1), "0.750 ± 0.354")]
)
def test_counts_at_a_path_have_the_places_of_counts(values: tuple[float, float], texts: str) -> None:
    metric = metric_named("summary.n_samples")
    fits = [replace(record("a", n, None), metrics={metric.name: value}) for n, value in enumerate(values)]
    sheet = mean_sheet(table_of(fits, [metric], "a"))
    assert (sheet.head[-1], sheet.rows[0][-1]) == ("n_samples", texts)


def shifted(n_seeds: int, shift: float, n_of_b: int | None = None) -> list[Record]:
    """Cells a and b, of which b is off by the shift, with a little spread."""
    return [
        record(cell, seed, 0.5 + 0.1 * seed + (cell == "b") * shift * (1 + seed / 100))
        for cell, n in (("a", n_seeds), ("b", n_of_b or n_seeds))
        for seed in range(n)
    ]


def test_an_interval_that_leaves_zero_out_is_not_rounded_to_one_that_holds_it() -> None:
    found = table_of(shifted(8, -1e-4), CHOSEN, "a")
    assert sheets_of(found)[1].rows == [["b", "−0.0001 [−0.0001, −0.0001]"]]
    assert findings(found) == ["b: cluster accuracy −0.0001 (−0.0001 to −0.0001, 8 seeds) against a: worse."]


def test_what_only_rounding_leaves_is_no_difference() -> None:
    fits = [record("a", seed, 0.3 + seed / 100) for seed in range(8)]
    fits += [record("b", seed, float(np.nextafter(0.3 + seed / 100, 1))) for seed in range(8)]
    found = table_of(fits, CHOSEN, "a")
    assert sheets_of(found)[1].rows == [["b", "0.000 [0.000, 0.000]"]]
    assert findings(found)[0].endswith("no difference is shown.")


def test_a_difference_over_fewer_seeds_says_how_many() -> None:
    few = sheets_of(table_of(shifted(8, 0.1, n_of_b=3), CHOSEN, "a"))[1]
    assert few.rows == [["b", "+0.101 (n=3)"]]
    assert few.caption == (
        "Difference from a, paired by seed: mean; fewer than 6 seeds have no interval and tell little."
    )
    seven = sheets_of(table_of(shifted(8, 0.1, n_of_b=7), CHOSEN, "a"))[1]
    assert seven.rows[0][1].endswith("] (n=7)")
    assert seven.caption == "Difference from a, paired by seed: mean and 95 % bootstrap interval."


def test_figures_promise_intervals_only_where_there_are_some(tmp_path: Path) -> None:
    def told(n_seeds: int, n_of_b: int | None = None) -> tuple[str, str]:
        fits = shifted(n_seeds, 0.1, n_of_b)
        found = table_of(fits, CHOSEN, "a")
        with figure_style():
            note = " ".join(text.get_text() for text in draw_metric(found, CHOSEN[0]).texts)
        write_results(tmp_path, found, fits, "command")
        return " ".join(note.split()), (tmp_path / "table.html").read_text("utf-8")

    for text in told(2):
        assert "means (fewer than 6 seeds have no interval)." in text
    for text in told(6):
        assert "means with 95 % bootstrap intervals." in text
    for text in told(6, 3):
        assert "means with 95 % bootstrap intervals (fewer than 6 seeds have none)." in text


def test_small_numbers_at_a_path_are_not_rounded_to_nothing() -> None:
    metric = metric_named("summary.graph.acyclicity")
    fits = [replace(record("a", n, None), metrics={metric.name: 1e-6 * (n + 1)}) for n in range(2)]
    assert mean_sheet(table_of(fits, [metric], "a")).rows[0][-1] == "0.00000150 ± 0.00000071"
    none = [replace(record("a", n, None), metrics={metric.name: 0.0}) for n in range(2)]
    assert mean_sheet(table_of(none, [metric], "a")).rows[0][-1] == "0.0 ± 0.0"


def test_failures_in_markdown_show_what_they_say(tmp_path: Path) -> None:
    write_results(tmp_path, table(), RECORDS, "command")
    assert r"- c\<i\>: refused, seed 0, 1, 2, 3: arm: expected one, got c\_i \& co" in (
        tmp_path / "table.md"
    ).read_text("utf-8")


def test_latex_reads_no_cell_as_an_argument_and_no_flag_as_a_dash() -> None:
    text = latex(Table("Without --kl_weight.", ["cell", "x"], [["[64,32]", "1"], ["*", "2"], ["β-VAE", "3 ≥ 2"]]))
    assert "\n{}[64,32] & 1" in text
    assert "\n{}* & 2" in text
    assert r"$\beta$-VAE & 3 $\geq$ 2 \\" in text
    assert r"\caption{Without -{}-kl\_weight.}" in text


def test_findings_say_why_there_is_nothing_to_compare() -> None:
    def found(a: str, b: str, a_hash: str = "", b_hash: str = "") -> str:
        told = {"a": (a, a_hash), "b": (b, b_hash)}
        fits = [
            replace(fit, scored_on=told[fit.cell][0], samples={"labels": told[fit.cell][1]} if a_hash else {})
            for fit in RECORDS[:8]
        ]
        return findings(table_of(fits, CHOSEN, "a"))[0]

    nothing = "b: no cluster accuracy to compare"
    assert found("600 samples", "60 unlabelled samples") == (
        f"{nothing} (scored on 60 unlabelled samples, a on 600 samples)."
    )
    assert found("600 samples", "600 samples", "ab", "cd") == (
        f"{nothing} (scored on other 600 samples, a on 600 samples)."
    )
    assert "+0.200" in found("600 samples", "600 samples", "ab", "ab")
    assert "+0.200" in found("600 samples", "600 samples")


def test_findings_say_that_the_baseline_has_none() -> None:
    fits = [record("a", 0, None, "diverged"), record("b", 0, 0.5), record("c", 1, 0.5), record("a", 1, None)]
    assert findings(table_of(fits, CHOSEN, "a")) == [
        "b: no cluster accuracy to compare (a has none).",
        "c: no cluster accuracy to compare (a has none).",
    ]
    other = [record("a", 0, 0.5), record("a", 1, None), record("b", 0, None), record("b", 1, 0.5)]
    assert findings(table_of(other, CHOSEN, "a")) == ["b: no cluster accuracy to compare (no seed that a has, too)."]


def test_other_samples_of_the_same_number_have_no_difference() -> None:
    hashes = {"a": "ab", "b": "cd"}
    fits = [replace(fit, scored_on="600 samples", samples={"labels": hashes[fit.cell]}) for fit in RECORDS[:8]]
    found = table_of(fits, CHOSEN, "a")
    assert found.rows[1].differences["cluster_accuracy"].n == 0
    assert found.rows[1].differences["cpdag_shd"].n == 2
    assert any("of other samples than those of a in b: data, split or factors differ" in note for note in notes(found))
    fewer = [replace(fit, scored_on=f"{len(fit.cell) + (fit.cell == 'b')}00 samples") for fit in RECORDS[:8]]
    assert any("of other samples than those of a in b" in note for note in notes(table_of(fewer, CHOSEN, "a")))


@pytest.mark.parametrize(("kind", "told"), [("held_out", "Held-out samples are other"), ("measure", "other units")])
def test_log_densities_of_other_samples_or_units_have_no_difference(kind: str, told: str) -> None:
    metrics = [METRICS["held_out_log_likelihood"], METRICS["seconds"]]
    fits = [
        Record(cell, 0, "ok", metrics={"held_out_log_likelihood": 1.0, "seconds": 2.0}, samples={kind: cell})
        for cell in "ab"
    ]
    found = table_of(fits, metrics, "a")
    assert {name: each.n for name, each in found.rows[1].differences.items()} == {
        "held_out_log_likelihood": 0,
        "seconds": 1,
    }
    assert any(told in note for note in notes(found))
    assert findings(found)[0].startswith("b: no held-out log p(x) to compare (its ")


def test_what_metrics_are_compared_on() -> None:
    found = {name: METRICS[name].compared_on for name in ("ari", "held_out_bound", "cross_modal_r2", "entropy")}
    assert found == {
        "ari": ("labels",),
        "held_out_bound": ("held_out", "measure"),
        "cross_modal_r2": ("held_out",),
        "entropy": (),
    }
    assert metric_named("evaluate.held_out_log_likelihood.per_sample").compared_on == ("held_out", "measure")
