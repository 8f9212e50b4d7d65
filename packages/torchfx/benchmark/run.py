#!/usr/bin/env python3
"""Measure one suite, or check every promised ratio.

python benchmark/run.py targets
"""

from bench.command import app

if __name__ == "__main__":
    app()
