"""Whether the machine was not up to a computation, so that the same input may do another time."""

from __future__ import annotations

from inference.results.files import OutputError

__all__ = ["is_of_the_machine", "is_out_of_memory"]


def is_of_the_machine(error: BaseException) -> bool:
    """Whether memory, the disk or another process is to blame."""
    return isinstance(error, OSError | OutputError) or is_out_of_memory(error)


def is_out_of_memory(error: BaseException) -> bool:
    """Whether memory was lacking, the machine's or a device's, of which torch tells in the text of a RuntimeError."""
    text = str(error).lower() if isinstance(error, RuntimeError) else ""
    return isinstance(error, MemoryError) or "out of memory" in text or "can't allocate memory" in text
