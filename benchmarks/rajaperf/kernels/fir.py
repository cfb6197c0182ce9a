"""The safe kernel of FIR."""

from numba_offload import offload_kernel

TAPS = 16


@offload_kernel
def fir(signal, taps, out):
    for i in out.indices():
        total = 0.0
        for j in range(TAPS):
            total += taps[j] * signal[i + j]
        out[i] = total
