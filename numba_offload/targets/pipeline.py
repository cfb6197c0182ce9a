"""Our compiler pipelines on numba.core's passes: the host pass, which only types, and the device passes, which lower."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from typing import Any

import numpy as np
from numba.core import compiler, ir, ir_utils, lowering, types, typing
from numba.core.compiler_machinery import AnalysisPass, FunctionPass, PassManager, register_pass
from numba.core.errors import ForceLiteralArg
from numba.core.typed_passes import (
    AnnotateTypes,
    BaseNativeLowering,
    IRLegalization,
    NoPythonBackend,
    NoPythonSupportedFeatureValidation,
    NopythonTypeInference,
    PreLowerStripPhis,
)
from numba.core.unsafe import eh

from numba_offload.analysis.affine import affine_accesses
from numba_offload.analysis.loops import split_index_loops
from numba_offload.captures import captured_arrays, holds_arrays
from numba_offload.device.target_name import TargetName
from numba_offload.device.types import OwnedIndexType
from numba_offload.diagnostics.refusals import refusal
from numba_offload.errors import SafetyError
from numba_offload.targets.callconv import PAYLOAD_SLOTS
from numba_offload.targets.toolchain import is_user_source


@dataclass
class TypedFunction:
    """What the analyses read: one function's typed IR, in SSA form with its phis."""

    py_func: Any
    func_ir: ir.FunctionIR
    typemap: dict[str, types.Type]
    calltypes: dict[Any, Any]
    args: tuple[types.Type, ...]
    return_type: types.Type
    options: Any


class OffloadLower(lowering.Lower):
    """Lowering that tells implementations which statement of the user's they serve."""

    def lower_inst(self, inst: Any) -> None:
        loc = self.loc
        filename = self.func_ir.func_id.filename
        if is_user_source(filename):
            self.builder.offload_location = (loc.filename, loc.line, self.func_ir.func_id.func_qualname)
        self.builder.offload_instruction = inst
        self.builder.offload_in_range = self.metadata.get("offload_in_range", {})
        super().lower_inst(inst)


class _Analysis(AnalysisPass):
    """Numba's pass bases leave the constructor abstract."""

    def __init__(self) -> None:
        AnalysisPass.__init__(self)


class _Rewrite(FunctionPass):
    def __init__(self) -> None:
        FunctionPass.__init__(self)


@register_pass(mutates_CFG=False, analysis_only=True)
class RefuseUnsupported(_Analysis):
    """Name what kernel code cannot do before type inference gives a worse message."""

    _name = "offload_refuse_unsupported"

    def run_pass(self, state: Any) -> bool:
        for block in state.func_ir.blocks.values():
            for stmt in block.body:
                found = self._unsupported(stmt)
                if found is None and state.flags.offload.partition:
                    found = self._differs_between_targets(stmt)
                if found is not None:
                    raise refusal(state.func_id.func_name, stmt.loc.filename, stmt.loc.line, "", *found)
        return False

    def _unsupported(self, stmt: Any) -> tuple[str, str] | None:
        """Problem and fix."""
        value = getattr(stmt, "value", None)
        tries = isinstance(value, ir.Const | ir.Global) and value.value is eh.mark_try_block
        if tries or isinstance(stmt, ir.EnterWith | ir.PopBlock):
            return (
                "try/except and with are not available in kernel code",
                "let the exception end the thread: it reaches the host with its line",
            )
        if isinstance(stmt, ir.StaticRaise) and stmt.exc_class is None:
            return "a bare 'raise' raises what was caught, and kernel code catches nothing", "name the exception to raise"
        if isinstance(stmt, ir.Assign) and isinstance(value, ir.Yield):
            return "generators are not available in kernel code", "write the loop where its values are used"
        if isinstance(stmt, ir.Print) or (isinstance(value, ir.Global) and value.value is print):
            return "print() is not available in kernel code", "write what you want to see into a Region"
        return None

    def _differs_between_targets(self, stmt: Any) -> tuple[str, str] | None:
        """A strategy is checked on the host: what may differ on a device would make the check worthless."""
        value = getattr(stmt, "value", None)
        if not isinstance(value, ir.Global | ir.FreeVar):
            return None
        used = value.value
        home = used.__name__ if inspect.ismodule(used) else getattr(used, "__module__", None) or ""
        if isinstance(used, TargetName) or str(home).split(".")[0] in ("math", "cmath", "numpy"):
            return (
                f"a partition must be the same on every target, and {value.name!r} may differ between them",
                "compute with integers: +, -, *, //, %, comparisons, min and max",
            )
        return None


@register_pass(mutates_CFG=False, analysis_only=False)
class SettleTargetName(_Rewrite):
    """Device passes know ``target.name``; the branches that it decides are then pruned. The host pass keeps them all."""

    _name = "offload_settle_target_name"

    def run_pass(self, state: Any) -> bool:
        blocks = state.func_ir.blocks
        statements = [s for b in blocks.values() for s in b.body if isinstance(s, ir.Assign)]
        targets = {
            s.target.name
            for s in statements
            if isinstance(s.value, ir.Global | ir.FreeVar) and isinstance(s.value.value, TargetName)
        }
        changed = False
        for stmt in statements:
            value = stmt.value
            asks = isinstance(value, ir.Expr) and value.op == "getattr" and value.attr == "name"
            if asks and value.value.name in targets:
                stmt.value = ir.Const(state.targetctx.toolchain.name, stmt.loc)
                changed = True
        if changed:
            state.func_ir._definitions = ir_utils.build_definitions(blocks)
        return changed


@register_pass(mutates_CFG=False, analysis_only=False)
class LiftCapturedArrays(_Rewrite):
    """A kernel's captured arrays become arguments after its own, so that each launch sees their current values."""

    _name = "offload_lift_captured_arrays"

    def run_pass(self, state: Any) -> bool:
        func_ir = state.func_ir
        own = func_ir.arg_count
        hidden_types = state.metadata["offload_hidden"]
        hidden = list(captured_arrays(state.func_id.func)) if hidden_types else []
        changed = False
        for block in func_ir.blocks.values():
            for stmt in block.body:
                if not (isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Global | ir.FreeVar)):
                    continue
                value = stmt.value.value
                if isinstance(value, list | dict | set):
                    raise refusal(
                        state.func_id.func_name, stmt.loc.filename, stmt.loc.line, stmt.value.name,
                        f"{stmt.value.name!r} is captured from outside and is a {type(value).__name__}, which a kernel cannot "
                        "capture",
                        f"pass {stmt.value.name!r} as an argument: as an array (numpy.asarray), a tuple or a named tuple",
                    )
                if not holds_arrays(value):
                    continue
                if stmt.value.name not in hidden or not isinstance(value, np.ndarray):
                    raise refusal(
                        state.func_id.func_name, stmt.loc.filename, stmt.loc.line, stmt.value.name,
                        "it is captured from outside and holds arrays; a kernel can capture an array by its own name, but "
                        "not arrays inside containers, nor in the functions that it calls",
                        f"pass {stmt.value.name!r} as an argument",
                    )
                stmt.value = ir.Arg(stmt.value.name, own + hidden.index(stmt.value.name), stmt.loc)
                changed = True
        if hidden:
            func_ir.arg_names = [*func_ir.arg_names, *hidden]
            func_ir.arg_count = state.nargs = own + len(hidden)
            state.args = (*state.args, *hidden_types)
            func_ir._definitions = ir_utils.build_definitions(func_ir.blocks)
        return changed


def _is_null(stmt: Any) -> bool:
    return isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Expr) and stmt.value.op == "null"


@register_pass(mutates_CFG=True, analysis_only=False)
class SplitIndexLoops(_Rewrite):
    """Turn a loop over the indices of a lattice of several axes into nested loops, which vectorise."""

    _name = "offload_split_index_loops"

    def run_pass(self, state: Any) -> bool:
        if not split_index_loops(state.func_ir, state.typemap):
            return False
        # Variables that some path leaves undefined: their null definitions cannot be typed again, and say nothing.
        for block in state.func_ir.blocks.values():
            block.body = [stmt for stmt in block.body if not _is_null(stmt)]
        state.typemap = state.calltypes = state.return_type = None
        state.return_type = state.metadata.get("offload_return_type")
        return NopythonTypeInference().run_pass(state)


@register_pass(mutates_CFG=False, analysis_only=True)
class FindAffineAccesses(_Analysis):
    """Mark the accesses that the host settles before each launch of this variant: they need no check."""

    _name = "offload_find_affine"

    def run_pass(self, state: Any) -> bool:
        assumed = state.flags.offload.assumed
        if assumed:
            found = affine_accesses(state.func_ir, state.typemap)
            # By identity, with the statements themselves: none of them may make room for another under its id.
            state.metadata["offload_in_range"] = {id(stmt): stmt for stmt, a in found if a.key in assumed}
        return False


@register_pass(mutates_CFG=True, analysis_only=False)
class OffloadLowering(BaseNativeLowering):
    """Lower to LLVM with our statement-tracking lowering."""

    _name = "offload_lowering"

    @property
    def lowering_class(self) -> Any:
        return OffloadLower

    def run_pass(self, state: Any) -> bool:
        state.targetctx.toolchain.note_function(state.func_id.unique_name, state.func_id.func)
        return super().run_pass(state)


def _untyped_passes(state: Any) -> list[Any]:
    passes = compiler.DefaultPassBuilder.define_untyped_pipeline(state).passes
    kept = [p for p in passes if p[0]._name != "with_lifting"]
    # Closures have been inlined by then, and nothing has been typed.
    at = next(k for k, p in enumerate(kept) if p[0]._name == "find_literally")
    kept.insert(at, (LiftCapturedArrays, "captured arrays become arguments"))
    if not isinstance(state.pipeline, HostPipeline):
        at = next(k for k, p in enumerate(kept) if p[0]._name == "inline_closure_likes")
        kept.insert(at, (SettleTargetName, "the target's name is known"))
    return kept


class _Pipeline(compiler.CompilerBase):
    def __init__(
        self, typingctx: Any, targetctx: Any, library: Any, args: Any, return_type: Any, flags: Any, locals: Any
    ) -> None:
        super().__init__(typingctx, targetctx, library, args, return_type, flags, locals)
        self.state.targetctx.with_options(flags.offload)
        self.state.metadata["offload_return_type"] = return_type

    def compile_extra(self, func: Any) -> Any:
        # Types beyond the function's own parameters are those of its captured arrays.
        code = func.__code__
        own = code.co_argcount + code.co_kwonlyargcount + bool(code.co_flags & inspect.CO_VARARGS)
        self.state.metadata["offload_hidden"] = tuple(self.state.args[own:])
        self.state.args = tuple(self.state.args[:own])
        refused = self.state.targetctx.toolchain.refused
        before = len(refused)
        try:
            return super().compile_extra(func)
        except Exception as error:
            if len(refused) > before and not isinstance(error, ForceLiteralArg):
                # Type inference of a caller buries what was refused in a callee among its own findings.
                raise SafetyError(refused[before].plain) from refused[before].__cause__
            if isinstance(error, SafetyError):
                refused.append(error)
                raise
            from numba_offload.diagnostics.explain_errors import explain_other, is_compilers

            if not is_compilers(error) or not is_user_source(code.co_filename):
                raise
            told = explain_other(error, func)
            told.__cause__ = error
            refused.append(told)
            raise told from error


class DevicePipeline(_Pipeline):
    """The device pass: type, split index loops, lower."""

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("offload_device")
        manager.passes.extend(_untyped_passes(self.state))
        manager.add_pass(RefuseUnsupported, "refuse what kernels cannot do")
        manager.add_pass(ExplainedTypeInference, "type inference")
        manager.add_pass(FindAffineAccesses, "find affine accesses")
        manager.add_pass(PreLowerStripPhis, "strip phis")
        manager.add_pass(SplitIndexLoops, "nest index loops")
        manager.add_pass(NoPythonSupportedFeatureValidation, "validate features")
        manager.add_pass(IRLegalization, "legalise")
        manager.add_pass(AnnotateTypes, "annotate types")
        manager.add_pass(OffloadLowering, "lower")
        manager.add_pass(NoPythonBackend, "result")
        manager.finalize()
        return [manager]


@register_pass(mutates_CFG=True, analysis_only=False)
class ExplainedTypeInference(_Rewrite):
    """Type inference whose failures are told in the terms of kernels."""

    _name = "offload_type_inference"

    def run_pass(self, state: Any) -> bool:
        from numba_offload.diagnostics.explain_errors import explain_inference, is_compilers

        refused = state.targetctx.toolchain.refused
        before = len(refused)
        try:
            return NopythonTypeInference().run_pass(state)
        except Exception as error:
            if len(refused) > before or not is_compilers(error) or not is_user_source(state.func_id.filename):
                raise
            told = explain_inference(state, error)
            del refused[before:]
            raise told from error


@register_pass(mutates_CFG=False, analysis_only=True)
class RefuseStrings(_Analysis):
    """Strings are constants in kernel code: none can be made, and an exception carries numbers beside constants."""

    _name = "offload_refuse_strings"

    def run_pass(self, state: Any) -> bool:
        if not is_user_source(state.func_id.filename):
            return False
        for block in state.func_ir.blocks.values():
            for stmt in block.body:
                made = isinstance(stmt, ir.Assign) and isinstance(stmt.value, ir.Expr) and stmt.value.op != "getattr"
                if made and isinstance(state.typemap[stmt.target.name], types.UnicodeType):
                    problem = "a string is formatted, joined or converted, which kernel code cannot do"
                    raise self._refusal(state, stmt.loc, problem)
                if isinstance(stmt, ir.DynamicRaise):
                    given = [state.typemap[a.name] for a in stmt.exc_args if isinstance(a, ir.Var)]
                    if not all(isinstance(types.unliteral(t), _REPORTABLE) for t in given) or len(given) > PAYLOAD_SLOTS:
                        raise self._refusal(
                            state, stmt.loc,
                            f"an exception in kernel code reports constants and up to {PAYLOAD_SLOTS} integers, floats or bools",
                        )
        return False

    def _refusal(self, state: Any, loc: Any, problem: str) -> SafetyError:
        fix = 'pass the values beside the text, as in raise ValueError("bad element", i)'
        return refusal(state.func_id.func_name, loc.filename, loc.line, "", problem, fix)


_REPORTABLE = (types.Integer, types.Float, types.Boolean, OwnedIndexType)


@register_pass(mutates_CFG=False, analysis_only=True)
class KeepTypedIR(_Analysis):
    """End of the host pass: keep the typed IR for the analyses; nothing is lowered."""

    _name = "offload_keep_typed_ir"

    def run_pass(self, state: Any) -> bool:
        from numba_offload.targets.dispatcher import entry_key

        typed = TypedFunction(
            state.func_id.func,
            state.func_ir,
            dict(state.typemap),
            dict(state.calltypes),
            tuple(state.args),
            state.return_type,
            state.flags.offload,
        )
        state.targetctx.toolchain.typed_functions[entry_key(typed.py_func, typed.args, typed.options)] = typed
        signature = typing.signature(state.return_type, *state.args)
        state.cr = compiler.compile_result(
            typing_context=state.typingctx,
            target_context=state.targetctx,
            entry_point=entry_key(typed.py_func, typed.args, typed.options),
            typing_error=None,
            type_annotation=None,
            library=None,
            call_helper=None,
            signature=signature,
            objectmode=False,
            lifted=(),
            fndesc=None,
            environment=None,
            metadata=state.metadata,
            reload_init=(),
        )
        return False


class HostPipeline(_Pipeline):
    """The host pass: types only."""

    def define_pipelines(self) -> list[PassManager]:
        manager = PassManager("offload_host")
        manager.passes.extend(_untyped_passes(self.state))
        manager.add_pass(RefuseUnsupported, "refuse what kernels cannot do")
        manager.add_pass(ExplainedTypeInference, "type inference")
        manager.add_pass(RefuseStrings, "refuse strings")
        manager.add_pass(KeepTypedIR, "keep the typed IR")
        manager.finalize()
        return [manager]
