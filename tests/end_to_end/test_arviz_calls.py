"""What a user of ArviZ calls works on `posterior.nc` as ArviZ itself reads it, without a word; in both lines of it.

`make test-arviz1` runs this without torch, on files that were written in the other environment just before.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from posterior_files import N_SAMPLES, NAMES, RESTARTS, write_posterior_files

from causalpima.inference.findings.pareto import K_LIMIT, psis_khat
from causalpima.inference.store.arviz import arviz_major, import_arviz

az = import_arviz()
IS_1 = arviz_major() == 1

pytestmark = [
    pytest.mark.filterwarnings("ignore:Estimated shape parameter of Pareto"),  # true, and told in the file as well
    # Of ArviZ with other libraries, about its own calls of them.
    pytest.mark.filterwarnings("ignore:.*alias_mapping to normalize_kwargs"),
    pytest.mark.filterwarnings("ignore:.*inplace keyword in DataFrame.sort_values"),
    pytest.mark.filterwarnings("ignore:Deleting a single level of a MultiIndex:FutureWarning"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    written = os.environ.get("POSTERIOR_FILES")
    if written:
        return Path(written)
    pytest.importorskip("torch", reason="no torch, and no POSTERIOR_FILES: make test-arviz1 writes these files first")
    made = tmp_path_factory.mktemp("posterior files")
    write_posterior_files(made)
    return made


@pytest.fixture(scope="module")
def opened(folder: Path) -> dict[str, Any]:
    return {name: az.from_netcdf(str(folder / f"{name}.nc")) for name in NAMES}


@pytest.fixture(params=NAMES)
def data(request: pytest.FixtureRequest, opened: dict[str, Any]) -> Any:
    return opened[request.param]


@pytest.fixture(autouse=True)
def _no_figures_left() -> Iterator[None]:
    yield
    if not IS_1:
        import matplotlib.pyplot as plt

        plt.close("all")


def modalities(data: Any) -> list[str]:
    return list(data.posterior_predictive.data_vars)


def few(data: Any) -> dict[str, Any]:
    """What plots are of: the first two samples."""
    return {"var_names": ["Z"], "coords": {"sample_id": data.posterior.sample_id.values[:2]}}


def without_window() -> dict[str, Any]:
    return {"backend": "none"} if IS_1 else {}


def elpd(data: Any, **options: Any) -> tuple[float, np.ndarray, np.ndarray]:
    """Of `az.loo`: the sum, each sample's share of it, Pareto k."""
    found = az.loo(data, pointwise=True, **options)
    total, pointwise = (found.elpd, found.elpd_i) if IS_1 else (found.elpd_loo, found.loo_i)
    return float(total), np.asarray(pointwise), np.asarray(found.pareto_k)


def draws(data: Any, name: str) -> np.ndarray:
    """`[draw, sample]`, of all chains."""
    values = data.log_likelihood[name].values
    return values.reshape(-1, values.shape[-1])


def test_summary(data: Any) -> None:
    table = az.summary(data, round_to="none" if not IS_1 else None)
    assert len(table) == data.posterior["Z"][0, 0].size
    assert np.isfinite(table[["mean", "sd", "mcse_mean", "mcse_sd", "ess_bulk"]].to_numpy(float)).all()
    assert data.posterior["N"].dims == ("chain", "draw", "sample_id", "node"), "N is there, and is not summarised"


def test_loo_of_all_that_was_measured(data: Any) -> None:
    total, pointwise, _ = elpd(data)
    assert np.isfinite(pointwise).all()
    assert total == pytest.approx(pointwise.sum())
    assert pointwise.shape == (N_SAMPLES,), "also of samples that lack a modality"


def test_loo_of_each_modality(data: Any) -> None:
    for name in modalities(data):
        values = draws(data, name)
        assert values.dtype == np.float64
        if IS_1 and any(_has_no_tail(of_sample) for of_sample in values.T):
            with pytest.raises(ValueError, match="All tail values are the same"):  # docs/run_folder.md
                az.loo(data, var_name=name)
            continue
        total, pointwise, _ = elpd(data, var_name=name)
        assert np.isfinite(pointwise).all(), name
        assert total == pytest.approx(pointwise.sum())
        assert len(pointwise) == data.log_likelihood[name].shape[-1] <= N_SAMPLES


def _has_no_tail(values: np.ndarray) -> bool:
    """Under a law with parameters per cell: the log-likelihood has a value per cell, and few cells are likely."""
    return len(np.unique(values)) < 3


def test_the_sum_is_that_of_the_modalities_that_a_sample_has(opened: dict[str, Any]) -> None:
    group = opened["resin_coupons"].log_likelihood
    names = modalities(opened["resin_coupons"])
    assert list(group.data_vars) == ["total"]
    parts = [group[name].rename({group[name].dims[-1]: "sample_id"}).reset_coords(drop=True) for name in names]
    assert min(part.sizes["sample_id"] for part in parts) < N_SAMPLES, "some lack one"
    added = sum(part.reindex(sample_id=group["sample_id"], fill_value=0.0) for part in parts)
    np.testing.assert_allclose(group["total"], added)


def test_the_file_says_how_far_loo_can_be_trusted(data: Any) -> None:
    group = data.log_likelihood
    told = json.loads(group.attrs[f"pareto_k_above_{K_LIMIT}"])
    assert set(told) == {*group.data_vars, *modalities(data)}
    for name, share in told.items():
        values = draws(data, name)
        assert share == pytest.approx((psis_khat(-values) > K_LIMIT).mean())
    assert "held_out_log_likelihood in summary.json" in group.attrs["note"]


def test_pareto_k_is_that_of_arviz(opened: dict[str, Any]) -> None:
    for name in ("circles", "resin_coupons", "synthetic_nets_cancer"):  # of one chain: draws count as independent
        ours = psis_khat(-draws(opened[name], next(iter(opened[name].log_likelihood.data_vars))))
        np.testing.assert_allclose(ours, elpd(opened[name])[2], rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_compare(opened: dict[str, Any], name: str) -> None:
    other = "circles" if name == RESTARTS else name
    table = az.compare({"one": opened[name], "another": opened[other]}, method="pseudo-BMA")
    columns = ["elpd", "p", "elpd_diff", "se", "dse"] if IS_1 else ["elpd_loo", "p_loo", "elpd_diff", "se", "dse"]
    assert np.isfinite(table[columns].to_numpy(float)).all()
    assert table["weight"].sum() == pytest.approx(1.0)


def test_stacking_weights_overflow_where_a_sample_has_over_709_nats(opened: dict[str, Any]) -> None:
    """Why docs/run_folder.md names a method: the default takes exp of the elpd of a sample."""
    pair = {"one": opened["circles"], "another": opened[RESTARTS]}
    assert elpd(opened["circles"])[1].max() > 709
    with pytest.warns(RuntimeWarning, match="overflow encountered in exp|invalid value"):
        table = az.compare(pair)
    assert np.isfinite(table["elpd_diff"].to_numpy(float)).all()


def test_posterior_predictive_check(data: Any) -> None:
    if IS_1:
        drawn = az.plot_ppc_dist(data, num_samples=5, **without_window())
        assert all(name in str(drawn.viz["predictive_dist"]) for name in modalities(data))
    else:
        assert len(np.ravel(az.plot_ppc(data, num_pp_samples=5, show=False))) == len(modalities(data))


@pytest.mark.parametrize("plot", ["plot_forest", "plot_trace"])
def test_plots_of_z(data: Any, plot: str) -> None:
    assert getattr(az, plot)(data, **few(data), **without_window()) is not None


@pytest.mark.parametrize("name", NAMES)
def test_rank_plots_of_z(opened: dict[str, Any], name: str) -> None:
    data = opened[name]
    if IS_1 and name != RESTARTS:
        with pytest.raises(ValueError, match="at least 2 chains"):  # ranks compare chains: docs/run_folder.md
            az.plot_rank(data, **few(data), **without_window())
    else:
        assert az.plot_rank(data, **few(data), **without_window()) is not None


def test_starts_are_chains_of_z_in_one_latent_space(opened: dict[str, Any]) -> None:
    latent = opened[RESTARTS].posterior["Z"]
    assert latent.sizes["chain"] == 3
    np.testing.assert_array_equal(latent.values[0], opened[RESTARTS]["posterior_latent"]["Z"].values[0])
    means = latent.mean("draw")
    others = means.isel(chain=slice(1, None))
    spread = ((means.isel(chain=0) - means.isel(chain=0).mean("sample_id")) ** 2).sum()
    apart = ((others - means.isel(chain=0)) ** 2).sum(("sample_id", "latent"))
    assert (apart < spread).all(), "nearer to the same sample of the kept start than samples are to each other"
