"""What a linked code object must say of its kernel, whatever the kernel: checked for every kernel that tests compile."""

from __future__ import annotations

from emulation.code_object import CodeObject, is_for_amd
from numba_offload.targets.amdgpu.arch import ARCHITECTURES
from numba_offload.targets.gpu.entry import GPU_LAUNCH_PARAMETERS
from numba_offload.targets.image import KernelImage, parameter_format
from numba_offload.targets.source import KernelSource

_SIZES = {"q": 8, "Q": 8, "d": 8, "i": 4, "I": 4, "f": 4, "h": 2, "H": 2, "b": 1, "B": 1, "?": 1}
_LDS_BYTES = 65536
_REGISTERS = 512


def expected_arguments(source: KernelSource) -> list[tuple[int, int]]:
    """Offset and size of each parameter, as the record lays them out: each aligned to its own size."""
    sizes = [_SIZES[slot.code] for slot in source.layout] + [8] * len(GPU_LAUNCH_PARAMETERS)
    out, at = [], 0
    for size in sizes:
        at = -(-at // size) * size
        out.append((at, size))
        at += size
    return out


def check_code_object(image: KernelImage, source: KernelSource) -> CodeObject:
    """Assert that a code object is for its architecture, complete, and has the arguments of the record."""
    assert is_for_amd(image.data)
    made = CodeObject(image.data)
    assert made.arch == image.arch
    kernel = made.kernel(image.entry)
    assert kernel[".symbol"] in made.symbols
    assert kernel[".wavefront_size"] == ARCHITECTURES[image.arch].wavefront
    # Scalar registers may be spilled to lanes of vector registers, which stay on the chip; nothing goes to memory.
    assert kernel[".vgpr_spill_count"] == 0
    assert 0 < kernel[".vgpr_count"] <= _REGISTERS
    assert kernel[".group_segment_fixed_size"] <= _LDS_BYTES
    assert not kernel.get(".uses_dynamic_stack", False)
    assert kernel[".max_flat_workgroup_size"] == 1024
    arguments = [(a[".offset"], a[".size"]) for a in made.explicit_arguments(image.entry)]
    assert arguments == expected_arguments(source)
    assert image.parameters == parameter_format(source.layout)
    return made
