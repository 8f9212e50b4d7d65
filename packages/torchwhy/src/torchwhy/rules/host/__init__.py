"""B: the host: waiting for data and for the device, launching, the program's loop."""
