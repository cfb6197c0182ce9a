"""Floating-point mathematics on GPUs: what Numba's lowering calls, under the names of a vendor's library.

Numba calls LLVM's intrinsics, the C library, and helpers of its own runtime. GPU back ends select only a few of the
intrinsics (the others end the process), and there is no C library. So names are replaced in the text of a kernel's
modules, before LLVM sees them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numba_offload.errors import TargetError

_LIBRARY_INTRINSICS = {
    "acos", "asin", "atan", "atan2", "cos", "cosh", "exp", "exp10", "exp2", "log", "log10", "log2", "pow", "sin",
    "sinh", "tan", "tanh",
}  # fmt: skip
"""LLVM intrinsics that stand for library functions."""

_LIBM = {
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "cos", "cosh", "erf", "erfc", "exp",
    "exp2", "expm1", "fabs", "floor", "fmod", "hypot", "ldexp", "lgamma", "log", "log10", "log1p", "log2", "nextafter",
    "pow", "remainder", "rint", "round", "sin", "sinh", "sqrt", "tan", "tanh", "tgamma", "trunc",
}  # fmt: skip
_SELECTED = {"ceil", "fabs", "floor", "rint", "sqrt", "trunc"}
"""Library functions that every GPU back end selects as an intrinsic, correctly rounded."""

_NUMBA = {"gamma": "tgamma", "lgamma": "lgamma", "ldexp": "ldexp", "nextafter": "nextafter"}
"""Helpers of Numba's runtime (``numba_gamma``, ``numba_gammaf``) that the C library has under another name."""

_NEVER_SELECTED = _LIBRARY_INTRINSICS | {"powi", "frexp", "ldexp", "modf", "sincos", "sincospi"}

_SYMBOL = re.compile(r'@"([^"]+)"')
_FREM = re.compile(r"= frem (?:[a-z]+ )*(double|float) (.+), (.+)$", re.MULTILINE)
_INTRINSIC = re.compile(r"llvm\.([a-z0-9.]+?)\.(f32|f64)$")
_UNTYPED = re.compile(r'(float|double) @"(llvm\.[a-z0-9]+)"\(')
_POWI = re.compile(r"llvm\.powi\.(f32|f64)\.i32$")
_SIGNED_NAME = re.compile(r'@"numba_offload_signed_(\w+)_f(\d\d)"')
_DECLARED = re.compile(r'declare [^@]*@"([^"]+)"\(')
_FLOAT_SUFFIX = re.compile(r"\.(?:v\d+)?(?:f16|bf16|f32|f64)\b")


@dataclass(frozen=True)
class MathLibrary:
    """A vendor's mathematics. ``function`` gives the name there of a C library function: ``("exp", 64)``."""

    vendor: str
    function: Callable[[str, int], str]
    selects: frozenset[str] = frozenset()
    """Intrinsics (``ldexp``, ``exp2.f32``) that this back end has instructions for, though others do not."""
    loses_sign_of_zero: frozenset[str] = frozenset()
    """Functions with the sign of their argument that give 0 for -0."""

    def rename(self, text: str) -> str:
        """A module's text with every function under the vendor's name."""
        declared: dict[str, str] = {}

        def symbol(match: re.Match[str]) -> str:
            return f'@"{self._renamed(match[1])}"'

        def remainder(match: re.Match[str]) -> str:
            name = self.function("fmod", 64 if match[1] == "double" else 32)
            declared[name] = f'declare {match[1]} @"{name}"({match[1]}, {match[1]})'
            return f'= call {match[1]} @"{name}"({match[1]} {match[2]}, {match[1]} {match[3]})'

        def typed(match: re.Match[str]) -> str:
            return f'{match[1]} @"{match[2]}.{"f64" if match[1] == "double" else "f32"}"('

        # Numba names some intrinsics without their type.
        text = _SYMBOL.sub(symbol, _UNTYPED.sub(typed, text))
        # GPU back ends expand frem into a division, which is wrong for large quotients.
        text = _FREM.sub(remainder, text)
        missing = [
            line for name, line in declared.items() if not re.search(rf'^declare .*@"{name}"', text, re.M)
        ]
        return _declared_once("\n".join([text, *missing]))

    def helpers(self, texts: list[str]) -> list[str]:
        """Modules that define what renamed texts call and the vendor has only nearly."""
        called = set().union(*(_SIGNED_NAME.findall(text) for text in texts))
        return [_signed(name, int(bits), self.function(name, int(bits))) for name, bits in sorted(called)]

    def _renamed(self, name: str) -> str:
        match = _INTRINSIC.match(name)
        if match and match[1] in _LIBRARY_INTRINSICS:
            return self.function(match[1], int(match[2][1:]))
        match = _POWI.match(name)
        if match:
            return self.function("powi", int(match[1][1:]))
        if name.startswith("llvm."):
            return name
        bits = 64
        base = name
        if name.endswith("f") and (name[:-1] in _LIBM or name.removeprefix("numba_")[:-1] in _NUMBA):
            bits, base = 32, name[:-1]
        if base.startswith("numba_") and base.removeprefix("numba_") in _NUMBA:
            return self.function(_NUMBA[base.removeprefix("numba_")], bits)
        if base in _SELECTED:
            return f"llvm.{base}.f{bits}"
        if base in self.loses_sign_of_zero:
            return f"numba_offload_signed_{base}_f{bits}"
        return self.function(base, bits) if base in _LIBM else name

    def _selected(self, intrinsic: str) -> bool:
        _, name, *kinds = intrinsic.split(".")
        return name in self.selects or ".".join([name, *kinds[:1]]) in self.selects

    def check(self, module: Any, kernel: str) -> None:
        """Raise TargetError where an optimised module calls what nobody defines: LLVM would end the process."""
        missing = [
            f.name
            for f in module.functions
            if f.is_declaration and not f.name.startswith("llvm.")
        ]
        missing += [
            f.name
            for f in module.functions
            if f.name.startswith("llvm.") and _is_library_call(f.name) and not self._selected(f.name)
        ]
        if missing:
            raise TargetError(
                f"kernel {kernel!r}: the {self.vendor} target has no {', '.join(sorted(missing))}; rewrite that "
                "operation with functions of math or numpy that it has, or run the kernel on another target"
            )


def _signed(name: str, bits: int, of_vendor: str) -> str:
    """A vendor's function of one number, with the sign of its argument."""
    ty = "double" if bits == 64 else "float"
    return f"""
declare {ty} @"{of_vendor}"({ty})
declare {ty} @"llvm.copysign.f{bits}"({ty}, {ty})

define linkonce_odr {ty} @"numba_offload_signed_{name}_f{bits}"({ty} %x) alwaysinline {{
  %y = call {ty} @"{of_vendor}"({ty} %x)
  %signed = call {ty} @"llvm.copysign.f{bits}"({ty} %y, {ty} %x)
  ret {ty} %signed
}}
"""


def _declared_once(text: str) -> str:
    """The text without repeated declarations: an intrinsic and a function of the C library may get one name."""
    seen: set[str] = set()
    lines = []
    for line in text.split("\n"):
        match = _DECLARED.match(line)
        if match and match[1] in seen:
            continue
        if match:
            seen.add(match[1])
        lines.append(line)
    return "\n".join(lines)


def _is_library_call(intrinsic: str) -> bool:
    """Whether an LLVM intrinsic is a floating-point function that back ends do not select."""
    return intrinsic.split(".")[1] in _NEVER_SELECTED and bool(_FLOAT_SUFFIX.search(intrinsic))
