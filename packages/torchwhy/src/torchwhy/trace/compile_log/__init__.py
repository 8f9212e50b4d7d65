"""The compiler's own log, which PyTorch writes for TORCH_TRACE, and its reasons."""
