"""A small real fit: the brightness of images depends on the batch, their content does not."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score

from causalpima.inference.data.roles import ReadOptions
from causalpima.inference.fit import fit

pytestmark = [pytest.mark.float32, pytest.mark.usefixtures("without_figures")]


def images(n: int = 400, difference: float = 0.45) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A disc on the left or on the right, brighter throughout in one of two batches; `[n, 8, 8]`, kind, batch."""
    rng = np.random.default_rng(0)
    kind, batch = rng.integers(0, 2, (2, n))
    x, centre = np.linspace(-1, 1, 8), np.where(kind, 0.4, -0.4)[:, None, None]
    disc = (np.square(x[:, None] - centre) + np.square(x) < 0.25).astype(float)
    return disc + difference * batch[:, None, None] + 0.2 * rng.normal(size=(n, 8, 8)), kind, batch


@pytest.mark.parametrize("covariates", [(), ("batch",)])
def test_clusters_need_not_follow_a_batch_that_decoders_see(covariates: tuple[str, ...]) -> None:
    image, kind, batch = images()
    data = {"image": image, "batch": batch}
    options = ReadOptions(modalities=("image",), covariates=covariates)
    clusters = fit(data, nodes={"kind": 2}, options=options).responsibilities().values.argmax(1)
    of_kind, of_batch = (adjusted_rand_score(known, clusters) for known in (kind, batch))
    if covariates:
        assert of_kind > 0.95
        assert of_batch < 0.02
    else:
        assert of_kind < 0.5
        assert of_batch > 0.1, "otherwise the batch would have been no nuisance"


def test_a_strong_batch_is_out_of_the_encoders_sight() -> None:
    image, kind, batch = images(difference=1.8)
    options = ReadOptions(modalities=("image",), covariates=("batch",))
    fitted = fit({"image": image, "batch": batch}, nodes={"kind": 2}, options=options)
    clusters = fitted.responsibilities().values.argmax(1)
    assert adjusted_rand_score(kind, clusters) > 0.95
    predicted = fitted.predict({"image": image[:50], "batch": batch[:50]})
    assert (predicted.responsibilities.to_numpy().argmax(1) == clusters[:50]).all(), "new samples are shifted alike"
