"""Running work items on Numba's threading layer, whichever it is, from any Python thread, also after a fork."""

from __future__ import annotations

import ctypes
import os
import threading
from typing import Any

import llvmlite.binding as ll

_PARALLEL_FOR = ctypes.CFUNCTYPE(
    None, *[ctypes.c_void_p] * 5, ctypes.c_size_t, ctypes.c_size_t, ctypes.c_int
)
_lock = threading.Lock()
_layer: _Layer | None = None


class _Layer:
    """Numba's threading layer as started in this process."""

    def __init__(self) -> None:
        import numba
        from numba.np.ufunc import parallel

        parallel._launch_threads()
        self.pid = os.getpid()
        self.get_num_threads = numba.get_num_threads
        address = ll.address_of_symbol("numba_parallel_for")
        if not address:
            raise RuntimeError("Numba's threading layer offers no numba_parallel_for")
        self.parallel_for = _PARALLEL_FOR(address)
        # workqueue ends the process if two threads enter it at once.
        self.exclusive = numba.threading_layer() == "workqueue"


def _started() -> _Layer | None:
    """The layer, or None in a forked child: its threads did not survive, and OpenMP would end the process."""
    global _layer
    if _layer is None:
        with _lock:
            if _layer is None:
                _layer = _Layer()
    return _layer if _layer.pid == os.getpid() else None


def run_work(address: int, total: int, data: Any, serial: bool) -> None:
    """Call the work item at ``address`` on ``range(total)``, split among threads unless ``serial``."""
    start = ctypes.c_void_p(0)
    dims = ctypes.c_int64(total)
    step = ctypes.c_int64(1)
    layer = None if serial else _started()
    workers = layer.get_num_threads() if layer is not None else 1
    if layer is None or workers == 1:
        _WORK_ITEM(address)(ctypes.byref(start), ctypes.byref(dims), ctypes.byref(step), data)
        return
    arguments = (address, ctypes.byref(start), ctypes.byref(dims), ctypes.byref(step), data, 0, 1, workers)
    if layer.exclusive:
        with _lock:
            layer.parallel_for(*arguments)
    else:
        layer.parallel_for(*arguments)


_WORK_ITEM = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _after_fork() -> None:
    """The child may have been forked while another thread held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
