#!/usr/bin/env python3
"""Measure four ways of writing one chain of six recursive filters: the same as `torchfx bench api`.

python benchmark/api_bench.py --quick
"""

import sys

from torchfx.cli.app import app

if __name__ == "__main__":
    app(["bench", "api", *sys.argv[1:]])
