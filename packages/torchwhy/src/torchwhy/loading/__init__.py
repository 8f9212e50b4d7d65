"""Load traces: `load`, and `load_job` for all ranks of a program."""
