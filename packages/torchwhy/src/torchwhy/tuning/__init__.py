"""What makes a program faster without an edit: changes from outside, each measured against the program as it is."""

from __future__ import annotations
