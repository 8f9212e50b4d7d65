"""The report as a piece of HTML to put into a page: no scripts, nothing fetched, every text escaped."""

from __future__ import annotations

from html import escape
from typing import Any, Final

from torchfx.profiler.report.failures import failures
from torchfx.profiler.report.frames import short_name
from torchfx.profiler.report.nothing import nothing_found
from torchfx.profiler.report.rank_tables import job_tables
from torchfx.profiler.report.style import PLAIN
from torchfx.profiler.report.verdict import KINDS
from torchfx.profiler.wording import duration, percent

__all__ = ["fragment"]

_LONGEST: Final = 120
"""Characters of an event's name; kernels can have thousands."""

_GROUPS: Final = {"gpu": "GPU", "idle": "GPU idle while the host", "host": "Program"}
_CSS: Final = """
.torchfx-report{font:15px/1.5 system-ui,sans-serif;max-width:52rem}
.torchfx-report table{border-collapse:collapse}
.torchfx-report td,.torchfx-report th{padding:.15rem .8rem .15rem 0;text-align:left;font-weight:normal}
.torchfx-report td.number{text-align:right;font-variant-numeric:tabular-nums}
.torchfx-report .bar{background:#8884;width:10rem}
.torchfx-report .bar div{background:#d9822b;height:.8rem}
.torchfx-report .gpu .bar div{background:#2d8a4e}
.torchfx-report code{overflow-wrap:anywhere}
.torchfx-report .facts{opacity:.75}
"""


def fragment(report: dict[str, Any], *, verbose: bool = False) -> str:
    """Draw a report.

    Args:
        report: what `describe` returns.
        verbose: informational findings too.
    """
    trace, found = report["trace"], report["verdict"]
    findings = [finding for finding in report["findings"] if verbose or finding["severity"] != "info"]
    lines = [f'<section class="torchfx-report">\n<style>{_CSS}</style>']
    lines.append(f"<h2>{escape(trace['name'])}: {escape(KINDS.get(found['kind'], found['kind']))}</h2>")
    lines.append(f"<p><strong>{escape(found['sentence'])}</strong></p>")
    lines += [f"<p>{escape(caveat)}</p>" for caveat in found["caveats"]]
    lines += [f"<p>Repaired: {escape(repair['sentence'])}</p>" for repair in trace["repairs"]]
    if "ranks" in report:
        lines += [f"<pre>{escape(chr(10).join(part))}</pre>" for part in job_tables(report, PLAIN, verbose)]
    else:
        lines += _table(report)
    if findings:
        lines += ["<ol>", *(line for finding in findings for line in _finding(finding)), "</ol>"]
    elif report["ran"]:
        lines.append(f"<p>{escape(nothing_found(report))}</p>")
    lines += [f"<p>{escape(sentence)}</p>" for sentence in failures(report)]
    return "\n".join([*lines, "</section>"]) + "\n"


def _table(report: dict[str, Any]) -> list[str]:
    breakdown = report["breakdown"]
    if not breakdown["parts"]:
        return []
    caption = f"{escape(report['window']['name'])}, {duration(breakdown['window_us'])}"
    lines = [f"<table>\n<caption>{caption}</caption>"]
    for part in breakdown["parts"]:
        width = max(part["share"] * 100, 0.5)
        lines.append(
            f'<tr class="{escape(part["group"])}"><th>{_GROUPS[part["group"]]} {escape(part["label"])}</th>'
            f'<td class="bar"><div style="width:{width:.1f}%"></div></td>'
            f'<td class="number">{escape(percent(part["share"]))}</td>'
            f'<td class="number">{duration(part["time_us"])}</td></tr>'
        )
    return [*lines, "</table>"]


def _finding(finding: dict[str, Any]) -> list[str]:
    stake = (
        f", {duration(finding['time_us'])} of {duration(finding['window']['duration_us'])}"
        if finding["time_us"]
        else ""
    )
    stake += " at stake" if stake and finding["severity"] != "info" else ""
    facts = f"{finding['severity']}{stake}; {finding['code']} {finding['slug']}"
    lines = [f"<li><p><strong>{escape(finding['title'])}</strong><br>"]
    lines.append(f'<span class="facts">{escape(facts)}</span></p>\n<ul>')
    for item in finding["evidence"][:3]:
        more = [f"{item['count']:,} times"] if item["count"] > 1 else []
        more += [duration(item["time_us"])] if item["time_us"] else []
        more += [text for text in (item["note"], item["where"]) if text]
        at = f", at <code>{escape(item['own_code'])}</code>" if item.get("own_code") else ""
        name = escape(PLAIN.shorten(short_name(item["name"]), _LONGEST))
        lines.append(f"<li><code>{name}</code> {escape(', '.join(more))}{at}</li>")
    why = "Why, probably" if finding["cause_is"] == "inferred" else "Why"
    lines.append(f"</ul>\n<p>{why}: {escape(finding['cause'])}</p>")
    lines += [f"<p><strong>Fix</strong>: {escape(finding['fix'])}</p>"] if finding["fix"] else []
    return [*lines, "</li>"]
