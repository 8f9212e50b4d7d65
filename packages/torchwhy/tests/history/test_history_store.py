"""The store of runs: nothing is lost, nothing counts twice, and what cannot be read is said."""

import multiprocessing
import sqlite3
import subprocess
import sys

import pytest

from tests.history.runs_of_a_program import stored
from torchwhy.history.git import Commit
from torchwhy.history.runs import MeasuredRun
from torchwhy.history.store import VERSION, HistoryError, StoredRun, add_runs, stored_runs


def add_a_dozen(store, first, ready):
    """Add runs one by one, when all processes are there."""
    ready.wait(60)
    for run in stored([10.0 + i for i in range(12)], first=first):
        assert add_runs(store, [run]) == (True,)


def test_runs_come_back_as_they_were_added(tmp_path):
    store = tmp_path / "history.sqlite"
    runs = [
        StoredRun(
            MeasuredRun("träin 'x'", "step", "box, H100", (1.5, 0.1, 1e-300), "a.json", "2.13"),
            "b=1",
            Commit("ab", 3.0),
            5.0,
        ),
        StoredRun(MeasuredRun("", "syncs", "", (0.0,), "", ""), "", Commit(), 7.0),
    ]
    assert add_runs(store, runs) == (True, True)
    assert stored_runs(store) == tuple(runs)


def test_runs_are_in_the_order_of_their_commits(tmp_path):
    store = tmp_path / "history.sqlite"
    runs = stored([1.0, 2.0, 3.0, 4.0], each=2)
    add_runs(store, reversed(runs))
    assert [each.run.value for each in stored_runs(store)] == [2.0, 1.0, 4.0, 3.0]


def test_the_same_run_is_not_added_twice(tmp_path):
    store = tmp_path / "history.sqlite"
    one, other = stored([1.0, 1.0], each=2)
    elsewhere = StoredRun(one.run, one.configuration, Commit("another"), one.added_s)
    assert add_runs(store, [one, other, elsewhere]) == (True, False, True)
    assert add_runs(store, [one]) == (False,)
    assert len(stored_runs(store)) == 2


def test_processes_add_at_the_same_time_and_nothing_is_lost(tmp_path):
    store = tmp_path / "history.sqlite"
    processes = multiprocessing.get_context("fork")
    ready = processes.Barrier(4)
    started = [processes.Process(target=add_a_dozen, args=(store, 100 * i, ready)) for i in range(4)]
    for process in started:
        process.start()
    for process in started:
        process.join(120)
    assert [process.exitcode for process in started] == [0] * 4
    found = stored_runs(store)
    assert {each.run.source for each in found} == {f"traces/train-{100 * i + k}" for i in range(4) for k in range(12)}
    assert len(found) == 48


def test_all_runs_of_a_call_are_added_or_none(tmp_path):
    store = tmp_path / "history.sqlite"
    good, bad = stored([1.0, 2.0])
    broken = StoredRun(MeasuredRun(None, "step", "", (1.0,), ""), "", Commit(), 1.0)
    with pytest.raises(HistoryError, match="NOT NULL"):
        add_runs(store, [good, broken, bad])
    assert add_runs(store, [good]) == (True,)
    assert len(stored_runs(store)) == 1


def test_a_process_that_is_killed_while_it_adds_leaves_the_store_as_it_was(tmp_path):
    store = tmp_path / "history.sqlite"
    add_runs(store, stored([1.0]))
    killed = f"""
import os, sqlite3
store = sqlite3.connect({str(store)!r}, isolation_level=None)
store.execute("BEGIN IMMEDIATE")
store.execute("DELETE FROM runs")
os._exit(9)
"""
    assert subprocess.run([sys.executable, "-c", killed], check=False).returncode == 9
    assert len(stored_runs(store)) == 1
    assert add_runs(store, stored([2.0], first=1)) == (True,)


def test_no_store_is_said_and_none_is_made_by_reading(tmp_path):
    with pytest.raises(HistoryError, match=r"history\.sqlite does not exist; `torchwhy history add RUN` makes it"):
        stored_runs(tmp_path / "history.sqlite")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_is_no_store_is_refused_and_kept(tmp_path):
    text = tmp_path / "notes.txt"
    text.write_text("no database, " * 100)
    other = tmp_path / "other.sqlite"
    with sqlite3.connect(other) as database:
        database.execute("CREATE TABLE kernels (name TEXT)")
    database.close()
    before = text.read_bytes(), other.read_bytes()
    for file, said in ((text, "not a database"), (other, "is an SQLite database of another program")):
        with pytest.raises(HistoryError, match=said):
            stored_runs(file)
        with pytest.raises(HistoryError, match=said):
            add_runs(file, stored([1.0]))
    assert (text.read_bytes(), other.read_bytes()) == before


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    store = tmp_path / "history.sqlite"
    add_runs(store, stored([1.0]))
    with sqlite3.connect(store) as database:
        database.execute(f"PRAGMA user_version = {VERSION + 1}")
    database.close()
    for ask in (lambda: stored_runs(store), lambda: add_runs(store, stored([2.0]))):
        with pytest.raises(HistoryError, match=f"has version {VERSION + 1}, and this torchwhy reads up to {VERSION}"):
            ask()


@pytest.mark.parametrize("samples", ["[]", "{", '["x"]', "null"])
def test_a_damaged_row_is_said(tmp_path, samples):
    store = tmp_path / "history.sqlite"
    add_runs(store, stored([1.0]))
    with sqlite3.connect(store) as database:
        database.execute("UPDATE runs SET samples = ?", (samples,))
    database.close()
    with pytest.raises(HistoryError, match="is damaged"):
        stored_runs(store)


def test_a_store_that_is_cut_off_is_said(tmp_path):
    store = tmp_path / "history.sqlite"
    add_runs(store, stored([float(i) for i in range(1, 200)]))
    store.write_bytes(store.read_bytes()[:5000])
    with pytest.raises(HistoryError, match="cannot read or write the history"):
        stored_runs(store)


def test_a_folder_that_is_not_there_is_said(tmp_path):
    with pytest.raises(HistoryError, match="cannot open the history"):
        add_runs(tmp_path / "no" / "history.sqlite", stored([1.0]))
