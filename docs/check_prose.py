"""Hold the prose of the repository to plain words: `python docs/check_prose.py`; exit status 1 where habits grow.

Each habit has a number of places where it still stands, tests left out. A new place fails the check and is printed with
its line. Where places are mended, lower the number.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]

HABITS = {
    r"in the place of|takes? the place of": (0, "instead of, replaces"),
    r"as far as": (0, "where, if"),
    r"\banew\b": (0, "again"),
    r"of its own|of one's own": (0, "its own, separate"),
    r"\btold\b": (0, "reported, shown"),
    r"\btells\b": (0, "says, shows, returns"),
    r"goes on": (0, "continues"),
    r"\b(is|are) none\b": (0, "there is no ..., has no ..."),
    r"is no error": (0, "is allowed"),
    r"in one go": (0, "in one call, in one pass"),
    r"as it stands": (0, "unchanged"),
    r"\bare what\b": (1, "name the subject first"),
    r"\bgo(es)? before\b": (0, "overrides, takes precedence, precedes"),
    r"\bthe same of\b": (0, "likewise for, or repeat the noun"),
    r"\btheir like\b": (0, "etc., similar operators"),
    r"\bspeaks? of\b": (0, "describes, refers to"),
    r"\b(is|are|was|were|be|not|as) heard\b|\bhears\b|\bto hear\b": (0, "known, audible, received, output"),
    r"\bnobody\b": (0, "no other, unused, without"),
    r"\blooked at\b": (0, "read, examined, compared"),
    r"\bany more\b": (0, "no longer"),
    r"\bis what\b": (0, "name the thing: the time that ..."),
    r"\b(has|have) none\b": (0, "without one, lacks"),
    r"\b(shapes|names|traces?|frames|samples|steps|don't|doesn't|not) tell\b": (0, "show, give"),
    r"\bcomes? to\b": (0, "is, reaches"),
    r"\bseen from\b": (0, "relative to, measured in"),
    r"\b(those|that) of\b": (288, "repeat the noun, or a genitive: the file's rate"),
    r"\basked for\b": (1, "requested"),
    r'^\s*"""What\b': (102, "begin with the noun: The result of ..., Return the ..."),
    r"\b[Bb]eside (a|an|the|it|them|this|each|its|their|others?|which|some|one|that)\b": (28, "next to, with, besides"),
    r'^\s*"""What (a|an|the)\b': (0, "name the result: The ..., Return the ..."),
    r'^\s*"""Of\b': (0, "begin with the noun: The share of ..., The ..."),
    r"\b[Ss]o (many|much|long|few)\b": (0, "at most this number of, how many, this time"),
    r"\bbut for\b": (0, "except"),
    r"\bof (their|our|your) own\b": (0, "separate, other, your own ..."),
    r"\b(its|their) likes?\b|\band the like\b": (0, "similar operators, and others"),
    r"\b(right|directly) behind\b|\bone behind the other\b": (0, "right after, one after the other"),
    r"\bfrom [0-9.,]+ ?% .*\bon\b": (0, "5% of ... or more, at least 5%"),
    r"\bin place of\b": (0, "instead of"),
}
"""The most lines in which each habit may stand, and what to write instead."""


def lines() -> list[tuple[str, str]]:
    """Return all lines of sources and pages, each with its place."""
    asked = ["git", "ls-files", "*.py", "*.md", "*.js", ":!*/tests/*", ":!docs/check_prose.py"]
    paths = subprocess.run(asked, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
    found = []
    for path in paths:
        text = (ROOT / path).read_text(encoding="utf-8")
        found += [(f"{path}:{number}", line) for number, line in enumerate(text.splitlines(), 1)]
    return found


def main() -> int:
    """Print the lines of each habit that has grown; return 1 if there is one."""
    failed, every = 0, lines()
    for habit, (most, instead) in HABITS.items():
        places = [f"{place}: {line.strip()}" for place, line in every if re.search(habit, line)]
        if len(places) > most:
            failed = 1
            sys.stdout.write(
                "\n".join([*places, f"{len(places)} lines match {habit!r}, {most} may; write: {instead}\n"])
            )
    return failed


if __name__ == "__main__":
    sys.exit(main())
