"""The safe kernels of ENERGY."""

import math

from numba_offload import offload_function, offload_kernel

SMALLEST_SQUARE = 0.1111111e-36
SMALLEST_SPEED = 0.3333333e-18


@offload_function
def sound_speed(e, volume, pressure, pbvc, bvc, rho0):
    square = (pbvc * e + volume * volume * bvc * pressure) / rho0
    if square <= SMALLEST_SQUARE:
        return SMALLEST_SPEED
    return math.sqrt(square)


@offload_function
def clip(e, e_cut, emin):
    if abs(e) < e_cut:
        e = 0.0
    if e < emin:
        e = emin
    return e


@offload_kernel
def energy_1(delvc, e_old, p_old, q_old, work, e_new):
    for i in e_new.indices():
        e_new[i] = e_old[i] - 0.5 * delvc[i] * (p_old[i] + q_old[i]) + 0.5 * work[i]


@offload_kernel
def energy_2(bvc, comp_half_step, delvc, e_new, p_half_step, pbvc, ql_old, qq_old, rho0, q_new):
    for i in q_new.indices():
        if delvc[i] > 0.0:
            q_new[i] = 0.0
        else:
            volume = 1.0 / (1.0 + comp_half_step[i])
            speed = sound_speed(e_new[i], volume, p_half_step[i], pbvc[i], bvc[i], rho0)
            q_new[i] = speed * ql_old[i] + qq_old[i]


@offload_kernel
def energy_3(delvc, p_half_step, p_old, q_new, q_old, e_new):
    for i in e_new.indices():
        balance = 3.0 * (p_old[i] + q_old[i]) - 4.0 * (p_half_step[i] + q_new[i])
        e_new[i] = e_new[i] + 0.5 * delvc[i] * balance


@offload_kernel
def energy_4(work, e_cut, emin, e_new):
    for i in e_new.indices():
        e_new[i] = clip(e_new[i] + 0.5 * work[i], e_cut, emin)


@offload_kernel
def energy_5(
    bvc, delvc, p_half_step, p_new, p_old, pbvc, q_new, q_old, ql_old, qq_old, vnewc, rho0, e_cut, emin, e_new
):
    for i in e_new.indices():
        e = e_new[i]
        if delvc[i] > 0.0:
            q_tilde = 0.0
        else:
            speed = sound_speed(e, vnewc[i], p_new[i], pbvc[i], bvc[i], rho0)
            q_tilde = speed * ql_old[i] + qq_old[i]
        balance = 7.0 * (p_old[i] + q_old[i]) - 8.0 * (p_half_step[i] + q_new[i]) + (p_new[i] + q_tilde)
        e_new[i] = clip(e - balance * delvc[i] / 6.0, e_cut, emin)


@offload_kernel
def energy_6(bvc, delvc, e_new, p_new, pbvc, ql_old, qq_old, vnewc, rho0, q_cut, q_new):
    for i in q_new.indices():
        if delvc[i] <= 0.0:
            q = sound_speed(e_new[i], vnewc[i], p_new[i], pbvc[i], bvc[i], rho0) * ql_old[i] + qq_old[i]
            if abs(q) < q_cut:
                q = 0.0
            q_new[i] = q
