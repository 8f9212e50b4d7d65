"""torch.compile: time spent compiling, code compiled again, pieces too small, what stayed uncompiled."""
