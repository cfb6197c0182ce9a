"""What changes while a process runs, or in ways that the kernel's own code does not show, and must not find old code."""

from __future__ import annotations

import numpy as np
import pytest
from cached_kernels import HIT, MISS, again, counts, forget_checks, imported, nothing_compiles, run

from numba_offload import Region
from numba_offload.errors import CacheWarning

HEAD = """
import enum
import numba
import numpy as np
import deeper
from numba_offload import PartitioningStrategy, offload_function, offload_kernel
"""
ARGUMENT = """
@numba.njit
def step(module, v):
    return module.STEP * v

@offload_kernel(cache=True)
def k(x, y):
    for i in y.indices():
        y[i] = step(deeper, x[i])
"""
ALIAS_OF_AN_ARGUMENT = """
@numba.njit
def inner(module, v):
    return module.STEP * v

@numba.njit
def step(module, v):
    other = module
    return inner(other, v)

@offload_kernel(cache=True)
def k(x, y):
    for i in y.indices():
        y[i] = step(deeper, x[i])
"""
ATTRIBUTE = """
import holder

@numba.njit
def step(module, v):
    return module.deeper.STEP * v

@offload_kernel(cache=True)
def k(x, y):
    for i in y.indices():
        y[i] = step(holder, x[i])
"""


def made(folder, main, deeper="STEP = 2\n"):
    return imported(folder, deeper=deeper, holder="import deeper\n", main=HEAD + main)


@pytest.mark.parametrize("main", [ARGUMENT, ALIAS_OF_AN_ARGUMENT, ATTRIBUTE])
def test_a_module_that_is_handed_on(main, folder, cpu, tmp_path):
    for deeper, expected, found in (("STEP = 2\n", [0, 2, 4, 6], MISS), ("STEP = 3\n", [0, 3, 6, 9], MISS)):
        kernel = made(tmp_path, main, deeper).k
        assert run(kernel) == expected
        assert counts(kernel) == found
    kernel = made(tmp_path, main, "UNUSED = 1\nSTEP = 2\n").k
    assert run(kernel) == [0, 2, 4, 6]
    assert counts(kernel) == HIT


CALLEES = {
    "array of a module": ("return deeper.TABLE[0] * v", "deeper.TABLE[0] = 5.0"),
    "module under another name": ("module = deeper\n    return module.STEP * v", "deeper.STEP = 5.0"),
    "default": ("return factor * v", "look.__offload_function__.__defaults__ = (5.0,)"),
}


@pytest.mark.parametrize("what", CALLEES)
def test_a_callee_that_was_compiled_before_the_change(what, folder, cpu, tmp_path):
    body, change = CALLEES[what]
    main = f"""
@offload_function
def look(v, factor=2.0):
    {body}

@offload_kernel(cache=True, unsafe=True)
def k(y):
    for i in range(y.size):
        y[i] = look(1.0)
"""
    module = made(tmp_path, main, "import numpy as np\nSTEP = 2.0\nTABLE = np.array([2.0])\n")
    wide, narrow = np.zeros(1), np.zeros(1, np.float32)
    module.k[1, 1](wide)
    assert wide[0] == 2.0
    exec(change, vars(module))
    module.k[1, 1](narrow)
    assert narrow[0] == 5.0
    # And that is what other processes find.
    narrow[0] = 0.0
    other = again(module.k)
    other[1, 1](narrow)
    assert narrow[0] == 5.0 and counts(other) == HIT


def test_a_strategy_that_changes_before_its_first_launch(folder, cpu, tmp_path, monkeypatch):
    main = """
class Shifted(PartitioningStrategy):
    ndim = 1
    shift = 0

    def count(self, t, T, shape):
        return 1 if t < shape[0] else 0

    def index(self, t, k, T, shape):
        return (t + self.shift) % shape[0]

    def threads(self, shape):
        return shape[0]

@offload_kernel(cache=True)
def k(y):
    for i in y.indices():
        y[i] = deeper.STEP
"""

    def owned(module):
        y = np.zeros(4)
        module.k[1, 1](Region(y, module.Shifted()))
        return y.tolist()

    module = made(tmp_path, main)
    module.Shifted.threads = lambda self, shape: 1
    module.Shifted.covers = False
    assert owned(module) == [2, 0, 0, 0]
    forget_checks(monkeypatch)
    module = made(tmp_path, main)
    module.Shifted.threads = lambda self, shape: 1
    module.Shifted.covers = False
    assert module.k.mappings(Region(np.zeros(4), module.Shifted()))
    assert module.k.cache_stats.record_hits == 1
    module.Shifted.shift = 1
    assert owned(module) == [0, 2, 0, 0]


@pytest.mark.parametrize(
    "value", ["float('nan')", "2.5", "-0.0", "1j", "complex(0, 1e400)", "np.float64(2)", "np.int8(3)", "np.True_", "(1, 2.5)"]
)
def test_an_exception_keeps_its_arguments(value, folder, cpu, tmp_path, monkeypatch):
    main = f"""
VALUE = {value}

@offload_kernel(cache=True)
def k(x, y):
    for i in y.indices():
        if x[i] > 2:
            raise ValueError("large", VALUE)
        y[i] = x[i]
"""
    kernel = made(tmp_path, main).k
    told = []
    for one in (kernel, again(kernel)):
        with pytest.raises(ValueError, match="large") as caught:
            run(one)
        told.append(repr(caught.value.args[1]))
        nothing_compiles(monkeypatch)
    assert told == [repr(eval(value))] * 2


def test_an_argument_of_an_exception_that_has_no_form_is_named(folder, cpu, tmp_path):
    main = """
class Kind(enum.IntEnum):
    ONE = 1

@offload_kernel(cache=True)
def k(x, y):
    for i in y.indices():
        if x[i] > 100:
            raise ValueError("large", Kind.ONE)
        y[i] = 2 * x[i]
"""
    kernel = made(tmp_path, main).k
    with pytest.warns(CacheWarning, match=r"'k' is compiled in each process.*ValueError.*Kind\.ONE"):
        assert run(kernel) == [0, 2, 4, 6]
    assert kernel.cache_stats.uncached == 1 and not folder.exists()


def test_functions_of_numpy_by_their_own_names(folder, cpu, tmp_path):
    main = """
from numpy import sum as total

@offload_kernel(cache=True, contract=1)
def k(x, y):
    for i in y.indices():
        y[i] = total(x)
"""
    kernel = made(tmp_path, main).k
    assert run(kernel) == [10.0] * 4
    other = again(kernel)
    run(other)
    assert counts(kernel) == MISS and counts(other) == HIT


def test_arguments_of_exceptions_that_are_equal_stay_apart(cpu, tmp_path):
    main = """
@offload_kernel
def k(x, y):
    for i in y.indices():
        if x[0] == 0:
            raise ValueError("q", 1.0)
        if x[0] == 1:
            raise ValueError("q", True)
        raise ValueError("q", 1)
"""
    kernel = made(tmp_path, main).k
    for number, expected in enumerate(("1.0", "True", "1")):
        with pytest.raises(ValueError, match="q") as caught:
            kernel(np.full(1, float(number)), Region(np.zeros(1)))
        assert repr(caught.value.args[1]) == expected


def test_more_names_than_a_byte_counts(cpu, tmp_path):
    """An instruction for the 256th name has a prefix."""
    names = [f"N{k}" for k in range(300)]
    uses = "\n    ".join(f"total += {name}" for name in names)
    main = "\n".join(f"{name} = 0" for name in names) + f"""

@offload_kernel(unsafe=True)
def k(y):
    total = 0
    {uses}
    y[0] = total + deeper.STEP
"""
    module = made(tmp_path, main)
    y = np.zeros(1)
    for step in (2, 5):
        module.deeper.STEP = step
        module.k[1, 1](y)
        assert y[0] == step
