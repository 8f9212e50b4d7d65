"""The device's computation and its efficiency."""
