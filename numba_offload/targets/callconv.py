"""The calling convention of kernel code on every target.

``i32 function(result*, state*, arguments...)``. The result is 0, or a negative code of Numba's, or the number of the
site that failed (see ``sites.py``). ``state`` is this thread's private record: where it is in the launch, and what it
reports if it fails. Once everything is inlined, the record's fields are plain SSA values and cost nothing.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils, types
from numba.core.callconv import MinimalCallConv
from numba.core.errors import UnsupportedError

from numba_offload.targets.sites import SITES, IndexSite, LineSite, Payload, RaiseSite, ReadSite

i32 = ir.IntType(32)
i64 = ir.IntType(64)

PAYLOAD_SLOTS = 3
_FIELDS = ("position", "threads", "block", "payload", "line", "origin")
_I64x3 = ir.ArrayType(i64, 3)
STATE = ir.LiteralStructType([_I64x3, _I64x3, _I64x3, ir.ArrayType(i64, PAYLOAD_SLOTS), i32, _I64x3])
"""position (x, y, z) in the launch, its logical thread extents, the block's extents; payload and line of a failure; on
GPUs the first block of this part of the launch."""


def state_field(builder: ir.IRBuilder, state: ir.Value, field: str, slot: int | None = None) -> ir.Value:
    """Pointer to a field of the thread's state."""
    zero = ir.Constant(i32, 0)
    path = [zero, ir.Constant(i32, _FIELDS.index(field))]
    if slot is not None:
        path.append(ir.Constant(i32, slot))
    return builder.gep(state, path, inbounds=True)


class OffloadCallConv(MinimalCallConv):
    """See the module's text."""

    def get_function_type(self, restype: types.Type, argtypes: Any) -> ir.FunctionType:
        packer = self._get_arg_packer(argtypes)
        return ir.FunctionType(i32, [self.get_return_type(restype), STATE.as_pointer(), *packer.argument_types])

    def decorate_function(self, fn: ir.Function, args: Any, fe_argtypes: Any, noalias: bool = False) -> None:
        packer = self._get_arg_packer(fe_argtypes)
        packer.assign_names(self.get_arguments(fn), [f"arg.{a}" for a in args])
        fn.args[0].name = ".ret"
        fn.args[1].name = ".state"
        for pointer in fn.args[:2]:
            pointer.add_attribute("noalias")

    def get_arguments(self, func: ir.Function) -> Any:
        return func.args[2:]

    def call_function(
        self, builder: ir.IRBuilder, callee: ir.Function, resty: types.Type, argtys: Any, args: Any
    ) -> tuple[Any, ir.Value]:
        slot = cgutils.alloca_once(builder, callee.args[0].type.pointee)
        builder.store(cgutils.get_null_value(slot.type.pointee), slot)
        packed = self._get_arg_packer(argtys).as_arguments(builder, args)
        code = builder.call(callee, [slot, builder.function.args[1], *packed])
        status = self._get_return_status(builder, code)
        return status, self.context.get_returned_value(builder, resty, builder.load(slot))

    def return_user_exc(
        self, builder: ir.IRBuilder, exc: Any, exc_args: Any = None, loc: Any = None, func_name: str | None = None
    ) -> None:
        if exc is None:
            raise UnsupportedError("a bare 'raise' in a kernel: there is no exception to raise again; name one", loc)
        self._fail(builder, RaiseSite(exc, tuple(exc_args or ())))

    def return_dynamic_user_exc(
        self, builder: ir.IRBuilder, exc: Any, exc_args: Any, nb_types: Any, loc: Any = None, func_name: Any = None
    ) -> None:
        args: list[Any] = []
        slot = 0
        # Numba gives one type per argument, None for a constant.
        for arg, given in zip(exc_args, nb_types, strict=True):
            if given is None:
                args.append(arg)
                continue
            ty = types.unliteral(given)
            if hasattr(ty, "axis"):  # an owned index
                ty = types.int64
            if isinstance(ty, types.Boolean):
                kind, bits = "b", builder.zext(arg, i64)
            elif isinstance(ty, types.Integer):
                bits = self.context.cast(builder, arg, ty, types.int64 if ty.signed else types.uint64)
                kind = "i" if ty.signed else "u"
            elif isinstance(ty, types.Float):
                kind, bits = "f", builder.bitcast(self.context.cast(builder, arg, ty, types.float64), i64)
            else:
                raise UnsupportedError(
                    f"raise {exc.__name__}(...) with a run-time argument of type {ty}: a kernel can report constants, "
                    "integers, floats and bools",
                    loc,
                )
            if slot == PAYLOAD_SLOTS:
                raise UnsupportedError(
                    f"raise {exc.__name__}(...) with more than {PAYLOAD_SLOTS} run-time arguments in a kernel", loc
                )
            builder.store(bits, state_field(builder, builder.function.args[1], "payload", slot))
            args.append(Payload(slot, kind))
            slot += 1
        self._fail(builder, RaiseSite(exc, tuple(args)))

    def return_index_error(
        self, builder: ir.IRBuilder, index: ir.Value, size: ir.Value, axis: int, array: str
    ) -> None:
        """Leave the function because ``index`` is not within ``size`` along ``axis``."""
        state = builder.function.args[1]
        builder.store(index, state_field(builder, state, "payload", 0))
        builder.store(size, state_field(builder, state, "payload", 1))
        self._fail(builder, IndexSite(axis, array))

    def return_read_error(self, builder: ir.IRBuilder, indices: list[ir.Value], array: str, strategy: str) -> None:
        """Leave the function because the element of a Region at ``indices`` may be another thread's."""
        told = indices[:PAYLOAD_SLOTS]
        for slot, index in enumerate(told):
            builder.store(index, state_field(builder, builder.function.args[1], "payload", slot))
        self._fail(builder, ReadSite(array, strategy, len(told)))

    def return_status_propagate(self, builder: ir.IRBuilder, status: Any) -> None:
        self._note_line(builder)
        self._return_errcode_raw(builder, status.code)

    def _fail(self, builder: ir.IRBuilder, site: RaiseSite | IndexSite | ReadSite) -> None:
        self._note_line(builder)
        number = SITES.number(site)
        self.context.note_failure(number)
        self._return_errcode_raw(builder, number)

    def _note_line(self, builder: ir.IRBuilder) -> None:
        """Remember the innermost line of the user's own source on the way out."""
        where = getattr(builder, "offload_location", None)
        if where is None:
            return
        filename, line, function = where
        slot = state_field(builder, builder.function.args[1], "line")
        code = SITES.number(LineSite(filename, line, function))
        self.context.note_site(code)
        number = ir.Constant(i32, code)
        seen = builder.load(slot)
        empty = builder.icmp_unsigned("==", seen, ir.Constant(i32, 0))
        builder.store(builder.select(empty, number, seen), slot)
