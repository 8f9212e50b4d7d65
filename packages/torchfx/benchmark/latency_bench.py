#!/usr/bin/env python3
"""Measure time per call on blocks of 16 to 4096 samples: the same as `torchfx bench latency`.

python benchmark/latency_bench.py --quick
"""

import sys

from torchfx.cli.app import app

if __name__ == "__main__":
    app(["bench", "latency", *sys.argv[1:]])
