"""Where each rule fires and where it stays silent: functions that build a small trace, marked with the rule's name.

@fires("dataloader-wait")
def batches_come_late(): return story

A function may carry several marks; `test_rules.py` runs them all and asks every rule for one of each.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

FIRES, SILENT = [], []
_FUNCTIONS = {}


def fires(*slugs):
    """Mark a function whose story makes these rules fire."""
    return _marked(FIRES, slugs)


def silent(*slugs):
    """Mark a function whose story doesn't, though it comes near."""
    return _marked(SILENT, slugs)


def _marked(where, slugs):
    def mark(function):
        place = function.__code__.co_filename, function.__code__.co_firstlineno
        assert _FUNCTIONS.setdefault(place, function) is function, f"{function.__module__} is imported a second time"
        where.extend((slug, function) for slug in slugs)
        return function

    return mark


for _file in sorted(Path(__file__).parent.glob("case_*.py")):
    import_module(f"tests.rules.{_file.stem}")
