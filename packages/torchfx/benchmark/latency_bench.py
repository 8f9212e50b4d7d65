#!/usr/bin/env python3
"""Measure time per call on blocks of 16 to 4096 samples.

python benchmark/latency_bench.py --quick
"""

import sys

from bench.command import app

if __name__ == "__main__":
    app(["latency", *sys.argv[1:]])
