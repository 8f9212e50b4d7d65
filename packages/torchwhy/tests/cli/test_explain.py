"""`torchwhy explain` as a person runs it."""

import gzip
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.programs import computing, on_cpu, training
from tests.command_line import run_apart, run_here
from tests.present.test_renderers import STEERING
from tests.ranks.jobs import write_job
from tests.replays import MODEL, Program
from tests.traces import Story
from torchwhy.cli.explain import Request, TableChoice, run
from torchwhy.loading.trace import TABLES
from torchwhy.present.formats import FORMATS
from torchwhy.rules.catalogue import all_rules


def explain(*arguments, folder, run=run_here, environment=None, **options):
    return run("explain", *arguments, folder=folder, environment={"COLUMNS": "80", **(environment or {})}, **options)


@pytest.fixture
def slow(tmp_path):
    """A trace that waits for data half of the time."""
    return training(load=480).write(tmp_path / "slow.json")


def test_a_capture_names_the_kernels_of_replayed_graphs(tmp_path):
    capture, serving = Program(), Program()
    capture.capture(MODEL, 8)
    serving.replay(MODEL, 8)
    (tmp_path / "captures").mkdir()
    capture.write(tmp_path / "captures" / "bs_8_rank0.json")
    (tmp_path / "captures" / "execution_details.json").write_text('[{"file": "bs_8_rank0.json"}]')
    arguments = (serving.write(tmp_path / "serving.json"), "--capture", tmp_path / "captures")
    ran = explain(*arguments, folder=tmp_path)
    assert "14 of 14 pieces of work of replayed graphs are named" in " ".join(ran.stdout.split())
    table = explain(*arguments, "--table", "ops", folder=tmp_path)
    assert "aten::gelu" in table.stdout
    wrong = explain(arguments[0], "--capture", tmp_path / "none.json", folder=tmp_path)
    assert (wrong.returncode, "none.json" in wrong.stderr) == (3, True)


def test_the_answer_is_on_stdout(tmp_path, slow):
    ran = explain(slow, run=run_apart, folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("slow.json\nNVIDIA A100-SXM4-80GB (GPU 0) · 44 events\n")
    assert "INPUT-BOUND" in ran.stdout
    assert "B9 dataloader-wait, high: 1.92 ms of 4.00 ms at stake (48%)" in ran.stdout
    assert "\x1b" not in ran.stdout
    assert max(map(len, ran.stdout.splitlines())) <= 80


@pytest.mark.parametrize("form", FORMATS)
def test_formats(tmp_path, slow, form):
    ran = explain(slow, "--format", form, "--select", "B9", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "dataloader-wait" in ran.stdout


def test_json_from_standard_input(tmp_path, slow):
    packed = gzip.compress(slow.read_bytes())
    ran = explain("-", "--format", "json", run=run_apart, folder=tmp_path, text=False, input=packed)
    assert ran.returncode == 0
    report = json.loads(ran.stdout)
    assert (report["schema"], report["trace"]["file"], report["verdict"]["kind"]) == (
        1,
        "standard input",
        "input-bound",
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--select", "B9,dataloder-wait"], "'dataloder-wait'; nearest: B9 dataloader-wait"),
        (["--ignore", "B99"], "no rule or family is called 'B99'"),
        (["--format", "yaml"], "--format must be one of text, json, markdown, html, sarif, junit, github"),
        (["--fail-on", "worst"], "--fail-on must be one of info, low, medium, high"),
        (["--steps", "soon"], "soon"),
        (["--steps", "90"], "90"),
    ],
)
def test_misuse(tmp_path, slow, arguments, words):
    ran = explain(slow, *arguments, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1


def test_an_unknown_rule_tells_how_to_list_them(tmp_path, slow):
    assert "`torchwhy rule` lists all" in explain(slow, "--select", "nothing", folder=tmp_path).stderr


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("there-is-none.json", None, "does not exist"),
        ("empty.json", b"", "is empty"),
        ("picture.json", b"\x89PNG\r\n\x1a\n" + bytes(64), "looks like a PNG image"),
        (
            "twice.json.gz",
            gzip.compress(gzip.compress(b'{"traceEvents": []}', mtime=0), mtime=0),
            "unpack it once (gunzip)",
        ),
        ("other.json", b'{"a": 1}', "is not a trace: JSON without a list of traceEvents"),
        ("object.json", b'{"traceEvents": {}}', "is not a trace: JSON without a list of traceEvents"),
        ("run", "folder", "has no traces in it"),
    ],
)
def test_unreadable(tmp_path, name, content, words):
    if content == "folder":
        (tmp_path / name).mkdir()
    elif content is not None:
        (tmp_path / name).write_bytes(content)
    ran = explain(name, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert words in ran.stderr
    assert ran.stderr.count("\n") == 1


@pytest.mark.parametrize(("severity", "status"), [("info", 1), ("medium", 1), ("high", 1)])
def test_fail_on(tmp_path, slow, severity, status):
    assert explain(slow, "--fail-on", severity, "--select", "B9", folder=tmp_path).returncode == status


def test_fail_on_spares_what_is_less_severe(tmp_path):
    path = training(load=80).write(tmp_path / "slight.json")  # 8 %: medium
    assert explain(path, "--fail-on", "high", "--select", "B9", folder=tmp_path).returncode == 0
    assert explain(path, "--fail-on", "medium", "--select", "B9", folder=tmp_path).returncode == 1


def test_select_and_ignore(tmp_path, slow):
    def codes(*arguments):
        ran = explain(slow, "--format", "json", *arguments, folder=tmp_path)
        return {finding["code"] for finding in json.loads(ran.stdout)["findings"]}

    assert codes("--select", "B9") == {"B9"}
    assert codes("--select", "b") >= {"B9"}
    assert "B9" not in codes("--ignore", "dataloader-wait")
    assert codes("--select", "B9", "--ignore", "B") == set()


def test_pyproject_sets_thresholds_and_lists(tmp_path, slow):
    (tmp_path / "pyproject.toml").write_text("[tool.torchwhy.rules.dataloader-wait]\nshare = 0.9\n")
    inner = tmp_path / "deep" / "down"
    inner.mkdir(parents=True)
    assert (
        "B9" not in explain(slow, "--format", "json", "--select", "B9", folder=inner).stdout.split('"findings"')[1][:20]
    )
    (tmp_path / "pyproject.toml").write_text('[tool.torchwhy.rules]\nselect = ["B9"]\n')
    ran = json.loads(explain(slow, "--format", "json", folder=inner).stdout)
    assert ran["ran"] == ["B9"]
    ran = json.loads(explain(slow, "--format", "json", "--select", "B10", folder=inner).stdout)
    assert ran["ran"] == ["B10"]


def test_a_wrong_pyproject_is_misuse(tmp_path, slow):
    (tmp_path / "pyproject.toml").write_text("[tool.torchwhy.rules.dataloader-wait]\nshares = 0.9\n")
    ran = explain(slow, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "threshold of dataloader-wait must be one of: share; got 'shares'" in ran.stderr
    assert "pyproject.toml" in ran.stderr


def test_output_goes_to_a_file(tmp_path, slow):
    ran = explain(slow, "--format", "sarif", "--output", "found.sarif", folder=tmp_path)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "", "")
    assert json.loads((tmp_path / "found.sarif").read_text())["version"] == "2.1.0"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.sarif", "slow.json"]


def test_output_that_cannot_be_written(tmp_path, slow):
    ran = explain(slow, "--output", "nowhere/found.txt", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error: cannot write nowhere/found.txt")


def test_a_run_folder_is_its_trace(tmp_path, slow):
    run = tmp_path / "run"
    run.mkdir()
    (run / "trace.json.gz").write_bytes(gzip.compress(slow.read_bytes()))
    (run / "trace-2.json.gz").write_bytes(gzip.compress(slow.read_bytes()))
    (run / "run.json").write_text("{}")
    ran = explain("run", folder=tmp_path)
    assert ran.returncode == 0
    assert ran.stdout.startswith("run\n")
    assert "also there: trace-2.json.gz" in ran.stderr
    assert explain(".", folder=run).stdout.startswith("run\n")


def test_rules_on_jobs_are_not_asked_of_one_trace(tmp_path, slow):
    report = json.loads(explain(slow, "--format", "json", folder=tmp_path).stdout)
    asked = {*report["ran"], *(item["code"] for item in report["muted"])}
    assert asked == {rule.code for rule in all_rules() if rule.on == "trace"}


def test_steps(tmp_path, slow):
    ran = explain(slow, "--steps", "4-5", "--format", "json", folder=tmp_path)
    window = json.loads(ran.stdout)["window"]
    assert [step["name"] for step in window["steps"]] == ["ProfilerStep#4", "ProfilerStep#5"]
    assert window["duration_us"] == 2000


def test_a_folder_of_ranks(tmp_path):
    write_job(tmp_path / "job", 3)
    ran = explain("job", "--format", "json", folder=tmp_path)
    assert ran.returncode == 0
    assert [row["rank"] for row in json.loads(ran.stdout)["ranks"]] == [0, 1, 2]
    ran = explain("job", "--steps", "3", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")


def test_a_folder_with_one_trace_is_that_trace(tmp_path):
    (tmp_path / "log").mkdir()
    computing().write(tmp_path / "log" / "host_1.pt.trace.json")
    ran = explain("log", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("host_1.pt.trace.json\n")


@pytest.mark.parametrize("encoding", ["ascii", "latin-1"])
def test_terminals_without_utf8(tmp_path, slow, encoding):
    ran = explain(slow, run=run_apart, folder=tmp_path, text=False, environment={"PYTHONIOENCODING": encoding})
    assert ran.returncode == 0
    assert ran.stdout.decode("ascii")


def test_json_is_utf8_everywhere(tmp_path):
    path = computing(note="é").write(tmp_path / "é.json")
    ran = explain(
        path, "--format", "json", run=run_apart, folder=tmp_path, text=False, environment={"PYTHONIOENCODING": "ascii"}
    )
    assert json.loads(ran.stdout.decode("utf-8"))["trace"]["name"] == "é.json"


def test_a_closed_pipe_is_no_error(tmp_path, slow):
    command = f"{sys.executable} -m torchwhy explain {slow} | true"
    ran = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs a pseudo-terminal")
@pytest.mark.parametrize(
    ("environment", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colour_on_a_terminal(tmp_path, slow, environment, coloured):
    import pty

    leader, follower = pty.openpty()
    base = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "TERM"}}
    ran = subprocess.Popen(
        [sys.executable, "-m", "torchwhy", "explain", str(slow)],
        stdout=follower, stderr=subprocess.DEVNULL, cwd=tmp_path, env={"TERM": "xterm", **base, **environment},
    )  # fmt: skip
    os.close(follower)
    shown = b""
    try:
        while data := os.read(leader, 4096):
            shown += data
    except OSError:  # Linux's way of saying that the other end is closed
        pass
    assert ran.wait(timeout=60) == 0
    os.close(leader)
    assert (b"\x1b[1" in shown) == coloured


def test_files_named_like_options_of_nothing_exist(tmp_path):
    computing().write(tmp_path / "-x.json")
    assert explain("--", "-x.json", folder=tmp_path).returncode == 0
    assert Path(tmp_path / "-x.json").exists()


def test_several_traces_are_explained_one_after_another(tmp_path, slow):
    quick = computing().write(tmp_path / "quick.json")
    ran = explain(slow.name, quick.name, folder=tmp_path)
    assert ran.returncode == 0
    assert ran.stdout.startswith(f"{slow.name}\n")
    assert ran.stdout.index("INPUT-BOUND") < ran.stdout.index(f"\n{quick.name}\n") < ran.stdout.index("COMPUTE-BOUND")
    reports = json.loads(explain(slow, quick, "--format", "json", folder=tmp_path).stdout)["reports"]
    assert [report["verdict"]["kind"] for report in reports] == ["input-bound", "compute-bound"]
    assert explain(slow, quick, "--fail-on", "high", folder=tmp_path).returncode == 1
    assert explain(slow, "missing.json", folder=tmp_path).returncode == 3


def test_the_full_view_has_modules_and_the_critical_path(tmp_path, slow):
    ran = explain(slow, "-v", "--format", "json", folder=tmp_path)
    assert [part["what"] for part in json.loads(ran.stdout)["critical_path"]] == ["host", "python"]
    assert json.loads(explain(slow, "--format", "json", folder=tmp_path).stdout)["critical_path"] is None
    assert "Critical path" in explain(slow, "-v", folder=tmp_path).stdout


def test_the_peaks_of_a_named_device_count(tmp_path, slow):
    ran = explain(slow, "--device", "toaster", folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "--device must be a GPU with a known data sheet, such as H100 PCIe; got 'toaster'" in ran.stderr
    table = '[tool.torchwhy.device."toaster"]\nbandwidth_gb_s = 3\nteraflops = { float32 = 0.1 }\n'
    (tmp_path / "pyproject.toml").write_text(table)
    assert explain(slow, "--device", "toaster", folder=tmp_path).returncode == 0
    assert explain(slow, "--device", "H100 PCIe", folder=tmp_path).returncode == 0
    (tmp_path / "pyproject.toml").write_text("[tool")
    ran = explain(slow, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert "pyproject.toml is not TOML" in ran.stderr


@pytest.mark.parametrize("table", ["copies", "idle", "kernels", "kinds", "launches", "overlap"])
def test_an_empty_table_of_devices_says_why(tmp_path, table):
    on_cpu().write(tmp_path / "cpu.json")
    ran = explain("cpu.json", "--table", table, folder=tmp_path)
    words = " ".join(ran.stdout.split())
    assert "The trace has no work of a device" in words
    assert "The tables ops, steps and critical_path show the CPU's time." in words


def test_a_table_instead_of_a_report(tmp_path, slow):
    ran = explain(slow, "--table", "kernels", folder=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert "  name                     " in ran.stdout
    assert "  total                " in ran.stdout
    found = json.loads(explain(slow, "--table", "ops", "--sort", "calls", "--format", "json", folder=tmp_path).stdout)
    assert (found["schema"], found["table"], found["total"]["calls"]) == (1, "ops", 4)
    assert found["rows"][0]["name"] == "aten::mm"


@pytest.mark.parametrize("given", ["host_total_us", "host_total", "host total"])
def test_a_table_sorts_by_the_titles_it_shows(capsys, tmp_path, given):
    story = Story()
    for name, at, us in (("aten::matmul", 0, 50), ("aten::mm", 5, 40), ("aten::add", 60, 20)):
        story.op(name, at, us)
    path = story.write(tmp_path / "three.json")
    assert run([str(path)], Request(form="json", table=TableChoice("ops", sort=given))) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["host_total_us"] for row in rows] == [50, 40, 20]


@pytest.mark.parametrize("name", TABLES)
def test_every_table_in_every_format(capsys, slow, name):
    for form in FORMATS:
        assert run([str(slow)], Request(form=form, table=TableChoice(name))) == 0
        assert capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--table", "tables"], "--table must be one of ops, kernels, kinds, modules, labels"),
        (["--table", "ops", "--sort", "speed"], "one of name, calls, host total, host self, device total"),
        (["--table", "ops", "--sort", "speed"], "(or name, calls, host_total_us, host_self_us, device_total_us"),
        (["--table", "kernels", "--by-shape"], "--table must be ops, got kernels"),
    ],
)
def test_tables_that_do_not_exist(tmp_path, slow, arguments, words):
    ran = explain(slow, *arguments, folder=tmp_path)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert words in ran.stderr


@pytest.mark.parametrize("form", FORMATS)
def test_no_name_in_a_trace_steers_what_shows_it(tmp_path, capsys, form):
    evil = "evil\x1b[2J\x07\x9b31m\u202egnp.\nname"
    story = training(load=480, gpu=evil)
    story.op(evil, 600, 300)
    story.kernel(evil, 100, 300, launch_at=90)
    story.frame(f"{evil}.py(3): f", 590, 320)
    path = story.write(tmp_path / "evil\x1b[31m\u202e.json")
    for table in (None, TableChoice("ops"), TableChoice("kernels"), TableChoice("stacks")):
        assert run([str(path)], Request(form=form, verbose=True, table=table)) == 0
        shown = capsys.readouterr().out
        assert not STEERING.search(shown)
        assert "evil" in shown or form in ("sarif", "junit", "github")


def test_no_name_in_an_error_steers_the_terminal(tmp_path):
    ran = explain("evil\x1b[2J\x9b31m\u202e.json", folder=tmp_path)
    assert ran.returncode == 3
    assert not STEERING.search(ran.stderr)
    assert "evil" in ran.stderr
