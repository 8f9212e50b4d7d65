"""Reports and their views: JSON, CSV, tables, drawings, the page."""

import json
from dataclasses import fields, replace
from pathlib import Path

import pytest

from bench import document, tables
from bench.plots import png, terminal
from bench.report import (
    ROWS,
    LatencyRow,
    Refusal,
    Report,
    ReportError,
    TargetRow,
    ThresholdRow,
    ThroughputRow,
)

MACHINE = {
    "processor": "Abacus", "cores": 2, "threads": 2, "instruction_set": "beads", "memory_gib": 1.0,
    "others": 0.01, "gpu": None, "system": "Wood", "versions": {"python": "3", "torch": "2", "scipy": "1"},
}  # fmt: skip

ROW_SETS = {
    "iir": [
        ThroughputRow("copy", "cpu", 2, 1, 0.001, 0.0009, 0.002, 5, 1, None, 11, 0.7, 1.0, None, None, None),
        ThroughputRow("torchfx", "cpu", 2, 1, 0.002, 0.002, 0.002, 5, 1, 3e-8, 22, 0.35, 0.5, 4.0, 3.0, 5.0),
    ],
    "latency": [LatencyRow("torchfx", "cpu", 2, 64, 10, 5.0, 6.0, 7.0, 8.0, 1451.0, 3e-8, [1.0, 5.0, 25.0], [4, 6])],
    "threshold": [ThresholdRow(1, n, 10.0, 10.0 / gain, gain, gain, gain) for n, gain in ((64, 0.5), (128, 2.0))],
    "targets": [TargetRow("twice as fast", ">=", 2.0, 4.0, 3.9, 4.1, 5, 3e-8, 0.1, 0.4, True)],
}


def report(suite, **more):
    return Report(suite, "a title", "a chain", "a baseline", MACHINE, ROW_SETS[suite], **more)


@pytest.mark.parametrize("suite", ROW_SETS)
def test_json_holds_everything(suite):
    made = report(suite, refused=[Refusal("x", "cpu", "2 x 1 s", "off")], notes=["a note"])
    data = json.loads(made.to_json())
    assert data["schema"] == 1
    assert data["hardware"]["processor"] == "Abacus"
    assert set(data["rows"][0]) == {field.name for field in fields(ROWS[suite])}
    assert Report.from_json(made.to_json()) == made


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"schema": 2}', '{"schema": 1, "suite": "iir", "rows": [{}]}'])
def test_other_json_is_an_error(text):
    with pytest.raises(ReportError):
        Report.from_json(text)


def test_csv_has_a_header_and_one_line_a_row():
    lines = report("iir").to_csv().splitlines()
    assert lines[0].split(",")[:5] == ["contender", "device", "channels", "duration_s", "time_s"]
    assert lines[1].split(",")[:5] == ["copy", "cpu", "2", "1", "0.001"]
    assert len(lines) == 3
    assert "edges_us" not in report("latency").to_csv()


@pytest.mark.parametrize("suite", ROW_SETS)
def test_tables_have_a_cell_for_each_header(suite):
    made = report(suite)
    assert all(len(tables.cells(row)) == len(tables.HEADERS[type(row)]) for row in made.rows)
    assert len(tables.as_text(made).splitlines()) == 1 + len(made.rows)


@pytest.mark.parametrize("suite", ROW_SETS)
def test_drawings_are_plain_text_and_png(suite, tmp_path):
    drawn = terminal.draw(report(suite))
    assert "#" in drawn
    assert drawn.isascii()
    png.save(report(suite), tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    with pytest.raises(ReportError, match="cannot write"):
        png.save(report(suite), tmp_path / "missing" / "a.png")


def test_bars_are_longer_for_more():
    lines = terminal.bars("t", [("a", 1.0), ("b", 10.0), ("c", 100.0)], "s", width=21)
    assert [line.count("#") for line in lines[1:]] == [1, 11, 21]
    assert terminal.bars("t", [("a", 3.0)], "s")[1].count("#") == 1
    assert terminal.bars("t", [], "s") == []


def test_a_report_without_rows_can_be_shown(tmp_path):
    empty = Report("iir", "a title", "a chain", "a baseline", MACHINE, [], [Refusal("x", "cpu", "start", "gone")])
    assert tables.as_text(empty) == terminal.draw(empty) == ""
    png.save(empty, tmp_path / "a.png")
    assert "gone" in document.page([empty])
    assert not empty.passed()


def test_a_busy_machine_is_mentioned():
    busy = replace(report("iir"), hardware={**MACHINE, "others": 0.4})
    assert any("don't trust" in remark for remark in tables.remarks(busy))
    assert not any("don't trust" in remark for remark in tables.remarks(report("iir")))


def test_a_missed_target_fails():
    missed = TargetRow("twice as fast", ">=", 2.0, 1.0, 0.9, 1.1, 5, 3e-8, 0.1, 0.1, False)
    assert report("targets").passed()
    assert not Report("targets", "", "", "", MACHINE, [missed]).passed()


def test_the_documents_are_those_that_the_reports_make():
    root = Path(__file__).parents[2]
    reports = [Report.from_json(path.read_bytes()) for path in sorted((root / "benchmark" / "results").glob("*.json"))]
    assert {report.suite for report in reports} == set(ROWS)
    assert (root / "docs" / "performance.md").read_text() == document.page(reports)
    readme = (root / "README.md").read_text()
    assert readme == document.with_speeds(readme, reports)


def test_the_readme_has_a_row_for_each_peer_and_keeps_its_text():
    rows = [
        TargetRow(claim, relation, 2.0, found, found, found, 5, 3e-8, 0.1, 0.4, True)
        for claim, relation, found in (
            ("a, 60 s, over sosfilt", ">=", 13.54),
            ("b, over lfilter", ">=", 3.54),
            ("a, 5 s, over sosfilt", ">=", 11.0),
            ("c, over a loop of sosfilt", ">=", 12.0),
            ("d, cost in torch.mul", "<=", 1.0),
        )
    ]
    reports = [report("iir"), Report("targets", "", "", "", MACHINE, rows)]
    first, last = document.SPEEDS
    made = document.with_speeds(f"before\n\n{first}\n| old |\n{last}\n\nafter\n", reports)
    assert made.startswith(
        f"before\n\n{first}\n| work | against | times faster |\n|---|---|---|\n"
        "| a, 60 s | `scipy.signal.sosfilt` | 14 |\n| b | `scipy.signal.lfilter` | 3.5 |\n"
        "| c | a loop of sosfilt | 12 |\n\n"
    )
    assert made.endswith(f"\n{last}\n\nafter\n")
    assert document.with_speeds(made, reports) == made
    with pytest.raises(ReportError, match="must hold the lines"):
        document.with_speeds(f"{last}\n{first}", reports)
    with pytest.raises(ReportError, match="suite targets"):
        document.with_speeds(made, [report("iir")])


def test_a_bar_in_a_claim_does_not_end_its_cell():
    row = replace(ROW_SETS["targets"][0], claim="wave | chain, cost")
    page = document.page([Report("targets", "", "", "", MACHINE, [row])])
    assert "| wave \\| chain, cost | >= 2 |" in page


def test_the_page_names_the_machine_and_shows_every_row():
    page = document.page([report(suite) for suite in ROW_SETS])
    assert page.count("Abacus, 2 cores, 2 threads, instruction set beads") == len(ROW_SETS)
    assert [line for line in page.splitlines() if line.startswith("## ")] == [
        "## targets: a title", "## iir: a title", "## latency: a title", "## threshold: a title",
    ]  # fmt: skip
    assert "| twice as fast | >= 2 | 4.00 | 3.90 to 4.10 | 100 ms | 400 ms | 3e-08 | pass |" in page
    assert "1 channel, float32: splitting pays from 128 samples on" in page
