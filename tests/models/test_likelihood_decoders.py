"""Laws that every likelihood keeps on every network, with one head and with one per cell, and with gaps."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from likelihood_kinds import KINDS, Kind
from torch import Tensor

from causalpima.models.decoders.base import Decoder
from causalpima.models.decoders.likelihoods import LikelihoodDecoder
from causalpima.models.decoders.networks import Network, convolutional_network, mlp_network

N_CELLS, LATENT, B = 4, 2, 6
NETWORKS: dict[str, tuple[Callable[..., Network], tuple[int, ...], tuple[int, ...]]] = {
    "mlp": (mlp_network, (3, 2), (5,)),
    "linear": (mlp_network, (4,), ()),
    "convolutional": (convolutional_network, (5, 6, 2), (4, 5, 3)),
}
Build = Callable[[], LikelihoodDecoder]
every = pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS.keys())
on_each_network = pytest.mark.parametrize("network", list(NETWORKS))
heads = pytest.mark.parametrize("n_cells", [None, N_CELLS], ids=["one head", "a head per cell"])


def build(kind: Kind, network: str, n_cells: int | None) -> LikelihoodDecoder:
    make, shape, sizes = NETWORKS[network]
    likelihood = kind.make(shape)
    return LikelihoodDecoder(
        *make(LATENT, shape, sizes, n_cells or 1, likelihood.n_outputs), shape, likelihood, n_cells
    )


def outputs_by_hand(decoder: LikelihoodDecoder, latent: Tensor, cell: int) -> Tensor:
    """Outputs of a cell's head, `[B, *event, P]`."""
    flat = decoder.head(decoder.body(latent))
    groups = flat.reshape(len(latent), decoder.n_cells or 1, *decoder.event_shape, decoder.likelihood.n_outputs)
    return groups[:, cell if decoder.n_cells else 0]


@every
@on_each_network
@heads
def test_log_likelihood_is_the_closed_form_of_each_cell(kind: Kind, network: str, n_cells: int | None) -> None:
    decoder, latent = build(kind, network, n_cells), torch.randn(B, LATENT)
    assert isinstance(decoder, Decoder)
    value = kind.draw((B, *decoder.event_shape))
    actual = decoder(latent, torch.arange(N_CELLS).unsqueeze(-1)).log_prob(value)
    expected = [
        kind.closed(outputs_by_hand(decoder, latent, cell)).log_prob(value).flatten(1).sum(1) for cell in range(N_CELLS)
    ]
    assert actual.shape == ((N_CELLS, B) if n_cells else (B,))
    torch.testing.assert_close(actual.expand(N_CELLS, B), torch.stack(expected), rtol=1e-10, atol=1e-10)
    assert decoder.depends_on_cell == (n_cells is not None)
    if n_cells:
        assert actual.unique(dim=0).shape[0] == N_CELLS


@every
@heads
@pytest.mark.parametrize(
    ("batch", "cells"),
    [((5,), ()), ((5,), (N_CELLS, 1)), ((5,), (2, 2, 1)), ((5,), (5,)), ((1,), (1,)), ((3, 5), (N_CELLS, 1, 1))],
)
def test_batch_shape_is_that_of_the_interface(
    kind: Kind, n_cells: int | None, batch: tuple[int, ...], cells: tuple[int, ...]
) -> None:
    decoder = build(kind, "mlp", n_cells)
    one = decoder(torch.randn(*batch, LATENT), torch.randint(N_CELLS, cells))
    expected = torch.broadcast_shapes(batch, cells) if n_cells else batch
    assert one.batch_shape == expected
    assert one.event_shape == decoder.event_shape
    assert one.log_prob(kind.draw((batch[-1], 3, 2))).shape == expected
    moments = (*expected, 3, 2) if kind is not KINDS["categorical"] else (*expected, 3, 2, 4)
    assert one.mean.shape == one.variance.shape == moments
    assert one.sample().shape == (*expected, 3, 2)


@every
@on_each_network
@heads
def test_gradients_reach_every_parameter(kind: Kind, network: str, n_cells: int | None) -> None:
    decoder = build(kind, network, n_cells)
    latent = torch.randn(40, LATENT, requires_grad=True)
    value = kind.draw((40, *decoder.event_shape))
    decoder(latent, torch.arange(N_CELLS).unsqueeze(-1)).log_prob(value).sum().backward()
    trained = {name: p for name, p in decoder.named_parameters() if p.requires_grad}
    assert [name for name, p in trained.items() if p.grad is None or p.grad.count_nonzero() == 0] == []
    assert latent.grad is not None
    assert (latent.grad != 0).all()


@every
@on_each_network
@heads
@pytest.mark.parametrize("filler", ["nan", "outside"])
def test_gaps_are_dropped_and_their_filler_touches_nothing(
    kind: Kind, network: str, n_cells: int | None, filler: str
) -> None:
    decoder, latent = build(kind, network, n_cells), torch.randn(B, LATENT)
    value = kind.draw((B, *decoder.event_shape)).requires_grad_()
    observed = torch.rand(value.shape) < 0.6
    spoilt = torch.where(observed, value, torch.nan if filler == "nan" else kind.outside)
    actual = decoder(latent, torch.arange(B) % N_CELLS).restricted(observed).log_prob(spoilt)
    expected = torch.stack(
        [
            kind.closed(outputs_by_hand(decoder, row.unsqueeze(0), index % N_CELLS)[0]).log_prob(x)[seen].sum()
            for index, (row, x, seen) in enumerate(zip(latent, value, observed, strict=True))
        ]
    )
    torch.testing.assert_close(actual, expected, rtol=1e-10, atol=1e-10)
    parameters = [*decoder.body.parameters(), *decoder.head.parameters()]
    gradients = torch.autograd.grad(actual.sum(), parameters, retain_graph=True)
    by_hand = torch.autograd.grad(expected.sum(), parameters)
    torch.testing.assert_close(gradients, by_hand, rtol=1e-9, atol=1e-9)


@every
@heads
def test_a_gap_stops_the_gradient_of_its_own_head(kind: Kind, n_cells: int | None) -> None:
    decoder, latent = build(kind, "linear", n_cells), torch.randn(B, LATENT)
    observed = torch.ones(B, 4, dtype=torch.bool)
    observed[:, 2] = False
    value = torch.where(observed, kind.draw((B, 4)), torch.nan)
    decoder(latent, torch.arange(B) % N_CELLS).restricted(observed).log_prob(value).sum().backward()
    bias = next(p for p in decoder.head.parameters() if p.dim() == 1)
    assert bias.grad is not None
    gradient = bias.grad.reshape(n_cells or 1, 4, -1)
    assert (gradient[:, 2] == 0).all()
    assert (gradient[:, [0, 1, 3]] != 0).all()


@every
@on_each_network
def test_state_makes_the_same_decoder(kind: Kind, network: str) -> None:
    decoder, other = (build(kind, network, N_CELLS) for _ in range(2))
    latent, cell = torch.randn(B, LATENT), torch.arange(B) % N_CELLS
    with torch.no_grad():
        for parameter in decoder.likelihood.parameters():
            parameter.add_(0.3)
        for buffer in decoder.likelihood.buffers():
            buffer.add_(0.2)
    value = kind.draw((B, *decoder.event_shape))
    assert not torch.equal(decoder(latent, cell).log_prob(value), other(latent, cell).log_prob(value))
    other.load_state_dict(decoder.state_dict())
    assert torch.equal(decoder(latent, cell).log_prob(value), other(latent, cell).log_prob(value))


@every
@on_each_network
@heads
def test_in_float32(kind: Kind, network: str, n_cells: int | None) -> None:
    decoder, latent = build(kind, network, n_cells).float(), torch.randn(B, LATENT)
    value, cell = kind.draw((B, *decoder.event_shape)), torch.arange(N_CELLS).unsqueeze(-1)
    single = decoder(latent.float(), cell).log_prob(value.float())
    assert single.dtype == torch.float32
    double = decoder.double()(latent, cell).log_prob(value)
    torch.testing.assert_close(single.double(), double, rtol=1e-5, atol=2e-4)


@heads
def test_outputs_of_an_image_are_in_their_place(n_cells: int | None) -> None:
    """Output p of channel c of head h at pixel (i, j) is channel (h C + c) P + p of the last layer there."""
    decoder, latent = build(KINDS["categorical"], "convolutional", n_cells), torch.randn(B, LATENT)
    body: Any = decoder.body
    maps = body.layers(body.dense(latent).unflatten(-1, body.start))[..., :5, :6]
    logits = decoder(latent, torch.arange(B) % N_CELLS).base.logits
    for row in range(B):
        head = row % N_CELLS if n_cells else 0
        for c in range(2):
            first = (head * 2 + c) * 4
            expected = maps[row, first : first + 4].movedim(0, -1).log_softmax(-1)
            torch.testing.assert_close(logits[row, :, :, c], expected)


def test_images_of_another_form_are_refused() -> None:
    with pytest.raises(ValueError, match=r"convolutional decoder: expected \(height, width, channel\) and 3 channel"):
        convolutional_network(LATENT, (8, 8), (2, 2, 2))
