#!/usr/bin/env python3
"""Find from which length on splitting a signal along time pays: the same as `torchfx bench threshold`.

    python benchmark/bench_threshold_sweep.py --quick

The answer belongs into PARALLEL_SCAN_THRESHOLD.
"""

import sys

from torchfx.cli.app import app

if __name__ == "__main__":
    app(["bench", "threshold", *sys.argv[1:]])
