"""The report in short says what the whole one says, without evidence."""

from dataclasses import replace

from tests.analysis.programs import computing, training
from tests.traces import Story, a_finding, samples
from torchwhy.finding import Evidence
from torchwhy.present import explanation
from torchwhy.present.formats import render
from torchwhy.present.options import Options
from torchwhy.present.style import PLAIN, Style
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import Diagnosis, diagnose


def short_explanation(report, style=PLAIN):
    return render(explanation.short_explanation(report), options=Options(style)).rstrip("\n")


def report_of(story, findings=None):
    trace = story.trace()
    found = diagnose(trace) if findings is None else Diagnosis(tuple(findings), {})
    return describe(trace, replace(found, asked=("A1", "B9")))


def finding(number, fix="Do it.", severity="medium"):
    window = computing().trace().window
    return a_finding(window, title=f"Symptom {number}", severity=severity, fix=fix, code=f"X{number}", slug="slug")


def test_verdict_parts_and_fixes_are_told():
    told = short_explanation(report_of(training(load=480))).splitlines()
    assert told[0] == "INPUT-BOUND"
    assert told[1].startswith("The GPU waits for data: for 48% of the 4 steps")
    assert any(line.startswith("Where the time goes (4.00 ms)") for line in told)
    assert any("(B9 dataloader-wait, high)" in line for line in told)
    assert not any("Why" in line for line in told)
    assert max(map(len, told)) <= 80


def test_what_is_only_good_to_know_is_left_out():
    told = short_explanation(report_of(computing(), [finding(1, severity="info")]))
    assert "Symptom" not in told
    assert told.endswith("2 rules looked and found nothing to change.")


def test_the_first_line_of_the_program_is_named():
    seen = (Evidence("aten::mm", 3, 5.0), Evidence("/run/train.py(3): step", 2, 4.0), Evidence("b.py(4): f", 1, 1.0))
    told = short_explanation(report_of(computing(), [replace(finding(1), evidence=seen)])).splitlines()
    assert [line.split()[0] for line in told[-2:]] == ["See", "Fix"]
    assert told[-2].endswith("train.py(3): step")


def test_the_source_of_that_line_is_shown():
    story = samples(computing(), [["train.py(3): step |x = frame[frame.id == i]"]] * 2)
    seen = (Evidence("train.py(3): step", 2, 4.0),)
    shown = short_explanation(report_of(story, [replace(finding(1), evidence=seen)])).splitlines()
    at = next(i for i, line in enumerate(shown) if line.endswith("See  train.py(3): step"))
    assert shown[at + 1].strip() == "x = frame[frame.id == i]"


def test_more_findings_than_a_screen_holds_are_counted():
    told = short_explanation(report_of(computing(), [finding(number) for number in range(8)]))
    assert [f"Symptom {number}" in told for number in range(8)] == [True] * 5 + [False] * 3
    assert told.endswith("and 3 findings more")


def test_a_fix_takes_two_lines_of_whole_sentences():
    sentence = "Move it out of the loop, since it takes long."
    told = short_explanation(report_of(computing(), [finding(1, " ".join([sentence] * 5))])).splitlines()
    assert told[-2:] == [
        "    Fix  Move it out of the loop, since it takes long. Move it out of the loop,",
        "         since it takes long. Move it out of the loop, since it takes long.",
    ]


def test_the_first_sentence_is_told_whole():
    told = short_explanation(report_of(computing(), [finding(1, "word " * 60 + "end. More.")]))
    assert told.count("word") == 60
    assert "end." in told
    assert "More" not in told


def test_colour_and_characters_are_the_styles():
    report = report_of(computing(), [finding(1)])
    assert short_explanation(report, Style(80, colour=True)).startswith("\x1b[1;32mCOMPUTE-BOUND\x1b[0m")
    assert short_explanation(report, Style(80)).isascii()


def test_an_empty_trace_has_a_digest():
    assert short_explanation(report_of(Story(gpu=None), [])).startswith("CAN'T TELL\n")
