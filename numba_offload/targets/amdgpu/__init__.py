"""AMD GPUs: kernels as code objects. What is here compiles and links without a GPU; nothing launches them yet."""
