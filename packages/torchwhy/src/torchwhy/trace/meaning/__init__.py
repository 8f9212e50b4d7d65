"""What the names of events mean. Nothing else in the profiler matches names."""
