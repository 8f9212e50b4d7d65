"""Changes that make a program faster without an edit, each measured against the unchanged program."""

from __future__ import annotations
