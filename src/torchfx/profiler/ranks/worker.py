"""What a process does that reads one trace after the other.

It takes pickled requests on standard input and answers on standard output, so that it needs nothing of the program
that started it: no `if __name__ == "__main__"` there, no fork, and no PyTorch here.
"""

from __future__ import annotations

import os
import pickle
import sys
from typing import BinaryIO

from torchfx.errors import TraceError
from torchfx.profiler.ranks.summary import summarise

__all__ = ["main", "serve"]


def serve(requests: BinaryIO, answers: BinaryIO) -> None:
    """Answer each (path, thresholds) with a `Summary`, or with the text of why there is none."""
    while True:
        try:
            path, thresholds = pickle.load(requests)
        except EOFError:
            return
        answer: object
        try:
            answer = summarise(path, thresholds)
        except TraceError as error:
            answer = str(error)
        except MemoryError:
            answer = f"{path} does not fit into memory"
        pickle.dump(answer, answers, pickle.HIGHEST_PROTOCOL)
        answers.flush()


def main() -> None:
    """Serve on standard input and output."""
    with os.fdopen(os.dup(sys.stdout.fileno()), "wb") as channel:
        os.dup2(sys.stderr.fileno(), sys.stdout.fileno())  # nothing else may write into the channel
        serve(sys.stdin.buffer, channel)
