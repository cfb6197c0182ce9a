"""What copy lanes do, as machine code: a whole batch without the interpreter's lock.

Each piece of a batch needs the runtime and the host's memory. From Python that is giving up the lock and getting it again for
each, in each of eight threads, and takes longer than the copying. So lanes are LLVM IR, made here from Python that reads
like C. All values are 64-bit integers, addresses included, as they are for Python; what lanes share are structures of
ctypes, by whose offsets the code finds their fields. Nothing in here calls Python.

A runtime takes its own lock for microseconds at each call, whatever the thread. So lanes ask it for no more than they must:
all copies of a batch are on one stream, and events are for slots that are filled a second time.
"""

from __future__ import annotations

import ctypes
import platform
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import llvmlite.binding as ll
from llvmlite import ir
from numba.core import cgutils

_SEMAPHORE = ctypes.c_uint64 * 4  # a sem_t of Linux
IDLE, CALLED, WORKING = range(3)
SEND, WRITE, MOVE = range(3)
_LOOKS = 8192
"""Times that a lane looks for the next batch before it sleeps: some hundred microseconds."""
_PAUSES = {"x86_64": ("llvm.x86.sse2.pause", ()), "aarch64": ("llvm.aarch64.hint", (1,))}
COPY, RECORD, AWAIT = range(3)
"""Calls that may fail."""


def _structure(name: str, **fields: Any) -> Any:
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


_WORD = ctypes.c_int64
LaneState = _structure(
    "LaneState",
    block=_WORD,  # page-locked memory, cut into slots
    events=_WORD,  # the address of their handles, one for each slot
    first=_WORD,  # of the slots that the lane has asked to be filled again; -1: none
    final=_WORD,
    state=_WORD,
    looking=_WORD,  # it is awake, and sees a call without being woken
    wake=_SEMAPHORE,
)
CopyState = _structure(  # pieces from number ``start`` to before ``end`` are this copy's
    "CopyState", device=_WORD, host=_WORD, nbytes=_WORD, start=_WORD, end=_WORD
)
SlotState = _structure("SlotState", piece=_WORD, following=_WORD)  # what it holds, and the lane's next slot; -1: none
Job = _structure(
    "Job",
    over=_WORD,  # the runtime's functions
    back=_WORD,
    record=_WORD,
    wait=_WORD,
    lanes=_WORD,  # an array of LaneState
    lane_count=_WORD,
    copies=_WORD,  # an array of CopyState
    count=_WORD,  # of pieces
    piece_bytes=_WORD,
    slots=_WORD,  # of each lane
    table=_WORD,  # an array of SlotState: slot s is number s // lane_count of lane s % lane_count
    landed=_WORD,
    stream=_WORD,  # of all copies
    mode=_WORD,
    next=_WORD,
    more=_WORD,
    woken=_WORD,
    stop=_WORD,
    call=_WORD,  # what failed first
    piece=_WORD,
    code=_WORD,
    quit=_WORD,
    done=_SEMAPHORE,
)


@dataclass(frozen=True)
class LaneCode:
    """Compiled functions. Each is given a Job's address; calls release the interpreter's lock.

    ``run`` has the batch done by the calling thread as lane 0 and by those that wake in time; ``ask`` fills all slots from
    the device and waits until they are; both return whether something failed. ``serve`` is the life of the lane whose number
    it is given.
    """

    run: Callable[[int], int]
    ask: Callable[[int], int]
    serve: Callable[[int, int], int]
    engine: Any


class _Function:
    """One function being written. ``end`` is where it returns 0."""

    def __init__(self, module: ir.Module, name: str, parameters: int) -> None:
        self.function = ir.Function(module, ir.FunctionType(_I64, [_I64] * parameters), name)
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self.end = self.function.append_basic_block("end")
        ir.IRBuilder(self.end).ret(_I64(0))

    def finish(self) -> ir.Function:
        self.b.branch(self.end)
        return self.function

    def address(self, base: Any, structure: Any, field: str) -> Any:
        return self.b.add(base, _I64(getattr(structure, field).offset))

    def _pointer(self, base: Any, structure: Any, field: str) -> Any:
        return self.b.inttoptr(self.address(base, structure, field), _I64.as_pointer())

    def get(self, base: Any, structure: Any, field: str) -> Any:
        return self.b.load_atomic(self._pointer(base, structure, field), "seq_cst", 8)

    def put(self, base: Any, structure: Any, field: str, value: Any) -> None:
        self.b.store_atomic(_word(value), self._pointer(base, structure, field), "seq_cst", 8)

    def add(self, base: Any, structure: Any, field: str) -> Any:
        """Add 1 as no other thread does at the same time; the value before."""
        return self.b.atomic_rmw("add", self._pointer(base, structure, field), _I64(1), "seq_cst")

    def exchange(self, base: Any, structure: Any, field: str, value: int) -> Any:
        return self.b.atomic_rmw("xchg", self._pointer(base, structure, field), _I64(value), "seq_cst")

    def replace(self, base: Any, structure: Any, field: str, old: int, new: int) -> Any:
        """Put ``new`` where ``old`` is; whether it was."""
        where = self._pointer(base, structure, field)
        return self.b.extract_value(self.b.cmpxchg(where, _I64(old), _I64(new), "seq_cst"), 1)

    def word(self, base: Any, number: Any) -> Any:
        """A word of an array."""
        where = self.b.inttoptr(self.b.add(base, self.b.mul(_word(number), _I64(8))), _I64.as_pointer())
        return self.b.load(where)

    def element(self, base: Any, structure: Any, number: Any) -> Any:
        return self.b.add(base, self.b.mul(number, _I64(ctypes.sizeof(structure))))

    def call(self, function: ir.Function, *arguments: Any) -> Any:
        return self.b.call(function, list(map(_word, arguments)))

    def call_address(self, address: Any, *arguments: Any) -> Any:
        """Call a function of the runtime; its code."""
        kind = ir.FunctionType(_I32, [_I64] * len(arguments))
        return self.b.sext(self.b.call(self.b.inttoptr(address, kind.as_pointer()), list(map(_word, arguments))), _I64)

    def test(self, how: str, left: Any, right: Any) -> Any:
        return self.b.icmp_signed(how, left, _word(right))

    @contextmanager
    def loop(self) -> Iterator[Any]:
        """Again and again; ``leave`` to what this gives."""
        head, after = self.function.append_basic_block(), self.function.append_basic_block()
        self.b.branch(head)
        self.b.position_at_end(head)
        yield after
        self.b.branch(head)
        self.b.position_at_end(after)

    @contextmanager
    def numbers(self, start: int = 0) -> Iterator[tuple[Any, Any]]:
        """For each number from ``start`` on; ``leave`` to what this gives beside it."""
        with self.b.goto_entry_block():
            variable = self.b.alloca(_I64)
        self.b.store(_I64(start), variable)
        with self.loop() as out:
            number = self.b.load(variable)
            yield number, out
            self.b.store(self.b.add(number, _I64(1)), variable)

    @contextmanager
    def each(self, start: int, stop: Any) -> Iterator[Any]:
        """For each number from ``start`` to below ``stop``."""
        with self.numbers(start) as (number, out):
            self.leave(self.test(">=", number, stop), out)
            yield number

    def leave(self, condition: Any, to: Any = None) -> None:
        """Go elsewhere (to the end), if a condition holds."""
        further = self.function.append_basic_block()
        self.b.cbranch(condition, to if to is not None else self.end, further)
        self.b.position_at_end(further)


_I64, _I32 = ir.IntType(64), ir.IntType(32)


def _word(value: Any) -> Any:
    return _I64(value) if isinstance(value, int) else value


class _Lanes:
    """The functions of all that lanes do, in one module."""

    def __init__(self) -> None:
        self.module = module = ir.Module("copy_lanes")
        self.memcpy = ir.Function(module, ir.FunctionType(_I64, [_I64] * 3), "memcpy")
        self.sem_wait = ir.Function(module, ir.FunctionType(_I32, [_I64]), "sem_wait")
        self.sem_trywait = ir.Function(module, ir.FunctionType(_I32, [_I64]), "sem_trywait")
        self.sem_post = ir.Function(module, ir.FunctionType(_I32, [_I64]), "sem_post")
        self.fail = self._fail()
        self.wake = self._wake()
        self.find = self._find()
        self.refill = self._refill()
        self.send, self.write, self.move = self._send(), self._write(), self._move()
        self.work = self._work()
        self._run()
        self._ask()
        self._serve()

    def _fail(self) -> ir.Function:
        """fail(job, call, piece, code): note what failed, if it is the first, and stop the others."""
        f = _Function(self.module, "fail", 4)
        job, call, piece, code = f.function.args
        f.leave(f.test("!=", f.exchange(job, Job, "stop", 1), 0))
        f.put(job, Job, "call", call)
        f.put(job, Job, "piece", piece)
        f.put(job, Job, "code", code)
        return f.finish()

    def _require(self, f: _Function, job: Any, call: int, piece: Any, code: Any) -> None:
        """End the function that is being written, if a call has failed."""
        with f.b.if_then(f.test("!=", code, 0)):
            f.call(self.fail, job, call, piece, code)
        f.leave(f.test("!=", code, 0))

    def _wake(self) -> ir.Function:
        """wake(job): one more lane, if there is more to do and one that sleeps.

        All wake others, so that the caller need not, and nobody is woken for what will be done before.
        """
        f = _Function(self.module, "wake", 1)
        (job,) = f.function.args
        f.leave(f.test(">=", f.get(job, Job, "next"), f.get(job, Job, "count")))
        f.leave(f.test(">=", f.get(job, Job, "woken"), f.get(job, Job, "lane_count")))
        number = f.add(job, Job, "woken")
        f.leave(f.test(">=", number, f.get(job, Job, "lane_count")))
        lane = f.element(f.get(job, Job, "lanes"), LaneState, number)
        f.leave(f.test("!=", f.get(lane, LaneState, "looking"), 0))
        f.call(self.sem_post, f.address(lane, LaneState, "wake"))
        return f.finish()

    def _find(self) -> ir.Function:
        """find(job, piece): the copy that a piece belongs to."""
        f = _Function(self.module, "find", 2)
        job, piece = f.function.args
        copies = f.get(job, Job, "copies")
        with f.each(0, f.get(job, Job, "count")) as number:
            copy = f.element(copies, CopyState, number)
            with f.b.if_then(f.test("<", piece, f.get(copy, CopyState, "end"))):
                f.b.ret(copy)
        return f.finish()

    def _piece(self, f: _Function, job: Any, number: Any) -> tuple[Any, Any, Any]:
        """A piece's addresses on the device and on the host, and its bytes."""
        copy, most = f.call(self.find, job, number), f.get(job, Job, "piece_bytes")
        offset = f.b.mul(f.b.sub(number, f.get(copy, CopyState, "start")), most)
        left = f.b.sub(f.get(copy, CopyState, "nbytes"), offset)
        device, host = (f.b.add(f.get(copy, CopyState, side), offset) for side in ("device", "host"))
        return device, host, f.b.select(f.b.icmp_signed("<", left, most), left, most)

    def _lane_of(self, f: _Function, job: Any, slot: Any) -> tuple[Any, Any]:
        """The lane of a slot of all lanes', and its number there."""
        lanes = f.get(job, Job, "lane_count")
        return f.element(f.get(job, Job, "lanes"), LaneState, f.b.srem(slot, lanes)), f.b.sdiv(slot, lanes)

    def _memory(self, f: _Function, job: Any, lane: Any, slot: Any) -> Any:
        """Of a lane's slot."""
        return f.b.add(f.get(lane, LaneState, "block"), f.b.mul(slot, f.get(job, Job, "piece_bytes")))

    def _slot(self, f: _Function, job: Any, slot: Any) -> tuple[Any, Any]:
        """The memory and event of a slot of all lanes'."""
        lane, own = self._lane_of(f, job, slot)
        return self._memory(f, job, lane, own), f.word(f.get(lane, LaneState, "events"), own)

    def _send(self) -> ir.Function:
        """send(job, lane): copy pieces over until none is left.

        A batch that fits has a slot for each piece. Otherwise a lane fills its own slots in turn, half of them behind one event.
        """
        f = _Function(self.module, "send", 2)
        job, lane = f.function.args
        slots, events = f.get(job, Job, "slots"), f.get(lane, LaneState, "events")
        half = f.b.sdiv(slots, _I64(2))
        again = f.test(">", f.get(job, Job, "count"), f.b.mul(f.get(job, Job, "lane_count"), slots))
        with f.numbers() as (used, _):
            f.leave(f.test("!=", f.get(job, Job, "stop"), 0))
            number = f.add(job, Job, "next")
            f.leave(f.test(">=", number, f.get(job, Job, "count")))
            f.call(self.wake, job)
            event = f.word(events, f.b.srem(f.b.sdiv(used, half), _I64(2)))
            in_half = f.b.srem(used, half)
            full = f.b.and_(f.test(">=", used, slots), f.test("==", in_half, 0))
            with f.b.if_then(f.b.and_(again, full)):
                self._require(f, job, AWAIT, number, f.call_address(f.get(job, Job, "wait"), event))
            own, shared = self._memory(f, job, lane, f.b.srem(used, slots)), self._memory(f, job, *self._lane_of(f, job, number))
            memory = f.b.select(again, own, shared)
            device, host, size = self._piece(f, job, number)
            f.call(self.memcpy, memory, host, size)
            copied = f.call_address(f.get(job, Job, "over"), device, memory, size, f.get(job, Job, "stream"))
            self._require(f, job, COPY, number, copied)
            with f.b.if_then(f.b.and_(again, f.test("==", in_half, f.b.sub(half, _I64(1))))):
                self._record(f, job, number, event)
        return f.finish()

    def _ask(self) -> ir.Function:
        """ask(job): fill all slots from the device, and wait until they are full or hold all there is."""
        f = _Function(self.module, "ask", 1)
        (job,) = f.function.args
        landed, table = f.get(job, Job, "landed"), f.get(job, Job, "table")
        f.put(job, Job, "stop", 0)
        with f.each(0, landed) as number:
            self._queue(f, job, number, number)
            f.put(f.element(table, SlotState, number), SlotState, "piece", number)
        last = f.b.sub(landed, _I64(1))
        _, event = self._slot(f, job, last)
        self._record(f, job, last, event)
        self._require(f, job, AWAIT, last, f.call_address(f.get(job, Job, "wait"), event))
        return f.finish()

    def _queue(self, f: _Function, job: Any, slot: Any, number: Any) -> None:
        """Queue a piece's copy into a slot."""
        memory, _ = self._slot(f, job, slot)
        device, _, size = self._piece(f, job, number)
        copied = f.call_address(f.get(job, Job, "back"), memory, device, size, f.get(job, Job, "stream"))
        self._require(f, job, COPY, number, copied)

    def _record(self, f: _Function, job: Any, number: Any, event: Any) -> None:
        """Have an event mark the end of what has been queued, with this piece as the latest."""
        recorded = f.call_address(f.get(job, Job, "record"), event, f.get(job, Job, "stream"))
        self._require(f, job, RECORD, number, recorded)

    def _refill(self) -> ir.Function:
        """refill(job, lane, slot): queue a further piece into a slot, if there is one, as the last of the lane's."""
        f = _Function(self.module, "refill", 3)
        job, lane, slot = f.function.args
        number = f.add(job, Job, "more")
        f.leave(f.test(">=", number, f.get(job, Job, "count")))
        self._queue(f, job, slot, number)
        self._record(f, job, number, self._slot(f, job, slot)[1])
        table = f.get(job, Job, "table")
        own = f.element(table, SlotState, slot)
        f.put(own, SlotState, "piece", number)
        f.put(own, SlotState, "following", -1)
        with f.b.if_else(f.test("<", f.get(lane, LaneState, "first"), 0)) as (empty, further):
            with empty:
                f.put(lane, LaneState, "first", slot)
            with further:
                final = f.element(table, SlotState, f.get(lane, LaneState, "final"))
                f.put(final, SlotState, "following", slot)
        f.put(lane, LaneState, "final", slot)
        return f.finish()

    def _write(self) -> ir.Function:
        """write(job, lane): slots to the host: those that ``ask`` has filled, which all lanes share, then the lane's own."""
        f = _Function(self.module, "write", 2)
        job, lane = f.function.args
        table = f.get(job, Job, "table")
        f.put(lane, LaneState, "first", -1)
        with f.loop() as out:
            f.leave(f.test("!=", f.get(job, Job, "stop"), 0))
            slot = f.add(job, Job, "next")
            f.leave(f.test(">=", slot, f.get(job, Job, "landed")), out)
            f.call(self.wake, job)
            self._to_host(f, job, slot, f.get(f.element(table, SlotState, slot), SlotState, "piece"))
            f.call(self.refill, job, lane, slot)
        with f.loop() as _:
            f.leave(f.test("!=", f.get(job, Job, "stop"), 0))
            slot = f.get(lane, LaneState, "first")
            f.leave(f.test("<", slot, 0))
            own = f.element(table, SlotState, slot)
            number = f.get(own, SlotState, "piece")
            _, event = self._slot(f, job, slot)
            self._require(f, job, AWAIT, number, f.call_address(f.get(job, Job, "wait"), event))
            self._to_host(f, job, slot, number)
            f.put(lane, LaneState, "first", f.get(own, SlotState, "following"))
            f.call(self.refill, job, lane, slot)
        f.b.unreachable()
        return f.function

    def _to_host(self, f: _Function, job: Any, slot: Any, number: Any) -> None:
        memory, _ = self._slot(f, job, slot)
        _, host, size = self._piece(f, job, number)
        f.call(self.memcpy, host, memory, size)

    def _move(self) -> ir.Function:
        """move(job, lane): copies on the host, to the host's address of each piece from the other."""
        f = _Function(self.module, "move", 2)
        job, _ = f.function.args
        with f.loop() as out:
            number = f.add(job, Job, "next")
            f.leave(f.test(">=", number, f.get(job, Job, "count")), out)
            f.call(self.wake, job)
            source, host, size = self._piece(f, job, number)
            f.call(self.memcpy, host, source, size)
        return f.finish()

    def _work(self) -> ir.Function:
        """work(job, lane): a lane's part of a batch."""
        f = _Function(self.module, "work", 2)
        job, lane = f.function.args
        f.call(self.wake, job)
        f.call(self.wake, job)
        mode = f.get(job, Job, "mode")
        for number, function in ((SEND, self.send), (WRITE, self.write), (MOVE, self.move)):
            with f.b.if_then(f.test("==", mode, number)):
                f.call(function, job, lane)
        return f.finish()

    def _run(self) -> None:
        """run(job): the batch; returns when no lane is at it any more. Lanes that have not begun by its end are called off."""
        f = _Function(self.module, "run", 1)
        (job,) = f.function.args
        lanes, count = f.get(job, Job, "lanes"), f.get(job, Job, "lane_count")
        for field, value in (("next", 0), ("stop", 0), ("woken", 1)):
            f.put(job, Job, field, value)
        f.put(job, Job, "more", f.get(job, Job, "landed"))
        with f.each(1, count) as number:
            lane = f.element(lanes, LaneState, number)
            f.put(lane, LaneState, "state", CALLED)
        f.call(self.work, job, lanes)
        with f.each(1, count) as number:
            called_off = f.replace(f.element(lanes, LaneState, number), LaneState, "state", CALLED, IDLE)
            with f.b.if_then(f.b.not_(called_off)):
                self._wait_for_end(f, f.address(job, Job, "done"))
        f.b.ret(f.get(job, Job, "stop"))

    def _pause(self, f: _Function) -> None:
        """Let a core's other thread go first, for a moment."""
        known = _PAUSES.get(platform.machine().lower())
        if known is not None:
            name, arguments = known
            kind = ir.FunctionType(ir.VoidType(), [_I32] * len(arguments))
            f.b.call(cgutils.get_or_insert_function(self.module, kind, name), [_I32(a) for a in arguments])

    def _wait_for_end(self, f: _Function, semaphore: Any) -> None:
        """Wait for what will not take long."""
        after = f.function.append_basic_block()
        with f.each(0, _LOOKS):
            f.leave(f.b.icmp_signed("==", f.call(self.sem_trywait, semaphore), _I32(0)), after)
            self._pause(f)
        self._wait_for(f, semaphore)
        f.b.branch(after)
        f.b.position_at_end(after)

    def _wait_for(self, f: _Function, semaphore: Any) -> None:
        """A signal ends the system's wait early."""
        with f.loop() as out:
            f.leave(f.b.icmp_signed("==", f.call(self.sem_wait, semaphore), _I32(0)), out)

    def _serve(self) -> None:
        """serve(job, number): the life of a lane but the caller's."""
        f = _Function(self.module, "serve", 2)
        job, number = f.function.args
        lane = f.element(f.get(job, Job, "lanes"), LaneState, number)
        with f.loop() as _:
            # Waking a thread takes a virtual machine a hundred microseconds, and the next batch is often near.
            f.put(lane, LaneState, "looking", 1)
            called = f.function.append_basic_block()
            with f.each(0, _LOOKS):
                f.leave(f.test("!=", f.get(job, Job, "quit"), 0))
                f.leave(f.test("==", f.get(lane, LaneState, "state"), CALLED), called)
                self._pause(f)
            # Asked again below: a call that was made before this needs no waking.
            f.put(lane, LaneState, "looking", 0)
            with f.b.if_then(f.test("!=", f.get(lane, LaneState, "state"), CALLED)):
                self._wait_for(f, f.address(lane, LaneState, "wake"))
            f.b.branch(called)
            f.b.position_at_end(called)
            f.leave(f.test("!=", f.get(job, Job, "quit"), 0))
            with f.b.if_then(f.replace(lane, LaneState, "state", CALLED, WORKING)):
                f.call(self.work, job, lane)
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
    if sys.platform != "linux":  # elsewhere sem_t is another
        return None
    system = ctypes.CDLL(None)
    for name in ("memcpy", "sem_wait", "sem_trywait", "sem_post"):
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

    return LaneCode(function("run", 1), function("ask", 1), function("serve", 2), engine)
