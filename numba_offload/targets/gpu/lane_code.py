"""What copy lanes do, as machine code: a whole batch without the interpreter's lock.

Arrays are copied in *pieces*. The page-locked ring is cut into slots; piece p goes through slot p modulo their number. Lanes
move pieces between the host's arrays and the slots, each the next that no other has taken. The copies between slots and the
device are queued in the pieces' order, for as many neighbours at a time as are ready.

From Python, each piece would mean giving up the interpreter's lock and getting it again, in each of eight threads, which takes
longer than the copying. A driver takes a lock of its own at each call, too, and puts a thread that does not get it to sleep:
so only the lane that holds the *token* calls the driver, and the others do not wait for it but go on. The code is LLVM IR,
made here from Python that reads like C. Nothing in it calls Python.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as ll
from llvmlite import ir
from numba.core import cgutils

from numba_offload.targets.gpu.ir_functions import I32, I64, Function, structure

_SEMAPHORE = ctypes.c_uint64 * 4  # a sem_t of Linux
IDLE, CALLED, WORKING = range(3)
SEND, WRITE, MOVE = range(3)
_LOOKS = 8192
"""Times that a lane looks for the next batch before it lets others have its core: some hundred microseconds."""
_PATIENT = 32
"""Times that a lane looks for what others are to do before it lets them have its core, between looks."""
_AWAKE = 20_000_000
"""Nanoseconds that it then goes on looking, between others' work, before it sleeps. OpenMP's threads look for up to 200 ms."""
_MONOTONIC = 1  # Linux's CLOCK_MONOTONIC
_PAUSES = {"x86_64": ("llvm.x86.sse2.pause", ()), "aarch64": ("llvm.aarch64.hint", (1,))}
COPY, RECORD, AWAIT = range(3)
"""Calls that may fail."""

_LINE = 64
_WORD = ctypes.c_int64
LaneState = structure(
    "LaneState",
    state=_WORD,
    looking=_WORD,  # it is awake, or is being woken, and will see a call
    wake=_SEMAPHORE,
)
CopyState = structure(  # pieces from number ``start`` to before ``end`` are this copy's
    "CopyState", device=_WORD, host=_WORD, nbytes=_WORD, start=_WORD, end=_WORD
)
SlotState = structure("SlotState", turn=_WORD)  # 1 + the piece that a lane has last been done with in it; 0: none
EventState = structure("EventState", handle=_WORD, queued=_WORD)  # an event, and how many pieces were queued before it
Job = structure(
    "Job",
    # The runtime's functions, and its code for an event that has not happened
    over=_WORD,
    back=_WORD,
    record=_WORD,
    query=_WORD,
    wait=_WORD,
    not_ready=_WORD,
    # The ring
    block=_WORD,
    slot_states=_WORD,
    events=_WORD,
    event_count=_WORD,
    lanes=_WORD,
    # The batch
    copies=_WORD,
    count=_WORD,  # of pieces
    piece_bytes=_WORD,
    slots=_WORD,
    most_queued=_WORD,  # pieces in one call
    lane_count=_WORD,
    stream=_WORD,
    mode=_WORD,
    room=_WORD,  # pieces that lanes may be ahead of the copies that have been made: over, all slots; back, none
    # How far it is
    next=_WORD,  # piece for a lane
    queued=_WORD,
    made=_WORD,  # pieces that are known to have been copied, after they were queued
    recorded=_WORD,  # events so far
    reached=_WORD,
    token=_WORD,
    woken=_WORD,
    stop=_WORD,
    # What failed first
    call=_WORD,
    piece=_WORD,
    code=_WORD,
    quit=_WORD,
    done=_SEMAPHORE,
)


@dataclass(frozen=True)
class LaneCode:
    """Compiled functions. Each is given a Job's address; calls release the interpreter's lock.

    ``run`` has the batch done by the calling thread as lane 0 and by those that wake in time. ``ask`` queues copies from the
    device until the ring will be full or hold all there is, and ``land`` waits for them. These return whether something
    failed. ``rouse`` wakes lanes below a number. ``serve`` is the life of the lane whose number it is given.
    """

    run: Callable[[int], int]
    ask: Callable[[int], int]
    land: Callable[[int], int]
    rouse: Callable[[int, int], int]
    serve: Callable[[int, int], int]
    engine: Any


class _Lanes:
    """The functions of all that lanes do, in one module."""

    def __init__(self) -> None:
        self.module = module = ir.Module("copy_lanes")
        self.memcpy = ir.Function(module, ir.FunctionType(I64, [I64] * 3), "memcpy")
        self.sem_wait = ir.Function(module, ir.FunctionType(I32, [I64]), "sem_wait")
        self.sem_trywait = ir.Function(module, ir.FunctionType(I32, [I64]), "sem_trywait")
        self.sem_post = ir.Function(module, ir.FunctionType(I32, [I64]), "sem_post")
        self.sched_yield = ir.Function(module, ir.FunctionType(I32, []), "sched_yield")
        self.clock_gettime = ir.Function(module, ir.FunctionType(I32, [I64, I64]), "clock_gettime")
        self.fail = self._fail()
        self.wake = self._wake()
        self.find = self._find()
        self.fill = self._fill()
        self.queue = self._queue()
        self.record = self._record()
        self.look = self._look()
        self.ready = self._ready()
        self.advance = self._advance()
        self.work = self._work()
        self._run()
        self._ask()
        self._land()
        self._rouse()
        self._serve()

    def _fail(self) -> ir.Function:
        """fail(job, call, piece, code): note what failed, if it is the first, and stop the others."""
        f = Function(self.module, "fail", 4)
        job, call, piece, code = f.function.args
        f.leave(f.test("!=", f.exchange(job, Job, "stop", 1), 0))
        f.put(job, Job, "call", call)
        f.put(job, Job, "piece", piece)
        f.put(job, Job, "code", code)
        return f.finish()

    def _wake(self) -> ir.Function:
        """wake(job): one more lane, if there is more to do and one that sleeps.

        All wake others, so that the caller need not, and nobody is woken for what will be done before.
        """
        f = Function(self.module, "wake", 1)
        (job,) = f.function.args
        f.leave(f.test(">=", f.get(job, Job, "next"), f.get(job, Job, "count")))
        f.leave(f.test(">=", f.get(job, Job, "woken"), f.get(job, Job, "lane_count")))
        number = f.add(job, Job, "woken")
        f.leave(f.test(">=", number, f.get(job, Job, "lane_count")))
        self._disturb(f, f.element(f.get(job, Job, "lanes"), LaneState, number))
        return f.finish()

    # ------------------------------------------------------------------------------------------------------- pieces

    def _find(self) -> ir.Function:
        """find(job, piece): the copy that a piece belongs to."""
        f = Function(self.module, "find", 2)
        job, piece = f.function.args
        copies = f.get(job, Job, "copies")
        with f.each(0, f.get(job, Job, "count")) as number:
            copy = f.element(copies, CopyState, number)
            with f.b.if_then(f.test("<", piece, f.get(copy, CopyState, "end"))):
                f.b.ret(copy)
        return f.finish()

    def _pieces(self, f: Function, job: Any, number: Any, count: Any) -> tuple[Any, Any, Any]:
        """The addresses on the device and on the host, and the bytes, of neighbours in one copy."""
        copy, size = f.call(self.find, job, number), f.get(job, Job, "piece_bytes")
        offset = f.b.mul(f.b.sub(number, f.get(copy, CopyState, "start")), size)
        left = f.b.sub(f.get(copy, CopyState, "nbytes"), offset)
        device, host = (f.b.add(f.get(copy, CopyState, side), offset) for side in ("device", "host"))
        return device, host, f.smaller(left, f.b.mul(count, size))

    def _fill(self) -> ir.Function:
        """fill(slot, source, size): a copy that goes past the caches, to where the bus reads it.

        For slots that are not in a cache, whose old content others would fetch first; those of a batch that goes round the
        ring are.
        """
        f = Function(self.module, "fill", 3)
        slot, source, size = f.function.args
        line = ir.VectorType(I64, _LINE // 8)
        whole = f.b.and_(size, I64(-_LINE))
        with f.b.goto_entry_block():
            offset = f.b.alloca(I64)
        f.b.store(I64(0), offset)
        with f.loop() as out:
            at = f.b.load(offset)
            f.leave(f.test(">=", at, whole), out)
            value = f.b.load(f.b.inttoptr(f.b.add(source, at), line.as_pointer()), align=1)
            store = f.b.store(value, f.b.inttoptr(f.b.add(slot, at), line.as_pointer()), align=_LINE)
            store.set_metadata("nontemporal", self.module.add_metadata([I32(1)]))
            f.b.store(f.b.add(at, I64(_LINE)), offset)
        f.call(self.memcpy, f.b.add(slot, whole), f.b.add(source, whole), f.b.sub(size, whole))
        f.b.fence("seq_cst")  # such stores are in no order by themselves
        return f.finish()

    def _slot(self, f: Function, job: Any, number: Any) -> tuple[Any, Any]:
        """The memory of a piece's slot, and its state."""
        slot = f.b.srem(number, f.get(job, Job, "slots"))
        memory = f.b.add(f.get(job, Job, "block"), f.b.mul(slot, f.get(job, Job, "piece_bytes")))
        return memory, f.element(f.get(job, Job, "slot_states"), SlotState, slot)

    # ---------------------------------------------------------------------------------------- with the token: copies

    def _queue(self) -> ir.Function:
        """queue(job, count): a copy of the next pieces, which are of one array and in slots side by side."""
        f = Function(self.module, "queue", 2)
        job, count = f.function.args
        number, stream = f.get(job, Job, "queued"), f.get(job, Job, "stream")
        device, _, size = self._pieces(f, job, number, count)
        memory, _ = self._slot(f, job, number)
        with f.b.if_else(f.test("==", f.get(job, Job, "mode"), SEND)) as (over, back):
            with over:
                code_over = f.call_address(f.get(job, Job, "over"), device, memory, size, stream)
                block_over = f.b.block
            with back:
                code_back = f.call_address(f.get(job, Job, "back"), memory, device, size, stream)
                block_back = f.b.block
        code = f.b.phi(I64)
        code.add_incoming(code_over, block_over)
        code.add_incoming(code_back, block_back)
        with f.b.if_then(f.test("!=", code, 0)):
            f.call(self.fail, job, COPY, number, code)
        f.leave(f.test("!=", code, 0))
        f.put(job, Job, "queued", f.b.add(number, count))
        return f.finish()

    def _record(self) -> ir.Function:
        """record(job): an event behind what is queued."""
        f = Function(self.module, "record", 1)
        (job,) = f.function.args
        event, queued = self._event(f, job, "recorded"), f.get(job, Job, "queued")
        f.put(event, EventState, "queued", queued)
        code = f.call_address(f.get(job, Job, "record"), f.get(event, EventState, "handle"), f.get(job, Job, "stream"))
        with f.b.if_then(f.test("!=", code, 0)):
            f.call(self.fail, job, RECORD, f.b.sub(queued, I64(1)), code)
        f.leave(f.test("!=", code, 0))
        f.add(job, Job, "recorded")
        return f.finish()

    def _event(self, f: Function, job: Any, which: str) -> Any:
        """The one that is next to be "recorded", or "reached"."""
        number = f.b.srem(f.get(job, Job, which), f.get(job, Job, "event_count"))
        return f.element(f.get(job, Job, "events"), EventState, number)

    def _look(self) -> ir.Function:
        """look(job): which copies have been made."""
        f = Function(self.module, "look", 1)
        (job,) = f.function.args
        with f.loop():
            f.leave(f.test(">=", f.get(job, Job, "reached"), f.get(job, Job, "recorded")))
            event = self._event(f, job, "reached")
            code = f.call_address(f.get(job, Job, "query"), f.get(event, EventState, "handle"))
            queued = f.get(event, EventState, "queued")
            f.leave(f.test("==", code, f.get(job, Job, "not_ready")))
            with f.b.if_then(f.test("!=", code, 0)):
                f.call(self.fail, job, AWAIT, f.b.sub(queued, I64(1)), code)
            f.leave(f.test("!=", code, 0))
            f.put(job, Job, "made", queued)
            f.add(job, Job, "reached")
        return f.finish()

    def _ready(self) -> ir.Function:
        """ready(job): of how many pieces a copy is to be queued now.

        A bus likes large copies, but should begin soon: the more have been queued, the more are to be waited for.
        """
        f = Function(self.module, "ready", 1)
        (job,) = f.function.args
        first, slots = f.get(job, Job, "queued"), f.get(job, Job, "slots")
        f.leave(f.test(">=", first, f.get(job, Job, "count")))
        end = f.get(f.call(self.find, job, first), CopyState, "end")
        side_by_side = f.smaller(f.b.sub(end, first), f.b.sub(slots, f.b.srem(first, slots)))
        most = f.smaller(side_by_side, f.get(job, Job, "most_queued"))
        wanted = f.smaller(most, f.b.add(f.b.sdiv(first, I64(2)), I64(1)))
        lag = f.b.sub(f.b.sub(slots, f.get(job, Job, "room")), I64(1))
        with f.numbers() as (count, out):
            f.leave(f.test(">=", count, most), out)
            number = f.b.add(first, count)
            turn = f.get(self._slot(f, job, number)[1], SlotState, "turn")
            missing = f.test("!=", turn, f.b.sub(number, lag))
            with f.b.if_then(missing):
                f.b.ret(f.b.select(f.test("<", count, wanted), I64(0), count))
        f.b.ret(most)
        return f.function

    def _advance(self) -> ir.Function:
        """advance(job): look what has been copied, and queue what is ready, if no other lane is at it."""
        f = Function(self.module, "advance", 1)
        (job,) = f.function.args
        f.leave(f.test("!=", f.exchange(job, Job, "token", 1), 0))
        f.call(self.look, job)
        marks = f.test("<", f.get(job, Job, "slots"), f.get(job, Job, "count"))
        with f.loop() as out:
            f.leave(f.test("!=", f.get(job, Job, "stop"), 0), out)
            under_way = f.b.sub(f.get(job, Job, "recorded"), f.get(job, Job, "reached"))
            f.leave(f.test(">=", under_way, f.get(job, Job, "event_count")), out)
            count = f.call(self.ready, job)
            f.leave(f.test("==", count, 0), out)
            f.call(self.queue, job, count)
            with f.b.if_then(f.b.and_(marks, f.test("==", f.get(job, Job, "stop"), 0))):
                f.call(self.record, job)
        f.put(job, Job, "token", 0)
        return f.finish()

    # ----------------------------------------------------------------------------------------------- a lane's part

    def _work(self) -> ir.Function:
        """work(job): move pieces until none is left."""
        f = Function(self.module, "work", 1)
        (job,) = f.function.args
        f.call(self.wake, job)
        f.call(self.wake, job)
        mode = f.get(job, Job, "mode")
        with f.loop():
            f.leave(f.test("!=", f.get(job, Job, "stop"), 0))
            number = f.add(job, Job, "next")
            f.leave(f.test(">=", number, f.get(job, Job, "count")))
            f.call(self.wake, job)
            device, host, size = self._pieces(f, job, number, I64(1))
            with f.b.if_else(f.test("==", mode, MOVE)) as (move, stage):
                with move:
                    f.call(self.memcpy, host, device, size)
                with stage:
                    with f.numbers() as (looks, out):
                        f.leave(f.test("!=", f.get(job, Job, "stop"), 0))
                        f.leave(f.test("<", number, f.b.add(f.get(job, Job, "made"), f.get(job, Job, "room"))), out)
                        f.call(self.advance, job)
                        self._step_aside(f, looks)
                    memory, state = self._slot(f, job, number)
                    with f.b.if_else(f.test("==", mode, SEND)) as (over, back):
                        with over, f.b.if_else(f.test("<", f.get(job, Job, "slots"), f.get(job, Job, "count"))) as (again, once):
                            with again:
                                f.call(self.memcpy, memory, host, size)
                            with once:
                                f.call(self.fill, memory, host, size)
                        with back:
                            f.call(self.memcpy, host, memory, size)
                    f.put(state, SlotState, "turn", f.b.add(number, I64(1)))
                    f.call(self.advance, job)
        f.b.unreachable()
        return f.function

    def _run(self) -> None:
        """run(job): the batch; returns when no lane is at it any more. Lanes that have not begun by its end are called off."""
        f = Function(self.module, "run", 1)
        (job,) = f.function.args
        lanes, count = f.get(job, Job, "lanes"), f.get(job, Job, "lane_count")
        for field, value in (("next", 0), ("stop", 0), ("woken", 1)):
            f.put(job, Job, field, value)
        with f.each(1, count) as number:
            f.put(f.element(lanes, LaneState, number), LaneState, "state", CALLED)
        f.call(self.work, job)
        with f.numbers() as (looks, all_queued):  # by whoever has the token
            f.leave(f.test("!=", f.get(job, Job, "stop"), 0), all_queued)
            f.leave(f.test(">=", f.get(job, Job, "queued"), f.get(job, Job, "count")), all_queued)
            f.call(self.advance, job)
            self._step_aside(f, looks)
        with f.each(1, count) as number:
            called_off = f.replace(f.element(lanes, LaneState, number), LaneState, "state", CALLED, IDLE)
            with f.b.if_then(f.b.not_(called_off)):
                self._wait_for_end(f, f.address(job, Job, "done"))
        f.b.ret(f.get(job, Job, "stop"))

    def _ask(self) -> None:
        """ask(job): have the ring filled from the device.

        Nothing is ready in ``advance`` before lanes have emptied slots, so what is queued here is in as large copies as can be.
        """
        f = Function(self.module, "ask", 1)
        (job,) = f.function.args
        f.put(job, Job, "stop", 0)
        fitting = f.smaller(f.get(job, Job, "count"), f.get(job, Job, "slots"))
        with f.loop() as out:
            queued = f.get(job, Job, "queued")
            f.leave(f.test(">=", queued, fitting), out)
            end = f.get(f.call(self.find, job, queued), CopyState, "end")
            f.call(self.queue, job, f.b.sub(f.smaller(end, fitting), queued))
            with f.b.if_then(f.test("!=", f.get(job, Job, "stop"), 0)):
                f.b.ret(I64(1))
        f.call(self.record, job)
        f.b.ret(f.get(job, Job, "stop"))

    def _land(self) -> None:
        """land(job): wait for what has been asked for."""
        f = Function(self.module, "land", 1)
        (job,) = f.function.args
        event = self._event(f, job, "reached")
        code, queued = f.call_address(f.get(job, Job, "wait"), f.get(event, EventState, "handle")), f.get(job, Job, "queued")
        with f.b.if_then(f.test("!=", code, 0)):
            f.call(self.fail, job, AWAIT, f.b.sub(queued, I64(1)), code)
            f.b.ret(I64(1))
        f.put(job, Job, "made", queued)
        f.put(job, Job, "reached", 1)
        f.finish()

    # ------------------------------------------------------------------------------------------------------- threads

    def _rouse(self) -> None:
        """rouse(job, count): have lanes before this number look for a batch, which is to come."""
        f = Function(self.module, "rouse", 2)
        job, count = f.function.args
        with f.each(1, count) as number:
            self._disturb(f, f.element(f.get(job, Job, "lanes"), LaneState, number))
        f.finish()

    def _disturb(self, f: Function, lane: Any) -> None:
        """Wake a lane that sleeps. It is marked as awake: the others that want it before it runs need not wake it again.

        Else each of them would keep it from sleeping once, later.
        """
        with f.b.if_then(f.replace(lane, LaneState, "looking", 0, 1)):
            f.call(self.sem_post, f.address(lane, LaneState, "wake"))

    def _pause(self, f: Function) -> None:
        """Let a core's other thread go first, for a moment."""
        known = _PAUSES.get(platform.machine().lower())
        if known is not None:
            name, arguments = known
            kind = ir.FunctionType(ir.VoidType(), [I32] * len(arguments))
            f.b.call(cgutils.get_or_insert_function(self.module, kind, name), [I32(a) for a in arguments])

    def _step_aside(self, f: Function, looks: Any) -> None:
        """Between two looks at what another lane is to do: that one may need this core."""
        self._pause(f)
        with f.b.if_then(f.test(">", looks, _PATIENT)):
            f.call(self.sched_yield)

    def _wait_for_end(self, f: Function, semaphore: Any) -> None:
        """Wait for what will not take long."""
        after = f.function.append_basic_block()
        with f.each(0, _LOOKS):
            f.leave(f.b.icmp_signed("==", f.call(self.sem_trywait, semaphore), I32(0)), after)
            self._pause(f)
        self._wait_for(f, semaphore)
        f.b.branch(after)
        f.b.position_at_end(after)

    def _wait_for(self, f: Function, semaphore: Any) -> None:
        """A signal ends the system's wait early."""
        with f.loop() as out:
            f.leave(f.b.icmp_signed("==", f.call(self.sem_wait, semaphore), I32(0)), out)

    def _now(self, f: Function, time: Any) -> Any:
        """In nanoseconds, by way of a structure on the stack."""
        f.call(self.clock_gettime, I64(_MONOTONIC), time)
        seconds, nanoseconds = (f.b.load(f.b.inttoptr(f.b.add(time, I64(8 * n)), I64.as_pointer())) for n in range(2))
        return f.b.add(f.b.mul(seconds, I64(1_000_000_000)), nanoseconds)

    def _serve(self) -> None:
        """serve(job, number): the life of a lane but the caller's."""
        f = Function(self.module, "serve", 2)
        job, number = f.function.args
        lane = f.element(f.get(job, Job, "lanes"), LaneState, number)
        with f.b.goto_entry_block():
            time = f.b.ptrtoint(f.b.alloca(I64, 2), I64)  # seconds and nanoseconds
        with f.loop() as _:
            # Waking a thread takes a virtual machine hundreds of microseconds, and the next batch is often near.
            f.put(lane, LaneState, "looking", 1)
            called = f.function.append_basic_block()
            with f.each(0, _LOOKS):
                f.leave(f.test("!=", f.get(job, Job, "quit"), 0))
                f.leave(f.test("==", f.get(lane, LaneState, "state"), CALLED), called)
                self._pause(f)
            end = f.b.add(self._now(f, time), I64(_AWAKE))
            with f.loop() as tired:
                f.leave(f.test("!=", f.get(job, Job, "quit"), 0))
                f.leave(f.test("==", f.get(lane, LaneState, "state"), CALLED), called)
                f.leave(f.test(">", self._now(f, time), end), tired)
                f.call(self.sched_yield)
            # Asked again below: a call that was made before this needs no waking.
            f.put(lane, LaneState, "looking", 0)
            with f.b.if_then(f.test("!=", f.get(lane, LaneState, "state"), CALLED)):
                self._wait_for(f, f.address(lane, LaneState, "wake"))
            f.b.branch(called)
            f.b.position_at_end(called)
            f.leave(f.test("!=", f.get(job, Job, "quit"), 0))
            with f.b.if_then(f.replace(lane, LaneState, "state", CALLED, WORKING)):
                f.call(self.work, job)
                f.call(self.sem_post, f.address(job, Job, "done"))
        f.b.unreachable()


_lock = threading.Lock()
_code: list[LaneCode | None] = []


def lane_code() -> LaneCode | None:
    """The functions, compiled at the first call, which takes some milliseconds; None where the system has no such semaphores."""
    with _lock:
        if not _code:
            _code.append(_compiled())
        return _code[0]


def _compiled() -> LaneCode | None:
    if sys.platform != "linux" or sys.maxsize < 2**63 - 1:  # elsewhere sem_t, or an address, is another
        return None
    system = ctypes.CDLL(None)
    for name in ("memcpy", "sem_wait", "sem_trywait", "sem_post", "sched_yield", "clock_gettime"):
        ll.add_symbol(name, ctypes.cast(getattr(system, name), ctypes.c_void_p).value)
    ll.initialize_native_target()
    ll.initialize_native_asmprinter()
    machine = ll.Target.from_default_triple().create_target_machine(codemodel="jitdefault", jit=True)
    module = ll.parse_assembly(str(_Lanes().module))
    module.verify()
    engine = ll.create_mcjit_compiler(module, machine)
    engine.finalize_object()

    def function(name: str, parameters: int) -> Callable[..., int]:
        kind = ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * parameters)
        return kind(engine.get_function_address(name))

    run, ask, land = (function(name, 1) for name in ("run", "ask", "land"))
    return LaneCode(run, ask, land, function("rouse", 2), function("serve", 2), engine)
