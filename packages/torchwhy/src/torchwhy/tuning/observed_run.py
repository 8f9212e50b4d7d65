"""The process in which a program runs once and is observed."""

from __future__ import annotations

import pickle
import sys
from pathlib import Path

import msgspec

from torchwhy.capture.launch.ending import Ending, run_to_end
from torchwhy.tuning.observer import EnoughStepsError, Observer
from torchwhy.tuning.records import Request

__all__ = ["main"]


def main() -> None:
    """Run what the pickled `Request` in the file that the first argument names says, and end as the program does."""
    request: Request = pickle.loads(Path(sys.argv[1]).read_bytes())
    observer = Observer(request)
    observer.start()

    def leave_record() -> None:
        request.record.write_bytes(msgspec.msgpack.encode(observer.record()))

    def run() -> None:
        try:
            request.program.run()
        except EnoughStepsError:
            leave_record()
            Ending("finished", 0).follow_in_child()  # its threads may never end

    ending = run_to_end(run)
    if not ending.status:
        leave_record()
    ending.follow()
    sys.exit(ending.status)
