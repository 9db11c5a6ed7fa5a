from __future__ import annotations

from typing import Any

import pytest
from circle_like_fit import circle_like_summary

from causalpima.inference.reporting.terminal import summary_table


def _lines(**changes: Any) -> list[str]:
    return summary_table(circle_like_summary(**changes)).splitlines()


def _line(start: str, **changes: Any) -> str:
    return next(line.strip() for line in _lines(**changes) if line.strip().startswith(start))


def _graph(n_nodes: int, strength: float, labellings: int = 840, name: str = "N") -> dict[str, Any]:
    names = [f"{name}{i + 1}" for i in range(n_nodes)]
    rows = [[strength if j > i else 0.0 for j in range(n_nodes)] for i in range(n_nodes)]
    return {"node_names": names, "edge_strength": rows, "equivalent_labellings": labellings}


def test_the_table_of_a_good_run() -> None:
    assert _lines() == [
        "Verdict    clear",
        "Data       circles, seed 3, 4096 samples: image 28x28x3",
        "Clusters   8 of 8 occupied, effective number 7.83",
        "           sizes 478 589 547 485 640 448 515 394",
        "Meaning    Clusters, unnamed: 840 labellings fit equally well; what is shown by",
        "           node is one of them.",
        "Graph      no edge is shown: nodes without a meaning have others in every",
        "           labelling",
        "Scores     on 812 test samples         this fit    random names    Bayes ceiling",
        "           cluster accuracy               0.971               -            0.980",
        "           node accuracy, mean            0.750           0.760                -",
        "           node accuracy, worst           0.630           0.645                -",
        "           - hue, by N2                   0.630               -                -",
        "           - radius, by N1                0.870               -                -",
        "           NMI of clusters                0.950               -                -",
        "           ARI of clusters                0.960               -                -",
        "           The Bayes ceiling is that of all samples, not of these alone.",
        "Objective  4985.12 nats per sample (collapsed bound, validation samples; higher",
        "           is better)",
        "Time       30.1 s (pretraining 12.0, training 15.3), 45 epochs",
        "Files      runs/circles-001",
    ]


def test_a_collapsed_run_says_so_first() -> None:
    clusters = circle_like_summary()["clusters"] | {"n_occupied": 3}
    assert _lines(status="collapsed", clusters=clusters)[:2] == [
        "Verdict    failed",
        "           - The fit collapsed: 3 of 8 clusters are occupied. Trust neither",
    ]


def test_a_diverged_run_has_its_reason_and_nothing_else() -> None:
    summary = {
        "dataset": "circles",
        "seed": 0,
        "status": "diverged",
        "reason": "the objective is NaN in epoch 3",
        "n_samples": 10,
        "nodes": {"N1": 2},
        "epochs": 3,
        "seconds": {"pretraining": 1.0, "training": 0.0, "total": 1.0},
        "versions": {},
    }
    assert summary_table(summary).splitlines() == [
        "Verdict    failed",
        "           - The fit diverged: the objective is NaN in epoch 3. There is no",
        "             result; try a smaller learning rate or another seed.",
        "Data       circles, seed 0, 10 samples",
        "Time       1.0 s (pretraining 1.0, training 0.0), 3 epochs",
    ]


def test_without_factors_there_are_no_scores() -> None:
    assert not [line for line in _lines(evaluation=None) if line.startswith("Scores") or "accuracy" in line]


def test_an_unknown_ceiling_is_a_dash() -> None:
    evaluation = circle_like_summary()["evaluation"] | {"bayes_ceiling": None, "split": "all"}
    assert _line("cluster accuracy", evaluation=evaluation).split() == ["cluster", "accuracy", "0.971", "-", "-"]
    assert "on 812 samples" in _line("Scores", evaluation=evaluation)
    assert not [line for line in _lines(evaluation=evaluation) if "of all samples" in line]
    del evaluation["n_samples"]
    assert "on samples" in _line("Scores", evaluation=evaluation)


def test_a_soft_strength_is_not_shown_beside_nodes() -> None:
    """1.00 reads as a probability; of nodes with a meaning there is a class, or a command that finds one."""
    named = {"equivalent_labellings": 1, "identified_nodes": ["N1", "N2"], "is_named": True, "suggestions": []}
    for found in ({}, {"identifiability": named, "evaluation": None}):
        text = " ".join(" ".join(_lines(graph=_graph(2, 1.0), **found)).split())
        assert "1.00" not in text
        assert "N1 -- N2" not in text
    assert "python -m inference.graph RUN" in text


def test_one_node_has_neither_edges_nor_other_labellings() -> None:
    lines = _lines(graph=_graph(1, 0.0, labellings=1))
    assert "Graph      one node, no edges" in lines
    assert not [line for line in lines if "unnamed" in line]


def test_a_labelling_that_is_the_only_one_is_not_called_unnamed() -> None:
    assert "unnamed" not in "\n".join(_lines(graph=_graph(2, 0.9, labellings=1)))
    assert "unnamed" in "\n".join(_lines(graph=_graph(2, 0.9, labellings=3)))


def test_of_many_edges_the_first_are_listed() -> None:
    names = [f"N{i + 1}" for i in range(10)]
    cpdag = [[int(i != j) for j in range(10)] for i in range(10)]
    found = {"equivalent_labellings": 1, "identified_nodes": names, "is_named": True, "suggestions": []}
    graph = _graph(10, 0.9) | {"equivalence_class": {"cpdag": cpdag, "node_names": names, "gap_nats": 1.0}}
    assert "           and 33 more" in _lines(graph=graph, identifiability=found)


def test_labellings_beyond_all_bounds_are_an_order_of_magnitude() -> None:
    assert "about 10^400 labellings" in " ".join(_lines(graph=_graph(3, 0.9, labellings=10**400)))


def test_a_modality_that_is_missing_somewhere_says_in_how_many_samples_it_is() -> None:
    modalities = {"image": {"shape": [8, 8, 1], "present": 4096}, "curve": {"shape": [50], "present": 17}}
    assert _line("Data", modalities=modalities).endswith("image 8x8x1, curve 50 (in 17)")


@pytest.mark.parametrize("value", [None, float("nan"), float("inf")])
def test_an_objective_that_is_not_finite_is_called_so(value: float | None) -> None:
    objective = {"name": "collapsed", "value": value, "per_sample": value, "split": "train"}
    expected = "Objective  not finite nats per sample (collapsed bound, training samples; higher"
    assert _line("Objective", objective=objective) == expected


def test_an_objective_that_was_never_computed_is_called_so() -> None:
    objective = {"name": "collapsed", "value": None, "per_sample": None, "split": None}
    assert _line("Objective", objective=objective) == "Objective  none, since there was no epoch of joint training"


def test_80_columns_hold_whatever_the_names_and_numbers() -> None:
    long = "a name that somebody thought of long ago " * 5
    lines = _lines(
        dataset=long,
        modalities={long + str(i): {"shape": [4096, 4096, 31], "present": 5} for i in range(4)},
        clusters=circle_like_summary()["clusters"] | {"sizes": [100000] * 64},
        graph=_graph(10, 0.99, 10**80, name=long),
        evaluation=circle_like_summary()["evaluation"] | {"node_accuracy": {long: 1.0}, "assignment": {long: long}},
    )
    assert max(map(len, lines)) <= 80
    assert min(map(len, lines)) > 0


def test_a_long_path_stays_in_one_piece() -> None:
    path = "runs/" + "x" * 90
    assert f"Files      {path}" in _lines(output_dir=path)


def test_names_cannot_write_to_the_terminal() -> None:
    table = "\n".join(_lines(dataset="a\x1b[2J\nb", graph=_graph(2, 0.9, name="\x07N")))
    assert table.replace("\n", "").isprintable()
    assert "a?[2J b" in table


def test_further_scores_stand_with_chance() -> None:
    shared = {"disentanglement": 0.9, "completeness": 0.8, "informativeness": 0.95, "gap": {"hue": 0.7, "radius": 0.5}}
    more = {
        "disentanglement": shared | {"random": {"disentanglement": 0.2, "completeness": 0.3, "gap_mean": 0.1}},
        "calibration": {"ece": 0.012},
        "cpdag_shd": 1,
        "graph": {"random_labelling": {"shd": 1.9}},
    }
    found = circle_like_summary()["evaluation"] | more
    assert not [line for line in _lines(evaluation=found) if "disentanglement" in line or "gap to" in line]
    assert _line("calibration error", evaluation=found).split() == ["calibration", "error", "0.012", "-", "-"]
    assert _line("SHD of the strengths", evaluation=found).split()[-3:] == ["1", "1.9", "0"]
    assert "which uses the truth" in " ".join(" ".join(_lines(evaluation=found)).split())
    searched = found | {"graph": {"random_labelling": {"shd": 1.9}, "exact_search": {"shd": 1}}}
    assert _line("SHD of the exact search", evaluation=searched).split()[-3:] == ["1", "1.9", "0"]
    without = found | {"graph": {"random_labelling": None}}
    assert _line("SHD of", evaluation=without).split()[-3:] == ["1", "-", "0"]


def test_the_class_of_named_nodes_stands_in_place_of_the_strengths() -> None:
    found = {"equivalent_labellings": 1, "identified_nodes": ["N1", "N2", "N3"], "is_named": True, "suggestions": []}
    cpdag = {"cpdag": [[0, 1, 0], [1, 0, 1], [0, 1, 0]], "node_names": ["N1", "N2", "N3"], "gap_nats": 12.34}
    graph = _graph(3, 0.98) | {"equivalence_class": cpdag}
    lines = _lines(graph=graph, identifiability=found)
    first = next(i for i, line in enumerate(lines) if line.startswith("Graph"))
    assert lines[first : first + 5] == [
        "Graph      Equivalence class by exact search (BIC): N1 -- N2 -- N3; clear, 12.3",
        "           nats ahead of the next; a line: direction not identified.",
        "           Edges of the class, with mutual information:",
        "           N1 -- N2    N2 -- N3",
        lines[first + 4],
    ]
    assert lines[first + 4].startswith("Scores")
    assert "0.98" not in "\n".join(lines[first : first + 5])
    told = {"targets": {"do_A": "N1"}, "graph": [[0, 1, 0], [0] * 3, [0] * 3], "graph_gap": None, "n_remaining": 1}
    labelling = {"source": "names", "named_nodes": ["N1"], "details": told | {"n_searched": {"graphs": 25}}}
    words = " ".join(" ".join(_lines(graph=graph, identifiability=found, labelling=labelling)).split())
    assert "direction not identified by observations alone. Edges by the interventions (cause -> effect)" in words
    assert "information: N1 -> N2 Scores" in words


def test_a_long_count_of_samples_stands_on_a_line_of_its_own() -> None:
    evaluation = circle_like_summary()["evaluation"] | {"n_samples": 1188, "split": "unlabelled"}
    lines = _lines(evaluation=evaluation)
    at = lines.index("Scores     on 1188 unlabelled samples")
    assert lines[at + 1].split() == ["this", "fit", "random", "names", "Bayes", "ceiling"]


def test_several_starts_tell_their_time_together() -> None:
    entry = {"n": 2, "chosen": 0, "mode": "processes", "entropies": [0.01, 0.02], "statuses": ["ok", "ok"]}
    entry |= {"n_occupied": [8, 8], "seconds": [30.0, 31.0], "disagreeing": [], "ari": [[1, 1], [1, 1]]}
    seconds = {"pretraining": 12.0, "training": 15.3, "total": 30.1}
    summed = " ".join(_lines(restarts=entry, seconds=seconds)[-3:])
    assert "61.0 s summed over 2 starts; the kept one 30.1 s" in " ".join(summed.split())
    wall = " ".join(_lines(restarts=entry, seconds=seconds | {"all_starts": 44.0})[-3:])
    assert "44.0 s wall time of all 2 starts; the kept one 30.1 s" in " ".join(wall.split())
