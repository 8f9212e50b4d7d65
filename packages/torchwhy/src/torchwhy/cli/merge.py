"""`torchwhy merge`."""

from __future__ import annotations

from pathlib import Path

from torchwhy.cli.console import complain, patience
from torchwhy.cli.documents import show
from torchwhy.cli.jobs import READING, read_job
from torchwhy.errors import ArgumentError, TraceError
from torchwhy.present.formats import check_format
from torchwhy.present.written_files import merged_timeline
from torchwhy.ranks.timeline import merge_ranks

__all__ = ["run"]


def run(folder: str, output: Path, form: str) -> int:
    """Write the timelines of all ranks into one file; return 0, 2 for misuse, 3 for what cannot be read or written."""
    try:
        check_format(form)
        with patience(f"reading {folder}"):
            job = read_job(folder, READING)
        with patience(f"writing {output}"):
            document = merged_timeline(merge_ranks(job, output))
    except ArgumentError as error:
        return complain(error, 2)
    except TraceError as error:
        return complain(error, 3)
    except OSError as error:
        return complain(f"cannot write {output}: {error.strerror or error}", 3)
    show(document, form)
    return 0
