"""Multiplications whose rounding is known, for implementations that compute what rounding has lost."""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic


def _floats_of_one_width(*arguments: Any) -> bool:
    return all(isinstance(ty, types.Float) and ty == arguments[0] for ty in arguments)


@intrinsic
def fma(typingctx: Any, x: Any, y: Any, z: Any) -> Any:
    """``x * y + z``, rounded once."""
    if not _floats_of_one_width(x, y, z):
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        return builder.fma(*args)

    return x(x, x, x), generate


@intrinsic
def rounded_product(typingctx: Any, x: Any, y: Any) -> Any:
    """``x * y``, rounded where the compiler may otherwise fuse a multiplication with what follows."""
    if not _floats_of_one_width(x, y):
        return None

    def generate(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        # LLVM makes a multiplication of it, without the flag that lets it be fused.
        return builder.fma(*args, ir.Constant(args[0].type, -0.0))

    return x(x, x), generate
