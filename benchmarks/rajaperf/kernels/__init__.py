"""The thirteen kernels, written once for every target."""
