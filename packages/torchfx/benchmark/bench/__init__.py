"""Benchmarks that can be believed: equality first, then interleaved rounds, medians with their spread.

Every contender runs in a separate process, which may belong to another Python; only one works at a time.
"""
