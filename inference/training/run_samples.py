"""A run and its samples belong together: the one place where samples are compared with those of a run."""

from __future__ import annotations

from inference.data.fingerprint import DataFingerprint
from inference.data.multimodal import MultimodalData
from inference.data.tensors import fingerprint
from inference.training.checkpoint import Checkpoint, OtherConfigurationError, load_checkpoint
from inference.training.description import RunDescription
from inference.training.own_code import own_names, source_hashes

__all__ = ["SAMPLES", "OtherDataError", "check_samples"]

SAMPLES = "samples"
"""Entry of a training state: the fingerprint of the samples, as plain values."""


class OtherDataError(ValueError):
    """Samples are not those of a run; the message is one line."""


def check_samples(checkpoint: Checkpoint, data: MultimodalData, run: str, with_labels: bool = True) -> None:
    """Refuse samples that are not those that a run was fitted to.

    Of a run of an older version, which has no fingerprint of its samples alone, settings and samples are compared
    together, and labels are not told from values; of one that has none of both, nothing.

    Args:
        checkpoint: A checkpoint of the run, of an epoch or final.
        data: The samples.
        run: What the run is called in the message.
        with_labels: Whether other labels count: they chose the split, and do not matter to who only scores against
            them.

    Raises:
        OtherDataError: They are others; the message says in what.
    """
    description = checkpoint.state.get("description")
    known = checkpoint.state.get(SAMPLES) or (description or {}).get("data")
    if known is not None:
        difference = DataFingerprint.from_plain(known).difference(data, with_labels)
        if difference is not None:
            raise OtherDataError(
                f"expected the samples that {run} was fitted to, got {difference}; put its data back, or fit again"
            )
    elif description is not None:
        _check_together(checkpoint, RunDescription.from_plain(description), data, run)


def _check_together(checkpoint: Checkpoint, description: RunDescription, data: MultimodalData, run: str) -> None:
    settings = description.config.to_dict()
    try:
        load_checkpoint(
            checkpoint.path.parent, description.config.fingerprint(fingerprint(data), source_hashes(settings))
        )
    except OtherConfigurationError as error:
        own = ", ".join(own_names(settings).values())
        code = f", and the file of {own} if that changed" if own else ""
        raise OtherDataError(
            f"expected the samples that {run} was fitted to, got others (values, order or labels; it is of an older "
            f"version of this program, which cannot tell which); put its data back{code}, or fit again"
        ) from error
