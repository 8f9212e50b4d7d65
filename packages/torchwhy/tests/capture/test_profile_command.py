"""`torchwhy profile` runs programs as python does, finds their steps, and leaves their stdout and status alone."""

import json
import re
import signal
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from torchwhy import load, load_job
from torchwhy.capture.options import can_record_all_threads

PROGRAMS = Path(__file__).parent / "programs"


def names(ran):
    return {row["name"] for row in ran.json("operators.json")["operators"]}


def parts(ran):
    return {part["name"] for part in ran.json("findings.json")["breakdown"]["parts"]}


def test_training_with_workers_steps_with_the_optimizer(profile_program):
    ran = profile_program("--active", "3", "--flops", program="cnn_training.py", arguments=["--steps", 11])
    assert (ran.status, ran.out) == (0, "trained 11 batches\n")
    assert ran.steps() == [4, 5, 6]
    run = ran.json("run.json")
    assert run["steps_from"] == "SGD.step"
    assert run["command"][1:] == ["cnn_training.py", "--steps", "11"]
    assert run["overhead"]["baseline_n"] >= 2  # those after the recorded ones
    assert {"aten::convolution_backward", "Optimizer.step#SGD.step"} <= names(ran)
    assert {"data", "backward", "optimizer", "operators"} <= parts(ran)
    assert [row["calls"] for row in ran.json("operators.json")["operators"] if row["name"] == "aten::addmm"] == [3]
    assert "Where the time goes" in ran.report
    assert f"torchwhy explain {ran.folder} shows the evidence." in ran.report
    assert "aten::convolution_backward" in (ran.folder / "operators.txt").read_text()


def test_no_optimizer_range_sticks_out_of_its_step(profile_program):
    ran = profile_program(
        "--active", "3", program="cnn_training.py", arguments=["--steps", 20, "--workers", 0, "--accumulate", 2]
    )
    events = [event for event in ran.trace()["traceEvents"] if event.get("cat") == "user_annotation"]
    steps = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("ProfilerStep#")]
    optimizers = [(e["ts"], e["ts"] + e["dur"]) for e in events if e["name"].startswith("Optimizer.step#")]
    assert len(steps) == len(optimizers) == 3
    for (begin, end), (first, last) in zip(steps, optimizers, strict=True):
        assert begin <= first
        assert last <= end


def test_inference_steps_with_the_outermost_forward(profile_program):
    ran = profile_program("--active", 2, "--stacks", program="transformer_inference.py", arguments=[9])
    assert (ran.status, ran.out) == (0, "(2, 8, 5)\n")
    assert ran.steps() == [4, 5]
    assert ran.json("run.json")["steps_from"] == "forward of TransformerEncoder"
    outermost = {module["name"] for module in load(ran.folder).modules() if not module["depth"]}
    assert outermost == {"TransformerEncoder_0", "Linear_0"}


@pytest.mark.parametrize("words", [[], pytest.param(["--step-on", "__main__:step"], marks=pytest.mark.many)])
def test_a_compiled_function_runs_as_it_does_without(profile_program, words):
    ran = profile_program("--active", "3", *words, program="graph_break.py")
    assert (ran.status, ran.out) == (0, "1 graph break\n")
    assert ran.steps() == [4, 5, 6]
    calls = {row["name"]: row["calls"] for row in ran.json("operators.json")["operators"]}
    assert {name: count for name, count in calls.items() if name.startswith("Torch")} == {
        "Torch-Compiled Region: 0/0": 3,
        "Torch-Compiled Region: 1/0": 3,
        "TorchDynamo Cache Lookup": 6,
    }
    assert ran.json("run.json")["steps_from"] == ("calls of __main__:step" if words else "calls of step")


@pytest.mark.many
def test_a_compiled_module_is_compiled_as_often_as_without(profile_program):
    ran = profile_program("--active", "3", program="recompiles.py")
    assert (ran.status, ran.out) == (0, "4 graphs\n")  # one for each shape
    assert "Warning" not in ran.report
    assert "compiling" in parts(ran)
    assert {name for name in names(ran) if "Region" in name} == {
        "Torch-Compiled Region: 0/1",
        "Torch-Compiled Region: 0/2",
    }
    assert ran.json("run.json")["steps_from"] == "forward of Sequential"


def test_a_crash_shows_the_programs_own_traceback(profile_program, run_plainly):
    ran = profile_program(program="crash.py")
    plain = run_plainly("crash.py")
    assert ran.status == plain.returncode == 1
    assert ran.report.startswith(plain.stderr)
    run = ran.json("run.json")
    assert run["ended"] == "ValueError"
    assert "there were 2 steps and recording begins after 5" in run["problems"][0]
    assert "aten::linear" in names(ran)  # the beginning of the run is kept
    assert ran.json("findings.json")["schema"] == 1


@pytest.mark.many
def test_no_hook_stands_in_a_traceback(profile_program, run_plainly):
    ran = profile_program(program="broken_data.py")
    assert ran.report.startswith(run_plainly("broken_data.py").stderr)
    assert (ran.status, ran.out) == (1, "")


def test_exit_is_the_programs(profile_program):
    ran = profile_program("--active", "3", program="exit_seven.py")
    assert (ran.status, ran.json("run.json")["ended"]) == (7, "exit 7")
    assert ran.steps() == [4, 5, 6]


@pytest.fixture
def listening():
    """Let child processes hear SIGINT, which a shell turns off for what it runs in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("name", ["SIGINT", "SIGTERM", pytest.param("SIGHUP", marks=pytest.mark.many)])
def test_an_interrupted_program_dies_of_the_signal_and_keeps_its_capture(profile_program, name, listening):
    ran = profile_program(program="interrupted.py", arguments=[name])
    assert (ran.status, ran.out) == (-signal.Signals[name], "")
    assert ran.json("run.json")["ended"] == name
    assert ran.steps() == [4, 5, 6]


@pytest.mark.many
@pytest.mark.parametrize(
    ("name", "reached"),
    [("SIGINT", "session.Session.stop"), ("SIGINT", "writer.write_traces"), ("SIGTERM", "writer.write_traces")],
)
def test_an_impatient_user_finds_nothing_half_written(tmp_path, name, reached, listening):
    module, _, rest = reached.partition(".")
    code = (
        "import os, signal, sys\n"
        f"import torchwhy.capture.{module} as owner\n"
        f"*path, name = {rest.split('.')!r}\n"
        "for part in path: owner = getattr(owner, part)\n"
        "original = getattr(owner, name)\n"
        "def again(*given, **options):\n"
        "    original(*given, **options)\n"
        f"    os.kill(os.getpid(), signal.{name})\n"
        "from torchwhy.cli import main\n"
        "setattr(owner, name, again)\n"
        f"sys.argv = ['torchwhy', 'profile', '--out', 'run', {str(PROGRAMS / 'interrupted.py')!r}, {name!r}]\n"
        "main()\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, check=False)
    assert ran.returncode == -signal.Signals[name]
    assert list(tmp_path.iterdir()) == []
    assert "torchwhy/capture/" not in ran.stderr
    if name == "SIGINT":
        assert "note: interrupted while it was written; nothing is kept" in ran.stderr


def test_without_steps_the_whole_run_is_one_window(profile_program):
    ran = profile_program(program="no_steps.py", environment={"RANK": "1", "WORLD_SIZE": "2"})
    assert (ran.status, ran.out) == (0, "-0.0\n") or ran.out == "0.0\n"
    ran.folder = ran.folder / "rank1"
    assert ran.json("run.json")["steps_from"] == "whole run"
    assert ran.steps() == []
    assert "aten::mm" in names(ran)
    assert ran.report == f"rank 1: {ran.folder}\n"
    assert f"torchwhy explain {ran.folder.parent} compares the ranks" not in ran.report  # the first rank says so
    assert "Where the time goes" in (ran.folder / "report.txt").read_text()


@pytest.mark.many
@pytest.mark.skipif(not can_record_all_threads(), reason="this PyTorch records one thread only")
@pytest.mark.parametrize("how", ["executor", "pool", "daemons", "threads"])
def test_a_program_whose_threads_do_the_work_is_recorded(profile_program, how):
    ran = profile_program(program="threads_only.py", arguments=[how, 0])
    assert (ran.status, ran.out) == (0, "done\n")
    [tanh] = [row for row in ran.json("operators.json")["operators"] if row["name"] == "aten::tanh"]
    assert tanh["calls"] >= 200
    threads = {event["tid"] for event in ran.trace()["traceEvents"] if event.get("name") == "aten::tanh"}
    assert len(threads) == 2 or how in {"executor", "pool"}  # which may give both to one


@pytest.mark.skipif(not can_record_all_threads(), reason="this PyTorch records one thread only")
def test_a_limit_ends_the_recording_of_threads_that_the_program_waits_for(profile_program):
    ran = profile_program("--seconds", 0.5, program="threads_only.py", arguments=["daemons", 2])
    assert (ran.status, ran.out) == (0, "done\n")
    assert "s of the run were recorded" in ran.report
    events = [event for path in ran.folder.glob("trace*") for event in ran.trace(path.name)["traceEvents"]]
    times = [event["ts"] for event in events if event.get("name") == "aten::tanh"]
    assert 0.1e6 < max(times) - min(times) < 1.5e6


def test_a_program_with_a_profiler_of_its_own_keeps_it(profile_program):
    ran = profile_program(program="profiles_itself.py")
    assert (ran.status, ran.out) == (0, "10 events of its own\n")
    assert "the program started another PyTorch profiler" in ran.report
    assert 'its export_chrome_trace("own.json") writes one, which is then' in " ".join(ran.report.split())
    assert not ran.folder.exists()


ITSELF = """
import torch
from {module} import profile
{start}
for _ in range(9):
    torch.ones(3).cos()
    p.step()
{end}
"""


@pytest.mark.many
@pytest.mark.parametrize(
    ("module", "start", "end", "written"),
    [
        ("torchwhy", "p = profile('own'); p.__enter__()", "p.__exit__(None, None, None)", "own"),
        ("torch.profiler", "p = profile(); p.start()", "p.stop(); p.export_chrome_trace('own.json')", "own.json"),
    ],
)
def test_a_program_that_records_itself_is_named(tmp_path, module, start, end, written):
    (tmp_path / "itself.py").write_text(ITSELF.format(module=module, start=start, end=end))
    command = [sys.executable, "-m", "torchwhy", "profile", "--out", "run", "itself.py"]
    ran = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert "Warning" not in ran.stderr
    assert f"torchwhy explain {tmp_path / written} reads that" in ran.stderr
    assert f"The program's own recording, {tmp_path / written}:" in ran.stderr
    assert "Where the time goes" in ran.stderr
    assert (tmp_path / written).exists()


@pytest.mark.many
def test_a_script_sees_what_it_would_see_under_python(profile_program, run_plainly):
    ran = profile_program(program="where_am_i.py", arguments=["a", "--active", "--", "-b"], loaded=False)
    plain = run_plainly("where_am_i.py", "a", "--active", "--", "-b")
    assert (ran.status, ran.out) == (plain.returncode, plain.stdout)
    assert ran.report.startswith(plain.stderr)


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (["--active", "0", "crash.py"], "active must be a whole number of steps >= 1, got 0"),
        (["missing.py"], "cannot run missing.py: no such file"),
        (["--step-on", "1:2", "crash.py"], "step-on must be auto, optimizer, dataloader, forward, none or a function"),
        (["--format", "xml", "crash.py"], "--format must be one of text, json, markdown"),
        (["--activities", "gpu", "crash.py"], "activities must be some of cpu, cuda, xpu, got"),
        (["--activities", "cpu", "--cuda", "crash.py"], "cuda must be None then, got True"),
    ],
)
def test_misuse_is_refused_before_the_program_runs(profile_program, words, complaint):
    *options, program = words
    ran = profile_program(*options, program=program)
    assert (ran.status, ran.out) == (2, "")
    assert complaint in " ".join(ran.report.split())
    assert not ran.folder.exists()


def test_activities_are_chosen_and_the_end_comes_in_every_format(profile_program):
    options = ["--activities", "cpu", "--format", "json", "--repeat", 0, "--active", 5]
    ran = profile_program(*options, program="no_steps.py")
    assert ran.json("run.json")["options"]["activities"] == ["cpu"]
    assert "aten::mm" in names(ran)
    report = json.loads(ran.report)
    assert (report["schema"], report["verdict"]["kind"]) == (1, ran.json("findings.json")["verdict"]["kind"])


def test_steps_that_were_missed_at_wait_0_are_told(profile_program):
    ran = profile_program("--wait", 0, "--warmup", 0, "--active", 1, program="cnn_training.py")
    assert re.search(r"steps? had passed before steps were found, the first call and what it compiles", ran.report)


def test_a_module_runs_as_with_python_m(profile_program):
    ran = profile_program("-m", program="exit_seven")
    assert ran.status == 7
    assert ran.json("run.json")["command"] == [sys.executable, "-m", "exit_seven"]


TELLS = "import sys, torch; torch.ones(3).cos(); print(sys.argv, __name__, '__file__' in globals(), sys.path[0])"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["-c", TELLS, "a"], ""),
        pytest.param(["-", "a"], TELLS, marks=pytest.mark.many),
        pytest.param(["package", "a"], "", marks=pytest.mark.many),
        pytest.param(["package.zip"], "", marks=pytest.mark.many),
    ],
)
def test_commands_stdin_folders_and_archives_run_as_with_python(tmp_path, words, text):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(TELLS)
    with zipfile.ZipFile(tmp_path / "package.zip", "w") as archive:
        archive.write(tmp_path / "package" / "__main__.py", "__main__.py")
    profile = ["-m", "torchwhy", "profile", "--out", "run"]
    plain, ran = (
        subprocess.run(
            [sys.executable, *options, *words], input=text, capture_output=True, text=True, cwd=tmp_path, check=False
        )
        for options in ([], profile)
    )
    assert (ran.returncode, ran.stdout) == (plain.returncode, plain.stdout)
    assert (tmp_path / "run" / "trace.json.gz").is_file(), ran.stderr


def test_without_stderr_nobody_is_told(tmp_path):
    command = f"{sys.executable} -m torchwhy profile --out run -c 'import torch; torch.ones(3).cos()' 2>&-"
    ran = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert (tmp_path / "run" / "report.txt").is_file()


def test_a_function_that_is_not_there_is_told(profile_program):
    ran = profile_program("--step-on", "json:nothing", program="exit_seven.py")
    assert ran.status == 7
    assert "the function json:nothing was not found" in ran.report


def test_a_program_may_import_torchwhy_itself_and_fork(profile_program):
    ran = profile_program(program="forks.py")
    assert (ran.status, ran.out) == (0, "load True\n3\n")


def test_whatever_a_program_does_to_its_process_its_trace_is_read(profile_program, tmp_path):
    (tmp_path / "html.py").write_text("raise RuntimeError('not the one you look for')\n")
    (tmp_path / "mess.py").write_text(
        "import os, sys, warnings, torch\n"
        "for _ in range(9):\n"
        "    torch.nn.Linear(2, 2)(torch.ones(1, 2))\n"
        "    torch.nn.Identity()(torch.ones(1))\n"
        "warnings.simplefilter('error')\n"
        "os.environ.clear()\n"
        "os.chdir('/')\n"
        "sys.path[1:] = []\n"
        "sys.modules.pop('json')\n"
    )
    ran = profile_program("--step-on", "none", program=tmp_path / "mess.py")
    assert (ran.status, ran.out) == (0, "")
    assert ran.json("findings.json")["breakdown"]["of"] == "host"
    assert "shows the evidence" in ran.report


def test_ranks_of_torchrun_share_a_folder_that_can_be_explained(tmp_path):
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]
    command = [*torchrun, "-m", "torchwhy", "profile", "--out", tmp_path / "run", PROGRAMS / "two_ranks.py"]
    ran = subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, check=False)
    assert (ran.returncode, ran.stdout) == (0, "")
    assert f"torchwhy explain {tmp_path / 'run'} compares the ranks." in ran.stderr
    assert f"rank 1: {tmp_path / 'run' / 'rank1'}" in ran.stderr
    assert ran.stderr.count("Where the time goes") == 1
    job = load_job(tmp_path / "run")
    assert (job.numbers, job.world_size, job.unreadable) == ((0, 1), 2, {})
    assert len(job.collectives())


TIGHT = "import torch\nx = torch.ones(3)\nfor _ in range({}):\n    x = x + 1\nprint('done')\n"


def test_a_tight_loop_without_steps_is_recorded_in_part(profile_program, tmp_path):
    (tmp_path / "tight.py").write_text(TIGHT.format(60_000))
    ran = profile_program(program=tmp_path / "tight.py")
    assert (ran.status, ran.out) == (0, "done\n")
    said = " ".join(ran.report.split())
    told = re.search(r"so only [\d.e-]+ s of the run were recorded, in \d+ windows? with (\d+) events", said)
    assert told, said
    assert "beginning of the run as one window" in said or "parts of the run in" in said
    assert 1000 <= int(told[1]) < 5 * 60_000 / 2  # each turn makes five
    assert ran.json("run.json")["cut"]


def test_memory_that_grows_with_the_program_loses_nothing(profile_program, tmp_path):
    program = (
        "import time, torch\n"
        "x = torch.ones(3).cos()\n"
        "kept = [bytes(1000) for _ in range(100_000)]\n"
        "end = time.monotonic() + 1\n"
        "while time.monotonic() < end:\n"
        "    pass\n"
        "x.sin()\n"
        "print('done')\n"
    )
    (tmp_path / "grows.py").write_text(program)
    ran = profile_program(program=tmp_path / "grows.py")
    said = " ".join(ran.report.split())
    assert "the whole run in" in said
    assert "aten::cos" in said
    assert "aten::sin" in said
    assert "were recorded" not in said
    assert (ran.folder / "trace-2.json.gz").exists()
    assert not ran.json("run.json")["cut"]


def test_a_program_that_leaves_an_executor_open_ends(profile_program, tmp_path):
    (tmp_path / "serve.py").write_text(
        "from concurrent.futures import ThreadPoolExecutor\n"
        "import threading, time, torch\n"
        "pool = ThreadPoolExecutor(1)\n"
        "pool.submit(print, 'first').result()\n"
        "pool.submit(lambda: (time.sleep(0.2), print('last')))\n"
        "threading.Thread(target=print, args=('thread',)).start()\n"
        "torch.ones(3).sin()\n"
    )
    ran = profile_program(program=tmp_path / "serve.py")
    assert (ran.status, sorted(ran.out.split())) == (0, ["first", "last", "thread"])
    assert "aten::sin" in names(ran)


def test_time_that_is_up_inside_a_backward_pass_ends_the_recording_after_it(profile_program, tmp_path):
    (tmp_path / "slow.py").write_text(
        "import time, torch\n"
        "class Slow(torch.autograd.Function):\n"
        "    @staticmethod\n"
        "    def forward(ctx, x):\n"
        "        return x.clone()\n"
        "    @staticmethod\n"
        "    def backward(ctx, gradient):\n"
        "        end = time.monotonic() + 0.5\n"
        "        while time.monotonic() < end:\n"
        "            pass\n"
        "        return gradient\n"
        "Slow.apply(torch.ones(2, requires_grad=True)).sum().backward()\n"
        "time.sleep(0.2)\n"
        "model = torch.nn.Linear(2, 2)\n"
        "for _ in range(9):\n"
        "    model(torch.ones(1, 2))\n"
    )
    ran = profile_program("--seconds", 0.2, program=tmp_path / "slow.py")
    assert "the profiler stopped" not in ran.report
    assert ran.json("run.json")["steps_from"] == "forward of Linear"
    assert "aten::addmm" in names(ran)


def test_time_counts_from_the_first_operator(profile_program, tmp_path):
    """A program that prepares for longer than is recorded: its work is recorded all the same."""
    (tmp_path / "prepares.py").write_text(
        "import time, torch\n"
        "end = time.monotonic() + 1.5\n"
        "while time.monotonic() < end:\n"
        "    pass\n"
        "x = torch.ones(8, 8)\n"
        "for _ in range(30):\n"
        "    x = x @ x\n"
    )
    ran = profile_program("--seconds", 1, program=tmp_path / "prepares.py")
    assert "only" not in ran.report
    assert "the whole run as one window" in ran.report
    rows = ran.json("operators.json")["operators"]
    assert [row["calls"] for row in rows if row["name"] == "aten::mm"] == [30]


def test_what_was_cut_short_is_not_told_where_steps_came_later(profile_program, tmp_path):
    (tmp_path / "late.py").write_text(
        "import time, torch\n"
        "end = time.monotonic() + 0.5\n"
        "while time.monotonic() < end:\n"
        "    pass\n"
        "for _ in range(9):\n"
        "    torch.nn.Linear(2, 2)\n"
        "model = torch.nn.Linear(2, 2)\n"
        "for _ in range(9):\n"
        "    model(torch.ones(1, 2))\n"
    )
    ran = profile_program("--seconds", 0.1, program=tmp_path / "late.py")
    assert ran.json("run.json")["steps_from"] == "forward of Linear"
    assert "were recorded" not in ran.report
