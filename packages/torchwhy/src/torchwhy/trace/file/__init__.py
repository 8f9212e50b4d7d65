"""From bytes to columns: read a trace file in one pass."""
