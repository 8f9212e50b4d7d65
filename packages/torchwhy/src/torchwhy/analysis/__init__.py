"""Analysis of a trace as typed data: the recorded events, where the time went, the verdict with its caveats."""
