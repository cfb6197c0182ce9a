"""Copies that begin before somebody waits for them, in a thread of their own.

An array that the host is known to read next is brought back while the host does something else; one that a launch is known
to use next is taken over as soon as its content is final. Until the copy has ended its resident is busy, and whoever wants
to use the array waits, on the host or in a launch. A copy that fails here is made again where it is waited for, and fails
there.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

from numba_offload.errors import OffloadError, TransferError
from numba_offload.mapping.layout import layout_of
from numba_offload.mapping.plan import ArrayUse, plan_launch
from numba_offload.mapping.residency import Residency, Resident, bring_back_all

if TYPE_CHECKING:
    import numpy as np

LEAST_BYTES = 256 << 10
"""Smaller arrays are copied faster than a thread is woken."""

_lock = threading.Lock()
_worker: tuple[int, ThreadPoolExecutor] | None = None


def _run(job: Callable[[], None], otherwise: Callable[[], None]) -> bool:
    """Run a job behind those before it, outside this thread; returns whether it will be run. If not, ``otherwise`` is."""
    global _worker
    waiting = [job]

    def run() -> None:
        try:
            mine = waiting.pop()
        except IndexError:
            return
        mine()

    try:
        with _lock:
            if _worker is None or _worker[0] != os.getpid():
                _worker = os.getpid(), ThreadPoolExecutor(1, "numba_offload early copies")
            executor = _worker[1]
        executor.submit(run)
    except BaseException as error:
        # No thread can be started, or an interrupt, after which the job may be run all the same.
        try:
            waiting.pop()
        except IndexError:
            pass
        else:
            otherwise()
        if not isinstance(error, Exception):
            raise
        return False
    return True


def bring_back_early(residency: Residency, resident: Resident) -> bool:
    """Begin to bring a dirty resident back; returns whether that has begun."""
    if resident.dirty is None or resident.plan.nbytes < LEAST_BYTES or not residency.begin_copy(resident):
        return False
    try:
        residency.check_back(resident)
    except TransferError:
        residency.end_copy(resident)
        return False  # the use itself will be told
    # The next launch must not count on what is on the host now, to be undone.
    residency.undo.came_back(resident)
    otherwise = partial(residency.end_copy, resident)
    try:
        # Behind the launches so far, beside those to come.
        mark = residency.device.memory.mark()
    except BaseException as error:
        otherwise()
        if not isinstance(error, Exception):
            raise
        return False  # the one who needs it will be told
    return _run(partial(_bring_back, residency, resident, mark), otherwise)


def _bring_back(residency: Residency, resident: Resident, mark: Any) -> None:
    memory = residency.device.memory
    try:
        side = memory.side_stream()
        memory.order(mark, side)
        bring_back_all([resident], side)
    except Exception:
        pass  # it is dirty still, and the one who needs it will be told
    finally:
        residency.end_copy(resident)


def take_over_early(residency: Residency, array: np.ndarray, name: str) -> Resident | None:
    """Begin to take an array over that no resident has yet; returns its resident, if that has begun."""
    layout = layout_of(array)
    if layout.end - layout.begin < LEAST_BYTES or residency.meets(layout.begin, layout.end):
        return None
    use = ArrayUse(name, array, "to")
    (plan,) = plan_launch([(use, layout)]).buffers
    try:
        residency.check_over(plan, "", name)
        if not residency.has_room(plan.nbytes):
            return None
        address = residency.device.pool.allocate(plan.nbytes, plan.label, "an early copy")
    except OffloadError:
        return None  # the launch will say what is wrong with it
    resident = residency.add([use], plan, address, busy=True)
    begun = _run(partial(_take_over, residency, resident, array), partial(residency.end_copy, resident, forget=True))
    return resident if begun else None


def _take_over(residency: Residency, resident: Resident, array: np.ndarray) -> None:
    """Fill a resident. ``array`` is only kept: its memory is being read."""
    memory, arrived = residency.device.memory, False
    try:
        side = memory.side_stream()
        residency.copies(stream=side).upload(resident.plan, resident.address)
        memory.order(memory.mark(side))
        arrived = True
    except Exception:
        pass  # the launch takes it over itself
    finally:
        residency.end_copy(resident, forget=not arrived)
