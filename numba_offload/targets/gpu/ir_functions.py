"""Functions of LLVM IR, written in Python that reads like C.

All values are 64-bit integers, addresses included, as they are for Python; what functions share are structures of ctypes, by
whose offsets they find the fields.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir

I64, I32 = ir.IntType(64), ir.IntType(32)


def structure(name: str, **fields: Any) -> Any:
    """A structure of ctypes."""
    return type(name, (ctypes.Structure,), {"_fields_": list(fields.items())})


def word_of(value: Any) -> Any:
    """A value, or what a Python number is in code."""
    return I64(value) if isinstance(value, int) else value


class Function:
    """One function being written. ``end`` is where it returns 0."""

    def __init__(self, module: ir.Module, name: str, parameters: int) -> None:
        self.function = ir.Function(module, ir.FunctionType(I64, [I64] * parameters), name)
        self.b = ir.IRBuilder(self.function.append_basic_block())
        self.end = self.function.append_basic_block("end")
        ir.IRBuilder(self.end).ret(I64(0))

    def finish(self) -> ir.Function:
        self.b.branch(self.end)
        return self.function

    def address(self, base: Any, structure: Any, field: str) -> Any:
        return self.b.add(base, I64(getattr(structure, field).offset))

    def _pointer(self, base: Any, structure: Any, field: str) -> Any:
        return self.b.inttoptr(self.address(base, structure, field), I64.as_pointer())

    def get(self, base: Any, structure: Any, field: str) -> Any:
        return self.b.load_atomic(self._pointer(base, structure, field), "seq_cst", 8)

    def put(self, base: Any, structure: Any, field: str, value: Any) -> None:
        self.b.store_atomic(word_of(value), self._pointer(base, structure, field), "seq_cst", 8)

    def add(self, base: Any, structure: Any, field: str) -> Any:
        """Add 1 as no other thread does at the same time; the value before."""
        return self.b.atomic_rmw("add", self._pointer(base, structure, field), I64(1), "seq_cst")

    def exchange(self, base: Any, structure: Any, field: str, value: int) -> Any:
        return self.b.atomic_rmw("xchg", self._pointer(base, structure, field), I64(value), "seq_cst")

    def replace(self, base: Any, structure: Any, field: str, old: int, new: int) -> Any:
        """Put ``new`` where ``old`` is; whether it was."""
        where = self._pointer(base, structure, field)
        return self.b.extract_value(self.b.cmpxchg(where, I64(old), I64(new), "seq_cst"), 1)

    def element(self, base: Any, structure: Any, number: Any) -> Any:
        return self.b.add(base, self.b.mul(number, I64(ctypes.sizeof(structure))))

    def call(self, function: ir.Function, *arguments: Any) -> Any:
        return self.b.call(function, list(map(word_of, arguments)))

    def call_address(self, address: Any, *arguments: Any) -> Any:
        """Call a function of the runtime; its code."""
        kind = ir.FunctionType(I32, [I64] * len(arguments))
        return self.b.sext(self.b.call(self.b.inttoptr(address, kind.as_pointer()), list(map(word_of, arguments))), I64)

    def test(self, how: str, left: Any, right: Any) -> Any:
        return self.b.icmp_signed(how, left, word_of(right))

    def smaller(self, left: Any, right: Any) -> Any:
        return self.b.select(self.test("<", left, right), left, right)

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
            variable = self.b.alloca(I64)
        self.b.store(I64(start), variable)
        with self.loop() as out:
            number = self.b.load(variable)
            yield number, out
            self.b.store(self.b.add(number, I64(1)), variable)

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
