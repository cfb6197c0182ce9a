"""What the host packs is what an entry's parameters are: compared when a kernel is compiled, on every target."""

from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest
from compile_helpers import source_of
from emulation.compiled_for_amd import why_not

from numba_offload import Region, Segments, TargetError, offload_kernel
from numba_offload.targets.amdgpu.compiler import code_object_for
from numba_offload.targets.cpu.target import CPUTarget
from numba_offload.targets.cuda.compiler import ptx_for

Pair = namedtuple("Pair", "scale rows")
ROW = np.dtype([("id", "i2"), ("mass", "f8"), ("ok", "?"), ("inner", [("a", "u1"), ("b", "f4")])])
NARROW = ["?", "i1", "f4", "u2", "f8", "u1", "i8", "i2", "u4", "c8"]

_AMD = pytest.mark.skipif(why_not() is not None, reason=str(why_not()))
COMPILERS = [
    pytest.param(CPUTarget().build, id="cpu"),
    pytest.param(lambda s: ptx_for(s, "sm_80"), id="sm_80"),
    *(
        pytest.param(lambda s, a=arch: code_object_for(s, a), id=arch, marks=_AMD)
        for arch in ("gfx90a", "gfx942", "gfx1100", "gfx1201")
    ),
]


@offload_kernel
def mixed(p, flag, z, small, when, y):
    for i in y.indices():
        y[i] = p.scale * p.rows[i].mass + z.real + small + flag


@offload_kernel
def nested(t, y):
    for i in y.indices():
        y[i] = t[0][1] + t[1][0].rows[i].inner.b + t[1][1][0][1] + t[2]


@offload_kernel
def narrow(a, b, c, d, e, f, g, h, k, z, y):
    for i in y.indices():
        y[i] = a + b + c + d + e + f + g + h + k + z.imag


def mixed_source():
    p = Pair(np.float32(2), np.zeros(8, ROW))
    y = Region(np.zeros(8), Segments([0, 3, 8]))
    return source_of(mixed, p, True, 1 + 2j, np.int8(3), np.datetime64("2020-01-01", "D"), y)


def nested_source():
    inner = Pair(np.int16(2), np.zeros(8, ROW))
    t = ((np.int8(1), 2.0), (inner, ((np.uint16(1), np.float32(2)),)), True)
    return source_of(nested, t, Region(np.zeros(8)))


def narrow_source():
    return source_of(narrow, *(np.dtype(d).type(1) for d in NARROW), Region(np.zeros(8)))


SOURCES = [mixed_source, nested_source, narrow_source]


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("compile_for", COMPILERS)
def test_every_target_has_the_layout_of_the_source(compile_for, source):
    made = source()
    compile_for(made).check_layout(made.name, made.layout)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("compile_for", COMPILERS)
def test_another_layout_is_an_error_and_not_a_wrong_result(compile_for, source):
    made = source()
    slots = list(made.layout)
    at = next(k for k, slot in enumerate(slots) if slot.code in "bhi")
    slots[at] = replace(slots[at], code="d")  # the host would pack a double where the kernel reads a few bytes
    with pytest.raises(TargetError, match="the host packs"):
        compile_for(replace(made, layout=tuple(slots)))


@pytest.mark.parametrize("compile_for", COMPILERS[:3])
def test_code_for_another_layout_is_not_loaded(compile_for):
    made = nested_source()
    image = compile_for(made)
    with pytest.raises(TargetError, match=r"'nested'.*laid out as .* but the host packs .*compile it again"):
        image.check_layout("nested", made.layout[:-1])
