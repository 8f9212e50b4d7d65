#!/usr/bin/env python3
"""Measure four ways of writing one chain of six recursive filters.

python benchmark/api_bench.py --quick
"""

import sys

from bench.command import app

if __name__ == "__main__":
    app(["api", *sys.argv[1:]])
