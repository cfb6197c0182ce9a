"""The thirteen kernels by hand for NVIDIA GPUs: one thread an iteration, blocks of 256, as in the suite."""

from __future__ import annotations

import math

from numba import cuda

from .benchmark import Benchmark, Data, HandwrittenCall, Launch

BLOCK = 256
LTIMES_BLOCK = (32, 4, 2)
"""Moments, groups and zones; seven of the 32 lanes along the moments stay idle."""

SMALLEST_SQUARE = 0.1111111e-36
SMALLEST_SPEED = 0.3333333e-18
VNORMQ = 0.083333333333333333
TAPS = 16

kernel = cuda.jit
device = cuda.jit(device=True)


@device
def sound_speed(e, volume, pressure, pbvc, bvc, rho0):
    square = (pbvc * e + volume * volume * bvc * pressure) / rho0
    if square <= SMALLEST_SQUARE:
        return SMALLEST_SPEED
    return math.sqrt(square)


@device
def clip(e, e_cut, emin):
    if abs(e) < e_cut:
        e = 0.0
    if e < emin:
        e = emin
    return e


@kernel
def del_dot_vec_2d(x, y, xdot, ydot, jp, zones, div):
    i = cuda.grid(1)
    if i < zones.size:
        p = zones[i]
        n1 = p + 1
        n2 = p + 1 + jp
        n3 = p + jp

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


@kernel
def energy_1(delvc, e_old, p_old, q_old, work, e_new):
    i = cuda.grid(1)
    if i < e_new.size:
        e_new[i] = e_old[i] - 0.5 * delvc[i] * (p_old[i] + q_old[i]) + 0.5 * work[i]


@kernel
def energy_2(bvc, comp_half_step, delvc, e_new, p_half_step, pbvc, ql_old, qq_old, rho0, q_new):
    i = cuda.grid(1)
    if i < q_new.size:
        if delvc[i] > 0.0:
            q_new[i] = 0.0
        else:
            volume = 1.0 / (1.0 + comp_half_step[i])
            speed = sound_speed(e_new[i], volume, p_half_step[i], pbvc[i], bvc[i], rho0)
            q_new[i] = speed * ql_old[i] + qq_old[i]


@kernel
def energy_3(delvc, p_half_step, p_old, q_new, q_old, e_new):
    i = cuda.grid(1)
    if i < e_new.size:
        balance = 3.0 * (p_old[i] + q_old[i]) - 4.0 * (p_half_step[i] + q_new[i])
        e_new[i] = e_new[i] + 0.5 * delvc[i] * balance


@kernel
def energy_4(work, e_cut, emin, e_new):
    i = cuda.grid(1)
    if i < e_new.size:
        e_new[i] = clip(e_new[i] + 0.5 * work[i], e_cut, emin)


@kernel
def energy_5(
    bvc, delvc, p_half_step, p_new, p_old, pbvc, q_new, q_old, ql_old, qq_old, vnewc, rho0, e_cut, emin, e_new
):
    i = cuda.grid(1)
    if i < e_new.size:
        e = e_new[i]
        if delvc[i] > 0.0:
            q_tilde = 0.0
        else:
            speed = sound_speed(e, vnewc[i], p_new[i], pbvc[i], bvc[i], rho0)
            q_tilde = speed * ql_old[i] + qq_old[i]
        balance = 7.0 * (p_old[i] + q_old[i]) - 8.0 * (p_half_step[i] + q_new[i]) + (p_new[i] + q_tilde)
        e_new[i] = clip(e - balance * delvc[i] / 6.0, e_cut, emin)


@kernel
def energy_6(bvc, delvc, e_new, p_new, pbvc, ql_old, qq_old, vnewc, rho0, q_cut, q_new):
    i = cuda.grid(1)
    if i < q_new.size and delvc[i] <= 0.0:
        q = sound_speed(e_new[i], vnewc[i], p_new[i], pbvc[i], bvc[i], rho0) * ql_old[i] + qq_old[i]
        if abs(q) < q_cut:
            q = 0.0
        q_new[i] = q


@kernel
def fir(signal, taps, out):
    i = cuda.grid(1)
    if i < out.size:
        total = 0.0
        for j in range(TAPS):
            total += taps[j] * signal[i + j]
        out[i] = total


@kernel
def ltimes(ell, psi, phi):
    m, g, z = cuda.grid(3)
    if z < phi.shape[0] and g < phi.shape[1] and m < phi.shape[2]:
        total = phi[z, g, m]
        for d in range(psi.shape[2]):
            total += ell[m, d] * psi[z, g, d]
        phi[z, g, m] = total


# fmt: off - one row of names for each plane reads better than one name a line
@kernel
def matvec_3d_stencil(
    x_dbl, x_dbc, x_dbr, x_dcl, x_dcc, x_dcr, x_dfl, x_dfc, x_dfr,
    x_cbl, x_cbc, x_cbr, x_ccl, x_ccc, x_ccr, x_cfl, x_cfc, x_cfr,
    x_ubl, x_ubc, x_ubr, x_ucl, x_ucc, x_ucr, x_ufl, x_ufc, x_ufr,
    m_dbl, m_dbc, m_dbr, m_dcl, m_dcc, m_dcr, m_dfl, m_dfc, m_dfr,
    m_cbl, m_cbc, m_cbr, m_ccl, m_ccc, m_ccr, m_cfl, m_cfc, m_cfr,
    m_ubl, m_ubc, m_ubr, m_ucl, m_ucc, m_ucr, m_ufl, m_ufc, m_ufr,
    zones, b,
):
    q = cuda.grid(1)
    if q < zones.size:
        i = zones[q]
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


@kernel
def pressure_1(compression, cls, bvc):
    i = cuda.grid(1)
    if i < bvc.size:
        bvc[i] = cls * (compression[i] + 1.0)


@kernel
def pressure_2(bvc, e_old, vnewc, p_cut, eosvmax, pmin, p_new):
    i = cuda.grid(1)
    if i < p_new.size:
        p = bvc[i] * e_old[i]
        if abs(p) < p_cut:
            p = 0.0
        if vnewc[i] >= eosvmax:
            p = 0.0
        if p < pmin:
            p = pmin
        p_new[i] = p


@kernel
def vol3d(x, y, z, first, jp, kp, vol):
    i = cuda.grid(1)
    if i < vol.size:
        n0 = i + first
        n1 = n0 + 1
        n2 = n0 + jp
        n3 = n2 + 1
        n4 = n0 + kp
        n5 = n4 + 1
        n6 = n4 + jp
        n7 = n6 + 1

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


def _blocks(extent: int, block: int) -> int:
    return (extent + block - 1) // block


def _configured(call: HandwrittenCall) -> Launch:
    function = globals()[call.kernel]
    if call.kernel == "ltimes":
        zones, groups, moments = call.arguments[-1].shape
        grid = tuple(map(_blocks, (moments, groups, zones), LTIMES_BLOCK))
        return Launch(function[grid, LTIMES_BLOCK], call.arguments)
    return Launch(function[_blocks(call.iterations, BLOCK), BLOCK], call.arguments)


def launches(benchmark: Benchmark, data: Data) -> list[Launch]:
    """The calls of one repetition on device arrays."""
    return [_configured(call) for call in benchmark.handwritten(data)]
