"""The guard that a rewritten host function consults: what an operation on these operands uses of the host's arrays.

Each method is called with the operands evaluated, right before the operation or in its place. It brings back what the
operation may read, and gives up what it may write (``scope.py``). Operands that are not on the closed list use everything.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
import sys
import types
from collections.abc import Callable, Iterator
from functools import partial
from time import perf_counter
from typing import Any

import numpy as np

from numba_offload.accumulator import Accumulator
from numba_offload.code_digest import is_package_class
from numba_offload.diagnostics import events
from numba_offload.diagnostics.progress import progress
from numba_offload.diagnostics.transfer_guard import transfer_guard
from numba_offload.handle import Handle, Handles
from numba_offload.kernel_calls import CallableKernel, ConfiguredKernel
from numba_offload.optimizer import closed_list as known
from numba_offload.optimizer.attributes import plain_attribute, plain_class, plain_store
from numba_offload.optimizer.enumerations import compares_plainly, is_true_plainly
from numba_offload.optimizer.plain_classes import is_named_tuple, stores_arguments
from numba_offload.optimizer.plain_values import (
    HASHING,
    LOOKED_UP,
    MOST_PARTS,
    compares_with_members,
    gives_a_view,
    is_launchable,
    is_mere_data,
    is_plain_key,
    is_plain_stream,
    is_strategy,
    may_run_code,
    type_hashes_plainly,
)
from numba_offload.optimizer.report import Report
from numba_offload.optimizer.scope import Scope, argument_names
from numba_offload.optimizer.sites import Site
from numba_offload.optimizer.standard_library import Random, draws, says_nothing
from numba_offload.region import Region
from numba_offload.staging import preload, preload_mut
from numba_offload.targets.registry import synchronize, use_target
from partitioning import PartitioningStrategy

_DEEPEST = 4
_OURS = "_offload_"
"""What the names begin with that rewriting adds to a function."""
_KERNELS: dict[type, bool] = {}
"""Of types that have been called, whether they are kernels': abstract classes take their time to say."""
_Namespace = types.SimpleNamespace
_repeat = itertools.repeat
_TEMPLATES = (str, bytes, np.str_, np.bytes_)
_GENERATORS = (np.random.Generator, np.random.RandomState)
_OUR_MANAGERS = (use_target, transfer_guard, Handle, Handles)
_ndarray = np.ndarray


class Uses:
    """The guard of one call. ``sites`` are the places that the rewritten function numbers.

    ``early`` is kept between calls: where an array that could go over early was taken over by a launch the last time.
    """

    slice = staticmethod(slice)
    host_function: Any
    """The class of functions whose transfers are optimised (``optimize.py``)."""

    def __init__(
        self, scope: Scope, sites: tuple[Site, ...], report: Report, owned: bool, early: dict[int, bool]
    ) -> None:
        self._scope = scope
        self._sites = sites
        self._report = report
        self._owned = owned
        self._early = early
        self._interrupted = False
        self._iterators: dict[int, Any] = {}
        self._asked_keys: set[int] = set()
        """Comprehensions with keys whose comparison may run anybody's code."""
        self._counts = report.iterations

    # What operations do

    def _at(self, site: int) -> None:
        self._scope.here = self._report, site, self._sites[site]

    def _read(self, site: int, array: np.ndarray) -> None:
        if array.dtype.hasobject:
            self._everything(site)
            return
        self._at(site)
        self._scope.read(array)

    def _write(self, site: int, array: np.ndarray) -> None:
        if array.dtype.hasobject:
            self._everything(site)
            return
        self._at(site)
        self._scope.write(array)

    def _everything(self, site: int, certainly: bool = False) -> None:
        if self._scope.active:
            self._at(site)
            self._scope.everything(certainly)

    def _look_at(self, site: int, value: Any, depth: int = 0) -> None:
        """An operation reads whatever a value consists of."""
        kind = type(value)
        if kind in known.SCALARS or not self._scope.active:
            return
        if kind is _ndarray:
            self._read(site, value)
        elif kind in known.SEQUENCES and len(value) <= MOST_PARTS and depth < _DEEPEST:
            for part in value:
                self._look_at(site, part, depth + 1)
        elif kind is dict and len(value) <= MOST_PARTS and depth < _DEEPEST:
            for key, part in value.items():
                self._look_at(site, key, depth + 1)
                self._look_at(site, part, depth + 1)
        elif kind is slice:
            for part in (value.start, value.stop, value.step):
                self._look_at(site, part, depth + 1)
        elif (kind not in known.INERT or kind in known.ASKING_OTHERS) and not known.is_dtype(value):
            self._everything(site)

    def _is_known(self, value: Any, depth: int = 0) -> bool:
        """Whether a value consists of scalars and arrays, of which nothing is read."""
        kind = type(value)
        if kind in known.SCALARS or (kind is _ndarray and not value.dtype.hasobject):
            return True
        if kind in known.SEQUENCES and len(value) <= MOST_PARTS and depth < _DEEPEST:
            return all(self._is_known(part, depth + 1) for part in value)
        return kind in known.INERT or known.is_dtype(value)

    # Operators

    def operand(self, site: int, value: Any) -> Any:
        self._look_at(site, value)
        return value

    def binary(self, site: int, operation: str, left: Any, right: Any) -> Any:
        if self._scope.active:
            self._look_at(site, left)
            if operation == "mod" and type(left) in _TEMPLATES:
                self.shown(site, right)
            else:
                self._look_at(site, right)
        return _OPERATIONS[operation](left, right)

    def compare(self, site: int, operation: str, left: Any, right: Any) -> Any:
        if not (compares_plainly(left) and compares_with_members(right)) and not (
            compares_plainly(right) and compares_with_members(left)
        ):
            return self.binary(site, operation, left, right)
        return _OPERATIONS[operation](left, right)

    def unary(self, site: int, operation: str, value: Any) -> Any:
        self._look_at(site, value)
        return _OPERATIONS[operation](value)

    def inplace(self, site: int, operation: str, target: Any, value: Any) -> Any:
        if self._scope.active:
            if operation == "imod" and type(target) in _TEMPLATES:
                self.shown(site, value)
            else:
                self._look_at(site, value)
            if type(target) is _ndarray:
                self._write(site, target)
            elif type(target) is list:
                self.iterable(site, value)
            else:
                self._look_at(site, target)
        return _OPERATIONS[operation](target, value)

    def contains(self, site: int, item: Any, container: Any) -> bool:
        if self._scope.active:
            if type(container) in LOOKED_UP:
                self.hashable(site, item, container)
            else:
                self._look_at(site, item)
                self._look_at(site, container)
        return item in container

    def truth(self, site: int, value: Any) -> Any:
        kind = type(value)
        if self._scope.active and kind not in known.SCALARS:
            if kind is _ndarray:
                self._read(site, value)
            elif kind not in known.CONTAINERS and kind not in known.INERT and not is_true_plainly(value):
                self._everything(site)
        return value

    def again(self, site: int, loop: int) -> bool:
        """The test of a ``while`` loop is going to be made."""
        self._counts[loop] += 1
        return True

    def no_more(self, site: int, loop: int) -> None:
        """That test was false."""
        self._counts[loop] -= 1

    # Parts of values

    def owner(self, site: int, value: Any, name: str) -> Any:
        """An attribute is going to be asked for."""
        if self._scope.active and not plain_attribute(value, name):
            self._everything(site)
        return value

    def attribute(self, site: int, value: Any, name: str) -> Any:
        return getattr(self.owner(site, value, name), name)

    def set_attribute(self, site: int, value: Any, owner: Any, name: str) -> None:
        self._before_store(site, value, owner, name)
        setattr(owner, name, value)

    def _before_store(self, site: int, value: Any, owner: Any, name: str) -> None:
        if self._scope.active:
            if type(owner) is _ndarray:
                self._look_at(site, value)
                self._write(site, owner)
                self._scope.another_form(owner)
            elif type(owner) in (Region, Accumulator) or not plain_store(owner, name):
                self._everything(site)

    def raised(self, site: int, value: Any) -> Any:
        """A value is going to be raised; a class is called first."""
        if not issubclass(type(value), BaseException) and not (type(value) is type and value in known.EXCEPTIONS):
            self._everything(site)
        return value

    def delete_attribute(self, site: int, owner: Any, name: str) -> None:
        if not plain_store(owner, name) or not plain_attribute(owner, name):
            self._everything(site)
        elif self._scope.active:
            self.dropping(site, getattr(owner, name, None))
        delattr(owner, name)

    def item(self, site: int, value: Any, key: Any) -> Any:
        if self._scope.active:
            kind = type(value)
            if kind is _ndarray:
                self._look_at(site, key)
                if not gives_a_view(value, key):
                    self._read(site, value)
            elif kind in known.CONTAINERS:
                self.hashable(site, key, value)
            elif kind is Handle or is_named_tuple(kind, "__getitem__"):
                self._look_at(site, key)
            elif kind in known.INERT and may_run_code(value):
                self._everything(site)  # __class_getitem__
            elif issubclass(kind, CallableKernel):
                # Extents are integers, or arrays that hold one. A stream is only kept.
                self._look_at(site, key[:2] if type(key) is tuple else key)
            else:
                self._look_at(site, value)
                self._look_at(site, key)
        return value[key]

    def set_item(self, site: int, value: Any, owner: Any, key: Any) -> None:
        if self._scope.active:
            kind = type(owner)
            if kind is _ndarray:
                self._look_at(site, key)
                self._look_at(site, value)
                self._write(site, owner)
            elif kind in known.CONTAINERS:
                self.hashable(site, key, owner)
                if type(key) is slice:
                    self.iterable(site, value)
            else:
                self._everything(site)
        owner[key] = value

    def delete_item(self, site: int, owner: Any, key: Any) -> None:
        if type(owner) not in known.CONTAINERS:
            self._everything(site)
        self.hashable(site, key, owner)
        if self._scope.active:  # so to look the key up runs nobody's code
            with contextlib.suppress(LookupError, TypeError):
                self.dropping(site, owner[key])
        del owner[key]

    def dropping(self, site: int, value: Any) -> None:
        """What is going to be deleted may be the last reference to an object with a finalizer."""
        if self._scope.active and not is_mere_data(value) and type(value) not in (Region, Accumulator):
            self._everything(site)

    def another_key(self, site: int, value: Any) -> Any:
        """Something is going to be hashed and compared with what a comprehension has made so far."""
        if not is_plain_key(value):
            self._asked_keys.add(site)
        if site in self._asked_keys:
            self._everything(site)
        return value

    def hashable(self, site: int, value: Any, container: Any = None) -> Any:
        """Something is going to be hashed and compared, with what is in a container if it is one that hashes."""
        if self._scope.active:
            plain = is_plain_key(value)
            if not plain or (type(container) in HASHING and not all(map(is_plain_key, container))):
                self._everything(site)
        return value

    def mapping(self, site: int, value: Any) -> Any:
        """``**value``."""
        if type(value) is not dict:
            self._everything(site)
        return value

    def shown(self, site: int, value: Any) -> Any:
        """A value is going to be formatted."""
        if self._scope.active and type(value) not in known.SCALARS:
            options = np.get_printoptions()
            if options["formatter"] is not None or options.get("override_repr") is not None:
                self._everything(site)
            self._look_at(site, value)
        return value

    def formatted(self, site: int, value: Any, conversion: int, specification: str) -> str:
        """A value is formatted by a specification that is evaluated after it."""
        self.shown(site, value)
        converts: dict[int, Callable[[Any], Any]] = {-1: _same, ord("s"): str, ord("r"): repr, ord("a"): ascii}
        return format(converts[conversion](value), specification)

    # Iteration

    def iterable(self, site: int, value: Any) -> Any:
        """A value is going to be gone through at once: unpacked, or made a container of."""
        if self._scope.active and type(value) not in known.ITERABLES and id(value) not in self._iterators:
            if is_named_tuple(type(value), "__iter__"):
                pass
            elif type(value) is _ndarray:
                self._read(site, value)
            else:
                self._everything(site)
        return value

    def iterate(self, site: int, loop: int, value: Any) -> Iterator[Any]:
        """The values of a loop, which the host may use arrays to get at."""
        kind = type(value)
        if kind in known.ITERABLES or is_named_tuple(kind, "__iter__"):
            return self._counted(loop, iter(value))
        if id(value) in self._iterators:
            return self._counted_once(loop, value)
        if kind is _ndarray and value.ndim and not value.dtype.hasobject:
            return self._counted(loop, self._elements(site, value))
        self._everything(site)
        return self._counted(loop, iter(value), site)

    def iterate_unpacked(self, site: int, loop: int, value: Any) -> Iterator[Any]:
        return map(partial(self.iterable, site), self.iterate(site, loop, value))

    def _elements(self, site: int, array: np.ndarray) -> Iterator[Any]:
        """The elements, or views, of an array whose shape may change meanwhile: it is asked each time, as NumPy does."""
        position = 0
        while array.ndim and position < len(array):
            if array.ndim == 1:
                self._look_at(site, array)
            yield array[position]
            position += 1

    def _counted(self, loop: int, iterator: Iterator[Any], site: int | None = None) -> Iterator[Any]:
        """The values of an iterator, none of which is kept. With a ``site`` each is a use of everything."""
        counts = self._counts
        try:
            while True:
                if site is not None:
                    self._everything(site)
                counts[loop] += 1
                yield next(iterator)
        except StopIteration:
            counts[loop] -= 1
        except GeneratorExit:
            # The loop was left, maybe with the last reference to a generator, which is closed then.
            if site is not None:
                self._everything(site)
            raise

    def _counted_once(self, loop: int, value: Any) -> Iterator[Any]:
        try:
            yield from self._counted(loop, iter(value))
        finally:
            self._iterators.pop(id(value), None)

    # What is known of later uses

    def soon_back(self, site: int, value: Any, name: str) -> None:
        """The host reads an array's elements later, and no launch uses it before."""
        if type(value) is _ndarray and self._scope.active:
            self._at(site)
            self._scope.bring_back_early(value)

    def soon_over(self, site: int, value: Any, name: str) -> None:
        """A launch may use an array later, and the host does not write it before."""
        if type(value) is _ndarray and not value.dtype.hasobject:
            self._at(site)
            self._scope.take_over_early(value, name, self._early, site)

    # What runs code that cannot be seen

    def unknown(self, site: int, value: Any) -> Any:
        self._everything(site)
        return value

    def entering(self, site: int, manager: Any) -> Any:
        self._managed(site, manager)
        return manager

    def leaving(self, site: int, manager: Any) -> None:
        # Even if this raises, the manager's code runs.
        self._managed(site, manager, certainly=True)

    def _managed(self, site: int, manager: Any, certainly: bool = False) -> None:
        if type(manager) is use_target:
            self._scope.another_target()
        elif type(manager) is progress and is_plain_stream(sys.stderr):
            pass
        elif type(manager) is contextlib.suppress:
            if certainly and not _asks_nobody(manager):
                self._everything(site, certainly)
        elif type(manager) not in known.PLAIN_MANAGERS and type(manager) not in _OUR_MANAGERS:
            self._everything(site, certainly)

    def failing(self) -> None:
        """The host function ends by the exception that is being handled."""
        self._interrupted = not isinstance(sys.exception(), Exception | GeneratorExit)

    def leave(self, site: int) -> None:
        """The host function ends: what it called goes on, what called it may use everything."""
        if not self._owned:
            return
        self._at(site)
        try:
            self._scope.close()
        except Exception as lost:
            if not self._interrupted or lost.__context__ is None:
                raise
            # Who catches errors must not catch an interrupt, or the program's end, with them.
            lost.__context__.add_note(str(lost))

    # Calls

    def called(self, site: int, function: Any, /, *args: Any, **kwargs: Any) -> Any:
        """Call a function, where the host function itself cannot."""
        call = self.call(site, function, *args, **kwargs)
        return call.pop()(*call.pop(), **call.pop())

    def call(self, site: int, function: Any, /, *args: Any, **kwargs: Any) -> list[Any]:
        """What the host function is to call, behind its positional arguments, behind its keyword arguments."""
        kind = type(function)
        is_kernel = _KERNELS.get(kind)
        if is_kernel is None:
            is_kernel = _KERNELS[kind] = issubclass(kind, CallableKernel)
        if is_kernel:
            self._launch(site, function, None, args, kwargs)
            return _done()
        if kind is ConfiguredKernel:
            self._launch(site, function._kernel, function._asked, args, kwargs)
            return _done()
        if kind is Uses.host_function:
            self._at(site)
            return function.call_in(self._scope, self._report, args, kwargs)  # type: ignore[no-any-return]
        if kind is types.MethodType and type(function.__func__) is Uses.host_function:
            self._at(site)
            method = function.__func__
            return method.call_in(self._scope, self._report, (function.__self__, *args), kwargs)  # type: ignore[no-any-return]
        if kind in (type, types.BuiltinFunctionType) and function in known.ITERATOR_MAKERS:
            return _done(self._iterator(site, function, args, kwargs))
        if function is progress and is_plain_stream(sys.stderr):
            return _done(self._iterator(site, function, args, kwargs))
        if self._scope.active:
            self._before(site, function, kind, args, kwargs)
        return [kwargs, args, function]

    @staticmethod
    def visible(seen: Any) -> Any:
        """What ``locals()`` and the like give, without what rewriting has added."""
        if type(seen) is dict:
            return {name: value for name, value in seen.items() if not str(name).startswith(_OURS)}
        if type(seen) is list:
            return [name for name in seen if not str(name).startswith(_OURS)]
        return seen

    def _launch(
        self, site: int, kernel: CallableKernel, asked: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> None:
        told = bool(events.listeners)
        started = perf_counter() if told else 0.0
        self._at(site)
        if not kwargs and self._scope.repeat(kernel, asked, args):
            self._report.kernels += 1
            if told:
                events.record_call(kernel.__name__, started)
            return
        if not all(is_launchable(value) for value in (*args, *kwargs.values())):
            self._everything(site)
        self._scope.name_arguments(argument_names(kernel._names, self._sites[site]))
        launch = kernel._told_launch if told else kernel._launch
        launch(asked, args, kwargs, self._scope)
        self._report.kernels += 1

    def _iterator(self, site: int, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        options = all(type(v) in known.SCALARS for v in kwargs.values())
        if function is _repeat:
            # What it repeats is only handed on.
            simple = options and all(type(a) in known.SCALARS for a in args[1:])
        else:
            simple = options and all(
                type(a) in known.ITERABLES or type(a) in known.SCALARS or id(a) in self._iterators for a in args
            )
        if function in known.COLLECTING and options and not simple:
            for value in args:
                self.iterable(site, value)
            simple = True
        elif not simple and not (options and all(self._is_known(a) for a in args)):
            self._everything(site)
        elif not simple:
            for value in args:
                if type(value) is _ndarray and not value.ndim:
                    self._read(site, value)  # a number: where to begin, or how many
        made = function(*args, **kwargs)
        if simple:
            if len(self._iterators) >= MOST_PARTS:
                del self._iterators[next(iter(self._iterators))]
            self._iterators[id(made)] = made
        return made

    def _before(self, site: int, function: Any, kind: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What a call of a function uses."""
        values = (*args, *kwargs.values())
        if kind in (types.BuiltinFunctionType, types.MethodType) and type(function.__self__) is Random:
            if not draws(function, args, kwargs, known.SCALARS):
                self._everything(site)
        elif kind is types.BuiltinFunctionType and type(function.__self__) not in (types.ModuleType, types.NoneType):
            self._before_method(site, function, args, kwargs)
        elif kind in (types.MethodType, types.FunctionType) and says_nothing(function):
            pass
        elif kind is types.MethodType and type(function.__self__) in (Handle, Handles):
            if function.__func__ not in (Handle.release, Handles.release):
                self._everything(site)
        elif kind is types.MethodType and type(function.__self__) is progress:
            if function.__func__ is not progress.advance or not is_plain_stream(sys.stderr):
                self._everything(site)
        elif issubclass(kind, type) and issubclass(function, PartitioningStrategy):
            if is_package_class(function):
                for value in values:
                    self._look_at(site, value)
            else:
                self._everything(site)
        elif (
            kind is types.MethodType
            and type(function.__self__) in _GENERATORS
            and type(function.__func__) is known.GENERATOR_FUNCTION
        ):
            self._before_method(site, function, args, kwargs)
        elif not type_hashes_plainly(kind):
            self._everything(site)
        elif function in known.PLAIN_MANAGERS:
            if not all(type(v) in known.SCALARS or (type(v) is type and v in known.EXCEPTIONS) for v in values):
                self._everything(site)
        elif function in known.PLAIN or function is Region or function is Accumulator:
            if not all(self._is_known(v) or is_strategy(v) or type(v) is Handle for v in values) or (
                function not in known.OF_NONE and any(map(may_run_code, values))
            ):
                self._everything(site)
            elif function in known.OF_FIRST:
                # What is no array yet is made one of its parts.
                first = 1 if args and type(args[0]) is _ndarray else 0
                for value in (*args[first:], *kwargs.values()):
                    self._look_at(site, value)
        elif function in known.READING or function in known.UFUNCS:
            if function in known.SHOWING:
                for value in values:
                    self.shown(site, value)
            self._read_all(site, function, args, kwargs)
        elif function in known.FIRST_IS_WRITTEN:
            self._read_all(site, function, args, kwargs)
            if args and type(args[0]) is _ndarray:
                self._write(site, args[0])
            else:
                self._everything(site)
        elif function in known.CONTAINER_MAKERS:
            for value in args:
                self.iterable(site, value)
            if function is not list and function is not tuple:
                self._everything(site)
        elif function in known.EXCEPTIONS:
            if not all(type(v) in known.SCALARS for v in values):
                self._everything(site)
        elif function is print:
            self._before_print(site, args, kwargs)
        elif function is isinstance or function is issubclass:
            classes = args[1] if len(args) == 2 and type(args[1]) is tuple else args[1:]
            if len(args) == 2 and not (
                all(type(c) is type for c in classes)
                and (plain_class(args[0]) if function is isinstance else issubclass(type(args[0]), type))
            ):
                self._everything(site)
        elif function is preload or function is preload_mut:
            for value in values:
                if type(value) is not _ndarray:
                    self._everything(site)
                elif function is preload:
                    self._read(site, value)
                else:
                    self._write(site, value)
        elif function is getattr or function is hasattr:
            if len(args) < 2 or type(args[1]) is not str or not plain_attribute(args[0], args[1]):
                self._everything(site)
        elif function is setattr:
            if len(args) == 3 and type(args[1]) is str:
                self._before_store(site, args[2], args[0], args[1])
            else:
                self._everything(site)
        elif function is _Namespace:
            if args:
                self._everything(site)
        elif kind is type and stores_arguments(function):
            pass
        elif function is use_target:
            self._scope.another_target()
        elif function is transfer_guard:
            if not all(type(v) in known.SCALARS for v in values):
                self._everything(site)
        elif function is synchronize:
            pass
        else:
            self._everything(site)

    def _before_method(self, site: int, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """What a call of a method of a builtin type uses."""
        owner, name = function.__self__, function.__name__
        kind = type(owner)
        if kind is str and name == "format":
            self._before_format(site, owner, (*args, *kwargs.values()))
        elif kind is _ndarray:
            how = known.ARRAY_METHODS.get(name)
            if how is None or owner.dtype.hasobject:
                self._everything(site)
                return
            self._read_all(site, function, args, kwargs)
            if how == "read":
                self._read(site, owner)
            elif how == "write":
                self._write(site, owner)
                if name in known.FORMING:
                    self._scope.another_form(owner)
        elif kind in _GENERATORS and name in known.GENERATOR_METHODS:
            self._read_all(site, function, args, kwargs)
        elif kind in known.SCALARS and kind not in known.CONTAINER_METHODS:
            self._read_all(site, function, args, kwargs)  # of a number
        elif kind in known.CONTAINER_METHODS and name in known.CONTAINER_METHODS[kind] and not kwargs:
            if kind is list or name in ("copy", "clear", "values", "items", "keys"):
                if name == "clear":
                    for value in (*owner, *(owner.values() if kind is dict else ())):
                        self.dropping(site, value)
                elif name == "extend":
                    for value in args[:1]:
                        self.iterable(site, value)
                elif kind is list and name in ("insert", "pop"):
                    for value in args[:1]:
                        self.hashable(site, value)
            else:
                for value in args[:1]:
                    if kind in (str, bytes):
                        self._look_at(site, value)
                    else:
                        self.hashable(site, value, owner)
                for value in args[1:] if kind in (str, bytes) else ():
                    self._look_at(site, value)
        else:
            self._everything(site)

    def _read_all(self, site: int, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """A function reads its arguments, but for those that its result goes to."""
        inputs = args
        if type(function) is np.ufunc:
            inputs = args[: function.nin]
            for out in args[function.nin :]:
                self._written(site, out)
        elif args:
            owner = getattr(function, "__self__", None)
            of_a_module = type(owner) in (types.ModuleType, types.NoneType)
            place = known.place_of_out(function) if of_a_module else known.METHODS_OUT.get(function.__name__)
            if place is not None and len(args) > place:
                self._written(site, args[place])
        for value in inputs:
            self._look_at(site, value)
            if may_run_code(value):
                self._everything(site)  # a function to be called
        for name, value in kwargs.items():
            if name == "out":
                self._written(site, value)
            elif may_run_code(value):
                self._everything(site)
            else:
                self._look_at(site, value)
        option = known.OVERWRITING.get(function)
        if option is not None and (option[0] in kwargs or len(args) > option[1]):
            self._written(site, args[0] if args else kwargs)

    def _written(self, site: int, out: Any) -> None:
        for one in out if type(out) is tuple else (out,):
            if type(one) is _ndarray:
                self._write(site, one)
            elif one is not None:
                self._everything(site)

    def _before_format(self, site: int, template: str, values: tuple[Any, ...]) -> None:
        """A template may ask for attributes and items of its values: only of scalars it is known what these run."""
        if not all(type(value) in known.SCALARS for value in values):
            if "." in template or "[" in template:
                self._everything(site)
            for value in values:
                self.shown(site, value)

    def _before_print(self, site: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """``print`` writes to a stream, which may be anybody's."""
        stream = kwargs.get("file")
        options = all(type(value) in known.SCALARS for name, value in kwargs.items() if name != "file")
        if not options or not is_plain_stream(sys.stdout if stream is None else stream):
            self._everything(site)
        for value in args:
            self.shown(site, value)


def _asks_nobody(manager: contextlib.suppress) -> bool:
    """Whether a manager finds out by itself if it suppresses the exception at hand.

    Metaclasses may say what is a subclass, and groups are split by a method of theirs.
    """
    suppressed = vars(manager).get("_exceptions", ())
    at_hand = type(sys.exception())
    return all(type(one) is type for one in suppressed) and (
        at_hand in known.EXCEPTIONS or not issubclass(at_hand, BaseExceptionGroup)
    )


def _done(value: Any = None) -> list[Any]:
    """A call whose value is there already."""
    return [{}, (value,), _same]


def _same(value: Any) -> Any:
    return value


_OPERATIONS: dict[str, Callable[..., Any]] = {
    name: getattr(operator, name)
    for name in (
        "add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and_", "or_", "xor",
        "neg", "pos", "invert", "eq", "ne", "lt", "le", "gt", "ge",
        "iadd", "isub", "imul", "itruediv", "ifloordiv", "imod", "ipow", "imatmul", "ilshift", "irshift", "iand", "ior", "ixor",
    )
}  # fmt: skip
