"""LLVM's own argument attributes are a second opinion on every inferred map of the intent table.

The kernels are compiled for an NVIDIA GPU, which needs none: a GPU's entry takes the data pointers as parameters, where
LLVM marks what it has found out. It may know more than the analysis (a value stored and read back is no read), so the
comparison is one of contradictions: an array that is only read must not be written, one that is never accessed must not
be either, one that is written without having been sent over must not be only read.
"""

import pytest
from intent_kernels import TABLE, Expected

from numba_offload import offload_kernel
from numba_offload.analysis.llvm_attributes import access, entry_attributes
from numba_offload.targets.cuda.compiler import ptx_for

ALLOWED = {
    "none": {"none"},
    "to": {"none", "read"},
    "from": {"write", "any", "none"},
    "tofrom": {"none", "read", "write", "any"},
}
"""Per inferred map: what LLVM may say. ``none`` beside ``from``: a kernel whose stores LLVM could prove never to happen."""


def _source(case: Expected):  # type: ignore[no-untyped-def]
    kernel = offload_kernel(case.function)
    return kernel, kernel._prepare(case.arguments(), {})[1].source


@pytest.mark.parametrize("case", TABLE, ids=lambda case: case.function.__name__)
def test_llvm_does_not_contradict_the_map(case: Expected) -> None:
    kernel, source = _source(case)
    found = ptx_for(source, "sm_80")
    attributes = entry_attributes(found.llvm_ir, found.entry)
    compared = 0
    for name, how in kernel.mappings(*case.arguments()).items():
        if how == "literal":
            continue
        said = access(attributes[f"{name}.data".replace("[", ".").replace("]", "")])
        assert said in ALLOWED[how], f"{name} is mapped {how!r}, but LLVM says {said!r}"
        compared += 1
    assert compared


def test_the_table_is_large_enough() -> None:
    assert len(TABLE) >= 40
