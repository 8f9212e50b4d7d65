#!/usr/bin/env python3
"""Measure five finite impulse responses in a row.

python benchmark/fir_bench.py --quick
"""

import sys

from bench.command import app

if __name__ == "__main__":
    app(["fir", *sys.argv[1:]])
