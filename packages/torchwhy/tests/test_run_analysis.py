"""When a run is over, its folder says what is wrong; whatever goes wrong with that stays a sentence."""

import gzip
import json
import warnings

import numpy as np
import pytest
import torch

import torchwhy
from tests.analysis.programs import computing, training
from tests.traces import Story
from torchwhy import run_analysis
from torchwhy.run_analysis import read_back


@pytest.fixture
def run(tmp_path):
    """A run that waits for data half of the time."""
    folder = tmp_path / "my run"
    folder.mkdir()
    write(folder / "trace.json.gz", training(load=480))
    (folder / "report.txt").write_text("program    train.py\n")
    return folder


def write(path, story):
    path.write_bytes(gzip.compress(story.text().encode()))


def codes(folder, name="findings.json"):
    return [finding["code"] for finding in json.loads((folder / name).read_text())["findings"]]


def test_findings_are_written_and_told(run):
    explanation = read_back(run, run)
    report = json.loads((run / "findings.json").read_text())
    assert (report["schema"], report["trace"]["name"], report["verdict"]["kind"]) == (1, "my run", "input-bound")
    assert explanation.text.startswith("INPUT-BOUND\n")
    assert explanation.text.endswith(f"torchwhy explain '{run}' shows the evidence.")
    assert [finding.code for finding in explanation.findings] == codes(run)
    assert "B9" in codes(run)


def test_the_report_keeps_what_was_there_and_gets_the_whole_explanation(run):
    read_back(run, run)
    said = (run / "report.txt").read_text()
    assert said.startswith("program    train.py\n\n")
    assert "Why  " in said
    assert sorted(path.name for path in run.iterdir()) == [
        *("findings.json", "operators.json", "operators.txt", "report.html", "report.txt", "trace.json.gz")
    ]


def test_each_window_has_findings_of_its_own(run):
    write(run / "trace-2.json.gz", computing())
    explanation = read_back(run, run)
    assert "B9" not in codes(run, "findings-2.json")
    assert "B9" in [finding.code for finding in explanation.findings]
    assert "ProfilerStep#5 to ProfilerStep#7: compute-bound." in explanation.text
    assert "(findings-2.json)" in explanation.text


def test_a_later_window_without_steps_is_named_by_its_number(run):
    story = Story(gpu=None)
    story.op("aten::mm", 10, 900)
    write(run / "trace-2.json.gz", story)
    text = read_back(run, run).text
    assert "window 2: " in text
    assert "the whole trace" not in text


def test_the_text_has_any_format(run):
    write(run / "trace-2.json.gz", computing())
    (run / "run.json").write_text('{"problems": ["the last window is short"], "hints": []}')
    page = read_back(run, run, form="markdown").text
    assert "the last window is short" in page
    kinds = [report["verdict"]["kind"] for report in json.loads(read_back(run, run, form="json").text)["reports"]]
    assert kinds == ["input-bound", "compute-bound"]
    assert read_back(run, run, form="github").text.count("\n::")


def test_settings_are_those_where_the_program_was_started(run, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.torchwhy.rules]\nignore = ["B9"]\n')
    read_back(run, tmp_path)
    assert "B9" not in codes(run)


def test_wrong_settings_are_told(run, tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.torchwhy.rules]\nignore = ["B99"]\n')
    text = read_back(run, tmp_path).text
    assert "no rule or family is called 'B99'" in text
    assert text.endswith("tries again.")
    assert not (run / "findings.json").exists()


def test_what_is_too_large_is_left_for_later(run, monkeypatch):
    write(run / "trace-2.json.gz", computing())
    monkeypatch.setattr(run_analysis, "LARGEST", (run / "trace.json.gz").stat().st_size)
    assert "1 more window was not read" in read_back(run, run).text
    monkeypatch.setattr(run_analysis, "LARGEST", 10)
    explanation = read_back(run, run)
    assert explanation.text == f"The trace is large; torchwhy explain '{run}' reads it and says what is wrong."
    assert explanation.findings == ()


@pytest.mark.parametrize("harm", ["no trace", "no JSON", "no report", "no room"])
def test_nothing_is_raised(run, monkeypatch, harm):
    def full(*_):
        raise OSError(28, "No space left on device")

    if harm == "no trace":
        (run / "trace.json.gz").unlink()
    elif harm == "no JSON":
        (run / "trace.json.gz").write_bytes(b"nothing of the kind")
    elif harm == "no report":
        (run / "report.txt").unlink()
    else:
        monkeypatch.setattr(run_analysis, "add_file", full)
    assert read_back(run, run).text.startswith("The trace was not read (")
    assert not list(run.glob(".*"))


def test_a_mistake_of_ours_is_told(run, monkeypatch):
    def mistaken(*_):
        raise KeyError("Input Dims")

    monkeypatch.setattr(run_analysis, "describe", mistaken)
    assert "(KeyError: 'Input Dims')" in read_back(run, run).text


def test_a_program_that_makes_errors_of_warnings_keeps_them(run):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        assert read_back(run, run).findings
        assert np.geterr()["divide"] == "raise"


def test_a_rank_points_to_the_others(run, monkeypatch):
    monkeypatch.setenv("RANK", "0")
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert read_back(run, run).text.endswith(f"torchwhy explain {run.parent} compares the ranks.")


def test_the_context_manager_ends_with_findings(tmp_path):
    with torchwhy.profile(tmp_path / "run", wait=1, warmup=1, active=3) as p:
        for _ in range(6):
            for _ in range(50):
                torch.ones(4).cos()
            p.step()
    assert [finding.code for finding in p.findings] == codes(tmp_path / "run")
    assert "Where the time goes" in str(p.result)
    assert "explanation" not in json.loads((tmp_path / "run" / "run.json").read_text())


def test_a_block_that_records_nothing_has_no_findings(tmp_path):
    p = torchwhy.profile(tmp_path / "run")
    with pytest.warns(UserWarning, match="nothing was recorded"), p:
        p.step()
    assert (p.result.explanation, p.findings) == ("", ())
