"""The closed list: types and functions of which it is known what of an array they use.

All tests are for exact types and for these very functions. Whatever is not listed uses everything.
"""

from __future__ import annotations

import builtins
import collections
import contextlib
import functools
import inspect
import itertools
import math
import operator
import time
import types
from typing import Any

import numpy as np

from numba_offload import errors

SCALARS: frozenset[type[Any]] = frozenset({
    int, float, complex, bool, str, bytes, type(None), range, type(Ellipsis), type(NotImplemented),
    np.bool_, np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64, np.intc, np.uintc,
    np.longlong, np.ulonglong, np.float16, np.float32, np.float64, np.longdouble, np.complex64, np.complex128,
    np.datetime64, np.timedelta64, np.str_, np.bytes_,
})  # fmt: skip
"""Values without parts: no operation on them runs anybody's code. ``np.void`` is not one: it looks into its array."""

INERT = frozenset({
    types.FunctionType, types.BuiltinFunctionType, types.MethodType, types.ModuleType, type, np.ufunc,
    types.MethodWrapperType, types.WrapperDescriptorType, types.MethodDescriptorType, functools.partial,
})  # fmt: skip
"""Objects whose truth and identity run nobody's code."""

ASKING_OTHERS = frozenset({types.MethodType, functools.partial})
"""Those of them that are compared, hashed or shown as what they consist of is."""

SEQUENCES = (tuple, list)
CONTAINERS = frozenset({tuple, list, dict, set, frozenset, collections.deque})
VIEWS_OF_DICTS = frozenset({type({}.keys()), type({}.values()), type({}.items())})
ITERABLES = CONTAINERS | VIEWS_OF_DICTS | {str, bytes, range}
"""Going through these runs nobody's code."""

_READING = frozenset({
    "all", "any", "argmax", "argmin", "argpartition", "argsort", "astype", "choose", "clip", "compress", "conj", "conjugate",
    "copy", "cumprod", "cumsum", "dot", "flatten", "item", "max", "mean", "min", "nonzero", "prod", "ravel", "repeat",
    "reshape", "round", "searchsorted", "std", "sum", "take", "tobytes", "tolist", "trace", "var",
})  # fmt: skip
_WRITING = frozenset({"fill", "itemset", "partition", "put", "resize", "setfield", "setflags", "sort"})
_VIEWING = frozenset({"diagonal", "squeeze", "swapaxes", "transpose", "view"})
ARRAY_METHODS: dict[str, str] = {
    **dict.fromkeys(_READING, "read"), **dict.fromkeys(_WRITING, "write"), **dict.fromkeys(_VIEWING, "view"),
}  # fmt: skip
"""What methods of an exact ndarray do with its elements."""

FORMING = frozenset({"resize", "setflags"})
"""Those that change what describes an array: its memory, shape or flags."""

CONTAINER_METHODS: dict[type, frozenset[str]] = {
    list: frozenset({"append", "clear", "copy", "extend", "insert", "pop", "reverse"}),
    dict: frozenset({"clear", "copy", "get", "items", "keys", "pop", "popitem", "setdefault", "values"}),
    set: frozenset({"add", "clear", "copy", "discard", "pop"}),
    collections.deque: frozenset({"append", "appendleft", "clear", "copy", "extend", "pop", "popleft", "rotate"}),
    str: frozenset(name for name in dir(str) if not name.startswith("_") and name not in ("format", "format_map")),
    bytes: frozenset(name for name in dir(bytes) if not name.startswith("_")),
}
"""Methods that move references about: they use no element of an array. Keys must be scalars."""

_MATH = [f for f in vars(math).values() if type(f) is types.BuiltinFunctionType]
_OPERATORS = [
    getattr(operator, n) for n in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "neg", "abs", "lt", "le", "gt", "ge")
]
_NUMPY_READING = (
    "abs", "allclose", "all", "any", "append", "argmax", "argmin", "argsort", "array", "array_equal", "asarray",
    "ascontiguousarray", "average", "bincount", "broadcast_to", "clip", "column_stack", "concatenate", "convolve", "copy",
    "corrcoef", "count_nonzero", "cov", "cross", "cumprod", "cumsum", "diag", "diff", "digitize", "dot", "einsum", "expand_dims",
    "eye", "flip", "full_like", "gradient", "histogram", "hstack", "identity", "inner", "interp", "isclose", "kron", "linspace",
    "log", "matmul", "max", "mean", "median", "meshgrid", "min", "nan_to_num", "nanmax", "nanmean", "nanmin", "nansum", "nonzero",
    "outer", "pad", "percentile", "prod", "ptp", "quantile", "ravel", "repeat", "reshape", "roll", "round", "searchsorted",
    "sort", "split", "stack",
    "std", "sum", "take", "tensordot", "tile", "trace", "tril", "triu", "unique", "vdot", "var", "vstack", "where",
)  # fmt: skip
_NUMPY_MAKING = (
    "arange", "broadcast_shapes", "can_cast", "dtype", "empty", "finfo", "full", "iinfo", "isscalar", "ones", "zeros",
)
_NUMPY_OF_FIRST = (
    "empty_like", "moveaxis", "ndim", "ones_like", "shape", "size", "squeeze", "swapaxes", "transpose", "zeros_like",
)
_NUMPY_OF_ALL = ("may_share_memory", "result_type", "shares_memory")
_BUILTINS_READING = (
    abs, ascii, bin, bool, bytes, chr, complex, divmod, float, format, hex, int, max, min, oct, ord, pow, range, repr, round,
    sorted, str, sum,
)  # fmt: skip
_TIME = (
    time.perf_counter, time.perf_counter_ns, time.monotonic, time.monotonic_ns, time.time, time.time_ns, time.process_time,
    time.process_time_ns, time.thread_time, time.thread_time_ns, time.sleep, time.strftime, time.ctime, time.gmtime,
    time.localtime,
)


def _of_numpy(names: tuple[str, ...]) -> list[Any]:
    return [getattr(np, name) for name in names if hasattr(np, name)]


OF_FIRST: frozenset[Any] = frozenset(_of_numpy(_NUMPY_OF_FIRST))
"""Functions that look at no element of their first argument, and read the others."""

OF_NONE: frozenset[Any] = frozenset({id, len, type, callable, slice})
"""Functions that look at no part of what they are given."""

PLAIN: frozenset[Any] = frozenset({*OF_NONE, *OF_FIRST, *_of_numpy(_NUMPY_OF_ALL)})
"""Functions that look at no element. Their arguments must be scalars, arrays, or containers of these."""

READING: frozenset[Any] = frozenset({
    *_BUILTINS_READING, *(scalar for scalar in SCALARS if issubclass(scalar, np.generic)), *_MATH, *_OPERATORS,
    *_of_numpy(_NUMPY_READING), *_of_numpy(_NUMPY_MAKING), *_TIME,
    np.linalg.norm, np.linalg.solve, np.linalg.inv, np.linalg.det, np.fft.fft, np.fft.ifft, np.fft.rfft, np.fft.irfft,
})  # fmt: skip
"""Functions that read the elements of their arguments, and write to nothing but ``out``, or as ``OVERWRITING`` says."""

OVERWRITING: dict[Any, tuple[str, int]] = {
    np.nan_to_num: ("copy", 1), np.median: ("overwrite_input", 3), np.percentile: ("overwrite_input", 4),
    np.quantile: ("overwrite_input", 4),
}  # fmt: skip
"""Functions that may write their first argument, if they are given another: its name, and where it stands."""

METHODS_OUT: dict[str, int] = {
    "all": 1, "any": 1, "argmax": 1, "argmin": 1, "choose": 1, "clip": 2, "compress": 2, "conj": 0, "conjugate": 0, "cumprod": 2,
    "cumsum": 2, "dot": 1, "max": 1, "mean": 2, "min": 1, "prod": 2, "round": 1, "std": 2, "sum": 2, "take": 2, "trace": 4,
    "var": 2, "random": 2, "standard_normal": 2,
}  # fmt: skip
"""Where methods of arrays and of NumPy's generators have ``out``, counted without their owner."""

_WITHOUT_SIGNATURE = {np.concatenate: 2, np.dot: 2}


@functools.cache
def place_of_out(function: Any) -> int | None:
    """Where one of NumPy's functions has its parameter ``out``, or None: by keyword at most."""
    if function in _WITHOUT_SIGNATURE:
        return _WITHOUT_SIGNATURE[function]
    try:
        parameters = inspect.signature(function).parameters
    except (TypeError, ValueError):
        return None
    if "out" not in parameters or parameters["out"].kind is inspect.Parameter.KEYWORD_ONLY:
        return None
    return list(parameters).index("out")


SHOWING: frozenset[Any] = frozenset({str, repr, ascii, format, operator.mod})

UFUNCS: frozenset[Any] = frozenset(f for f in vars(np).values() if type(f) is np.ufunc)
"""NumPy's own: those that users make are of the same type, and run their code."""

GENERATOR_METHODS = frozenset({
    "binomial", "choice", "exponential", "gamma", "integers", "lognormal", "normal", "permutation", "poisson", "random",
    "standard_normal", "triangular", "uniform",
    "rand", "randint", "randn", "random_sample", "ranf", "sample",  # of a RandomState
})  # fmt: skip
"""Of a ``np.random.Generator``, or the older ``RandomState``: read their arguments, write ``out=``."""

GENERATOR_FUNCTION = type(np.random.Generator.random)
"""Of the functions that its methods bind: not one that somebody has bound to a generator."""

COLLECTING: frozenset[Any] = frozenset({
    itertools.product, itertools.permutations, itertools.combinations, itertools.combinations_with_replacement,
})  # fmt: skip
"""Go through their arguments at once; what they give are tuples of references."""

ITERATOR_MAKERS: frozenset[Any] = frozenset({
    enumerate, zip, reversed, iter, itertools.chain, itertools.count, itertools.cycle, itertools.islice, itertools.pairwise,
    itertools.repeat, itertools.zip_longest, *COLLECTING,
})  # fmt: skip
CONTAINER_MAKERS: frozenset[Any] = frozenset({list, tuple, set, frozenset, dict})
EXCEPTIONS: frozenset[Any] = frozenset(
    value
    for value in (*vars(builtins).values(), *vars(errors).values())
    if isinstance(value, type) and issubclass(value, BaseException)
)
PLAIN_MANAGERS: frozenset[type] = frozenset({np.errstate, contextlib.nullcontext, contextlib.suppress})
"""Context managers whose ``__enter__`` and ``__exit__`` run nobody's code."""

FIRST_IS_WRITTEN: frozenset[Any] = frozenset({np.copyto, np.put, np.place, np.putmask, np.fill_diagonal})
"""Functions that write their first argument, and read the others."""


def is_dtype(value: Any) -> bool:
    """Whether a value is one of NumPy's own dtypes, whose class depends on what it is a type of."""
    return isinstance(value, np.dtype) and type(value).__module__ in ("numpy.dtypes", "numpy")
