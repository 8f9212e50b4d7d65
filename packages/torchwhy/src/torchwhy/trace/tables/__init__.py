"""Tables about a trace: the answers of `trace.ops()`, `trace.kernels()` and their like."""
