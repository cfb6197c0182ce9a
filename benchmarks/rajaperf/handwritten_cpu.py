"""The thirteen kernels by hand for the CPU, as an expert writes them with ``numba.njit(parallel=True)``.

Indices are unsigned where they are computed. Numba wraps a negative index around, and the test for it stops
LLVM from vectorising: FIR takes 7 times as long with signed indices, VOL3D 6 times.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit, prange

from .benchmark import Benchmark, Data, Launch

SMALLEST_SQUARE = 0.1111111e-36
SMALLEST_SPEED = 0.3333333e-18
VNORMQ = 0.083333333333333333
TAPS = 16

# NumPy's error model: a division does not test for zero, as it would not in C.
parallel = njit(parallel=True, error_model="numpy")
inner = njit(error_model="numpy")


@inner
def sound_speed(e, volume, pressure, pbvc, bvc, rho0):
    square = (pbvc * e + volume * volume * bvc * pressure) / rho0
    if square <= SMALLEST_SQUARE:
        return SMALLEST_SPEED
    return math.sqrt(square)


@inner
def clip(e, e_cut, emin):
    if abs(e) < e_cut:
        e = 0.0
    if e < emin:
        e = emin
    return e


@parallel
def del_dot_vec_2d(x, y, xdot, ydot, jp, zones, div):
    for q in prange(zones.size):
        p = np.uintp(zones[q])
        n1 = p + np.uintp(1)
        n3 = p + np.uintp(jp)
        n2 = n3 + np.uintp(1)

        x1, x2, x3, x4 = x[n1], x[n2], x[n3], x[p]
        y1, y2, y3, y4 = y[n1], y[n2], y[n3], y[p]
        u1, u2, u3, u4 = xdot[n1], xdot[n2], xdot[n3], xdot[p]
        v1, v2, v3, v4 = ydot[n1], ydot[n2], ydot[n3], ydot[p]

        ax = 0.5 * (x1 + x2 - x3 - x4)
        bx = 0.5 * (x2 + x3 - x4 - x1)
        ay = 0.5 * (y1 + y2 - y3 - y4)
        by = 0.5 * (y2 + y3 - y4 - y1)
        au = 0.5 * (u1 + u2 - u3 - u4)
        bu = 0.5 * (u2 + u3 - u4 - u1)
        av = 0.5 * (v1 + v2 - v3 - v4)
        bv = 0.5 * (v2 + v3 - v4 - v1)

        r = 1.0 / (ax * by - bx * ay + 1e-20)
        dfxdx = r * (au * by - bu * ay)
        dfydy = r * (bv * ax - av * bx)
        div[p] = dfxdx + dfydy + (v1 + v2 + v3 + v4) / (y1 + y2 + y3 + y4)


@parallel
def energy_1(delvc, e_old, p_old, q_old, work, e_new):
    for i in prange(e_new.size):
        e_new[i] = e_old[i] - 0.5 * delvc[i] * (p_old[i] + q_old[i]) + 0.5 * work[i]


@parallel
def energy_2(bvc, comp_half_step, delvc, e_new, p_half_step, pbvc, ql_old, qq_old, rho0, q_new):
    for i in prange(q_new.size):
        if delvc[i] > 0.0:
            q_new[i] = 0.0
        else:
            volume = 1.0 / (1.0 + comp_half_step[i])
            speed = sound_speed(e_new[i], volume, p_half_step[i], pbvc[i], bvc[i], rho0)
            q_new[i] = speed * ql_old[i] + qq_old[i]


@parallel
def energy_3(delvc, p_half_step, p_old, q_new, q_old, e_new):
    for i in prange(e_new.size):
        balance = 3.0 * (p_old[i] + q_old[i]) - 4.0 * (p_half_step[i] + q_new[i])
        e_new[i] = e_new[i] + 0.5 * delvc[i] * balance


@parallel
def energy_4(work, e_cut, emin, e_new):
    for i in prange(e_new.size):
        e_new[i] = clip(e_new[i] + 0.5 * work[i], e_cut, emin)


@parallel
def energy_5(
    bvc, delvc, p_half_step, p_new, p_old, pbvc, q_new, q_old, ql_old, qq_old, vnewc, rho0, e_cut, emin, e_new
):
    for i in prange(e_new.size):
        e = e_new[i]
        if delvc[i] > 0.0:
            q_tilde = 0.0
        else:
            speed = sound_speed(e, vnewc[i], p_new[i], pbvc[i], bvc[i], rho0)
            q_tilde = speed * ql_old[i] + qq_old[i]
        balance = 7.0 * (p_old[i] + q_old[i]) - 8.0 * (p_half_step[i] + q_new[i]) + (p_new[i] + q_tilde)
        e_new[i] = clip(e - balance * delvc[i] / 6.0, e_cut, emin)


@parallel
def energy_6(bvc, delvc, e_new, p_new, pbvc, ql_old, qq_old, vnewc, rho0, q_cut, q_new):
    for i in prange(q_new.size):
        if delvc[i] <= 0.0:
            q = sound_speed(e_new[i], vnewc[i], p_new[i], pbvc[i], bvc[i], rho0) * ql_old[i] + qq_old[i]
            if abs(q) < q_cut:
                q = 0.0
            q_new[i] = q


@parallel
def fir(signal, taps, out):
    for i in prange(out.size):
        total = 0.0
        for j in range(TAPS):
            total += taps[j] * signal[np.uintp(i) + np.uintp(j)]
        out[i] = total


@parallel
def ltimes(ell, psi, phi):
    for z in prange(phi.shape[0]):
        for g in range(phi.shape[1]):
            for m in range(phi.shape[2]):
                total = phi[z, g, m]
                for d in range(psi.shape[2]):
                    total += ell[m, d] * psi[z, g, d]
                phi[z, g, m] = total


# fmt: off - one row of names for each plane reads better than one name a line
@parallel
def matvec_3d_stencil(
    x_dbl, x_dbc, x_dbr, x_dcl, x_dcc, x_dcr, x_dfl, x_dfc, x_dfr,
    x_cbl, x_cbc, x_cbr, x_ccl, x_ccc, x_ccr, x_cfl, x_cfc, x_cfr,
    x_ubl, x_ubc, x_ubr, x_ucl, x_ucc, x_ucr, x_ufl, x_ufc, x_ufr,
    m_dbl, m_dbc, m_dbr, m_dcl, m_dcc, m_dcr, m_dfl, m_dfc, m_dfr,
    m_cbl, m_cbc, m_cbr, m_ccl, m_ccc, m_ccr, m_cfl, m_cfc, m_cfr,
    m_ubl, m_ubc, m_ubr, m_ucl, m_ucc, m_ucr, m_ufl, m_ufc, m_ufr,
    zones, b,
):
    for q in prange(zones.size):
        i = np.uintp(zones[q])
        b[i] = (
            m_dbl[i] * x_dbl[i] + m_dbc[i] * x_dbc[i] + m_dbr[i] * x_dbr[i]
            + m_dcl[i] * x_dcl[i] + m_dcc[i] * x_dcc[i] + m_dcr[i] * x_dcr[i]
            + m_dfl[i] * x_dfl[i] + m_dfc[i] * x_dfc[i] + m_dfr[i] * x_dfr[i]
            + m_cbl[i] * x_cbl[i] + m_cbc[i] * x_cbc[i] + m_cbr[i] * x_cbr[i]
            + m_ccl[i] * x_ccl[i] + m_ccc[i] * x_ccc[i] + m_ccr[i] * x_ccr[i]
            + m_cfl[i] * x_cfl[i] + m_cfc[i] * x_cfc[i] + m_cfr[i] * x_cfr[i]
            + m_ubl[i] * x_ubl[i] + m_ubc[i] * x_ubc[i] + m_ubr[i] * x_ubr[i]
            + m_ucl[i] * x_ucl[i] + m_ucc[i] * x_ucc[i] + m_ucr[i] * x_ucr[i]
            + m_ufl[i] * x_ufl[i] + m_ufc[i] * x_ufc[i] + m_ufr[i] * x_ufr[i]
        )
# fmt: on


@parallel
def pressure_1(compression, cls, bvc):
    for i in prange(bvc.size):
        bvc[i] = cls * (compression[i] + 1.0)


@parallel
def pressure_2(bvc, e_old, vnewc, p_cut, eosvmax, pmin, p_new):
    for i in prange(p_new.size):
        p = bvc[i] * e_old[i]
        if abs(p) < p_cut:
            p = 0.0
        if vnewc[i] >= eosvmax:
            p = 0.0
        if p < pmin:
            p = pmin
        p_new[i] = p


def _vol3d(index):
    @parallel
    def vol3d(x, y, z, first, jp, kp, vol):
        one, jp, kp = index(1), index(jp), index(kp)
        for i in prange(vol.size):
            n0 = index(i) + index(first)
            n1 = n0 + one
            n2 = n0 + jp
            n3 = n2 + one
            n4 = n0 + kp
            n5 = n4 + one
            n6 = n4 + jp
            n7 = n6 + one

            x71 = x[n7] - x[n1]
            x72 = x[n7] - x[n2]
            x74 = x[n7] - x[n4]
            x30 = x[n3] - x[n0]
            x50 = x[n5] - x[n0]
            x60 = x[n6] - x[n0]

            y71 = y[n7] - y[n1]
            y72 = y[n7] - y[n2]
            y74 = y[n7] - y[n4]
            y30 = y[n3] - y[n0]
            y50 = y[n5] - y[n0]
            y60 = y[n6] - y[n0]

            z71 = z[n7] - z[n1]
            z72 = z[n7] - z[n2]
            z74 = z[n7] - z[n4]
            z30 = z[n3] - z[n0]
            z50 = z[n5] - z[n0]
            z60 = z[n6] - z[n0]

            xps = x71 + x60
            yps = y71 + y60
            zps = z71 + z60
            cyz = y72 * z30 - z72 * y30
            czx = z72 * x30 - x72 * z30
            cxy = x72 * y30 - y72 * x30
            total = xps * cyz + yps * czx + zps * cxy

            xps = x72 + x50
            yps = y72 + y50
            zps = z72 + z50
            cyz = y74 * z60 - z74 * y60
            czx = z74 * x60 - x74 * z60
            cxy = x74 * y60 - y74 * x60
            total += xps * cyz + yps * czx + zps * cxy

            xps = x74 + x30
            yps = y74 + y30
            zps = z74 + z30
            cyz = y71 * z50 - z71 * y50
            czx = z71 * x50 - x71 * z50
            cxy = x71 * y50 - y71 * x50
            total += xps * cyz + yps * czx + zps * cxy

            vol[i] = VNORMQ * total

    return vol3d


vol3d = _vol3d(np.uintp)
vol3d_signed = _vol3d(np.intp)


def launches(benchmark: Benchmark, data: Data, variant: str = "") -> list[Launch]:
    """The calls of one repetition; ``variant="_signed"`` prefers kernels with signed indices."""
    functions = globals()
    return [
        Launch(functions.get(call.kernel + variant, functions[call.kernel]), call.arguments)
        for call in benchmark.handwritten(data)
    ]
