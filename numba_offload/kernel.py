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
from numba_offload.captures import Fingerprint, captured_arrays
from numba_offload.device.types import ViewType
from numba_offload.diagnostics.shown_types import axes
from numba_offload.function_versions import VERSIONS
from numba_offload.kernel_calls import CallableKernel
from numba_offload.specialisation import Specialisation
from numba_offload.specialise import specialise
from numba_offload.targets.context import device_source
from numba_offload.targets.options import CompileOptions


class OffloadKernel(CallableKernel):
    """A Python function that runs as a kernel: compiled for the types of its arguments when it is first called with them."""

    def __init__(
        self, py_func: Callable[..., Any], options: CompileOptions, signature: Any = None, cache: bool = False
    ) -> None:
        super().__init__(inspect.signature(py_func))
        self.py_func = py_func
        self.options = options
        self.__name__ = py_func.__name__
        self.__doc__ = py_func.__doc__
        self.__module__ = py_func.__module__
        self.__qualname__ = py_func.__qualname__
        self.__wrapped__ = py_func
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
        self._cache = KernelCache(py_func.__name__, options) if cache else None

    def __repr__(self) -> str:
        return f"<offload kernel {self.__name__}>"

    def __reduce__(self) -> str:
        """Pickled and copied as functions are: by name."""
        return self.__qualname__

    @property
    def cache_stats(self) -> CacheStats:
        """What was taken from the cache on disk in this process, and what was not; nothing without ``cache=True``."""
        return CacheStats() if self._cache is None else self._cache.stats

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
                # And a callee that was replaced brings captures of its own.
                self._print, self._captured = Fingerprint(self.py_func), captured_arrays(self.py_func)
                print_ = self._print.current()
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
        return arguments, known

    def _specialise(self, names: tuple[str, ...], key: list[Any]) -> Specialisation:
        function = VERSIONS.current(self.py_func)

        def make() -> Specialisation:
            return specialise(self.__name__, function, names, key, self.options)

        return make() if self._cache is None else self._cache.specialisation(function, names, key, make)

    def _frozen(self) -> tuple[Any, ...] | None:
        return None if self._captured or self._print is None else self._print.current()


_TRUTHS = ("bool", "int", "bool_")


def _is_coroutine(given: Any) -> bool:
    """Whether it is defined with ``async def``: its code would be taken for a plain function's."""
    return inspect.iscoroutinefunction(given) or inspect.isasyncgenfunction(given)


def _not_a_function(decorator: str, given: Any) -> TypeError:
    """What was decorated, and what to decorate instead."""
    name = getattr(given, "__name__", repr(given))
    if _is_coroutine(given):
        what, fix = f"{name}, which is a coroutine function", "define it with def"
    elif isinstance(given, OffloadKernel):
        what, fix = f"{name}, which is a kernel already", "decorate it once"
    elif inspect.isclass(given):
        what, fix = f"the class {name}", "decorate a function"
    elif device_source(given) is not None:
        what, fix = f"{name}, which has a decorator already", "decorate the plain function, with one decorator"
    else:
        what, fix = f"{name} (of type {type(given).__name__})", "decorate a function"
    return TypeError(f"{decorator} decorates a Python function, not {what}; {fix}")


_SIGNATURE = "expected a signature of Numba's types, such as 'void(float64, float64[:])', where a Region is declared as its array"


def _declared(signature: Any) -> tuple[types.Type, ...]:
    try:
        args, _ = sigutils.normalize_signature(signature)
    except Exception as error:  # a text is evaluated, with Numba's types for names
        raise TypeError(f"offload_kernel({signature!r}): {_SIGNATURE} ({type(error).__name__}: {error})") from error
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
            passed = f"an array of {have.dtype} and {axes(have.ndim)}" if isinstance(have, ViewType) else str(have)
            raise TypeError(
                f"kernel {kernel}(): argument {name!r} is declared as {want}, but {passed} was passed; convert the argument, or "
                "leave the signature out, and the kernel takes both"
            )


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
    given = {"unsafe": unsafe, "boundscheck": boundscheck, "fastmath": fastmath, "contract": contract, "cache": cache}
    for option, value in given.items():
        # Any word would be true, "no" too.
        if not (type(value).__name__ in _TRUTHS and value in (0, 1)) and not (option == "contract" and value is None):
            raise TypeError(f"offload_kernel({option}={value!r}): expected True or False")
    contract = None if contract is None else bool(contract)
    options = CompileOptions(bool(boundscheck), bool(fastmath), contract, bool(unsafe))
    if inspect.isfunction(function) and not _is_coroutine(function):
        return OffloadKernel(function, options, cache=bool(cache))
    if not (function is None or isinstance(function, str | tuple | types.Type | Signature)):
        raise _not_a_function("offload_kernel", function)
    signature = function

    def decorate(py_func: Callable[..., Any]) -> OffloadKernel:
        if not inspect.isfunction(py_func) or _is_coroutine(py_func):
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
        self.__module__ = py_func.__module__
        self.__qualname__ = py_func.__qualname__

    def __reduce__(self) -> str:
        """Pickled and copied as functions are: by name."""
        return self.__qualname__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.__offload_function__(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<offload function {self.__name__}>"


def offload_function(function: Callable[..., Any]) -> OffloadFunction:
    """Make a function callable from kernels, on every target. It may take views, arrays, indices and scalars."""
    if not inspect.isfunction(function) or _is_coroutine(function):
        raise _not_a_function("offload_function", function)
    return OffloadFunction(function)
