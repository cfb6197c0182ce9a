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
        # Numba's public get_num_threads starts the layer again each time before it asks this.
        self.get_num_threads = parallel._get_num_threads
        address = ll.address_of_symbol("numba_parallel_for")
        if not address:
            raise RuntimeError("Numba's threading layer offers no numba_parallel_for")
        self.parallel_for = _PARALLEL_FOR(address)
        # TBB hands chunks to whoever is free; the others deal them out in advance, where more chunks only cost calls.
        self.chunks_per_worker = 4 if numba.threading_layer() == "tbb" else 1


def _started() -> _Layer | None:
    """The layer, or None in a forked child: its threads did not survive, and OpenMP would end the process."""
    global _layer
    if _layer is None:
        with _lock:
            if _layer is None:
                _layer = _Layer()
    return _layer if _layer.pid == os.getpid() else None


def useful_chunks() -> int:
    """How many pieces to cut a launch into."""
    layer = _started()
    return layer.get_num_threads() * layer.chunks_per_worker if layer is not None else 1


def run_work(address: int, chunks: int, data: Any) -> None:
    """Call the work item at ``address`` for every chunk number below ``chunks``, on all threads if there are several."""
    where = _RANGES.get(chunks)
    if where is None:
        where = _RANGES[chunks] = _work_range(chunks)
    layer = _started() if chunks > 1 else None
    # One launch at a time: a launch uses every core, two that write one array must not mix, and Numba's workqueue ends
    # the process if two threads enter it at once.
    with _lock:
        if layer is None:
            _WORK_ITEM(address)(*where, data)
        else:
            layer.parallel_for(address, *where, data, 0, 1, chunks // layer.chunks_per_worker or 1)


def _work_range(chunks: int) -> tuple[Any, Any, Any]:
    """First chunk, number of chunks and step, as the threading layer reads them; it writes none of them."""
    return ctypes.byref(ctypes.c_void_p(0)), ctypes.byref(ctypes.c_int64(chunks)), ctypes.byref(ctypes.c_int64(1))


_RANGES: dict[int, tuple[Any, Any, Any]] = {}
_WORK_ITEM = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)


def _after_fork() -> None:
    """The child may have been forked while another thread held the lock."""
    global _lock
    _lock = threading.Lock()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
