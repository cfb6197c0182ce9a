"""What can be said about a program from its text alone: ``python -m numba_offload check``. Nothing of it is imported or run."""
