"""Rules: what a trace can show, one function each; families in the packages below, one concept per file."""

from __future__ import annotations
