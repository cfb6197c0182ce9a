"""Seven RAJA Performance Suite "Apps" benchmarks (13 kernels) as safe offload kernels.

Follows the suite's release v2025.12: its default sizes, data, repetitions and checksum rule. The suite
stores no reference checksums; those given here were measured from its sequential variant.
Source: https://github.com/llnl/RAJAPerf (BSD-3-Clause; described anew here, no code taken).
"""
