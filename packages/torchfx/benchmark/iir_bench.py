#!/usr/bin/env python3
"""Measure four recursive filters in a row.

python benchmark/iir_bench.py --quick
"""

import sys

from bench.command import app

if __name__ == "__main__":
    app(["iir", *sys.argv[1:]])
