"""Where ROCm's device libraries are: AMD's mathematics as LLVM bitcode, and the switches that it is built with."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from numba_offload.errors import TargetError
from numba_offload.targets.amdgpu.arch import CODE_OBJECT_VERSION, Architecture
from numba_offload.targets.inputs import described

_VARIABLE = "NUMBA_OFFLOAD_ROCM_DEVICE_LIBS"
_SWITCHES = (
    "oclc_daz_opt_off",
    "oclc_unsafe_math_off",
    "oclc_finite_only_off",
    "oclc_correctly_rounded_sqrt_on",
    f"oclc_abi_version_{CODE_OBJECT_VERSION}",
)
"""IEEE arithmetic with denormals."""


def _folders() -> Iterator[Path]:
    named = os.environ.get(_VARIABLE)
    if named:
        yield Path(named)
    for variable in ("ROCM_PATH", "HIP_PATH"):
        named_root = os.environ.get(variable)
        if named_root:
            yield Path(named_root, "amdgcn", "bitcode")
    yield Path("/opt/rocm/amdgcn/bitcode")
    for root in sorted(Path("/opt").glob("rocm-*"), reverse=True):
        yield root / "amdgcn" / "bitcode"
    yield from sorted(Path("/usr/lib").glob("*/amdgcn/bitcode"))
    yield Path("/usr/lib/amdgcn/bitcode")


def find_device_libraries() -> Path | None:
    """The folder of the first device libraries there are, or None."""
    return next((folder for folder in _folders() if (folder / "ocml.bc").is_file()), None)


def load_device_libraries(arch: Architecture) -> list[bytes]:
    """The bitcode that a kernel for an architecture is linked with.

    Raises TargetError where there is none, or none for the architecture.
    """
    folder = find_device_libraries()
    if folder is None:
        raise TargetError(
            "the kernel uses mathematical functions, which for AMD GPUs come from ROCm's device libraries, which were not "
            f"found. Install ROCm, or the distribution's package rocm-device-libs, or set {_VARIABLE} to the folder of ocml.bc"
        )
    versions = [folder / f"oclc_isa_version_{name}.bc" for name in arch.library_names]
    version = next((path for path in versions if path.is_file()), None)
    if version is None:
        raise TargetError(
            f"ROCm's device libraries in {folder} have no switches for {arch.name} (looked for "
            f"{', '.join(path.name for path in versions)}); install newer ones"
        )
    wave = "on" if arch.wavefront == 64 else "off"
    names = ["ocml", "ockl", *_SWITCHES, f"oclc_wavefrontsize64_{wave}"]
    paths = [folder / f"{name}.bc" for name in names]
    return [_read(path) for path in (*(p for p in paths if p.is_file()), version)]


@lru_cache(maxsize=32)
def _read(path: Path) -> bytes:
    return path.read_bytes()


def device_library_inputs() -> tuple[str, ...]:
    """What tells the device libraries from others; nothing where there are none."""
    folder = find_device_libraries()
    return () if folder is None else _described(folder)


@lru_cache(maxsize=4)
def _described(folder: Path) -> tuple[str, ...]:
    """As they were when they were first asked for, no later than they are read."""
    return tuple(described(path) for path in sorted(folder.glob("*.bc")))
