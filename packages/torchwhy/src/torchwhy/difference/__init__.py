"""How two recordings of a program differ: computed here, shown by `present.comparison`."""
