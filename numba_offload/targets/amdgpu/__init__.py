"""AMD GPUs: kernels as code objects, launched through HIP. Compiling and linking need neither a GPU nor ROCm."""
