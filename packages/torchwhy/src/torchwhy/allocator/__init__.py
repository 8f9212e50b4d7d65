"""Snapshots of PyTorch's caching allocator: who holds the memory of a GPU, and who held it at the peak."""
