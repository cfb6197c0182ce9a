"""The safe kernel of LTIMES."""

from numba_offload import offload_kernel


@offload_kernel
def ltimes(ell, psi, phi):
    for z, g, m in phi.indices():
        # Starting from phi itself keeps the suite's order of summation, which adds to it in memory.
        total = phi[z, g, m]
        for d in range(psi.shape[2]):
            total += ell[m, d] * psi[z, g, d]
        phi[z, g, m] = total
