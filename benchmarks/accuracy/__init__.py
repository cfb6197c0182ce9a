"""How far kernels' mathematics is from the exact values, in units of the last place."""
