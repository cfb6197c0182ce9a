"""This package's version, as ``pyproject.toml`` has it: what files of compiled kernels are told apart by."""

VERSION = "0.1.0"
