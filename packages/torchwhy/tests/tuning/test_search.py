"""From findings to verified changes: the order, the budget, what is combined, what the command prints."""

import json
import random
import re

import numpy as np
import pytest

from tests.command_line import run_here
from tests.simulator.judge import cases
from torchwhy.capture.launch.program import Program
from torchwhy.cli import try_changes as command
from torchwhy.errors import ArgumentError
from torchwhy.present.formats import FORMATS, render
from torchwhy.tuning import trial
from torchwhy.tuning.document import try_document
from torchwhy.tuning.records import Facts, Loader, Record, Results
from torchwhy.tuning.search import search
from torchwhy.tuning.trial import ProgramFailedError

FACTS = Facts(
    threads=4, processors=4, libraries=("libc",), loaders=(Loader(line="train.py:31"),), trained=True, modules=("Net",)
)  # fmt: skip


@pytest.fixture(autouse=True)
def orders():
    """The orders of the rounds are the same in each run of the tests."""
    trial._ORDER.seed(0)


class Pretended:
    """Runs that take no time but that of a clock."""

    def __init__(
        self, program, speeds=None, wall_s=8.0, stakes=None, error="", results=None, source="optimizer", slow="",
        spread=0.004, failing=False, hurry=False, seed=0, load=1.0, loaded_s=0.0,
    ):  # fmt: skip
        self.program, self.speeds, self.wall_s, self.error = program, speeds or {}, wall_s, error
        self.stakes = {"dataloader-wait": 0.4} if stakes is None else stakes
        self.results, self.source, self.slow = results or {}, source, slow
        self.now_s, self.names, self.random = 0.0, [], np.random.default_rng(seed)
        self.spread, self.failing, self.hurry = spread, failing, hurry
        self.load, self.loaded_s = load, loaded_s  # how many times as long runs take, from when on

    def clock(self):
        return self.now_s

    def profile(self, limit_s):
        self.now_s += 20
        return self.stakes, "" if self.stakes else "it took longer than 20 s"

    def run(self, change, *, limit_s, source="", fewest=12, most_s=10.0):
        wall_s = self.wall_s * (14 if self.slow and change and change.name == self.slow else 1)
        if self.hurry:
            wall_s = 20.0 if not self.names else 3.0
        if self.now_s >= self.loaded_s:
            wall_s *= self.load
        if wall_s > limit_s:
            self.now_s += limit_s
            return Record(error=f"it took longer than {limit_s} s", wall_s=limit_s)
        self.now_s += wall_s
        if change and self.failing:
            return Record(error="no such device", wall_s=wall_s)
        if self.error:
            return Record(error=self.error, wall_s=self.wall_s)
        names = change.name.split(" + ") if change else []
        self.names.append(change.name if change else "")
        factor = 1 / self.speeds.get(
            change.name if change else "", np.prod([self.speeds.get(name, 1.0) for name in names])
        )
        step_us = float(1e4 * factor * np.exp(self.spread * self.random.standard_t(3)))
        later_us = 5e6 * ("torch.compile" in names)
        results = next((self.results[name] for name in names if name in self.results), Results(losses=[1.0]))
        label = "Adam.step" if self.source else ""
        return Record([step_us] * 30, 1e6 + later_us, self.source, label, results=results, facts=FACTS, wall_s=wall_s)


def searched(budget_s=900, **options):
    runs = Pretended(Program("-c", ("pass",)), **options)
    return search(runs.program, budget_s, clock=runs.clock, runs=runs), runs


def test_what_helps_is_found_combined_and_kept():
    speeds = {"2 loader workers": 1.5, "4 loader workers": 2.0, "1 thread": 1.2, "malloc keeps memory": 0.8}
    found, runs = searched(speeds=speeds)
    kinds = {one.change.name: one.kind for one in found.tried}
    assert {name for name, kind in kinds.items() if kind == "helps"} == {
        "2 loader workers",
        "4 loader workers",
        "1 thread",
    }
    assert kinds["malloc keeps memory"] == "slower"
    assert [found.tried[i].change.name for i in found.best] == ["4 loader workers", "1 thread"]
    assert found.together.change.name == "4 loader workers + 1 thread"
    assert 1 / found.together.shift.ratio == pytest.approx(2.4, rel=0.02)
    assert runs.now_s <= 900
    answer = json.loads(render(try_document(found), "json"))
    assert answer["permanent"][0] == "DataLoader(..., num_workers=4, persistent_workers=True)  # train.py:31"
    assert answer["permanent"][1].startswith("OMP_NUM_THREADS=1 in the environment")
    assert answer["changes"][0]["answers"] == ["dataloader-wait"]
    low, high = answer["together"]["low"], answer["together"]["high"]
    assert low < answer["together"]["speedup"] < high
    assert answer["changes"][0]["sentence"].startswith("helps ")
    assert answer["changes"][0]["speedup"] == pytest.approx(2, rel=0.02)
    assert "To keep it" in render(try_document(found), "text")


def test_changes_that_disturb_each_other_are_not_combined():
    speeds = {"4 loader workers": 2.0, "1 thread": 1.2, "4 loader workers + 1 thread": 1.5}
    found, _ = searched(speeds=speeds)
    assert found.together.kind == "helps"
    assert [found.tried[i].change.name for i in found.best] == ["4 loader workers"]
    assert "2.0" in try_document(found).data.sentence or "1.9" in try_document(found).data.sentence


def test_a_healthy_program_hears_that_nothing_helps():
    found, _ = searched()
    assert (found.best, found.together) == ((), None)
    assert {one.kind for one in found.tried} == {"no difference seen"}
    text = render(try_document(found), "text")
    assert re.search(
        r"No change makes the program faster by more than 10%; \d+ changes measured\.", " ".join(text.split())
    )
    assert "NOTHING HELPS" in text
    assert "To keep it" not in text


@pytest.mark.parametrize("budget_s", [260, 900])
@pytest.mark.parametrize("spread", [0.15, 0.5])
def test_a_busy_machine_leaves_changes_undecided(budget_s, spread):
    """Nothing is denied that was not measured well enough, whether it would help or not."""
    speeds = {"4 loader workers": 1.3}
    found, _ = searched(budget_s=budget_s, speeds=speeds, spread=spread)
    for one in found.tried:
        assert one.kind != "no difference seen" or 1 / one.shift.low <= 1.1, one
    answer = try_document(found).data
    assert answer.kind == ("helps" if found.best else "undecided")
    assert found.best or any(one.kind in {"undecided", "could not be tried"} for one in found.tried)
    assert found.best or "No change was shown to make the program faster, and some may" in answer.sentence


def test_what_was_not_tried_is_not_denied():
    found, _ = searched(failing=True)
    answer = try_document(found).data
    assert (answer.kind, answer.best) == ("undecided", ())
    assert f"0 changes measured, {len(found.tried)} not tried" in answer.sentence


def test_time_that_is_left_is_used():
    """The first runs take long, as on a machine that others stop using."""
    found, runs = searched(budget_s=600, hurry=True)
    assert {one.kind for one in found.tried} == {"no difference seen"}
    assert runs.now_s <= 600


def test_a_run_longer_than_a_quarter_of_the_budget_is_misuse():
    with pytest.raises(ArgumentError, match=r"--budget must be larger: a run takes more than 15.0 s, got 60"):
        searched(budget_s=60, wall_s=15, error="it took longer than 15 s")


@pytest.mark.parametrize("wall_s", [3, 5, 11])
def test_the_least_budget_that_an_error_names_is_enough(wall_s):
    with pytest.raises(ArgumentError, match=r"--budget must be \d+ or more: a run takes") as raised:
        searched(budget_s=10 * wall_s, wall_s=wall_s)
    least = int(re.search(r"must be (\d+)", str(raised.value))[1])
    found, _ = searched(budget_s=least, wall_s=wall_s)
    assert any(one.kind != "could not be tried" for one in found.tried)


def test_what_changes_the_results_is_not_recommended():
    found, _ = searched(speeds={"4 loader workers": 2.0}, results={"4 loader workers": Results(losses=[1.5])})
    assert found.best == ()
    text = " ".join(render(try_document(found), "text").split())
    first = try_document(found).data.changes[0]
    assert first.sentence.startswith("changes the results, ")
    assert first.speedup == pytest.approx(2, rel=0.02)
    assert "Only what changes the results was shown to make the program faster" in text
    assert "4 loader workers makes it faster, too, but changes the results" in text


def test_a_later_start_is_said():
    found, _ = searched(speeds={"torch.compile": 2.0})
    [compiled] = [one for one in try_document(found).data.changes if one.name == "torch.compile"]
    assert re.search(r"; it starts (4.9\d|5.0\d) s later, made up for by (9\d\d|1,0\d\d) steps", compiled.sentence)


def test_the_budget_limits_the_changes_to_those_with_most_at_stake():
    whole, _ = searched()
    found, runs = searched(budget_s=260, speeds={"4 loader workers": 1.5})
    names = [one.change.name for one in found.tried]
    assert names == [one.change.name for one in whole.tried]
    open_ones = [one for one in found.tried if one.kind == "could not be tried"]
    assert {one.reason for one in open_ones} == {"no time within the budget of 260 s"}
    assert [found.tried[i].change.name for i in found.best] == ["4 loader workers"]
    assert runs.now_s <= 260


def test_what_looks_faster_by_chance_does_not_use_up_a_small_budget():
    """A gain of a tenth is found in nine of ten searches, and nothing else."""
    programs, found = cases(10, 100), []
    for seed in programs:
        trial._ORDER.seed(seed)
        result, runs = searched(budget_s=280, speeds={"4 loader workers": 1.1}, spread=0.01, seed=seed)
        found += [result.tried[i].change.name for i in result.best]
        assert runs.now_s <= 280
    assert set(found) == {"4 loader workers"}
    assert len(found) >= 0.9 * len(programs)


@pytest.mark.parametrize("seed", range(8))
def test_the_budget_holds_whatever_the_load(seed):
    pick = random.Random(seed)
    speeds = {"4 loader workers": 2.0, "1 thread": 1.2, "malloc keeps memory": 1.5}
    budget_s, load, loaded_s = pick.uniform(300, 900), pick.choice([1.5, 3, 10]), pick.uniform(60, 900)
    found, runs = searched(budget_s=budget_s, speeds=speeds, load=load, loaded_s=loaded_s)
    assert found.spent_s == runs.now_s <= budget_s
    assert not any("it took longer" in one.reason for one in found.tried)  # it's the budget that ended
    if len(found.best) > 1:
        assert found.together.kind == "helps"
    render(try_document(found), "text")


def test_a_change_whose_runs_take_long_does_not_stop_the_others():
    found, runs = searched(budget_s=600, speeds={"4 loader workers": 1.5}, slow="torch.compile")
    [compiled] = [one for one in found.tried if one.change.name == "torch.compile"]
    assert (compiled.kind, compiled.reason) == ("could not be tried", "no time within the budget")
    assert [found.tried[i].change.name for i in found.best] == ["4 loader workers"]
    assert runs.now_s <= 600


@pytest.mark.parametrize("budget_s", [29, float("nan"), 100])
def test_a_budget_that_is_too_small_is_refused(budget_s):
    with pytest.raises(ArgumentError, match="--budget must be"):
        searched(budget_s=budget_s)


def test_a_program_that_fails_is_an_error():
    with pytest.raises(ProgramFailedError, match="no such device"):
        searched(error="RuntimeError: no such device")


def test_caveats_say_what_is_missing():
    found, _ = searched(stakes={}, source="")
    assert any("could not be profiled (it took longer than 20 s)" in one for one in found.caveats)
    assert any("No steps were found" in one for one in found.caveats)
    assert "The run is" in render(try_document(searched(source="", speeds={"1 thread": 2})[0]), "text")


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_has_an_answer(form):
    found, _ = searched(speeds={"1 thread": 1.3})
    assert "1 thread" in render(try_document(found), form)


def test_the_command_ends_as_it_says(tmp_path, monkeypatch):
    found, _ = searched(speeds={"1 thread": 1.3})
    nothing, _ = searched()
    (tmp_path / "a.py").write_text("")
    for result, status in ((found, 0), (nothing, 1), (ProgramFailedError("x"), 3), (ArgumentError("y"), 2)):

        def give(program, budget_s, say, result=result):
            assert (program, budget_s) == (Program("a.py", ("--epochs", "1")), 60)
            if isinstance(result, Exception):
                raise result
            return result

        monkeypatch.setattr(command, "search", give)
        ended = run_here("try", "--budget", "60", "--format", "json", "a.py", "--epochs", "1", folder=tmp_path)
        assert ended.returncode == status, ended.stderr
        if status < 2:
            assert json.loads(ended.stdout)["schema"] == 1
    monkeypatch.undo()
    assert run_here("try", "missing.py", folder=tmp_path).returncode == 2
    assert "got -" in run_here("try", "-", folder=tmp_path).stderr
    assert run_here("try", "--format", "x", "a.py", folder=tmp_path).returncode == 2
