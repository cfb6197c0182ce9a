"""``python -m numba_offload demo``: kernels as a user writes them, each checked against NumPy.

``kernels`` is user code, and errors in it are reported as such; ``cases`` pairs each kernel with data,
partitions and the NumPy that it must agree with; ``mistakes`` holds what must be refused or caught;
``report`` runs and prints it all.
"""
