"""Other libraries' interfaces, for programs that were written for them."""
