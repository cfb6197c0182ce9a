"""Why a function of the user's cannot be typed: the statement that stops type inference, told in the terms of kernels.

Read off the function's IR with the types that inference found before it stopped, not off Numba's texts.
"""

from __future__ import annotations

import builtins
import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import errors, ir, typeinfer, types

from numba_offload import cuda
from numba_offload.device.types import (
    AccumulatorType,
    MutableArrayType,
    OwnedIndexType,
    RecordRefType,
    RegionType,
    StrategyType,
    ViewType,
    describe_leaves,
    is_owned_tuple,
    views_inside,
)
from numba_offload.diagnostics.explain_indexing import explain_assignment, explain_index
from numba_offload.diagnostics.refusals import refusal
from numba_offload.diagnostics.shown_types import axes, readable, shown
from numba_offload.errors import SafetyError

_REDUCTIONS = "the reductions sum, prod, min, max, mean, any and all"
_OFFERS = f"indexing and slicing, .shape, .size, .ndim, .itemsize, .T, len(), iteration, and {_REDUCTIONS}"
_REGION_OFFERS = ".indices(), .local and .origin (where the strategy's elements form a block), .shape, .size, .ndim, len()"
_ACCUMULATOR_OFFERS = ".update(index, value), .shape and .size"
_ALLOCATES = {
    "zeros", "ones", "empty", "full", "array", "arange", "linspace", "eye", "copy", "zeros_like", "ones_like", "empty_like",
    "full_like", "asarray", "ascontiguousarray", "asfortranarray", "concatenate", "stack", "hstack", "vstack", "reshape",
}  # fmt: skip
_OPERATORS = {
    "add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%", "pow": "**", "matmul": "@", "and_": "&",
    "or_": "|", "xor": "^", "lshift": "<<", "rshift": ">>", "eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">",
    "ge": ">=", "neg": "-", "pos": "+", "invert": "~", "not_": "not", "contains": "in", "is_": "is", "is_not": "is not",
    "iadd": "+=", "isub": "-=", "imul": "*=", "itruediv": "/=", "ifloordiv": "//=", "imod": "%=", "ipow": "**=",
    "iand": "&=", "ior": "|=", "ixor": "^=", "ilshift": "<<=", "irshift": ">>=", "imatmul": "@=",
}  # fmt: skip
_INSTEAD = {
    "any": "loop over elements, or use numpy.any(x) for a read-only array",
    "all": "loop over elements, or use numpy.all(x) for a read-only array",
    "reversed": "count down with range(n - 1, -1, -1)",
    "sorted": "sort on the host",
    "math.comb": "write the product as a loop in an @offload_function",
    "where": "use the conditional expression: a if condition else b",
    "print": "write what you want to see into a Region",
}

Found = tuple[str, str, str]
"""Argument, problem, fix."""


def _of_cuda(value: Any) -> Found | None:
    """What to write for a name that was imported from numba.cuda, and that kernels do not have."""
    name = getattr(value, "__name__", None)
    if not isinstance(name, str) or not str(getattr(value, "__module__", "")).startswith("numba.cuda"):
        return None
    offered = f"of numba.cuda's names kernel code has {', '.join(cuda.__all__)}"
    return "", f"{name} of numba.cuda is not available in kernel code", cuda.INSTEAD.get(name, offered)


def offers(view: ViewType) -> str:
    """What kernel code can do with a view."""
    if isinstance(view, RegionType):
        return _REGION_OFFERS
    return _ACCUMULATOR_OFFERS if isinstance(view, AccumulatorType) else _OFFERS


class Explainer:
    """One function whose types cannot be inferred."""

    def __init__(self, state: Any) -> None:
        self.typingctx = state.typingctx
        self.func_ir = state.func_ir
        self.function = state.func_id.func_name
        self.types: dict[str, types.Type] = {}
        self.errors: list[Any] = []
        self._infer(state)

    def _infer(self, state: Any) -> None:
        """Type inference again, as far as it goes."""
        infer = typeinfer.TypeInferer(state.typingctx, state.func_ir, errors.WarningsFixer(errors.NumbaWarning))
        with state.typingctx.callstack.register(state.targetctx.target, infer, state.func_ir.func_id, state.args):
            for index, (name, ty) in enumerate(zip(state.func_ir.arg_names, state.args, strict=True)):
                infer.seed_argument(name, index, ty)
            try:
                infer.build_constraint()
                self.errors = infer.propagate(raise_errors=False) or []
            except Exception as error:  # what stopped it is told by the caller
                self.errors = [error]
        for name, variable in infer.typevars.items():
            if variable.defined:
                self.types[name] = variable.getone()

    # ------------------------------------------------------------------------------------------------ which statement

    def explain(self) -> SafetyError | None:
        """The error to raise, or None where Numba's own words must do."""
        for stmt in self._statements():
            found = self._global(stmt)
            if found is not None:
                return self._refusal(stmt, found)
        for stmt in self._suspects():
            found = self._statement(stmt)
            if found is not None:
                return self._refusal(stmt, found)
        return None

    def _refusal(self, stmt: Any, found: Found) -> SafetyError:
        return refusal(self.function, stmt.loc.filename, stmt.loc.line, *found)

    def _statements(self) -> Iterator[Any]:
        for label in sorted(self.func_ir.blocks):
            yield from self.func_ir.blocks[label].body

    def _suspects(self) -> list[Any]:
        """Statements whose operands have types, but which themselves have none; those that the errors name first."""
        lines = [getattr(getattr(e, "loc", None), "line", None) for e in self.errors]
        stuck = [stmt for stmt in self._statements() if self._is_stuck(stmt)]
        return sorted(stuck, key=lambda s: lines.index(s.loc.line) if s.loc.line in lines else len(lines))

    def _is_stuck(self, stmt: Any) -> bool:
        if isinstance(stmt, ir.SetItem | ir.StaticSetItem | ir.SetAttr | ir.DelItem):
            return True
        if not isinstance(stmt, ir.Assign) or isinstance(stmt.value, ir.Var | ir.Const | ir.Arg | ir.Global | ir.FreeVar):
            return False
        if stmt.target.name in self.types or not isinstance(stmt.value, ir.Expr) or stmt.value.op in ("phi", "cast"):
            return False
        return all(v.name in self.types for v in stmt.value.list_vars())

    # ----------------------------------------------------------------------------------------------- captured values

    def _global(self, stmt: Any) -> Found | None:
        """A captured value, or a name, that kernel code cannot have."""
        if not isinstance(stmt, ir.Assign) or not isinstance(stmt.value, ir.Global | ir.FreeVar):
            return None
        name, value = stmt.value.name, stmt.value.value
        if isinstance(value, ir.UndefinedType):
            return "", f"the name {name!r} is not defined", "define it before the kernel is called, or correct its spelling"
        try:
            self.typingctx.resolve_value_type(value)
        except (errors.NumbaError, ValueError, NotImplementedError):
            return self._captured(name, value)
        return None

    def _captured(self, name: str, value: Any) -> Found:
        from numba_offload.accumulator import Accumulator
        from numba_offload.kernel import OffloadKernel
        from numba_offload.region import Region

        if inspect.isfunction(value):
            return (
                "",
                f"the function {name}() is called, but it is a plain Python function, which is not compiled for kernels",
                f"decorate {name} with @offload_function (numba.njit works too)",
            )
        if isinstance(value, OffloadKernel):
            return (
                "", f"the kernel {name} is used inside a kernel, which cannot launch kernels",
                "launch it from Python; put what both share into an @offload_function",
            )
        if getattr(builtins, name, None) is value:
            return "", f"{name}() is not available in kernel code", _INSTEAD.get(name, "write it as a loop over elements")
        of_cuda = _of_cuda(value)
        if of_cuda is not None:
            return of_cuda
        if inspect.isclass(value):
            return "", f"the class {name} is used, but kernel code makes no objects", "use numbers, tuples and named tuples"
        if isinstance(value, Region | Accumulator):
            what = f"a{'n Accumulator' if isinstance(value, Accumulator) else ' Region'}"
        else:
            what = f"{'an' if type(value).__name__[0] in 'aeiou' else 'a'} {type(value).__name__}"
        fix = f"pass {name!r} as an argument of the kernel"
        if isinstance(value, list | dict | set):
            fix = f"pass {name!r} as an argument: as an array (numpy.asarray) or a tuple; a dictionary as a named tuple"
        elif not isinstance(value, Region | Accumulator):
            fix = f"pass what you need of {name!r} as arguments: numbers, arrays, Regions or named tuples of them"
        return name, f"{name!r} is captured from outside and is {what}, which a kernel cannot capture", fix

    # ---------------------------------------------------------------------------------------------------- statements

    def type_of(self, var: Any) -> Any:
        """The type of a variable as far as it is known."""
        return self.types.get(var.name, types.undefined)

    def _index(self, node: Any) -> types.Type:
        var = node.index if isinstance(node.index, ir.Var) else node.index_var
        if var is not None and var.name in self.types:
            return self.types[var.name]
        return self.typingctx.resolve_value_type(node.index)

    def _statement(self, stmt: Any) -> Found | None:
        if isinstance(stmt, ir.SetItem | ir.StaticSetItem):
            return self._setitem(stmt)
        if isinstance(stmt, ir.DelItem):
            return self._argument(self.type_of(stmt.target)), "elements cannot be deleted", "assign to them instead"
        if isinstance(stmt, ir.SetAttr):
            return self._setattr(stmt)
        expr = stmt.value
        handler = {
            "getitem": self._getitem, "static_getitem": self._getitem, "getattr": self._getattr, "call": self._call,
            "binop": self._operator, "inplace_binop": self._operator, "unary": self._operator,
            "exhaust_iter": self._unpack, "getiter": self._getiter,
        }.get(expr.op)  # fmt: skip
        return None if handler is None else handler(expr)

    def _argument(self, ty: Any) -> str:
        views = views_inside(ty)
        return describe_leaves(views[0].leaves) if views and views[0].leaves else ""

    def _name(self, var: ir.Var) -> str:
        name = var.unversioned_name
        return "" if "$" in name or "." in name else name

    def _not_indexable(self, var: ir.Var, ty: types.Type) -> Found | None:
        name = self._name(var)
        if isinstance(ty, types.Number | types.Boolean | types.NoneType | OwnedIndexType):
            called = repr(name) if name else "it"
            if name in self.func_ir.arg_names:
                return (
                    name, f"{name!r} is indexed, but {shown(ty)} was passed for it",
                    f"pass an array for {name!r}: are the arguments in the order of the parameters?",
                )
            return name, f"{called} is indexed, but it is {shown(ty)}", "index an array or a tuple"
        return None

    def _setitem(self, stmt: Any) -> Found | None:
        target, value = self.type_of(stmt.target), self.type_of(stmt.value)
        if isinstance(target, ViewType):
            if value is types.undefined:
                return None
            found = explain_assignment(self.typingctx, target, self._index(stmt), value)
            return None if found is None else (self._argument(target), *found)
        if isinstance(target, types.BaseTuple):
            return self._name(stmt.target), "a tuple's items cannot be assigned", "make a new tuple"
        if isinstance(target, RecordRefType):
            return self._field(target, stmt.index, value)
        return self._not_indexable(stmt.target, target)

    def _setattr(self, stmt: Any) -> Found | None:
        target = self.type_of(stmt.target)
        if isinstance(target, RecordRefType):
            return self._field(target, stmt.attr, self.type_of(stmt.value))
        if isinstance(target, types.Complex):
            return "", f".{stmt.attr} of a complex number cannot be assigned", "assign a whole number: complex(real, imag)"
        return None

    def _field(self, row: RecordRefType, name: Any, value: types.Type) -> Found | None:
        from numba_offload.device.records import field_type
        from numba_offload.diagnostics.explain_indexing import explain_value, fits

        argument = describe_leaves(row.leaves)
        ty = field_type(row, name) if isinstance(name, str) else None
        if ty is None:
            return argument, f"a row of {argument!r} has no field {name!r}", f"its fields are {', '.join(row.record.fields)}"
        if isinstance(ty, types.Number | types.Boolean) and value is not types.undefined and not fits(self.typingctx, value, ty):
            return (argument, *explain_value(f"the field {name!r} of {argument!r}", ty, value))
        return None

    def _getitem(self, expr: ir.Expr) -> Found | None:
        value = self.type_of(expr.value)
        if isinstance(value, ViewType):
            return (self._argument(value), *explain_index(value, self._index(expr)))
        if isinstance(value, RecordRefType):
            return self._field(value, getattr(expr, "index", None), types.undefined)
        if isinstance(value, types.BaseTuple):
            index = self._index(expr)
            at = f" {expr.index}" if isinstance(expr.index, int) else ""
            if not at and isinstance(types.unliteral(index), types.Integer | OwnedIndexType):
                return (
                    self._name(expr.value), f"{shown(value)} of items of unlike types is indexed by {shown(index)}",
                    "index it by a constant, or make its items alike",
                )
            item = at or f" {shown(index)}"
            return self._name(expr.value), f"{shown(value)} has no item{item}", "index it by an integer in range"
        return self._not_indexable(expr.value, value)

    def _getattr(self, expr: ir.Expr) -> Found | None:
        value = self.type_of(expr.value)
        if isinstance(value, ViewType):
            return (self._argument(value), *self._view_attribute(value, expr.attr))
        if isinstance(value, types.Module):
            name = f"{value.pymod.__name__}.{expr.attr}"
            if not hasattr(value.pymod, expr.attr):
                fix = cuda.INSTEAD.get(expr.attr, "correct the spelling") if value.pymod is cuda else "correct the spelling"
                return "", f"the module {value.pymod.__name__} has no {expr.attr!r}", fix
            held = getattr(value.pymod, expr.attr)
            if inspect.isfunction(held) and not value.pymod.__name__.startswith("numpy"):
                return self._captured(name, held)
            return "", f"{name} is not available in kernel code", _INSTEAD.get(name, self._instead(name))
        if isinstance(value, RecordRefType):
            return self._field(value, expr.attr, types.undefined)
        if isinstance(value, StrategyType):
            return "", f"{value.cls.__name__} has no parameter or method {expr.attr!r} that compiled code can use", (
                "parameters are integers, floats, tuples of integers, index arrays and element maps, set in __init__"
            )
        name = self._name(expr.value)
        if name in self.func_ir.arg_names and expr.attr in ("indices", "local", "origin", "update", "shape", "size", "ndim", "T"):
            wanted = "a Region" if expr.attr in ("indices", "local", "origin") else "an array"
            wanted = "an Accumulator" if expr.attr == "update" else wanted
            return (
                name, f"{name}.{expr.attr} is used, so {name!r} has to be {wanted}, but {shown(value)} was passed for it",
                f"pass {wanted} for {name!r}: are the arguments in the order of the parameters?",
            )
        return name if name in self.func_ir.arg_names else "", f"{shown(value)} has no attribute .{expr.attr} in kernel code", (
            "use numbers' .real and .imag, and the fields of named tuples" if isinstance(value, types.Number) else
            "use only what kernel code offers for it"
        )

    def _instead(self, name: str) -> str:
        if name.startswith("numpy.random"):
            return "make the random numbers on the host and pass them as an array"
        if name.startswith("numpy"):
            return "call it on the host, or write it as a loop over elements"
        return "compute it on the host and pass the result, or write it as an @offload_function"

    def _view_attribute(self, view: ViewType, attribute: str) -> tuple[str, str]:
        argument = describe_leaves(view.leaves)
        extra = ""
        if isinstance(view, RegionType) and attribute in ("local", "origin"):
            extra = (
                f" (under {view.strategy.shown} a thread's elements are not one block; Chunked1D, EvenSplit1D and Tiles2D have "
                ".local)"
            )
        problem = f".{attribute} is not available in kernel code{extra}"
        if attribute in getattr(view.dtype, "fields", ()):
            return problem, f"take the field of a row: {argument}[i].{attribute} (a whole column needs align=True)"
        if attribute == "indices":
            return problem, f"only a Region has indices(): pass Region({argument})"
        if attribute == "update":
            return problem, f"only an Accumulator has update(): pass Accumulator({argument})"
        if attribute == "fill":
            return problem, f"use what it offers: {offers(view)}; assign in a loop" + (
                ", or block[:] = value" if isinstance(view, MutableArrayType) else ""
            )
        return problem, f"use what it offers: {offers(view)}"

    def _operator(self, expr: ir.Expr) -> Found | None:
        name = getattr(expr.fn, "__name__", str(expr.fn))
        symbol = _OPERATORS.get(name, name)
        operands = [self.type_of(v) for v in expr.list_vars()]
        if expr.op == "binop":
            operands = [self.type_of(expr.lhs), self.type_of(expr.rhs)]
        elif expr.op == "inplace_binop":
            operands = [self.type_of(expr.lhs), self.type_of(expr.rhs)]
            if isinstance(operands[0], RegionType):
                region = describe_leaves(operands[0].leaves)
                return (
                    region, f"operator {symbol!r} updates the whole Region {region!r}",
                    f"write a loop over elements: for i in {region}.indices(): {region}[i] {symbol} ...",
                )
        views = [t for t in operands if isinstance(t, ViewType | RecordRefType)]
        if views:
            argument = describe_leaves(views[0].leaves)
            kind = shown(views[0])
            fix = f"write a loop over elements, and use {argument}[i]"
            if isinstance(views[0], ViewType) and views[0].ndim == 0:
                fix = f"write {argument}[()] for the value of an array of 0 axes"
            elif isinstance(views[0], RecordRefType):
                fix = "use a field of the row"
            elif symbol in ("<", ">", "<=", ">=", "==", "!="):
                fix = f"write a loop over elements and compare one at a time: if {argument}[i] {symbol} ..."
            return argument, f"operator {symbol!r} is not available for {kind} as a whole", fix
        if any(t is types.undefined for t in operands):
            return None
        return "", f"operator {symbol!r} is not available for {' and '.join(shown(t) for t in operands)}", (
            "give it numbers: use the components of the index, as in 'for i, j in ...'"
            if any(map(is_owned_tuple, operands))
            else "give it numbers"
        )

    def _unpack(self, expr: ir.Expr) -> Found | None:
        value = self.type_of(expr.value)
        names = expr.count
        if isinstance(value, OwnedIndexType) and value.ndim == 1:
            region = describe_leaves(value.leaves)
            return (
                region, f"an index of {region!r} is unpacked into {names} names, but {region!r} has 1 axis",
                f"write 'for i in {region}.indices()'",
            )
        if is_owned_tuple(value):
            region = describe_leaves(value[0].leaves)
            letters = ", ".join("ijklmn"[: len(value)])
            return (
                region, f"an index of {region!r} is unpacked into {names} names, but {region!r} has {axes(len(value))}",
                f"write 'for {letters} in {region}.indices()'",
            )
        if isinstance(value, types.BaseTuple):
            return "", f"a tuple of {len(value)} items is unpacked into {names} names", "give as many names as there are items"
        if isinstance(value, ViewType):
            return (
                self._argument(value), f"{shown(value)} is unpacked into {names} names", "take its elements by indices"
            )
        return "", f"{shown(value)} is unpacked into {names} names, but it is not a tuple", "unpack tuples only"

    def _getiter(self, expr: ir.Expr) -> Found | None:
        value = self.type_of(expr.value)
        name = self._name(expr.value)
        if isinstance(value, ViewType):
            return self._argument(value), f"{shown(value)} cannot be iterated over", f"use what it offers: {offers(value)}"
        if isinstance(value, types.Number | types.Boolean):
            return name, f"{shown(value)} cannot be iterated over", "write range(...) around it"
        fix = "iterate over ranges, arrays, tuples and the indices() of a Region"
        return name, f"{shown(value)} cannot be iterated over", fix

    # --------------------------------------------------------------------------------------------------------- calls

    def _call(self, expr: ir.Expr) -> Found | None:
        function = self.type_of(expr.func)
        given = [self.type_of(v) for v in expr.args] + [self.type_of(v) for _, v in expr.kws]
        if isinstance(function, types.Dispatcher):
            return self._device_call(function, expr)
        if isinstance(function, ViewType):
            name = describe_leaves(function.leaves)
            fix = f"index it with brackets: {name}[...]"
            return self._argument(function), f"{shown(function)} is called like a function", fix
        if isinstance(function, types.Number | types.Boolean):
            return "", f"{shown(function)} is called like a function", "call functions only"
        if isinstance(function, types.BoundFunction):
            return self._method(function, expr)
        known = self._function_name(expr, function)
        if known is None:
            return None
        of_cuda = _of_cuda(getattr(function, "typing_key", None))
        if of_cuda is not None:
            return of_cuda
        name = known
        short = name.split(".")[-1]
        views = [v for t in given for v in views_inside(t)]
        if views:
            argument = describe_leaves(views[0].leaves)
            kind = shown(views[0])
            fix = f"use what it offers: {offers(views[0])}" if isinstance(views[0], ViewType) else "use a field of the row"
            plain = isinstance(views[0], ViewType) and not isinstance(views[0], AccumulatorType)
            if plain and views[0].ndim == 0:
                fix = f"write {argument}[()] for the value of an array of 0 axes"
            elif short in _ALLOCATES:
                fix = "kernel code cannot allocate memory: make the array on the host and pass it"
            elif short in ("float", "int", "abs", "round", "pow", "bool", "complex", "max", "min") or name.startswith("math."):
                fix = f"write a loop over elements, and use {argument}[i]"
            elif short in _INSTEAD:
                fix = _INSTEAD[short]
            elif "linalg" in (getattr(getattr(function, "typing_key", None), "__module__", "") or ""):
                fix = "call it on the host, or write it as a loop over elements"
            return argument, f"{name}() is not available for {kind} in kernel code", fix
        if short in _ALLOCATES and name.startswith(("numpy", short)):
            return (
                "", f"{name}() makes an array, and kernel code cannot allocate memory",
                "pass the array as an argument, or use scalars and tuples for local values",
            )
        if any(t is types.undefined for t in given):
            return None
        listed = ", ".join(shown(t) for t in given)
        fix = _INSTEAD.get(short, "give it other arguments, or compute it another way")
        return "", f"{name}() is not available for arguments ({listed}) in kernel code", fix

    def _function_name(self, expr: ir.Expr, function: Any) -> str | None:
        key = getattr(function, "typing_key", None)
        plain = getattr(key, "__name__", None)
        if plain is None or not isinstance(function, types.Callable):
            return None
        module = getattr(key, "__module__", "") or ""
        if module == "math" or (module.startswith("numpy") and getattr(np, plain, None) is key):
            return f"{module.split('.')[0]}.{plain}"
        return str(plain)

    def _method(self, function: types.BoundFunction, expr: ir.Expr) -> Found | None:
        view = function.this
        key = function.key[1] if isinstance(function.key, tuple) else getattr(function, "typing_key", "")
        attribute = str(key).split(".")[-1]
        if not isinstance(view, ViewType):
            problem = f".{attribute}() of {shown(view)} is not available for these arguments in kernel code"
            return "", problem, "compute it another way"
        name = describe_leaves(view.leaves)
        if isinstance(view, AccumulatorType):
            return (name, *self._update(view, name, expr))
        if isinstance(view, RegionType):
            return name, f"{name}.indices() takes no arguments", f"write {name}.indices()"
        fix = f"write a loop, or use what it offers: {offers(view)}"
        return name, f"this method of {shown(view)} does not take these arguments", fix

    def _update(self, acc: AccumulatorType, name: str, expr: ir.Expr) -> tuple[str, str]:
        letters = "i" if acc.ndim == 1 else f"({', '.join('ijkl'[: acc.ndim])})"
        form = f"write {name}.update({letters}, value)"
        if expr.kws or expr.vararg is not None:
            return f"{name}.update() takes its index and its value by position, not by keyword", form
        if len(expr.args) != 2:
            plural = "s" * (len(expr.args) != 1)
            return f"{name}.update() takes an index and a value, but was given {len(expr.args)} argument{plural}", form
        index, value = (self.type_of(v) for v in expr.args)
        from numba_offload.device.access import is_index
        from numba_offload.device.views import index_parts
        from numba_offload.diagnostics.explain_indexing import explain_value, fits

        parts = index_parts(index)
        if len(parts) != acc.ndim:
            return f"{name}.update() is given {shown(index)} as its index, but {name!r} has {axes(acc.ndim)}", form
        if not all(is_index(p) for p in parts):
            return explain_index(acc, index) if not isinstance(index, types.BaseTuple | types.SliceType) else (
                f"{name}.update() is given {shown(index)} as its index, but takes integers", form
            )
        if not fits(self.typingctx, value, acc.dtype):
            problem, fix = explain_value(f"an element of {name!r}", acc.dtype, value)
            return problem.replace("is assigned to", "is given to update() for"), fix.replace("assign", "pass")
        return f"{name}.update() does not take {shown(index)} and {shown(value)}", form

    def _device_call(self, function: types.Dispatcher, expr: ir.Expr) -> Found | None:
        py_func = function.dispatcher.py_func
        name = py_func.__name__
        signature = inspect.signature(py_func)
        only = [p.name for p in signature.parameters.values() if p.kind == p.KEYWORD_ONLY]
        if only:
            return (
                "", f"{name}() has the keyword-only parameter {only[0]!r}, which kernel code cannot pass",
                f"move {only[0]!r} before the '*' in {name}{signature}; it can still be passed by keyword",
            )
        if expr.vararg is not None:
            return None
        keywords = dict(expr.kws)
        unknown = [k for k in keywords if k not in signature.parameters]
        if unknown:
            return "", f"{name}() has no parameter {unknown[0]!r}", f"it is defined as {name}{signature}"
        try:
            signature.bind(*expr.args, **keywords)
        except TypeError as error:
            return "", f"{name}() is called wrongly: {error}", f"it is defined as {name}{signature}"
        return None


def _sentence(error: BaseException) -> str:
    """The innermost sentence of a text of Numba's that a reader can use."""
    text = str(error).replace("\x1b[1m", "").replace("\x1b[0m", "")
    skipped = ("Failed in ", "During:", "File ", "There are ", "- Of which", "Overload", "With argument", "No match", "^")
    lines = [line.strip() for line in text.splitlines()]
    useful = [line for line in lines if line and not line.startswith(skipped)]
    first = useful[0] if useful else type(error).__name__
    if first.startswith("No implementation of function"):
        call = next((line.removeprefix(">>>").strip() for line in useful if line.startswith(">>>")), "")
        return f"{readable(call)} is not available in kernel code" if call else "a function is not available for its arguments"
    return readable(first).split(": %")[0].rstrip(".")


def fallback(error: BaseException, function: str, filename: str, line: int) -> SafetyError:
    """Any other error of the compiler's, in the house's form."""
    if "Cannot unify" in str(error):
        fix = "give each its own variable, or make both alike"
    else:
        fix = "write this line another way; the compiler's own words are in this error's __cause__"
    shown_error = _sentence(error)
    if not isinstance(error, errors.NumbaError):
        shown_error = f"the compiler stopped with {type(error).__name__}: {shown_error}"
    return refusal(function, filename, line, "", shown_error, fix)

