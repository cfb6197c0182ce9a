"""Safe partitioned kernels with automatic transfers, on the CPU, NVIDIA and AMD GPUs."""
