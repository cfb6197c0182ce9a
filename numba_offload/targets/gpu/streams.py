"""Streams of other libraries as the runtime's handles. No library is imported to recognise its streams."""

from __future__ import annotations

from typing import Any

from numba_offload.errors import LaunchError

_LEGACY = (0, 1)
"""Two names of the default stream."""


def stream_handle(stream: Any) -> int:
    """The driver's handle of a stream.

    Taken: None (the default stream), a handle as int, anything with ``__cuda_stream__``, and the streams of numba.cuda,
    hip-python, CuPy and PyTorch. Raises LaunchError for anything else.
    """
    if stream is None:
        return 0
    if isinstance(stream, int) and not isinstance(stream, bool):
        return stream
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    for name in ("cuda_stream", "ptr", "handle"):
        found = getattr(stream, name, None)
        if found is not None:
            return _as_int(getattr(found, "value", found))
    if hasattr(type(stream), "__int__") and not isinstance(stream, float | bool | str):
        return int(stream)
    raise LaunchError(
        f"{stream!r} is no stream of a GPU; expected None, a handle as int, a stream of numba.cuda, hip-python, CuPy or "
        "PyTorch, or an object with __cuda_stream__"
    )


def same_stream(one: int, other: int) -> bool:
    """Whether two handles name one stream."""
    return one == other or (one in _LEGACY and other in _LEGACY)


def _as_int(value: Any) -> int:
    return 0 if value is None else int(value)
