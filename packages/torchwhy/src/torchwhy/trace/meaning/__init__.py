"""The meanings of events' names. Nothing else in the profiler matches names."""
