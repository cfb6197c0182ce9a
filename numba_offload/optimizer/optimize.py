"""@optimize_transfers: the decorator, and the host function that it makes."""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any, overload

from rich.filesize import decimal

from numba_offload.errors import TransferWarning
from numba_offload.optimizer import attributes
from numba_offload.optimizer.report import Report, counted
from numba_offload.optimizer.rewriting import GUARD, NotRewritable, bare, rewrite
from numba_offload.optimizer.scope import Scope
from numba_offload.optimizer.sites import Loop, Site
from numba_offload.optimizer.uses import Uses
from numba_offload.targets.registry import current_target

_HOLDER = "_offload_holder"


class HostFunction:
    """A function whose kernels leave arrays on the device until the host uses them.

    What it computes is what the plain function (``__wrapped__``) computes. ``explain()`` tells what its last call moved.
    """

    def __init__(self, function: types.FunctionType, device_memory: int | None) -> None:
        functools.update_wrapper(self, function)
        self._function = function
        self._limit = device_memory
        self._early: dict[int, bool] = {}
        self._report: Report | None = None
        self._shared: str | None = None
        """The target of the last call, where it shares the host's memory."""
        self._sites: tuple[Site, ...] = ()
        self._loops: tuple[Loop, ...] = ()
        self.reason: str | None = None
        """Why the function runs as it stands, with its transfers not optimised; None where they are."""
        code = function.__code__
        self._keeps_going = bool(code.co_flags & (inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR))
        try:
            self._rewritten, self._sites, self._loops = _rewritten(function)
        except NotRewritable as why:
            self._rewritten, self.reason = function, str(why)
            warnings.warn(
                f"@optimize_transfers leaves {function.__qualname__}() as it is: {why}. Its kernels move their arrays at every "
                "launch",
                TransferWarning,
                stacklevel=4,
            )

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        if self.reason is not None:
            return self._function(*args, **kwargs)
        state = current_target()
        if state.device.memory.unified:
            self._report, self._shared = None, state.target.name
            return self._function(*args, **kwargs)
        report = Report(self._loops)
        report.parts[self] = report
        call = self._call(Scope(self._limit), report, True, args, kwargs)
        return call.pop()(*call.pop(), **call.pop())

    def call_in(self, scope: Scope, outer: Report, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """What another such function is to call to run this as a part of it: see ``Uses.call``."""
        if self.reason is not None:
            scope.everything()
            return [kwargs, args, self._function]
        if self._keeps_going:
            return [kwargs, args, self]  # runs when somebody asks it to
        return self._call(scope, outer.part(self, self._loops), False, args, kwargs)

    def _call(
        self, scope: Scope, report: Report, owned: bool, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> list[Any]:
        code = self._function.__code__
        if len(args) > code.co_argcount and not code.co_flags & inspect.CO_VARARGS:
            # The plain function says so without counting the guard, which other mistakes do not bring up.
            return [kwargs, args, self._function]
        self._report = report
        uses = Uses(scope, self._sites, report, owned, self._early)
        return [{**kwargs, GUARD: uses}, args, self._rewritten]

    def __reduce__(self) -> str:
        """By name, as functions are."""
        return self.__qualname__  # type: ignore[attr-defined, no-any-return]

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def explain(self) -> str:
        """What the last call moved, with the line that made each transfer necessary.

        Of calls in several threads it is the one that began last. While a call runs, it tells what has been moved so far.
        """
        code = self._function.__code__
        where = f"{self._function.__qualname__}() ({code.co_filename}:{code.co_firstlineno})"
        if self.reason is not None:
            return f"{where} is left as it is: {self.reason}"
        report = self._report
        if report is None and self._shared is not None:
            return f"{where} has moved nothing: the target of its last call, {self._shared!r}, shares the host's memory"
        if report is None:
            return f"{where} has not been called yet"
        reports = report.with_called(self)
        launches = sum(part.kernels for part in reports.values())
        over, bytes_over = (sum(n) for n in zip(*(part.total("h2d") for part in reports.values()), strict=True))
        back, bytes_back = (sum(n) for n in zip(*(part.total("d2h") for part in reports.values()), strict=True))
        lines = [
            f"{where}: {counted(launches, 'launch', 'launches')}; {counted(over, 'copy', 'copies')} over, "
            f"{decimal(bytes_over)}; {back} back, {decimal(bytes_back)}"
        ]
        for function, part in reports.items():
            file = function.__wrapped__.__code__.co_filename
            elsewhere = "" if file == code.co_filename else f" ({file})"
            inside = "" if function is self else f"in {function.__qualname__}(){elsewhere}, "
            lines += [f"  {inside}{line}" for line in part.lines()]
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<host function {self._function.__qualname__}, transfers optimised>"


Uses.host_function = HostFunction
attributes.BINDING.add(HostFunction)


def _rewritten(function: types.FunctionType) -> tuple[types.FunctionType, tuple[Site, ...], tuple[Loop, ...]]:
    """The function with a guard as its last parameter; it shares the original's globals and closure."""
    node = _definition(function)
    code = function.__code__
    owner = _class_of(function)
    rewritten, sites, loops = rewrite(node, owner)
    compiled = _compiled(rewritten, function, owner)
    found = next(c for c in _codes(compiled) if c.co_name == code.co_name and GUARD in c.co_varnames)
    found = _renamed(found, found.co_qualname, code.co_qualname)
    cells = dict(zip(code.co_freevars, function.__closure__ or (), strict=True))
    closure = tuple(cells[name] for name in found.co_freevars)
    made = types.FunctionType(found, function.__globals__, function.__name__, function.__defaults__, closure)
    made.__kwdefaults__ = function.__kwdefaults__
    made.__qualname__ = function.__qualname__
    return made, tuple(sites), tuple(loops)


def _definition(function: types.FunctionType) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The function's own definition, as the file has it. Raises NotRewritable where the file does not say."""
    try:
        lines, first = inspect.getsourcelines(function.__code__)
    except (OSError, TypeError):
        raise NotRewritable("its source cannot be found; define it in a file") from None
    # Indented source as it is: to shift it would shift the lines of strings too.
    head = "if True:\n" if lines[0][:1].isspace() else ""
    try:
        tree = ast.parse(head + "".join(lines))
    except SyntaxError:
        raise NotRewritable("its source cannot be read by itself; define it with def on lines of its own") from None
    node: Any = tree.body[0].body[0] if head else tree.body[0]  # type: ignore[attr-defined]
    first -= bool(head)
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) or node.name != function.__code__.co_name:
        raise NotRewritable("it is not defined with def where its code says")
    ast.increment_lineno(tree, first - 1)
    again = _compiled(bare(node), function, _class_of(function))
    same = next((c for c in _codes(again) if c.co_name == function.__code__.co_name), None)
    if same is None or not _is_from(function.__code__, same):
        raise NotRewritable("its file has changed since it was imported")
    return node


def _is_from(code: types.CodeType, source: types.CodeType) -> bool:
    """Whether a function's code may have been made from this source.

    Instructions need not be the same: they depend on the module's imports, and test frameworks rewrite assertions.
    """

    def constants(of: types.CodeType) -> set[str]:
        return {repr(value) for value in of.co_consts if not isinstance(value, types.CodeType)}

    def lines(of: types.CodeType) -> set[Any]:
        # Where a definition begins depends on its decorators.
        found = {line for _, _, line in of.co_lines() if line is not None}
        return found - {code.co_firstlineno, source.co_firstlineno}

    parameters = code.co_argcount + code.co_kwonlyargcount
    return (
        source.co_varnames[:parameters] == code.co_varnames[:parameters]
        and set(source.co_varnames) <= set(code.co_varnames)
        and source.co_freevars == code.co_freevars
        and set(source.co_names) <= set(code.co_names)
        and constants(source) <= constants(code)
        and lines(source) == lines(code)
    )


def _compiled(node: Any, function: types.FunctionType, owner: str | None) -> types.CodeType:
    """A definition compiled where its free variables are some enclosing function's, and private names its class's."""
    body: list[Any] = [node]
    if owner is None and node.name not in function.__code__.co_freevars:
        # A function of a module that calls itself looks for its name there.
        body = [ast.Global([node.name]), node]
    if owner is not None:
        # Under another name, which makes the same private names and does not hide the class's.
        body = [ast.ClassDef(f"________{owner}", [], [], body, [])]
    free = [name for name in function.__code__.co_freevars if name != "__class__" or owner is None]
    parameters = ast.arguments([], [ast.arg(name) for name in free], None, [], [], None, [])
    holder = ast.FunctionDef(_HOLDER, parameters, body, [])
    tree = ast.fix_missing_locations(ast.Module([holder], []))
    flags = function.__code__.co_flags & _FUTURES
    return compile(tree, function.__code__.co_filename, "exec", flags, dont_inherit=True)


_FUTURES = functools.reduce(
    operator.or_, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def _class_of(function: types.FunctionType) -> str | None:
    """The innermost class that a function is defined in, itself or with the functions around it, by its qualified name."""
    for nested in reversed(function.__qualname__.split(".<locals>.")):
        *classes, _ = nested.split(".")
        if classes:
            return classes[-1]
    return None


def _renamed(code: types.CodeType, old: str, new: str) -> types.CodeType:
    """Code, and what is defined in it, under the qualified name that it has where it stands."""
    name = new + code.co_qualname.removeprefix(old)

    def constant(value: Any) -> Any:
        if isinstance(value, types.CodeType):
            return _renamed(value, old, new)
        # A class's body has its name as a constant.
        return name if value == code.co_qualname and not code.co_flags & inspect.CO_OPTIMIZED else value

    return code.replace(co_qualname=name, co_consts=tuple(map(constant, code.co_consts)))


def _codes(code: types.CodeType) -> Any:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield constant
            yield from _codes(constant)


@overload
def optimize_transfers(function: Callable[..., Any], /) -> HostFunction: ...


@overload
def optimize_transfers(*, device_memory: int | None = None) -> Callable[[Callable[..., Any]], HostFunction]: ...


def optimize_transfers(function: Any = None, /, *, device_memory: int | None = None) -> Any:
    """Let the kernels that a host function launches leave arrays on the device until the host uses them.

    Parameters
    ----------
    function
        A function, a generator function or a coroutine function, defined in a file.
    device_memory
        The most bytes that stay on a device between launches (None: what the device has). Beyond it the arrays that have not
        been used for longest come back.

    Returns
    -------
    HostFunction
        To be called as the function. Where its source has a construct that cannot be followed, a TransferWarning says so
        and the function is left as it is.

    Raises
    ------
    TypeError
        What is decorated is not a Python function.
    """
    if device_memory is not None and (not isinstance(device_memory, int) or device_memory < 0):
        raise TypeError(f"optimize_transfers(device_memory={device_memory!r}): expected a number of bytes")

    def decorate(target: Any) -> HostFunction:
        if isinstance(target, staticmethod | classmethod):
            raise TypeError(
                f"optimize_transfers decorates a function, not a {type(target).__name__}; put it below @{type(target).__name__}"
            )
        if not inspect.isfunction(target) or target.__name__ == "<lambda>":
            raise TypeError(f"optimize_transfers decorates a function that is defined with def, not {target!r}")
        return HostFunction(target, device_memory)

    return decorate if function is None else decorate(function)
