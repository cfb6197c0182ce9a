"""Which version of a function is compiled: what was compiled of it before stands for the values that were frozen then."""

from __future__ import annotations

import threading
import types as python_types
from typing import Any

from numba_offload.captures import Fingerprint
from numba_offload.code_digest import CodeDigest
from numba_offload.errors import NotPlainError


class Versions:
    """Functions as they were when they followed from certain values.

    What a kernel's own key does not look at counts as well, such as a function's defaults, or the content of an array in a
    module: the key on disk looks at it, and code of another state must not come to lie under that.
    """

    def __init__(self) -> None:
        self._versions: dict[Any, dict[Any, Any]] = {}
        self._lock = threading.RLock()

    def current(self, function: Any) -> Any:
        """The function itself, or a twin of it if what it follows from has changed since it was first compiled."""
        print_ = (Fingerprint(function).current(), _digest(function))
        with self._lock:
            known = self._versions.setdefault(function, {})
            if print_ not in known:
                known[print_] = _twin(function) if known else function
            return known[print_]


def _digest(function: Any) -> str | None:
    digest = CodeDigest(lines=True)
    try:
        digest.function(function)
        return digest.hexdigest()
    except NotPlainError:  # nor is there a key on disk, then
        return None


def _twin(function: Any) -> Any:
    twin = python_types.FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    twin.__kwdefaults__ = function.__kwdefaults__
    twin.__qualname__ = function.__qualname__
    twin.__module__ = function.__module__
    return twin


VERSIONS = Versions()
"""Of every function compiled in this process."""
