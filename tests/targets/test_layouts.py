"""What the host packs is what an entry's parameters are: compared when a kernel is compiled, on every target."""

from collections import namedtuple
from dataclasses import replace

import numpy as np
import pytest

from numba_offload import Region, Segments, TargetError, offload_kernel
from numba_offload.targets.cpu.target import CPUTarget
from numba_offload.targets.cuda.compiler import ptx_for

Pair = namedtuple("Pair", "scale rows")
ROW = np.dtype([("id", "i2"), ("mass", "f8"), ("ok", "?")])


@offload_kernel
def mixed(p, flag, z, small, when, y):
    for i in y.indices():
        y[i] = p.scale * p.rows[i].mass + z.real + small + flag


def source():
    p = Pair(np.float32(2), np.zeros(8, ROW))
    y = Region(np.zeros(8), Segments([0, 3, 8]))
    arguments = (p, True, 1 + 2j, np.int8(3), np.datetime64("2020-01-01", "D"), y)
    return mixed._prepare(arguments, {})[1].source


def test_every_target_has_the_layout_of_the_source():
    CPUTarget().compile(source())
    ptx_for(source(), "sm_80")


@pytest.mark.parametrize("compile_for", [CPUTarget().compile, lambda r: ptx_for(r, "sm_80")], ids=["cpu", "cuda"])
def test_another_layout_is_an_error_and_not_a_wrong_result(compile_for):
    made = source()
    slots = list(made.layout)
    at = next(k for k, slot in enumerate(slots) if slot.name == "small")
    slots[at] = replace(slots[at], code="d")  # the host would pack a double where the kernel reads a byte
    with pytest.raises(TargetError, match="the host packs"):
        compile_for(replace(made, layout=tuple(slots)))
