"""The safe kernels of PRESSURE."""

from numba_offload import offload_kernel


@offload_kernel
def pressure_1(compression, cls, bvc):
    for i in bvc.indices():
        bvc[i] = cls * (compression[i] + 1.0)


@offload_kernel
def pressure_2(bvc, e_old, vnewc, p_cut, eosvmax, pmin, p_new):
    for i in p_new.indices():
        p = bvc[i] * e_old[i]
        if abs(p) < p_cut:
            p = 0.0
        if vnewc[i] >= eosvmax:
            p = 0.0
        if p < pmin:
            p = pmin
        p_new[i] = p
