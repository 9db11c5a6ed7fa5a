"""What the machine is to blame for."""

from __future__ import annotations

import pytest

from causalpima.inference.store.files import OutputError, is_of_the_machine


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (OutputError("x is in use by another process"), True),
        (OSError(28, "No space left on device"), True),
        (MemoryError(), True),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), True),
        (ValueError("seed: expected a number"), False),
        (RuntimeError("a bug"), False),
        (RuntimeError("elements refer to a single memory location"), False),
    ],
)
def test_what_another_time_may_do_is_told_from_wrong_input(error: Exception, expected: bool) -> None:
    assert is_of_the_machine(error) is expected
