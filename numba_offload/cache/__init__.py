"""Compiled kernels on disk: with ``cache=True`` a call that was compiled before is not compiled again, in any process."""
