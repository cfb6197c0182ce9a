"""@offload_kernel: the decorator, and the kernel object that it makes."""

from __future__ import annotations

import inspect
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any, overload

from numba.core import sigutils, types
from numba.core.typing.templates import Signature

from numba_offload.arguments import (
    Arguments,
    ArrayLeaf,
    TypeBuilder,
    add_argument,
    slot_values,
)
from numba_offload.captures import VERSIONS, Fingerprint, captured_arrays
from numba_offload.diagnostics.profile import profiling, record_launch
from numba_offload.errors import LaunchError, TargetError
from numba_offload.failures import failure
from numba_offload.launch_plan import kernel_plan, leaf_map
from numba_offload.launching import as_extent
from numba_offload.mapping.alias import check_uses
from numba_offload.mapping.arrays import DeviceArray, check_writable
from numba_offload.mapping.launch import ArrayUse, LaunchMapping
from numba_offload.relaunch import Relaunch, repeatable
from numba_offload.specialise import Specialisation, specialise
from numba_offload.targets.base import Target
from numba_offload.targets.context import device_source
from numba_offload.targets.options import CompileOptions
from numba_offload.targets.registry import TargetState, current_target, target_of_device


class OffloadKernel:
    """A Python function that runs as a kernel on the current target.

    ``kernel(...)`` sizes the launch from its Regions; ``kernel[blocks, threads](...)`` and
    ``kernel[blocks, threads, stream](...)`` say it. Host arrays are moved as the kernel's accesses need; the call returns
    when the results are back.
    """

    def __init__(self, py_func: Callable[..., Any], options: CompileOptions, signature: Any = None) -> None:
        self.py_func = py_func
        self.options = options
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__
        self.__module__ = py_func.__module__
        self.__qualname__ = py_func.__qualname__
        self.__wrapped__ = py_func
        self._signature = inspect.signature(py_func)
        self._names = tuple(self._signature.parameters)
        for parameter in self._signature.parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                stars = "*" if parameter.kind == parameter.VAR_POSITIONAL else "**"
                raise TypeError(f"kernel {self.__name__!r}: {stars}{parameter.name} is not available; name the arguments")
            if parameter.kind == parameter.KEYWORD_ONLY:
                raise TypeError(
                    f"kernel {self.__name__!r}: Numba cannot compile keyword-only parameters; move {parameter.name!r} before "
                    "the '*', it can still be passed by keyword"
                )
        self._declared = None if signature is None else _declared(signature)
        self._specialisations: dict[Any, Specialisation] = {}
        self._lock = threading.RLock()
        self._captured: dict[str, Callable[[], Any]] = {}
        self._print: Fingerprint | None = None
        self._last: Relaunch | None = None

    def __repr__(self) -> str:
        return f"<offload kernel {self.__name__}>"

    # ------------------------------------------------------------------------------------------------------ calls

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._launch(None, args, kwargs)

    def __getitem__(self, configuration: Any) -> ConfiguredKernel:
        if not isinstance(configuration, tuple) or not 2 <= len(configuration) <= 3:
            raise LaunchError(
                f"kernel {self.__name__}[...] takes [blocks, threads] or [blocks, threads, stream], got {configuration!r}"
            )
        blocks = as_extent(configuration[0], "blocks")
        block = as_extent(configuration[1], "threads per block")
        return ConfiguredKernel(self, blocks, block, configuration[2] if len(configuration) > 2 else None)

    def mappings(self, *args: Any, **kwargs: Any) -> dict[str, str]:
        """How each argument would be mapped: ``none``, ``to``, ``from``, ``tofrom``, or ``literal`` for scalars.

        Leaves of tuples are named as one would write them (``p.vel``, ``t[1][0]``).
        """
        arguments, specialisation = self._prepare(args, kwargs)
        maps = {leaf.name: leaf_map(specialisation, leaf) for leaf in arguments.arrays}
        out: dict[str, str] = {}
        for slot in specialisation.record.layout:
            name = slot.name
            if slot.data:
                name = name.removesuffix(".data")
                out[name] = maps[name]
            elif not any(name.startswith((f"{leaf}.", f"{leaf}[")) for leaf in maps):
                scalar = name.removesuffix(".real").removesuffix(".imag")
                out[scalar if scalar != name and _is_complex(specialisation, scalar) else name] = "literal"
        return out

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Why each argument is mapped as it is, with the lines that decide it."""
        arguments, specialisation = self._prepare(args, kwargs)
        lines = [f"kernel {self.__name__} ({self.py_func.__code__.co_filename})"]
        for leaf in arguments.arrays:
            intent = specialisation.intents.leaves[leaf.name]
            lines.append(f"  {leaf.name}: {leaf_map(specialisation, leaf)}")
            lines += [f"      {reason}" for reason in intent.reasons]
        for name, how in self.mappings(*args, **kwargs).items():
            if how == "literal":
                lines.append(f"  {name}: literal\n      passed by value")
        return "\n".join(lines)

    # ---------------------------------------------------------------------------------------------------- internals

    def _bind(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        if not kwargs and len(args) == len(self._names):
            return args
        unknown = [name for name in kwargs if name not in self._signature.parameters]
        if unknown:
            raise TypeError(
                f"kernel {self.__name__}(): it has no parameter {unknown[0]!r}; it is defined as {self.__name__}{self._signature}"
            )
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"kernel {self.__name__}(): {error}") from None
        bound.apply_defaults()
        return bound.args

    def _take_apart(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Arguments:
        bound = self._bind(args, kwargs)
        out = Arguments()
        for name, value in zip(self._names, bound, strict=True):
            add_argument(out, name, value)
        for name, read in self._captured.items():
            add_argument(out, name, read())
        return out

    def _prepare(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Arguments, Specialisation]:
        """The call's leaves, and the kernel for their types and for what it takes from around it at present."""
        if self._print is None:
            self._print, self._captured = Fingerprint(self.py_func), captured_arrays(self.py_func)
        print_ = self._print.current()
        arguments = self._take_apart(args, kwargs)
        known = self._specialisations.get((tuple(arguments.key), print_))
        if known is None:
            with self._lock:
                # What was an array when the kernel was last compiled need not be one now, nor the other way round.
                self._captured = captured_arrays(self.py_func)
                arguments = self._take_apart(args, kwargs)
                key = (tuple(arguments.key), print_)
                known = self._specialisations.get(key)
                if known is None:
                    names = (*self._names, *self._captured)
                    if self._declared is not None:
                        # Before typing: a kernel need not make sense for arguments that it does not take.
                        given = TypeBuilder(self.options.unsafe).types(names, arguments.key)
                        _check_declared(self.__name__, self._names, self._declared, given)
                    function = VERSIONS.current(self.py_func)
                    known = specialise(self.__name__, function, names, arguments.key, self.options)
                    # Another thread may have changed what was being compiled.
                    if self._print.current() == print_:
                        self._specialisations[key] = known
                    # A callee that was replaced brings captures of its own.
                    self._print = Fingerprint(self.py_func)
        return arguments, known

    def _launch(
        self, asked: tuple[Any, Any, Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        last = self._last
        if last is not None and not kwargs and last.asked == asked and self._repeat(last, args):
            return
        arguments, specialisation = self._prepare(args, kwargs)
        state = self._target(arguments)
        leaves = arguments.arrays
        plan = kernel_plan(self.__name__, asked, arguments, specialisation, state)
        uses = [
            ArrayUse(leaf.name, leaf.array, how, leaf.address) for leaf, how in zip(leaves, plan.maps, strict=True)
        ]
        for use in uses:
            if use.map in ("from", "tofrom"):
                check_writable(use.array, use.name)
        check_uses(uses, self.__name__)
        config = plan.config
        if config is None or plan.code is None:
            return
        if asked is not None and asked[2] is not None:
            config = replace(config, stream=asked[2])
        mapping = LaunchMapping(state.device, uses, config.stream, self.__name__)
        ok = False
        try:
            started = time.perf_counter() if profiling() else 0.0
            target = state.target
            flat, keep, work = _flatten(arguments, mapping, specialisation, target)
            foreign = [leaf.array for leaf in leaves if isinstance(leaf.array, DeviceArray)]
            if foreign:
                target.acquire(foreign, config.stream)
            # Host arrays are to be complete when the call returns; arrays that stay on the device can follow.
            wait = len(foreign) < len(leaves) or not foreign
            report = target.launch(plan.code, flat, config, work, wait)
            if foreign and not wait:
                target.release(foreign, config.stream)
            del keep
            if started:
                record_launch(self.__name__, state.target.name, time.perf_counter() - started)
            if report is not None:
                raise failure(self.__name__, report, plan.code.image.sites)
            ok = True
        finally:
            mapping.finish(ok)
        if state.device.memory.unified and not kwargs and not self._captured and self._print is not None:
            items = repeatable(args, self._names, arguments, specialisation.record.layout)
            if items is not None:
                self._last = Relaunch(asked, state, self._print.current(), items, flat, plan.code, config, work)

    def _repeat(self, last: Relaunch, args: tuple[Any, ...]) -> bool:
        """Launch as the last time, if nothing but scalars has changed; returns whether it has."""
        flat = last.arguments(args)
        if flat is None or self._print is None or current_target() is not last.state:
            return False
        if last.captured and self._print.current() != last.captured:
            return False
        started = time.perf_counter() if profiling() else 0.0
        report = last.state.target.launch(last.code, flat, last.config, last.work)
        if started:
            record_launch(self.__name__, last.state.target.name, time.perf_counter() - started)
        if report is not None:
            raise failure(self.__name__, report, last.code.image.sites)
        return True

    def _target(self, arguments: Arguments) -> TargetState:
        homes: dict[str, str] = {}
        for leaf in arguments.arrays:
            if isinstance(leaf.array, DeviceArray):
                homes.setdefault(target_of_device(leaf.array.device_type), leaf.name)
        if len(homes) > 1:
            places = " and ".join(f"{name!r} on a {home} device" for home, name in homes.items())
            raise TargetError(
                f"kernel {self.__name__!r}: its arguments live on devices of several targets: {places}, and a launch runs "
                "on one; copy arrays to the host, or to the device of the others"
            )
        lives_on = next(iter(homes), None)
        state = current_target(lives_on)
        if lives_on is not None and state.target.name != lives_on:
            raise TargetError(
                f"kernel {self.__name__!r}: argument {homes[lives_on]!r} lives on a {lives_on} device, but the target is "
                f"{state.target.name!r}; use use_target({lives_on!r}), or copy the array to the host"
            )
        return state


class ConfiguredKernel:
    """A kernel with an explicit launch configuration."""

    __slots__ = ("_asked", "_kernel")

    def __init__(self, kernel: OffloadKernel, blocks: Any, block: Any, stream: Any) -> None:
        self._kernel = kernel
        self._asked = (blocks, block, stream)

    def __call__(self, *args: Any, **kwargs: Any) -> None:
        self._kernel._launch(self._asked, args, kwargs)

    def __repr__(self) -> str:
        return f"<offload kernel {self._kernel.__name__} [{self._asked[0]}, {self._asked[1]}]>"


def _is_complex(specialisation: Specialisation, name: str) -> bool:
    return f"{name}.real" in {slot.name for slot in specialisation.record.layout}


def _flatten(
    arguments: Arguments, mapping: LaunchMapping, specialisation: Specialisation, target: Target
) -> tuple[list[Any], list[Any], int]:
    flat: list[Any] = []
    keep: list[Any] = []
    work = 0
    views = iter(mapping.views)
    for value in arguments.values:
        if isinstance(value, ArrayLeaf):
            flat += slot_values(value, next(views), specialisation.leaves[value.name].layout, keep, target.resident)
            if value.strategy is not None:
                work = max(work, value.array.size)
        else:
            flat.append(value)
    return flat, keep, work


def _not_a_function(decorator: str, given: Any) -> TypeError:
    """What was decorated, and what to decorate instead."""
    name = getattr(given, "__name__", repr(given))
    if isinstance(given, OffloadKernel):
        what, fix = f"{name}, which is a kernel already", "decorate it once"
    elif inspect.isclass(given):
        what, fix = f"the class {name}", "decorate a function"
    elif device_source(given) is not None:
        what, fix = f"{name}, which has a decorator already", "decorate the plain function, with one decorator"
    else:
        what, fix = f"{name} (of type {type(given).__name__})", "decorate a function"
    return TypeError(f"{decorator} decorates a Python function, not {what}; {fix}")


def _declared(signature: Any) -> tuple[types.Type, ...]:
    args, _ = sigutils.normalize_signature(signature)
    return tuple(args)


def _check_declared(
    kernel: str, names: tuple[str, ...], declared: tuple[types.Type, ...], given: tuple[types.Type, ...]
) -> None:
    for name, want, have in zip(names, declared, given, strict=False):
        if isinstance(want, types.Array):
            dtype, ndim = getattr(have, "dtype", None), getattr(have, "ndim", None)
            layout = getattr(have, "layout", "A")
            fits = dtype == want.dtype and ndim == want.ndim and (want.layout != "C" or layout == "C")
        else:
            fits = have == want
        if not fits:
            raise TypeError(f"kernel {kernel}(): argument {name!r} is declared as {want}, but {have} was passed")


@overload
def offload_kernel(function: Callable[..., Any], /) -> OffloadKernel: ...


@overload
def offload_kernel(
    signature: Any = None,
    /,
    *,
    unsafe: bool = False,
    boundscheck: bool = True,
    fastmath: bool = False,
    contract: bool | None = None,
    cache: bool = False,
) -> Callable[[Callable[..., Any]], OffloadKernel]: ...


def offload_kernel(
    function: Any = None,
    /,
    *,
    unsafe: bool = False,
    boundscheck: bool = True,
    fastmath: bool = False,
    contract: bool | None = None,
    cache: bool = False,
) -> Any:
    """Make a function a kernel.

    Parameters
    ----------
    function
        The function, or a Numba signature that calls must match.
    unsafe
        Raw arrays that any thread may write anywhere, with the indexing names of ``numba.cuda``.
    boundscheck
        Check every index that is not proved in range. Default on.
    fastmath
        Let LLVM reassociate and assume no NaN.
    contract
        Whether a multiplication and an addition may fuse. Default: on for GPUs, off for the CPU.
    cache
        Accepted, and without effect: compiled code is not kept on disk yet.

    Raises
    ------
    TypeError
        What is decorated is no Python function, has ``*args`` or keyword-only parameters, or another number of
        parameters than the signature.
    """
    del cache
    options = CompileOptions(bool(boundscheck), bool(fastmath), contract, bool(unsafe))
    if inspect.isfunction(function):
        return OffloadKernel(function, options)
    if not (function is None or isinstance(function, str | tuple | types.Type | Signature)):
        raise _not_a_function("offload_kernel", function)
    signature = function

    def decorate(py_func: Callable[..., Any]) -> OffloadKernel:
        if not inspect.isfunction(py_func):
            raise _not_a_function("offload_kernel", py_func)
        kernel = OffloadKernel(py_func, options, signature)
        if kernel._declared is not None and len(kernel._declared) != len(kernel._names):
            raise TypeError(
                f"kernel {kernel.__name__!r} takes {len(kernel._names)} arguments, but its signature declares "
                f"{len(kernel._declared)}"
            )
        return kernel

    return decorate


class OffloadFunction:
    """A function for kernel code to call. From Python it is the plain function."""

    def __init__(self, py_func: Callable[..., Any]) -> None:
        self.__offload_function__ = py_func
        self.__wrapped__ = py_func
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__offload_function__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<offload function {self.__name__}>"


def offload_function(function: Callable[..., Any]) -> OffloadFunction:
    """Make a function callable from kernels, on every target. It may take views, arrays, indices and scalars."""
    if not inspect.isfunction(function):
        raise _not_a_function("offload_function", function)
    return OffloadFunction(function)
