"""A trace as a file for other programs: `torchfx export`."""
