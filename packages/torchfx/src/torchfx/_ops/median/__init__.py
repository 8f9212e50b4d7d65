"""`torchfx_ext::sliding_median`: the median of each `window` samples in a row."""
