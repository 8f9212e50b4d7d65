"""Documents with every kind of block, and reports drawn, for the tests of views and renderers."""

import msgspec

from torchwhy.present.document import (
    Bar,
    Bars,
    Calls,
    Caveat,
    Check,
    Checks,
    Code,
    Column,
    Document,
    Evidence,
    Facts,
    File,
    FindingItem,
    Findings,
    Heading,
    Name,
    RuleOutcome,
    Rules,
    Table,
    Text,
    VerdictBlock,
    Words,
    rows_of,
)
from torchwhy.present.explanation import explanation
from torchwhy.present.formats import render
from torchwhy.present.job_explanation import job_explanation
from torchwhy.present.options import Options
from torchwhy.present.style import PLAIN
from torchwhy.report.job_report import JobReport


class Answer(msgspec.Struct, frozen=True):
    schema: int
    name: str


def every_block(name="run", severity="high"):
    """A document whose foreign texts are all `name`."""
    item = FindingItem(
        "B9", "dataloader-wait", name, severity, "low", 5.0, f"5 us of {name}", "not sure", name,
        (Evidence(name, name, name, name), Evidence("mm", "2 times")), name, name,
    )  # fmt: skip
    columns = (Column("what"), Column("n", number=True), Column("where"), Column("by"), Column("why", below=True))
    cells = [(name, "1", File(name), Calls((name, "mm")), Words(name)), (Name(name, name), "22", "", "", Words("why"))]
    return Document(
        name,
        (
            Caveat("Repaired", name),
            VerdictBlock("input-bound", name, (name,), "bad"),
            Heading(name),
            Text(name),
            Text(name, "Sees"),
            Facts(((name, name), ("b", "c")), name),
            Code((name, "b = 1"), "toml", name),
            Bars(name, (Bar("GPU", depth=0), Bar(name, 0.5, "50%", "5 us", name, "good")), name, (name, name), (name,)),
            Table(columns, rows_of(cells, 1), name, (name,), ("row", "rows")),
            Findings((item,), name, name),
            Rules((RuleOutcome("B9", "dataloader-wait"), RuleOutcome("B1", "x", "muted", name),
                   RuleOutcome(name, "", "failed", name))),
            Checks((Check(name, "failed", name, (name,), "a.py", 3), Check("k", "passed", "kept"),
                    Check("s", "skipped", name)), name),
            Text(name, look="dim"),
        ),
        Answer(1, name),
        (name,),
        "explain",
        "run/trace.json.gz",
    )  # fmt: skip


def shown(report, form="text", style=PLAIN, *, verbose=False, fail_on="medium"):
    """A report on a trace or a job as a reader sees it."""
    document = job_explanation(report) if isinstance(report, JobReport) else explanation(report)
    return render(document, form, Options(style, verbose, fail_on))
