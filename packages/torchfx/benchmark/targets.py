#!/usr/bin/env python3
"""Measure every promised ratio in one run; exit status 1 when one is missed.

python benchmark/targets.py
"""

import sys

from bench.command import app

if __name__ == "__main__":
    app(["targets", *sys.argv[1:]])
