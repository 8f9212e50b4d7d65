"""The page of measured figures and the README's table of speeds, made from reports and nothing else."""

from __future__ import annotations

from collections.abc import Sequence

from bench.plots import terminal
from bench.report import LatencyRow, Report, ReportError, TargetRow
from bench.tables import HEADERS, cells, machine, remarks

__all__ = ["page", "with_speeds"]

INTRODUCTION = """\
# Performance

<!-- Written by benchmark/performance_page.py from the JSON reports in benchmark/results; see CONTRIBUTING.md. -->

These tables compare torchfx with SciPy, PyTorch and other libraries. To measure your machine, run this in
`packages/torchfx` of the [source tree](start.md#the-source-tree):

    python benchmark/run.py targets
    python benchmark/run.py iir

Before anything is timed, each result is compared with SciPy in float64. The column "deviation" shows the difference
relative to the peak; torchfx must lie within 2e-7. Contenders run alternately (A B A B), each in its own process; the
targets and the threshold run in one process. Times are medians with quartiles; ratios are computed for each turn. A
sample is one channel at one instant. GB/s counts 8 bytes per sample (float32, read once and written once). "of copy"
is the share of the bandwidth that PyTorch's own copy reached in the same rounds. Ratios carry over to other machines
better than times.

A second-order section takes five multiply-adds in double precision a sample. With AVX2 that is 0.625 cycles at least,
at two vectors a cycle: 0.171 ns at 3.66 GHz. On one such core (AMD Zen 4, 11/2026) each further section of a cascade
took 0.186 ns with AVX2, 0.171 with AVX-512, whose vectors this processor takes in halves; four sections took 0.99 and
0.89 ns, of which 0.2 to 0.25 are reading, transposing, converting and writing the samples.
"""

SPEEDS = ("<!-- speeds: written by benchmark/performance_page.py -->", "<!-- end of speeds -->")
"""The lines of the README between which its table of speeds stands."""

BAR = "\\|"  # a bar within a cell

SCIPY = ("sosfilt", "lfilter", "oaconvolve")

LEGEND = """\
IIR: four second-order sections in a row; FIR: about 100 taps. `sosfilt` gets all sections in one call, `oaconvolve` all
taps convolved beforehand, `lfilter` is called once for each filter.
"""

ORDER = ("targets", "iir", "fir", "api", "latency", "threshold")


def page(reports: Sequence[Report]) -> str:
    """Return the page as Markdown, suites in a fixed order."""
    parts = [INTRODUCTION]
    for report in sorted(reports, key=lambda report: ORDER.index(report.suite)):
        parts += [f"## {report.suite}: {report.title}\n", f"{report.work}. Reference: {report.baseline}.\n"]
        parts.append(f"Machine: {machine(report)}.\n")
        if report.rows:
            parts.append(_table(report))
        said = [f"- {remark}" for remark in remarks(report)]
        if said:
            parts.append("\n".join(said) + "\n")
        if isinstance(report.rows[0] if report.rows else None, LatencyRow):
            parts.append(f"```text\n{_plain(terminal.draw(report))}\n```\n")
    return "\n".join(parts)


def with_speeds(readme: str, reports: Sequence[Report]) -> str:
    """Return a README with its table of speeds made again from the report of the suite targets: a row for each peer.

    Rows of work that takes longer than the peer's are on the page of measured figures only.

    Raises:
        ReportError: the README lacks the lines between which the table stands, or the suite targets has no report.
    """
    targets = next((report for report in reports if report.suite == "targets"), None)
    if targets is None:
        raise ReportError("the reports must include that of the suite targets")
    before, first, rest = readme.partition(SPEEDS[0])
    _, last, after = rest.partition(SPEEDS[1])
    if not first or not last:
        raise ReportError(f"README.md must hold the lines {SPEEDS[0]} and {SPEEDS[1]}")
    lines = ["| work | against | times faster |", "|---|---|---|"]
    faster = [row for row in targets.rows if isinstance(row, TargetRow) and row.relation == ">=" and row.ratio >= 1]
    by_peer: dict[str, TargetRow] = {}
    for row in faster:
        by_peer.setdefault(row.claim.partition(", over ")[2], row)
    for other, row in by_peer.items():
        against = f"`scipy.signal.{other}`" if other in SCIPY else other
        work = row.claim.partition(", over ")[0]
        lines.append(f"| {work} | {against} | {row.ratio:.{0 if row.ratio >= 10 else 1}f} |")
    return "\n".join([f"{before}{first}", *lines, "", f"{LEGEND}{last}{after}"])


def _table(report: Report) -> str:
    header = HEADERS[type(report.rows[0])]
    lines = [f"| {' | '.join(header)} |", f"|{'---|' * len(header)}"]
    lines += [f"| {' | '.join(cell.replace('|', BAR) for cell in cells(row))} |" for row in report.rows]
    return "\n".join(lines) + "\n"


def _plain(drawing: str) -> str:
    return "\n".join(line.rstrip() for line in drawing.splitlines())
