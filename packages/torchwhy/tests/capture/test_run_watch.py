"""A run's watch says in which lines time passes before steps are found, and later outside of windows."""

import time

from torchwhy.capture.run_watch import RunWatch


def reads():
    time.sleep(0.4)  # much longer than requested: on a busy machine the first sample is late


def steps():
    time.sleep(0.15)


def saves():
    time.sleep(0.4)


def spent(stretch):
    """Seconds by the function's name, of those in this file."""
    return {line.rpartition(": ")[2]: seconds for line, _, seconds, _ in stretch.lines if "test_run_watch.py" in line}


def test_both_parts_have_the_lines_that_take_their_time_without_what_was_recorded():
    watch, began = RunWatch(), time.perf_counter()
    reads()
    watch.steps_found(2, optimizer=True)
    began_ns = time.time_ns()
    steps()
    ended_ns = time.time_ns()
    saves()
    run = watch.end(5, [(began_ns, ended_ns)])
    passed = time.perf_counter() - began
    assert (run.steps, run.later_steps, run.optimizer) == (2, 5, True)
    assert spent(run.start_up).keys() == {"reads"}
    assert 0.1 < spent(run.start_up)["reads"] <= run.start_up.seconds < passed
    assert spent(run.outside).keys() <= {
        "saves",
        test_both_parts_have_the_lines_that_take_their_time_without_what_was_recorded.__name__,
    }
    assert 0.1 < spent(run.outside)["saves"] <= run.outside.seconds < passed
    assert run.start_up.seconds + run.outside.seconds <= run.seconds


def test_a_program_without_steps_has_no_such_times():
    assert RunWatch().end(0, []) is None


def test_imports_are_counted_apart(tmp_path, monkeypatch):
    (tmp_path / "slow_to_import.py").write_text("import time\ntime.sleep(0.2)\n")
    monkeypatch.syspath_prepend(tmp_path)
    watch = RunWatch()
    import slow_to_import  # noqa: F401

    watch.steps_found(0, optimizer=False)
    lines = watch.end(0, []).start_up.lines
    imports = sum(importing for *_, importing in lines)
    assert imports <= sum(seconds for _, _, seconds, _ in lines)
