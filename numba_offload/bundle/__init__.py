"""Kernels compiled beforehand, in files that LLVM's tools read as well."""
