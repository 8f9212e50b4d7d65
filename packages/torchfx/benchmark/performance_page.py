#!/usr/bin/env python3
"""Write docs/performance.md and README.md's table of speeds, made from the JSON reports in benchmark/results.

python benchmark/performance_page.py
"""

import sys
from pathlib import Path

from bench.document import page, with_speeds
from bench.report import Report, ReportError, write

REPOSITORY = Path(__file__).parents[1]


def main(root: Path = REPOSITORY) -> int:
    try:
        readme = root / "README.md"
        paths = sorted((root / "benchmark" / "results").glob("*.json"))
        reports = [Report.from_json(path.read_bytes()) for path in paths]
        with_table = with_speeds(readme.read_text(encoding="utf-8"), reports)
        write(root / "docs" / "performance.md", page(reports))
        write(readme, with_table)
    except (ReportError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return 3
    return 0


if __name__ == "__main__":
    sys.exit(main())
