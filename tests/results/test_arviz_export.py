"""The exported file in both lines of ArviZ; runs without torch and without the other tests' set-up."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import xarray as xr
from fit_arrays_example import PRESENT, example_fit

from causalpima.inference.findings.arrays import FitArrays, RestartArrays
from causalpima.inference.findings.names import variable_names
from causalpima.inference.findings.pareto import psis_khat
from causalpima.inference.reporting import arviz as arviz_export
from causalpima.inference.reporting.arviz import EDGE_CONVENTION, to_datatree, write_posterior
from causalpima.inference.store.arviz import arviz_major, as_container, import_arviz, loo, open_in_arviz
from causalpima.inference.store.files import OutputError
from causalpima.inference.store.posterior_file import read_posterior

az = import_arviz()
_arviz_may_warn = pytest.mark.filterwarnings("ignore")  # of few draws and of one chain
_ROOT = Path(arviz_export.__file__).parents[2]
_GROUPS = {
    "posterior",
    "posterior_predictive",
    "predictions",
    "prior",
    "sample_stats",
    "log_likelihood",
    "observed_data",
    "constant_data",
    "variational",
    "history",
}


@pytest.fixture(scope="module")
def fit() -> FitArrays:
    return example_fit()


@pytest.fixture(scope="module")
def path(fit: FitArrays, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "posterior.nc"
    write_posterior(fit, path)
    return path


@pytest.fixture(scope="module")
def tree(path: Path) -> Any:
    return read_posterior(path)


@pytest.fixture(scope="module")
def container(path: Path) -> Any:
    return az.from_netcdf(str(path))


@pytest.fixture
def copy(path: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(path, tmp_path))


def _through_a_file(fit: FitArrays, folder: Path, *groups: str) -> Any:
    """What ArviZ reads of these groups; a file of all takes ten times as long."""
    tree = to_datatree(fit)
    part = xr.DataTree.from_dict({group: tree[group].to_dataset() for group in groups})
    part.to_netcdf(folder / "groups.nc", engine="h5netcdf")
    return az.from_netcdf(str(folder / "groups.nc"))


def _groups(container: Any) -> set[str]:
    return set(container.groups()) if arviz_major() == 0 else set(container.children)


def _leaves(value: Any) -> Iterator[np.ndarray]:
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _leaves(item)
    elif is_dataclass(value):
        for item in fields(value):
            yield from _leaves(getattr(value, item.name))


def _loo(container: Any, name: str) -> tuple[float, np.ndarray]:
    result = az.loo(container, var_name=name, pointwise=True)
    total, pointwise = ("elpd_loo", "loo_i") if arviz_major() == 0 else ("elpd", "elpd_i")
    return float(getattr(result, total)), np.asarray(getattr(result, pointwise))


@pytest.mark.parametrize("way", ["ours", "plain"])
def test_the_import_does_not_depend_on_what_the_machine_has_seen(
    way: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """0.x warns at its first import of a day, which it notes in the user's cache; warnings are errors here."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.delitem(sys.modules, "arviz")
    assert (import_arviz() if way == "ours" else importlib.import_module("arviz")).from_netcdf
    if arviz_major() == 0:
        assert list(tmp_path.rglob("daily_warning")), "it did warn"


def test_the_import_needs_no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.delitem(sys.modules, "arviz")
    assert import_arviz().from_netcdf
    assert os.environ["XDG_CACHE_HOME"] == str(tmp_path / "file")


def test_arviz_opens_every_group(container: Any) -> None:
    assert _groups(container) == _GROUPS
    assert container.posterior["Z"].dims == ("chain", "draw", "sample_id", "latent")
    assert container.posterior["N"].dims == ("chain", "draw", "sample_id", "node")
    assert container.posterior["N"].dtype.kind == "i"


@_arviz_may_warn
def test_arviz_summarises_the_posterior(container: Any, fit: FitArrays) -> None:
    table = az.summary(container, round_to="none")
    assert len(table) == 7 * 3
    assert table.loc["Z[9, 2]", "mean"] == pytest.approx(fit.draws.latent[:, 5, 2].mean(), rel=1e-5)


@_arviz_may_warn
@pytest.mark.parametrize("name", ["picture", "stress µ"])
def test_loo_of_each_modality_is_finite(container: Any, fit: FitArrays, name: str) -> None:
    elpd, pointwise = _loo(container, name)
    present = fit.present[name][fit.draws.samples]
    assert pointwise.shape == (present.sum(),)
    assert elpd == pytest.approx(pointwise.sum())
    assert np.isfinite(pointwise).all()
    plain = np.log(1 / np.exp(-fit.draws.log_likelihood[name][:, present]).mean(0))
    assert pointwise == pytest.approx(plain, abs=0.5)


@_arviz_may_warn
def test_loo_of_absent_entries_would_be_nan(fit: FitArrays) -> None:
    tree = to_datatree(fit)
    absent = fit.draws.log_likelihood["stress µ"][None]
    tree["log_likelihood"] = xr.Dataset({"stress µ": (("chain", "draw", "sample_id"), absent)})
    assert np.isnan(_loo(as_container(tree), "stress µ")[0])


@_arviz_may_warn
def test_loo_of_a_law_that_only_depends_on_a_certain_cell(fit: FitArrays) -> None:
    """What docs/run_folder.md says of draws that are all the same."""
    draws = fit.draws
    same = np.broadcast_to(draws.log_likelihood["picture"][:1], draws.log_likelihood["picture"].shape)
    container = as_container(
        to_datatree(replace(fit, draws=replace(draws, log_likelihood={**draws.log_likelihood, "picture": same})))
    )
    if arviz_major() == 0:
        np.testing.assert_allclose(_loo(container, "picture")[1], same[0])
    else:
        with pytest.raises(ValueError, match="All tail values are the same"):
            az.loo(container, var_name="picture")


@_arviz_may_warn
@pytest.mark.parametrize("name", ["picture", "stress µ"])
def test_posterior_predictive_check_is_drawn(container: Any, name: str) -> None:
    if arviz_major() == 0:
        import matplotlib as mpl

        mpl.use("Agg")
        axes = az.plot_ppc(container, var_names=[name], num_pp_samples=5, show=False)
        assert len(np.ravel(axes)[0].lines) > 5
    else:
        drawn = az.plot_ppc_dist(container, var_names=[name], num_samples=5, backend="none")
        assert name in str(drawn.viz["predictive_dist"])


@pytest.mark.parametrize("group", ["posterior", "log_likelihood", "posterior_predictive", "predictions"])
def test_draws_can_be_stacked(container: Any, group: str) -> None:
    stacked = az.extract(container, group=group)
    assert stacked.sizes["sample"] == 30


def test_draws_with_a_dimension_sample_could_not_be_stacked(fit: FitArrays) -> None:
    tree: Any = to_datatree(fit)
    tree["posterior"] = tree["posterior"].to_dataset().rename(sample_id="sample")
    with pytest.raises(ValueError, match="same name as an existing dimension"):
        az.extract(as_container(tree))


@_arviz_may_warn
@pytest.mark.skipif(arviz_major() == 0, reason="a trap of ArviZ 1.x")
def test_a_string_in_observed_data_would_break_the_check(fit: FitArrays) -> None:
    tree = to_datatree(fit)
    assert all(values.dtype.kind == "f" for values in tree["observed_data"].data_vars.values())
    names = np.array(["a", "b", "c", "d"], dtype=object)
    tree["observed_data"] = tree["observed_data"].to_dataset().assign(label=("sample_id", names))
    with pytest.raises(Exception, match=r"label|string|str|ufunc|type"):
        az.plot_ppc_dist(tree, num_samples=5, backend="none")


def test_every_array_is_in_the_file(tree: Any, fit: FitArrays) -> None:
    draws, graph, mixture = fit.draws, fit.graph, fit.mixture
    found: dict[str, dict[str, Any]] = {
        "posterior": {"Z": draws.latent[None], "N": draws.nodes[None]},
        "prior": {"Z": draws.prior_latent[None], "N": draws.prior_nodes[None]},
        "sample_stats": {"log_weight": draws.log_weight[None]},
        "constant_data": {
            "present_picture": fit.present["picture"],
            "present_stress µ": fit.present["stress µ"],
            "factor_hue": fit.factors["hue"],
            "factor_shape": fit.factors["shape"],
            "measurement_radius": fit.measurements["radius"],
            "measured_share_stress µ": fit.measured_share["stress µ"],
            "sample_name": fit.sample_names,
        },
        "variational": {
            "responsibilities": fit.responsibilities,
            "latent_loc": fit.latent_loc,
            "latent_scale": fit.latent_scale,
            "edge_strength": graph.edge_strength,
            "adjacency": graph.adjacency,
            "edge_weight": graph.edge_weight,
            "node_score": graph.node_score,
            "log_joint": graph.log_joint,
            "conditional_tables": graph.conditional_tables,
            "component_loc": mixture.loc,
            "component_covariance": mixture.covariance,
            "component_weight": mixture.weight,
            "component_cell": mixture.cell,
            **{f"decoded_{name}": modality.decoded for name, modality in fit.modalities.items()},
            **{f"exemplar_{name}": modality.exemplars for name, modality in fit.modalities.items()},
            **{f"{key}_stress µ": value for key, value in _curve_arrays(fit).items()},
        },
    }
    compared = {id(value) for group in found.values() for value in group.values()}
    for group, variables in found.items():
        for name, value in variables.items():
            np.testing.assert_array_equal(tree[group][name], value, err_msg=f"{group}/{name}")
    bases = {id(value.base) for group in found.values() for value in group.values() if value.base is not None}
    elsewhere = [draws.samples, draws.predictive_samples, fit.split, _physics(fit).status]
    for per_modality in (draws.log_likelihood, draws.predictive, fit.observed):
        elsewhere.extend(per_modality.values())
    assert {id(value) for value in _leaves(fit)} <= compared | bases | {id(value) for value in elsewhere}


def _physics(fit: FitArrays) -> Any:
    return fit.modalities["stress µ"].physics


def _curve_arrays(fit: FitArrays) -> dict[str, np.ndarray]:
    curve: Any = fit.modalities["stress µ"]
    physics = curve.physics
    return {
        "position": curve.axis.values,
        "examples": curve.curves.examples,
        "predictive_lower": curve.curves.lower,
        "predictive_upper": curve.curves.upper,
        "physics_value": physics.value,
        "physics_standard_error": physics.standard_error,
        "physics_lower": physics.lower,
        "physics_upper": physics.upper,
        "physics_samples": physics.effective_samples,
        "law": physics.curve,
        "lower_law": physics.curve_lower,
        "upper_law": physics.curve_upper,
    }


@pytest.mark.parametrize("opener", ["arviz", "ours", "both"])
def test_physical_parameters_by_name_with_unit_and_status(tree: Any, container: Any, opener: str) -> None:
    group = {"arviz": container, "ours": tree, "both": as_container(tree)}[opener]["variational"]
    value = group["physics_value_stress µ"]
    assert value.dims == ("cell", "parameter_stress µ")
    of_cell = value.sel({"cell": "härter,low", "parameter_stress µ": "offset"})
    assert of_cell == pytest.approx(_physics(example_fit()).value[3, 1])
    assert np.isnan(
        group["physics_standard_error_stress µ"].sel({"cell": "härter,low", "parameter_stress µ": "offset"})
    )
    assert list(group["physics_unit_stress µ"].values) == ["MPa", ""]
    status = group["physics_level_stress µ"].values[group["physics_status_stress µ"].values]
    np.testing.assert_array_equal(status, _physics(example_fit()).status)


@pytest.mark.parametrize("opener", ["arviz", "ours"])
def test_units_and_positions_go_with_the_numbers(tree: Any, container: Any, opener: str) -> None:
    opened = {"arviz": container, "ours": tree}[opener]
    for group in ("observed_data", "posterior_predictive", "predictions"):
        values = opened[group]["stress µ"]
        position = values["position_stress µ"]
        np.testing.assert_array_equal(position, [0.0, 0.5, 1.5, 3.0, 3.5, 8.0])
        assert (position.attrs["long_name"], position.attrs["units"]) == ("strain", "%")
        assert (values.attrs["units"], values.attrs["transform"]) == ("MPa", "asinh")
    assert opened["log_likelihood"]["stress µ"].attrs["units"] == "nats"
    assert opened["variational"]["decoded_stress µ"].attrs["units"] == "MPa"
    picture = opened["observed_data"]["picture"]
    assert "units" not in picture.attrs
    assert picture.attrs["likelihood"] == "student_t"
    assert np.isnan(opened["variational"]["decoder_variance"].sel(modality="picture"))


@pytest.mark.parametrize("transform", ["identity", "log"])
def test_noise_per_element_has_the_unit_of_its_scale(fit: FitArrays, tmp_path: Path, transform: Any) -> None:
    noise = np.linspace(0.1, 0.6, 6)
    curve = replace(fit.modalities["stress µ"], noise_sd=noise, transform=transform)
    changed = replace(fit, modalities={**fit.modalities, "stress µ": curve})
    group = _through_a_file(changed, tmp_path, "variational")["variational"]
    found = group["noise_sd_stress µ"]
    np.testing.assert_array_equal(found, noise)
    assert found.dims == ("position_stress µ",)
    assert found.attrs.get("units") == ("MPa" if transform == "identity" else None)
    assert "noise_sd_picture" not in group, "that has none"


@pytest.mark.parametrize(
    ("unit", "attribute"),
    [("seconds", "unit"), ("days", "unit"), ("hours since 2020-01-01", "unit"), ("s", "units"), ("MPa s", "units")],
)
def test_units_of_time_leave_numbers_numbers(fit: FitArrays, tmp_path: Path, unit: str, attribute: str) -> None:
    """xarray makes dates of the third, and older versions make durations of the first two."""
    curve: Any = fit.modalities["stress µ"]
    timed = replace(curve, unit=unit, axis=replace(curve.axis, unit=unit))
    changed = replace(fit, modalities={**fit.modalities, "stress µ": timed})
    values = _through_a_file(changed, tmp_path, "observed_data")["observed_data"]["stress µ"]
    assert values.dtype.kind == values["position_stress µ"].dtype.kind == "f"
    assert values.attrs[attribute] == values["position_stress µ"].attrs[attribute] == unit


def test_samples_have_their_names(tree: Any, container: Any, fit: FitArrays) -> None:
    for opened in (tree, container):
        for group in ("constant_data", "variational"):
            names = opened[group]["sample_name"]
            assert names.dims == ("sample",)
            assert list(names.values) == [f"Probe µ{i}" for i in range(11)]
    assert "sample_name" not in to_datatree(replace(fit, sample_names=None))["constant_data"].coords


@pytest.mark.parametrize("name", ["picture", "stress µ"])
def test_modalities_are_in_the_file_where_present_and_as_predictions_where_absent(
    tree: Any, fit: FitArrays, name: str
) -> None:
    draws = fit.draws
    dim = "sample_id" if name == "picture" else "sample_id_stress µ"
    present = fit.present[name][draws.predictive_samples]
    predictive = draws.predictive[name].astype(np.float32)
    likelihood = tree["log_likelihood"][name]
    measured = fit.present[name][draws.samples]
    assert likelihood.dims == ("chain", "draw", dim)
    np.testing.assert_array_equal(likelihood[dim], draws.samples[measured])
    np.testing.assert_array_equal(likelihood[0], draws.log_likelihood[name][:, measured])
    np.testing.assert_array_equal(tree["observed_data"][name], fit.observed[name][present])
    np.testing.assert_array_equal(tree["posterior_predictive"][name][0], predictive[:, present])
    np.testing.assert_array_equal(tree["posterior_predictive"][dim], draws.predictive_samples[present])
    np.testing.assert_array_equal(tree["observed_data"][dim], draws.predictive_samples[present])
    assert tree["posterior_predictive"][name].dtype == np.float32
    if name == "picture":
        assert name not in tree["predictions"]
        assert tree["observed_data"][name].dims == ("sample_id", "height_picture", "width_picture", "channel_picture")
    else:
        assert tree["predictions"][name].dims == ("chain", "draw", dim, "position_stress µ")
        np.testing.assert_array_equal(tree["predictions"][name][0], predictive[:, ~present])
        np.testing.assert_array_equal(tree["predictions"][dim], draws.predictive_samples[~present])


def test_nothing_that_arviz_reads_is_nan_but_missing_elements(tree: Any) -> None:
    for group in _GROUPS - {"variational", "history"}:
        for name, values in tree[group].data_vars.items():
            is_missing = np.zeros(values.shape, dtype=bool)
            if (group, name) == ("observed_data", "stress µ"):
                is_missing[:, 2] = True
            np.testing.assert_array_equal(np.isnan(values), is_missing, err_msg=f"{group}/{name}")


def test_a_modality_that_nobody_has_is_only_predicted(fit: FitArrays) -> None:
    tree: Any = to_datatree(replace(fit, present={**fit.present, "stress µ": np.zeros_like(PRESENT)}))
    assert set(tree["log_likelihood"].data_vars) == {"picture"} == set(tree["observed_data"].data_vars)
    assert tree["predictions"]["stress µ"].dims == ("chain", "draw", "sample_id", "position_stress µ")


def test_groups_without_a_variable_are_left_out() -> None:
    fit = example_fit(history=[])
    fit = replace(fit, present=dict.fromkeys(fit.present, np.ones_like(PRESENT)))
    assert set(to_datatree(fit).children) == _GROUPS - {"predictions", "history"}


@pytest.mark.parametrize("opener", ["arviz", "ours", "both"])
def test_names_are_coordinates(tree: Any, container: Any, opener: str) -> None:
    opened = {"arviz": container, "ours": tree, "both": as_container(tree)}[opener]
    variational, constant = opened["variational"], opened["constant_data"]
    assert list(opened["posterior"]["node"].values) == ["type", "response"]
    assert list(variational["outcome_type"].values) == ["soft", "härter"]
    assert list(variational["outcome_response"].values) == ["low", "mid", "high"]
    assert list(variational["cell"].values)[:4] == ["soft,low", "soft,mid", "soft,high", "härter,low"]
    assert variational["log_joint"].dims == ("outcome_type", "outcome_response")
    assert list(constant["level_hue"].values) == ["red", "blau-grün"]
    assert list(variational["modality"].values) == ["picture", "stress µ"]


def test_codes_lead_to_names(tree: Any, fit: FitArrays) -> None:
    constant = tree["constant_data"]
    assert list(constant["split_level"].values[constant["split"].values]) == list(fit.split)
    shapes = constant["level_shape"].values[constant["factor_shape"].values]
    assert list(shapes) == [fit.factor_levels["shape"][code] for code in fit.factors["shape"]]


def test_edges_lead_from_row_to_column(tree: Any) -> None:
    r"""The graph of the example.

    type -> response
    """
    variational = tree["variational"]
    assert variational["adjacency"].sel(node_from="type", node_to="response") == 1
    assert variational["adjacency"].sum() == 1
    assert variational["edge_strength"].sel(node_from="response", node_to="type") == 0
    assert variational["adjacency"].attrs["convention"] == EDGE_CONVENTION


def test_attributes_say_what_it_is(tree: Any, container: Any) -> None:
    for attributes in (container.attrs, tree.attrs, as_container(tree).attrs):
        assert attributes["dataset"] == "example"
        assert attributes["seed"] == 12
        assert (attributes["objective"], attributes["status"]) == ("meanfield", "ok")
        assert "i -> j" in attributes["edge_convention"]
        assert json.loads(attributes["versions"])["numpy"] == np.__version__
        facts = json.loads(attributes["facts"])
        assert facts["configuration"] == {"nodes": [2, 3], "path": None, "fast": True}
        assert facts["bayes_ceiling"] is None


@pytest.mark.parametrize("value", [None, True, {"a": 1}, Path("runs")])
def test_other_attributes_would_not_survive(fit: FitArrays, tmp_path: Path, value: Any) -> None:
    tree: Any = to_datatree(fit)
    bad = xr.DataTree.from_dict({"history": tree["history"].to_dataset()})
    bad.attrs = {**tree.attrs, "facts": value}
    with pytest.raises(Exception, match=r"(?i)valid value|invalid|dtype|conversion|not allowed"):
        bad.to_netcdf(tmp_path / "bad.nc", engine="h5netcdf")


def test_history_is_a_trace_per_quantity(tree: Any) -> None:
    history = tree["history"]
    assert list(history["epoch"].values) == [1, 2, 3]
    assert list(history["phase_level"].values[history["phase"].values]) == ["pretraining", "training", "training"]
    np.testing.assert_array_equal(history["objective"], [np.nan, -7.0, -6.0])
    np.testing.assert_array_equal(history["decoder_variance"].sel(decoder_variance_name="stress µ"), [np.nan, 0.2, 0.2])


def test_no_variable_is_named_like_a_dimension(tree: Any) -> None:
    for group in tree.children.values():
        assert not set(group.data_vars) & set(group.dims)


def test_a_variable_named_like_a_dimension_would_cost_the_group(tmp_path: Path) -> None:
    tree = xr.DataTree.from_dict({"observed_data": xr.Dataset({"sample": ("sample", np.arange(3.0))})})
    tree.to_netcdf(tmp_path / "bad.nc", engine="h5netcdf")
    assert "sample" not in tree["observed_data"].data_vars
    if arviz_major() == 0:
        assert _groups(az.from_netcdf(str(tmp_path / "bad.nc"))) == set()


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["image", "curve"], ["image", "curve"]),
        (["sample", "sample_id", "draw", "chain"], ["sample_", "sample_id_", "draw_", "chain_"]),
        (["a/b", "a_b"], ["a_b", "a_b_"]),
        (["image", "height_image"], ["image", "height_image_"]),
        (["x", "sample_id_x", "sample_x"], ["x", "sample_id_x_", "sample_x"]),
    ],
)
def test_names_of_users_become_names_in_the_file(names: list[str], expected: list[str]) -> None:
    assert list(variable_names(names).values()) == expected


def _renamed(fit: FitArrays, old: str, new: str) -> FitArrays:
    def rename(mapping: Any) -> dict[str, Any]:
        return {new if key == old else key: value for key, value in mapping.items()}

    names = ("log_likelihood", "predictive")
    in_draws: Any = {name: rename(getattr(fit.draws, name)) for name in names}
    changed: Any = {
        name: rename(getattr(fit, name))
        for name in ("modalities", "present", "observed", "factors", "measurements", "measured_share")
    }
    return replace(fit, draws=replace(fit.draws, **in_draws), factor_levels=rename(fit.factor_levels), **changed)


@pytest.mark.parametrize(
    "new", ["sample", "sample_id", "Z", "cell", "split", "height_picture", "a/b", "latent", "node"]
)
@pytest.mark.parametrize("old", ["stress µ", "hue", "radius"])
def test_names_that_mean_something_to_the_file_cost_no_variable(fit: FitArrays, old: str, new: str) -> None:
    renamed, expected = to_datatree(_renamed(fit, old, new)), to_datatree(fit)
    for name, group in expected.children.items():
        assert len(renamed[name].variables) == len(group.variables), name


def test_names_that_mean_something_to_the_file_can_be_written(fit: FitArrays, tmp_path: Path) -> None:
    for old, new in (("picture", "sample"), ("stress µ", "a/b"), ("hue", "split"), ("radius", "draw")):
        fit = _renamed(fit, old, new)
    write_posterior(fit, tmp_path / "posterior.nc")
    container = az.from_netcdf(str(tmp_path / "posterior.nc"))
    assert _groups(container) == _GROUPS
    assert list(container["observed_data"].data_vars) == ["sample_", "a_b"]


def test_other_ranks_get_numbered_axes() -> None:
    fit = example_fit()
    flat = replace(fit.modalities["stress µ"], kind="image")
    tree = to_datatree(replace(fit, modalities={**fit.modalities, "stress µ": flat}))
    assert tree["observed_data"]["stress µ"].dims[-1] == "axis0_stress µ"


def test_reading_closes_the_file(copy: Path, fit: FitArrays) -> None:
    opened: list[Any] = [read_posterior(copy), open_in_arviz(copy)]
    links = Path("/proc/self/fd")
    if links.is_dir():
        assert str(copy) not in {os.path.realpath(link) for link in links.iterdir()}
    copy.unlink()
    for container in opened:
        np.testing.assert_array_equal(container["posterior"]["Z"].values[0], fit.draws.latent)


def test_the_same_fit_gives_the_same_bytes(path: Path, tmp_path: Path) -> None:
    write_posterior(example_fit(), tmp_path / "again.nc")
    assert (tmp_path / "again.nc").read_bytes() == path.read_bytes()


@pytest.mark.parametrize("content", [b"", b"not a netCDF file", None])
def test_unreadable_files_are_one_line(copy: Path, content: bytes | None) -> None:
    copy.write_bytes(copy.read_bytes()[:3000] if content is None else content)
    with pytest.raises(
        ValueError, match=r"path: expected a netCDF 4 file, got .*posterior.nc, .* write it again"
    ) as caught:
        read_posterior(copy)
    assert "\n" not in str(caught.value)


def test_missing_file_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"path: expected a posterior.nc, got .*absent.nc, which does not exist"):
        open_in_arviz(tmp_path / "absent.nc")


def test_failed_writing_leaves_the_old_file(copy: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = copy.read_bytes()

    def full(path: Path, content: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(OutputError, match=r"posterior.nc: the disk is full"):
        write_posterior(example_fit(), copy)
    assert copy.read_bytes() == before
    assert [entry.name for entry in copy.parent.iterdir()] == ["posterior.nc"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
def test_a_disk_that_is_really_full_does_not_take_the_process_down() -> None:
    with pytest.raises(OutputError, match="/dev/full: the disk is full"):
        write_posterior(example_fit(), "/dev/full")


def test_a_diverged_fit_is_exported_all_the_same() -> None:
    tree: Any = to_datatree(example_fit(status="diverged", responsibilities=np.full((11, 6), np.nan)))
    assert tree.attrs["status"] == "diverged"
    assert np.isnan(tree["variational"]["responsibilities"]).all()


def test_export_imports_neither_torch_nor_arviz() -> None:
    script = (
        "import sys; sys.path[:0] = sys.argv[2:]\n"
        "from fit_arrays_example import example_fit\n"
        "from causalpima.inference.reporting.arviz import write_posterior\n"
        "write_posterior(example_fit(), sys.argv[1])\n"
        "assert not {'torch', 'pyro', 'arviz', 'matplotlib'} & set(sys.modules), sys.modules.keys()\n"
    )
    command = [sys.executable, "-c", script, "/dev/null", str(_ROOT), str(Path(__file__).parent)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("shape", [0.3, 0.9, 1.5])
def test_khat_is_the_shape_of_the_tail(shape: float) -> None:
    """U^(-k) for uniform U is Pareto with shape k."""
    rng = np.random.default_rng(0)
    log_weight = -shape * np.log(rng.uniform(size=(4000, 12)))
    khat = psis_khat(log_weight)
    assert khat.shape == (12,)
    assert khat.mean() == pytest.approx(shape, abs=4 * khat.std() / np.sqrt(12))
    assert psis_khat(-log_weight).max() < 0.2


def test_khat_of_bounded_constant_and_broken_weights() -> None:
    rng = np.random.default_rng(1)
    log_weight = np.stack(
        [rng.uniform(size=500), np.full(500, -3.0), np.full(500, -np.inf), rng.uniform(size=500)], axis=1
    )
    log_weight[7, 3] = np.nan
    bounded, constant, *broken = psis_khat(log_weight)
    assert bounded < 0.3
    assert constant == 0
    assert broken == [np.inf, np.inf]


@pytest.mark.parametrize("shape", [(10, 3), (100,)])
def test_khat_needs_draws(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"log_weight: expected \[draw, sample\] with at least 25 draws, got shape"):
        psis_khat(np.zeros(shape))


def restarted(fit: FitArrays, n_chains: int = 3) -> FitArrays:
    """The fit as the best of four starts, one of which diverged."""
    draws, rng = fit.draws, np.random.default_rng(0)
    restarts = RestartArrays(
        status=np.array(["ok", "diverged", "ok", "ok"], dtype=object),
        entropy=np.array([0.1, np.nan, 0.04, 0.05]),
        ari=np.eye(4),
        chain=np.array([2, 0, 3]),
        nodes=np.stack([(draws.nodes + k) % np.array([2, 3]) for k in range(n_chains)]),
        log_weight=np.stack([draws.log_weight + k for k in range(n_chains)]),
        log_likelihood={name: np.stack([v - k for k in range(n_chains)]) for name, v in draws.log_likelihood.items()},
        responsibilities=rng.dirichlet(np.ones(6), (n_chains, len(draws.samples))),
        log_joint=np.stack([fit.graph.log_joint] * n_chains),
        node_agreement=np.ones((n_chains, 2)),
        cpdag=np.zeros((n_chains, 2, 2)),
        latent=np.stack([draws.latent + k for k in range(n_chains)]),
    )
    return replace(fit, restarts=restarts)


@_arviz_may_warn
def test_starts_are_chains_of_what_can_be_compared(fit: FitArrays, tmp_path: Path) -> None:
    made = restarted(fit)
    assert made.restarts is not None
    write_posterior(made, tmp_path / "posterior.nc")
    found = az.from_netcdf(str(tmp_path / "posterior.nc"))
    assert _groups(found) == _GROUPS | {"posterior_latent", "restarts"}
    assert list(found["posterior"].data_vars) == ["Z"]
    np.testing.assert_array_equal(found["posterior"]["Z"].values, made.restarts.latent)
    np.testing.assert_array_equal(found["posterior"]["N"].values, made.restarts.nodes)
    assert found["posterior"]["start_of_chain"].values.tolist() == [2, 0, 3]
    np.testing.assert_array_equal(found["posterior_latent"]["Z"].values[0], fit.draws.latent)
    np.testing.assert_array_equal(found["sample_stats"]["log_weight"].values, made.restarts.log_weight)
    likelihood = found["log_likelihood"]["stress µ"].values
    assert likelihood.shape[0] == 3
    assert np.isfinite(likelihood).all()
    assert found["posterior_predictive"]["picture"].shape[0] == 1
    assert found["restarts"]["status"].values.tolist() == ["ok", "diverged", "ok", "ok"]
    np.testing.assert_array_equal(found["restarts"]["entropy"].values, made.restarts.entropy)


@_arviz_may_warn
def test_arviz_works_on_chains_of_starts(fit: FitArrays, tmp_path: Path) -> None:
    found = _through_a_file(restarted(fit), tmp_path, "posterior", "log_likelihood")
    assert len(az.summary(found)) == 3 * len(fit.draws.samples)
    assert np.isfinite(_loo(found, "picture")[0])


def test_starts_of_an_earlier_version_have_no_z(fit: FitArrays) -> None:
    made = restarted(fit)
    assert made.restarts is not None
    tree: Any = to_datatree(replace(made, restarts=replace(made.restarts, latent=None)))
    assert list(tree["posterior"].data_vars) == ["N"]
    np.testing.assert_array_equal(tree["posterior_latent"]["Z"].values[0], fit.draws.latent)


def test_certain_samples_make_no_constants_of_the_posterior(fit: FitArrays, tmp_path: Path) -> None:
    """N is then the same in every draw, and ArviZ's summary would divide by its variance."""
    certain = replace(fit, draws=replace(fit.draws, nodes=np.zeros_like(fit.draws.nodes)))
    found = _through_a_file(certain, tmp_path, "posterior")
    assert np.isfinite(az.summary(found)["mcse_sd"].to_numpy(float)).all()
    assert (found["posterior"]["N"].values == 0).all()


@pytest.mark.parametrize(("old", "new"), [("stress µ", "curve"), ("picture", "total")])
def test_log_likelihoods_add_up_in_the_one_variable_that_arviz_takes_without_a_name(
    fit: FitArrays, old: str, new: str, tmp_path: Path
) -> None:
    if new == "total":
        fit = _renamed(fit, "stress µ", "curve")
    group = _through_a_file(_renamed(fit, old, new), tmp_path, "log_likelihood")["log_likelihood"]
    name = "total" if new == "curve" else "total_"
    assert list(group.data_vars) == [name]
    likelihood = fit.draws.log_likelihood.values()
    np.testing.assert_allclose(group[name][0], np.nansum(list(likelihood), axis=0))
    assert {values.dtype for values in (group[name], group[new], group["curve"])} == {np.dtype("float64")}


def test_a_name_with_a_blank_cannot_be_a_coordinate(container: Any) -> None:
    assert set(container["log_likelihood"].data_vars) == {"total", "stress µ"}


def test_loo_of_one_variable_in_both_lines() -> None:
    """Where draws agree, leaving out changes nothing; a constant adds to every sample; a heavy tail is told."""
    rng = np.random.default_rng(0)
    same = np.broadcast_to(rng.normal(size=5), (1, 40, 5)) + 1e-9 * rng.normal(size=(1, 40, 5))
    assert loo(same).elpd == pytest.approx(same[0, 0].sum(), abs=1e-6)
    varied = rng.normal(-3.0, 0.3, (2, 50, 7))
    assert loo(varied + 2.0).elpd == pytest.approx(loo(varied).elpd + 14.0)
    # Light tails: the harmonic mean, which leaving out is by definition, needs no smoothing to speak of.
    harmonic = -(np.logaddexp.reduce(-varied.reshape(100, 7), axis=0) - np.log(100)).sum()
    assert loo(varied).elpd == pytest.approx(harmonic, abs=0.05)
    varied[..., 3] = -np.exp(rng.normal(0.0, 3.0, (2, 50)))
    assert loo(varied).pareto_k.argmax() == 3
    assert loo(varied).pareto_k[3] > 0.7
    weight = varied[0].copy()
    weight[:, 3] *= -1
    assert psis_khat(weight)[3] > 0.7
    with pytest.raises(ValueError, match=r"log_likelihood: expected finite \[chain, draw, sample\]"):
        loo(np.full((1, 40, 5), np.nan))
