"""Read trace files: whatever the profilers of the last years wrote, damaged or not, into columns of numbers."""
