#!/usr/bin/env python3
"""Find from which length on splitting a signal along time pays.

    python benchmark/bench_threshold_sweep.py --quick

The answer belongs into torchfx._ops.splitting.THRESHOLD.
"""

import sys

from bench.command import app

if __name__ == "__main__":
    app(["threshold", *sys.argv[1:]])
