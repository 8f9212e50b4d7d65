"""Tables of a trace: the results of `trace.ops()`, `trace.kernels()` etc."""
