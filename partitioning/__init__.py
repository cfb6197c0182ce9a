"""Who owns what: strategies that map (thread, slot) injectively to an element. Needs neither Numba nor NumPy."""
