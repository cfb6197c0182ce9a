"""Numba's typing and target contexts for kernel code, shared by every target."""

from __future__ import annotations

import importlib
import sys
from typing import TYPE_CHECKING, Any, ClassVar

from llvmlite import ir
from numba.core import types, typing
from numba.core.base import BaseContext
from numba.core.callconv import ErrorModel
from numba.core.errors import NumbaError
from numba.core.registry import CPUDispatcher
from numba.core.targetconfig import ConfigStack
from numba.np import ufunc_db

from numba_offload.device.types import OwnedIndexType
from numba_offload.targets.callconv import OffloadCallConv, state_field
from numba_offload.targets.codegen import allow_contraction
from numba_offload.targets.options import CompileOptions

if TYPE_CHECKING:
    from numba_offload.targets.toolchain import Toolchain


class IntegerZeroDivisionModel(ErrorModel):
    """Integer ``//``, ``%`` and ``divmod`` by zero raise; floating point is IEEE, as in NumPy."""

    raise_on_fp_zero_division = False

    def fp_zero_division(self, builder: Any, exc_args: Any = None, loc: Any = None) -> bool:
        if exc_args and str(exc_args[0]).startswith("integer"):
            self.call_conv.return_user_exc(builder, ZeroDivisionError, exc_args, loc)
            return True
        return False


def current_options() -> CompileOptions:
    """The options of the function being compiled right now."""
    flags = ConfigStack.top_or_none()
    return getattr(flags, "offload", None) or CompileOptions()


class OffloadTypingContext(typing.Context):
    """Types kernel code. A function that it meets becomes a device function of this target."""

    toolchain: Toolchain

    def load_additional_registries(self) -> None:
        from numba_offload.device import complex_mathematics, mathematics

        # Before Numba's own: of two types that fit the first one counts.
        for ours in (mathematics, complex_mathematics):
            self.install_registry(ours.typing_registry)
        super().load_additional_registries()

    def resolve_value_type(self, val: Any) -> types.Type:
        function = device_source(val)
        if function is not None:
            from numba_offload.function_versions import VERSIONS

            function = VERSIONS.current(function)
            return types.Dispatcher(self.toolchain.dispatcher(function, current_options().for_callees()))
        replacement = indexing_module(val)
        if replacement is not None:
            return types.Module(replacement)
        name = indexing_name(val)
        if name is not None:
            return super().resolve_value_type(name)
        return super().resolve_value_type(val)

    def resolve_module_constants(self, typ: types.Module, attr: str) -> types.Type | None:
        # Numba types a module's attribute as a constant before it asks whether it is a function of ours.
        value = getattr(typ.pymod, attr, None)
        if (
            device_source(value) is not None
            or indexing_module(value) is not None
            or indexing_name(value) is not None
        ):
            return self.resolve_value_type(value)
        return super().resolve_module_constants(typ, attr)

    def resolve_function_type(self, func: Any, args: Any, kws: Any) -> Any:
        """An owned index is a plain integer to whatever does not know it."""
        named = dict(kws)
        if not any(isinstance(a, OwnedIndexType) for a in (*args, *named.values())):
            return super().resolve_function_type(func, args, kws)
        plain = tuple(_as_plain(a) for a in args), {name: _as_plain(a) for name, a in named.items()}
        try:
            found = super().resolve_function_type(func, args, kws)
        except NumbaError:
            if isinstance(func, types.Dispatcher):
                raise
            try:
                found = super().resolve_function_type(func, *plain)
            except NumbaError:
                found = None
            if found is None:
                raise
        return found if found is not None else super().resolve_function_type(func, *plain)

    def library_function(self, py_func: Any) -> Any:
        """The dispatcher of a function of ours (a strategy's method)."""
        from numba_offload.targets.dispatcher import LIBRARY_OPTIONS

        return self.toolchain.dispatcher(py_func, LIBRARY_OPTIONS)


def _as_plain(ty: Any) -> Any:
    return types.int64 if isinstance(ty, OwnedIndexType) else ty


def device_source(value: Any) -> Any:
    """The Python function behind something that kernel code may call, or None."""
    if isinstance(value, CPUDispatcher):
        return value.py_func
    return getattr(value, "__offload_function__", None)


def indexing_module(value: Any) -> Any:
    """numba.cuda as kernel code sees it: our module of the same names. numba.cuda itself is never imported."""
    if value is not None and value is sys.modules.get("numba.cuda"):
        return importlib.import_module("numba_offload.cuda")
    return None


def indexing_name(value: Any) -> Any:
    """Our twin of a name imported from numba.cuda (``from numba.cuda import grid``), or None."""
    module = getattr(value, "__module__", None) or type(value).__module__
    if not (isinstance(module, str) and module.startswith("numba.cuda")):
        return None
    name = getattr(value, "__name__", None) or type(value).__name__
    return getattr(importlib.import_module("numba_offload.cuda"), name, None)


class OffloadContext(BaseContext):
    """What our target contexts share: calling convention, error model, no Python objects, late linking."""

    offload_options = CompileOptions()
    toolchain: Toolchain
    corrects_cbrt: ClassVar[bool] = False
    """Whether the target's cube root of a double is farther off than two units in the last place."""
    corrects_angles: ClassVar[bool] = False
    """Whether the target's sine, cosine and tangent of a double are, next to multiples of pi/2."""
    joins_sine_and_cosine: ClassVar[bool] = False
    """Whether LLVM makes one call of a sine and a cosine of one angle."""
    constant_addrspace: ClassVar[int] = 0
    """Where LLVM has tables of constants for the target."""

    @property
    def atomic_ordering(self) -> str:
        """How LLVM's text says: atomic among the threads of a launch, ordering nothing else."""
        return "monotonic"

    @property
    def call_conv(self) -> OffloadCallConv:
        return OffloadCallConv(self)

    def note_failure(self, number: int) -> None:
        """The code being generated can fail at the site with this number."""
        self.active_code_library.can_fail = True
        self.note_site(number)

    def note_site(self, number: int) -> None:
        """The code being generated can report this site or line."""
        self.active_code_library.sites.add(number)

    def thread_value(self, builder: Any, field: str, axis: int) -> Any:
        """This thread's ``position``, ``threads`` or ``block`` along an axis (0 is x), as i64."""
        self.active_code_library.uses_position = True
        return builder.load(state_field(builder, builder.function.args[1], field, axis))

    def thread_in_block(self, builder: Any, axis: int) -> Any:
        """This thread's index in its block; GPUs know it without a division."""
        return builder.urem(self.thread_value(builder, "position", axis), self.thread_value(builder, "block", axis))

    def block_in_grid(self, builder: Any, axis: int) -> Any:
        """This thread's block; GPUs know it without a division."""
        return builder.udiv(self.thread_value(builder, "position", axis), self.thread_value(builder, "block", axis))

    def halves(self, builder: Any, value: Any) -> tuple[Any, Any]:
        """The low and the high half of a float's bits, as integers, for stores at any address."""
        width = 64 if isinstance(value.type, ir.DoubleType) else 32
        bits = builder.bitcast(value, ir.IntType(width))
        half = ir.IntType(width // 2)
        high = builder.lshr(bits, ir.Constant(bits.type, width // 2))
        return builder.trunc(bits, half), builder.trunc(high, half)

    def subtarget(self, **kws: Any) -> Any:
        kws["error_model"] = IntegerZeroDivisionModel(self.call_conv)
        kws["enable_nrt"] = False
        made = super().subtarget(**kws)
        return made

    def with_options(self, options: CompileOptions) -> None:
        """Set the options of a subtarget; internally compiled helpers are shared only among equal options."""
        self.offload_options = options
        self.cached_internal_func = self.toolchain.helper_caches.setdefault(options.for_callees(), {})

    def compile_subroutine(
        self, builder: Any, impl: Any, sig: Any, locals: Any = None, flags: Any = None, caching: bool = True
    ) -> Any:
        """A helper that lowering calls (complex multiplication, say), under the options of the code that calls it.

        Numba's own defaults would let it fuse operations where the kernel may not, and keep it strict in fast ones.
        """
        if flags is None:
            flags = self.toolchain.flags(current_options().for_callees())
            flags.no_compile = True
        return super().compile_subroutine(builder, impl, sig, locals, flags, caching)

    def create_module(self, name: str) -> Any:
        return self.codegen()._create_empty_module(name)

    def codegen(self) -> Any:
        return self.toolchain.codegen

    @property
    def target_data(self) -> Any:
        return self.codegen().target_data

    def get_constant_generic(self, builder: Any, ty: types.Type, val: Any) -> Any:
        """A function is no value in a kernel. Numba's own lowering of one, which embeds the address of a Python
        object, is registered as soon as any plain jitted function has been compiled in the process."""
        if isinstance(ty, types.Dispatcher):
            return self.get_dummy_value()
        return super().get_constant_generic(builder, ty, val)

    def declare_env_global(self, module: Any, envname: str) -> Any:
        """There is no Python environment in a kernel."""
        return None

    def get_executable(self, library: Any, fndesc: Any, env: Any) -> Any:
        from numba_offload.targets.dispatcher import entry_key

        return entry_key(self.toolchain.function_of(fndesc), tuple(fndesc.argtypes), current_options())

    def apply_target_attributes(self, llvm_func: Any, argtypes: Any = None, restype: Any = None) -> None:
        pass

    def post_lowering(self, mod: Any, library: Any) -> None:
        options = current_options()
        if options.fastmath:
            from numba.core import cpu_options, fastmathpass

            fastmathpass.rewrite_module(mod, cpu_options.FastMathOptions(True))
        elif self.toolchain.contracts(options):
            allow_contraction(mod)

    def get_ufunc_info(self, ufunc_key: Any) -> Any:
        from numba_offload.device import angles, complex_mathematics, mathematics

        loops = dict(ufunc_db.get_ufunc_info(ufunc_key))
        for ours in (mathematics, angles, complex_mathematics):
            loops.update(ours.UFUNCS.get(ufunc_key, {}))
        return loops

    def load_additional_registries(self) -> None:
        """Numba's target-neutral implementations; what needs its runtime or Python objects stays out."""
        from numba.core import optional  # noqa: F401
        from numba.cpython import (  # noqa: F401
            builtins,
            cmathimpl,
            enumimpl,
            iterators,
            mathimpl,
            numbers,
            rangeobj,
            slicing,
            tupleobj,
        )
        from numba.misc import literal  # noqa: F401
        from numba.np import arraymath, arrayobj, npdatetime, npyimpl  # noqa: F401
        from numba.np.types import datetime_registry  # noqa: F401

        self.install_registry(cmathimpl.registry)
        self.install_registry(mathimpl.registry)
        self.install_registry(npyimpl.registry)

        from numba.core.imputils import builtin_registry

        from numba_offload.device import angles, complex_mathematics, mathematics
        from numba_offload.device import numbers as arithmetic

        # After Numba's own: of two implementations for the same types the later one counts.
        self.install_registry(builtin_registry)
        for ours in (arithmetic, mathematics, angles, complex_mathematics):
            self.install_registry(ours.registry)
