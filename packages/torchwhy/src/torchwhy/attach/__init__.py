"""Attach: record a program that already runs, an inference server by its address or a Python process by its number.

Nothing here needs PyTorch. What is recorded is bounded, the recording is always ended again, and the program is never
stopped.
"""
