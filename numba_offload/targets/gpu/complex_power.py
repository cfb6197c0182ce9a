"""Complex power for targets without Numba's runtime: CPython's algorithm, in LLVM's text with the C library's names."""

from __future__ import annotations

_DOUBLE = """
declare double @"hypot"(double, double)
declare double @"atan2"(double, double)
declare double @"pow"(double, double)
declare double @"log"(double)
declare double @"exp"(double)
declare double @"sin"(double)
declare double @"cos"(double)

define linkonce_odr void @"numba_cpow"(ptr %pa, ptr %pb, ptr %out) alwaysinline {
entry:
  %par = getelementptr {double, double}, ptr %pa, i32 0, i32 0
  %pai = getelementptr {double, double}, ptr %pa, i32 0, i32 1
  %pbr = getelementptr {double, double}, ptr %pb, i32 0, i32 0
  %pbi = getelementptr {double, double}, ptr %pb, i32 0, i32 1
  %outr = getelementptr {double, double}, ptr %out, i32 0, i32 0
  %outi = getelementptr {double, double}, ptr %out, i32 0, i32 1
  %ar = load double, ptr %par
  %ai = load double, ptr %pai
  %br = load double, ptr %pbr
  %bi = load double, ptr %pbi
  %br0 = fcmp oeq double %br, 0.0
  %bi0 = fcmp oeq double %bi, 0.0
  %b0 = and i1 %br0, %bi0
  br i1 %b0, label %one, label %base

one:
  store double 1.0, ptr %outr
  store double 0.0, ptr %outi
  ret void

base:
  %ar0 = fcmp oeq double %ar, 0.0
  %ai0 = fcmp oeq double %ai, 0.0
  %a0 = and i1 %ar0, %ai0
  br i1 %a0, label %zero, label %general

zero:
  %negative = fcmp olt double %br, 0.0
  %turning = xor i1 %bi0, true
  %undefined = or i1 %negative, %turning
  %z = select i1 %undefined, double 0x7FF8000000000000, double 0.0
  store double %z, ptr %outr
  store double %z, ptr %outi
  ret void

general:
  %abs = call double @"hypot"(double %ar, double %ai)
  %len = call double @"pow"(double %abs, double %br)
  %angle = call double @"atan2"(double %ai, double %ar)
  %phase = fmul double %angle, %br
  br i1 %bi0, label %done, label %turn

turn:
  %decay = fmul double %angle, %bi
  %minus = fneg double %decay
  %factor = call double @"exp"(double %minus)
  %len2 = fmul double %len, %factor
  %logabs = call double @"log"(double %abs)
  %more = fmul double %bi, %logabs
  %phase2 = fadd double %phase, %more
  br label %done

done:
  %l = phi double [ %len, %general ], [ %len2, %turn ]
  %p = phi double [ %phase, %general ], [ %phase2, %turn ]
  %c = call double @"cos"(double %p)
  %s = call double @"sin"(double %p)
  %r = fmul double %l, %c
  %i = fmul double %l, %s
  store double %r, ptr %outr
  store double %i, ptr %outi
  ret void
}
"""

_FLOAT = """
define linkonce_odr void @"numba_cpowf"(ptr %pa, ptr %pb, ptr %out) alwaysinline {
  %a = alloca {double, double}
  %b = alloca {double, double}
  %o = alloca {double, double}
  %par = getelementptr {float, float}, ptr %pa, i32 0, i32 0
  %pai = getelementptr {float, float}, ptr %pa, i32 0, i32 1
  %pbr = getelementptr {float, float}, ptr %pb, i32 0, i32 0
  %pbi = getelementptr {float, float}, ptr %pb, i32 0, i32 1
  %arf = load float, ptr %par
  %aif = load float, ptr %pai
  %brf = load float, ptr %pbr
  %bif = load float, ptr %pbi
  %ar = fpext float %arf to double
  %ai = fpext float %aif to double
  %br = fpext float %brf to double
  %bi = fpext float %bif to double
  %ai.slot = getelementptr {double, double}, ptr %a, i32 0, i32 1
  %bi.slot = getelementptr {double, double}, ptr %b, i32 0, i32 1
  %oi.slot = getelementptr {double, double}, ptr %o, i32 0, i32 1
  store double %ar, ptr %a
  store double %ai, ptr %ai.slot
  store double %br, ptr %b
  store double %bi, ptr %bi.slot
  call void @"numba_cpow"(ptr %a, ptr %b, ptr %o)
  %or = load double, ptr %o
  %oi = load double, ptr %oi.slot
  %orf = fptrunc double %or to float
  %oif = fptrunc double %oi to float
  %outi = getelementptr {float, float}, ptr %out, i32 0, i32 1
  store float %orf, ptr %out
  store float %oif, ptr %outi
  ret void
}
"""

COMPLEX_POWER = {"numba_cpow": _DOUBLE, "numba_cpowf": _DOUBLE + _FLOAT}
"""By the names that Numba's lowering calls."""
