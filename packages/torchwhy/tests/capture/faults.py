"""Run in a process by itself: functions of the recorder raise, one at a time, while it records small programs.

Every function of `torchwhy.capture` is found by its definition, and each of PyTorch's profiler that it calls. The
arguments are the number of cases and a seed. Whatever differs from a run without the profiler is printed.
"""

import ast
import contextlib
import functools
import gc
import importlib
import io
import os
import pkgutil
import random
import signal
import sys
import tempfile
import threading
from importlib.machinery import PathFinder, SourceFileLoader
from pathlib import Path

ERRORS = (RuntimeError, OSError, AssertionError, ValueError, KeyError, MemoryError, TypeError)

# The boundary itself; what runs the program as Python does; a counter that Python calls for each call. Functions that
# wrap the program's (`functools.wraps`) only pass on, and are left out, too.
TRUSTED = (
    *("containment:", "session:_contained", "session:Session.contain", "session:Session._attempt"),
    *("session:Session.fail", "session:Session.give_up", "session:Session._note_error", "main_thread:_Pending"),
    "recorder:_Collections.note",
    *("launch.program:Program", "launch.program:_run", "launch.ending:", "launch.importing:_Finder"),
    *("launch.importing:_Loader", "launch.run:launch", "launch.run:_Launched.run", "python_calls:PythonCalls._note"),
    *("launch.run:_Launched._lose", "launch.run:_Launched._reported", "launch.run:_Launched.finish"),
    *("launch.run:_Launched._closed", "launch.run:_Launched._run", "launch.run:_Launched._is_in_script"),
)

TRAINING = """
import gc, threading, torch
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 4), torch.nn.ReLU())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for number, (x,) in enumerate(torch.utils.data.DataLoader(torch.utils.data.TensorDataset(torch.randn(9, 8)))):
    with torch.profiler.record_function("forward"):
        loss = model(x).sum()
    loss.backward(); optimizer.step(); optimizer.zero_grad()
    if number == 5:
        gc.collect()
print(loss.item())
raise LookupError("of the program")
"""
WITHOUT_STEPS = """
import gc, threading, torch
x = torch.eye(8)
for _ in range(10):
    x = (x @ x).cos()
gc.collect()
thread = threading.Thread(target=lambda: print(x.sin().sum().item()))
thread.start()
thread.join()
raise SystemExit(3)
"""


class Faults:
    """Counts calls, and raises at one of them."""

    def __init__(self):
        self.calls, self.place, self.left, self.error, self.process = {}, None, 0, None, os.getpid()
        self.in_main_thread = True

    def plan(self, place, number, error):
        self.calls, self.place, self.left, self.error = {}, place, number, error

    def hit(self, place):
        self.calls[place] = self.calls.get(place, 0) + 1
        if place == self.place and os.getpid() == self.process:
            self.left -= 1
            if self.left == 0:
                # Another thread may look once more after the end, when the report is written.
                self.in_main_thread = threading.current_thread() is threading.main_thread()
                raise self.error("injected")


faults = Faults()


class Instrumented(SourceFileLoader):
    """Lets each function of a module begin with a call of `faults.hit`."""

    def get_code(self, fullname):
        tree = ast.parse(Path(self.path).read_text())
        self._visit(tree, fullname.removeprefix("torchwhy.capture.") + ":")
        return compile(ast.fix_missing_locations(tree), self.path, "exec", dont_inherit=True)

    def exec_module(self, module):
        module.__dict__["__hit__"] = faults.hit
        super().exec_module(module)

    def _visit(self, node, name):
        for child in ast.iter_child_nodes(node):
            inside = name
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                inside = f"{name}{child.name}."
            self._visit(child, inside)
            passes_on = "functools.wraps" in ", ".join(map(ast.unparse, getattr(child, "decorator_list", ())))
            if isinstance(child, ast.FunctionDef) and not passes_on:
                place = inside.removesuffix(".")
                begins = ast.parse(f"__hit__({place!r})").body
                at = int(ast.get_docstring(child) is not None)
                child.body[at:at] = begins


class Finder:
    """Finds the modules of the recorder."""

    @staticmethod
    def find_spec(name, path, target=None):
        spec = PathFinder.find_spec(name, path) if name.startswith("torchwhy.capture.") else None
        if spec is not None:
            spec.loader = Instrumented(name, spec.origin)
        return spec


def wrap_profiler():
    """The same for the functions of PyTorch's profiler; these also raise when they have done their work."""
    import torch.autograd.profiler as native
    from torch.profiler.profiler import _KinetoProfile, profile

    places = {
        profile: ("start", "stop", "step"),
        _KinetoProfile: ("prepare_trace", "start_trace", "stop_trace", "export_chrome_trace"),
        native.profile: ("_prepare_trace", "_start_trace", "__exit__"),
        native: ("_prepare_profiler", "_enable_profiler", "_disable_profiler"),
    }
    for owner, names in places.items():
        for name in names:
            setattr(owner, name, wrapped(getattr(owner, name), f"{owner.__name__}.{name}"))


def wrapped(function, name):
    @functools.wraps(function)
    def run(*args, **kwargs):
        faults.hit(f"{name} before")
        result = function(*args, **kwargs)
        faults.hit(f"{name} after")
        return result

    return run


def state():
    """What of a recorder that has ended would disturb the program; hooks that an error has left do nothing."""
    import torch

    return {
        "profiler": torch._C._autograd._profiler_enabled(),
        "modes": torch._C._len_torch_dispatch_stack(),
        "collections": len(gc.callbacks),
        "profile": sys.getprofile(),
    }


def run(source, folder):
    """Record a program; return what it printed, how it ended, what was said of the recording, and what is left."""
    from torchwhy.capture.launch import Program, Settings, launch
    from torchwhy.capture.options import Options
    from torchwhy.capture.schedule import Schedule
    from torchwhy.capture.whole_run import Limits

    script = folder / "program.py"
    script.write_text(source)
    said = []

    def settings():
        return Settings(folder / "run", Schedule(1, 1, 2), Options(), "auto", Limits())

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        ending = launch(Program(str(script), ()), settings, lambda capture: said.append(str(capture)), said.append)
    left = sorted(path.name for path in (folder / "run").iterdir()) if (folder / "run").is_dir() else []
    shown = out.getvalue(), err.getvalue().replace(str(folder), ""), ending, state()
    return shown, said, left


def main(count, seed):
    import torch

    torch.set_num_threads(1)
    sys.meta_path.insert(0, Finder)
    import torchwhy.capture

    for module in pkgutil.walk_packages(torchwhy.capture.__path__, "torchwhy.capture."):
        importlib.import_module(module.name)
    wrap_profiler()
    gc.freeze()
    chance = random.Random(seed)
    raised = 0
    for source in (TRAINING, WITHOUT_STEPS):
        faults.plan(None, 0, None)
        with tempfile.TemporaryDirectory() as folder:
            expected, _, whole = run(source, Path(folder))
        assert "trace.json.gz" in whole
        calls = {
            place: times
            for place, times in faults.calls.items()
            if not place.startswith(TRUSTED) and "remove" not in place
        }
        for _ in range(count):
            place = chance.choice(sorted(calls))
            number, error = chance.choice((1, min(2, calls[place]), calls[place])), chance.choice(ERRORS)
            faults.plan(place, number, error)
            with tempfile.TemporaryDirectory() as folder:
                shown, said, left = run(source, Path(folder))
            if faults.left <= 0:
                raised += 1
                if faults.in_main_thread and not any("injected" in one for one in said):
                    print(place, number, error.__name__, "nothing is said of the error")
            if shown != expected:
                print(place, number, error.__name__, shown, "for", expected)
            if left and not {"run.json", "trace.json.gz"} <= {*left}:
                print(place, number, error.__name__, "left", left)
    print("raised", raised, "of", 2 * count)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
