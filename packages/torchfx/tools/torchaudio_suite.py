#!/usr/bin/env python3
"""Run torchaudio's own tests of signal processing on `torchfx.compat.torchaudio`, in torchaudio's place.

    git clone --depth 1 --branch release/2.11 https://github.com/pytorch/audio
    pip install parameterized expecttest
    python tools/torchaudio_suite.py audio              # or followed by pytest's arguments: audio -k lfilter

Runs the tests of `functional`, `transforms` and `compliance` on the CPU, those with results of SoX, Kaldi and librosa
that lie in the checkout among them. Prints what failed, by its reason, and how many passed or don't apply: they need
TorchScript, what is no signal processing, a private function of torchaudio, a file that isn't there, or the words of an
error, which here has the same type and other words. Status: 0 if none failed, 1 if some did.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

import torchfx.compat.torchaudio as compat

FOLDERS = ("functional", "transforms", "compliance")
TORCHSCRIPT = "needs TorchScript"
OTHER_WORDS = '" does not match "'
"""In what `assertRaisesRegex` says of an error of the right type."""

UNEXPECTED = "Unexpected success"
"""What pytest says of a pass of a test that torchaudio marks as one it fails."""


class Outcomes:
    """A plugin of pytest that keeps how each test ended."""

    def __init__(self) -> None:
        self.passed: list[str] = []
        self.failed: defaultdict[str, list[str]] = defaultdict(list)
        self.left_out: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep one outcome for each test: that of its call, or of what kept it from being called."""
        if report.when != "call" and report.passed:
            return
        reason = self._reason(report)
        if hasattr(report, "wasxfail"):
            self.left_out["expected to fail"] += 1
        elif report.skipped:
            self.left_out[reason.removeprefix("Skipped: ")] += 1
        elif report.passed or UNEXPECTED in reason:
            self.passed.append(report.nodeid)
        elif "FileNotFoundError" in reason:
            self.left_out["needs a file that the checkout lacks"] += 1
        elif OTHER_WORDS in reason:
            self.left_out["expects the error raised in other words"] += 1
        else:
            self.failed[reason].append(report.nodeid.rpartition("torchaudio_unittest/")[2])

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Keep files that can't be imported."""
        if report.failed:
            self.failed[str(report.longrepr).strip().splitlines()[-1]].append(report.nodeid)

    @staticmethod
    def _reason(report: pytest.TestReport) -> str:
        found = report.longrepr
        if isinstance(found, tuple):  # a file, a line and the reason of a skipped test
            return found[2]
        crash = getattr(found, "reprcrash", None)
        return " ".join((str(found) if crash is None else crash.message).split())[:160]


def left_out(reason: str) -> Callable[..., Any]:
    """Return a replacement of a name that does not apply: a test that calls it is skipped."""

    def skip(*arguments: Any, **options: Any) -> None:
        if "PYTEST_CURRENT_TEST" in os.environ:  # parameters of tests are made before
            pytest.skip(reason)

    return skip


class StandIn(ModuleType):
    """A module with another's public names; tests that call what that one lacks are skipped."""

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name)
        self.__dict__.update({each: getattr(module, each) for each in module.__all__})

    def __getattr__(self, missing: str) -> Any:
        if missing.startswith("__"):
            raise AttributeError(missing)
        if missing.startswith("_"):
            return left_out(f"needs torchaudio's private {missing}")
        return left_out(f"needs {missing}, no signal processing")


def replace_torchaudio() -> None:
    """Put the module in torchaudio's place, keep TorchScript from compiling, and compare random parts of Jacobians."""
    functional = StandIn("torchaudio.functional", compat.functional)
    modules = {
        "torchaudio": StandIn("torchaudio", compat),
        "torchaudio.functional": functional,
        "torchaudio.functional.functional": functional,
        "torchaudio.transforms": StandIn("torchaudio.transforms", compat.transforms),
        "torchaudio.compliance": StandIn("torchaudio.compliance", compat.compliance),
        "torchaudio.compliance.kaldi": StandIn("torchaudio.compliance.kaldi", compat.compliance.kaldi),
        "torchaudio._internal": ModuleType("torchaudio._internal"),
        "torchaudio._internal.module_utils": ModuleType("torchaudio._internal.module_utils"),
    }
    modules["torchaudio._internal.module_utils"].__dict__.update(
        eval_env=lambda name, default: default,
        is_module_available=lambda *names: all(find_spec(name) is not None for name in names),
    )
    for name, module in modules.items():
        above, _, last = name.rpartition(".")
        if above and module is not modules[above]:
            setattr(modules[above], last, module)
    sys.modules.update(modules)
    torch.jit.script = left_out(TORCHSCRIPT)
    for name in ("gradcheck", "gradgradcheck"):  # all of a Jacobian would take minutes a test
        setattr(torch.autograd, name, partial(getattr(torch.autograd, name), fast_mode=True))


def run(checkout: Path, arguments: Sequence[str]) -> Outcomes:
    """Run the tests of a checkout."""
    replace_torchaudio()
    tests, found = checkout / "test", Outcomes()
    sys.path[:0] = [str(tests)]
    folders = [str(tests / "torchaudio_unittest" / folder) for folder in FOLDERS]
    options = ["--ignore-glob=*cuda*", "--import-mode=importlib", "-p", "no:cacheprovider", "-q", "--tb=short"]
    options += ["--rootdir", str(checkout), "-c", "/dev/null", "-o", "python_files=*_test.py", "--no-header"]
    pytest.main([*options, *folders, *arguments], plugins=[found])
    return found


def main() -> int:
    """Print the outcomes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("checkout", type=Path, help="the folder of pytorch/audio")
    chosen, arguments = parser.parse_known_args()
    if not (chosen.checkout / "test" / "torchaudio_unittest").is_dir():
        parser.error(f"checkout must hold test/torchaudio_unittest, got {chosen.checkout}")
    found = run(chosen.checkout.resolve(), arguments)
    failures = sum(map(len, found.failed.values()))
    for reason, tests in sorted(found.failed.items(), key=lambda item: -len(item[1])):
        sys.stdout.write(f"\n{len(tests)} failed: {reason}\n" + "".join(f"    {test}\n" for test in tests))
    ran = len(found.passed) + failures
    sys.stdout.write(f"\n{len(found.passed)} of {ran} passed ({100 * len(found.passed) / max(ran, 1):.1f} %)\n")
    for reason, count in found.left_out.most_common():
        sys.stdout.write(f"{count} left out: {reason}\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
