"""@offload_kernel: the decorator, and the kernel object that it makes."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable
from typing import Any, overload

from numba.core import sigutils, types
from numba.core.typing.templates import Signature

from numba_offload.arguments import Arguments, TypeBuilder, add_argument
from numba_offload.cache.kernel_cache import CacheStats, KernelCache
from numba_offload.captures import VERSIONS, Fingerprint, captured_arrays
from numba_offload.errors import LaunchError
from numba_offload.execution import execute, execute_again
from numba_offload.explanation import explanation, mappings
from numba_offload.launching import as_extent
from numba_offload.relaunch import Relaunch, repeatable
from numba_offload.specialisation import Specialisation
from numba_offload.specialise import specialise
from numba_offload.targets.context import device_source
from numba_offload.targets.options import CompileOptions
from numba_offload.targets.registry import current_target


class OffloadKernel:
    """A Python function that runs as a kernel on the current target.

    ``kernel(...)`` sizes the launch from its Regions; ``kernel[blocks, threads](...)`` and
    ``kernel[blocks, threads, stream](...)`` say it. Host arrays are moved as the kernel's accesses need; the call returns
    when the results are back.
    """

    def __init__(
        self, py_func: Callable[..., Any], options: CompileOptions, signature: Any = None, cache: bool = False
    ) -> None:
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
        self._cache = KernelCache(py_func.__name__, options) if cache else None

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
        return mappings(*self._prepare(args, kwargs))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """Why each argument is mapped as it is, with the lines that decide it."""
        return explanation(*self._prepare(args, kwargs))

    @property
    def cache_stats(self) -> CacheStats:
        """What was taken from the cache on disk in this process, and what was not; nothing without ``cache=True``."""
        return CacheStats() if self._cache is None else self._cache.stats

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
                    known = self._specialise(names, arguments.key)
                    # Another thread may have changed what was being compiled.
                    if self._print.current() == print_:
                        self._specialisations[key] = known
                    # A callee that was replaced brings captures of its own.
                    self._print = Fingerprint(self.py_func)
        return arguments, known

    def _specialise(self, names: tuple[str, ...], key: list[Any]) -> Specialisation:
        function = VERSIONS.current(self.py_func)

        def make() -> Specialisation:
            return specialise(self.__name__, function, names, key, self.options)

        return make() if self._cache is None else self._cache.specialisation(function, names, key, make)

    def _launch(
        self, asked: tuple[Any, Any, Any] | None, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        last = self._last
        if last is not None and not kwargs and last.asked == asked and self._repeat(last, args):
            return
        arguments, specialisation = self._prepare(args, kwargs)
        launched = execute(asked, arguments, specialisation)
        if launched is None or not launched.state.device.memory.unified:
            return
        if not kwargs and not self._captured and self._print is not None:
            items = repeatable(args, self._names, arguments, specialisation.record.layout)
            if items is not None:
                self._last = Relaunch(asked, self._print.current(), items, launched)

    def _repeat(self, last: Relaunch, args: tuple[Any, ...]) -> bool:
        """Launch as the last time, if nothing but scalars has changed; returns whether it has."""
        launched = last.launched
        flat = last.arguments(args)
        if flat is None or self._print is None or current_target() is not launched.state:
            return False
        if last.captured and self._print.current() != last.captured:
            return False
        execute_again(launched, flat)
        return True


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
        Keep compiled code on disk, and take it from there in other processes: in ``NUMBA_OFFLOAD_CACHE_DIR``, or else
        in ``numba_offload`` in the user's folder of caches. A kernel that depends on what has no form on disk (an arbitrary
        object from around it) is compiled in each process, with a CacheWarning. ``kernel.cache_stats`` counts.

    Raises
    ------
    TypeError
        What is decorated is no Python function, has ``*args`` or keyword-only parameters, or another number of
        parameters than the signature.
    """
    options = CompileOptions(bool(boundscheck), bool(fastmath), contract, bool(unsafe))
    if inspect.isfunction(function):
        return OffloadKernel(function, options, cache=bool(cache))
    if not (function is None or isinstance(function, str | tuple | types.Type | Signature)):
        raise _not_a_function("offload_kernel", function)
    signature = function

    def decorate(py_func: Callable[..., Any]) -> OffloadKernel:
        if not inspect.isfunction(py_func):
            raise _not_a_function("offload_kernel", py_func)
        kernel = OffloadKernel(py_func, options, signature, bool(cache))
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
