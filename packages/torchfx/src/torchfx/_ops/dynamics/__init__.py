"""Detectors of dynamics processors: ballistics, the gain of a compressor or expander, sliding maxima."""
