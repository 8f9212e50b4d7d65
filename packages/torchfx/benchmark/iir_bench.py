#!/usr/bin/env python3
"""Measure four recursive filters in a row: the same as `torchfx bench iir`.

python benchmark/iir_bench.py --quick
"""

import sys

from torchfx.cli.app import app

if __name__ == "__main__":
    app(["bench", "iir", *sys.argv[1:]])
