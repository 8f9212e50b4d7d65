#!/usr/bin/env python3
"""Print docs/performance.md, made from the JSON reports of `torchfx bench SUITE --json`.

python benchmark/performance_page.py benchmark/results/*.json > docs/performance.md
"""

import sys
from pathlib import Path

from torchfx.bench.document import page
from torchfx.bench.report import Report, ReportError


def main(paths: list[str]) -> int:
    if not paths:
        sys.stderr.write("error: name one or more JSON reports\n")
        return 2
    try:
        reports = [Report.from_json(Path(path).read_bytes()) for path in paths]
    except (ReportError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    sys.stdout.write(page(reports))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
