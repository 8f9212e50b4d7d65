"""Jobs that hang: the dumps of PyTorch's flight recorder, read and compared across ranks."""
