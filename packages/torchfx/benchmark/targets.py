#!/usr/bin/env python3
"""Measure every promised ratio in one run; exit status 1 when one is missed: the same as `torchfx bench targets`.

python benchmark/targets.py
"""

import sys

from torchfx.cli.app import app

if __name__ == "__main__":
    app(["bench", "targets", *sys.argv[1:]])
