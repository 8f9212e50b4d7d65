#!/usr/bin/env python3
"""Measure five finite impulse responses in a row: the same as `torchfx bench fir`.

python benchmark/fir_bench.py --quick
"""

import sys

from torchfx.cli.app import app

if __name__ == "__main__":
    app(["bench", "fir", *sys.argv[1:]])
