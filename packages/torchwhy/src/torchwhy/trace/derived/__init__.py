"""What follows from a trace: gaps, waits, idle time, the critical path; functions that take a `Trace`."""
