"""Of files that lack a table, nothing is said that only this table could show: every recorder, table by table."""

import json
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.simulator import draw, simulate
from tests.simulator.chrome import trace_of
from tests.simulator.claims import false_claims
from tests.simulator.judge import cases, explained
from tests.trace.recorders.writers import (
    CALL_KINDS,
    HOST_KINDS,
    WORK_KINDS,
    loaded,
    write_nsight,
    write_perfetto,
    write_rocm_json,
    write_rocpd,
)
from torchwhy.analysis.names import VerdictKind

WRITERS = (write_nsight, write_rocpd, write_rocm_json, write_perfetto)
COPIES = ("gpu_memcpy",)

LACKED = {
    "calls": CALL_KINDS,
    "copies": COPIES,
    "work": WORK_KINDS,
    "calls and copies": (*CALL_KINDS, *COPIES),
    "kernels": ("kernel",),
    "fills": ("gpu_memset",),
    "operators": ("cpu_op",),
    "labels": HOST_KINDS,
    "calls and operators": (*CALL_KINDS, "cpu_op"),
    "calls and labels": (*CALL_KINDS, *HOST_KINDS),
    "kernels and labels": ("kernel", *HOST_KINDS),
    "copies and labels": (*COPIES, *HOST_KINDS),
}
NEEDS_NO_TABLE = {"B10"}
"""Information that labels and idle time show; in whole files it may be less than a rule mentions."""

PROGRAMS = ((10, ("eager-small",)), (1, ("host-tensors",)), (2, ("loader-in-process",)))
EACH = [(write, *program, lack) for program in PROGRAMS for write in WRITERS for lack in LACKED]
DRAWN = EACH[: len(cases(3, len(EACH)))]


@cache
def reported(seed, faults, write, lacked):
    """A simulated program, and the report on its file without events of some categories."""
    run = simulate(draw(seed, faults))
    whole = trace_of(run)
    events = [event for event in whole["traceEvents"] if event.get("cat") not in lacked]
    with TemporaryDirectory() as folder:
        return run, explained(write(loaded(json.dumps(whole | {"traceEvents": events})), Path(folder) / "file"))


@pytest.mark.parametrize(("write", "seed", "faults", "lack"), DRAWN)
def test_what_a_missing_table_would_show_is_not_asserted(write, seed, faults, lack):
    """The verdict is that on the whole file, that the device computes most, if it does, or "can't tell"."""
    run, report = reported(seed, faults, write, LACKED[lack])
    _, whole = reported(seed, faults, write, ())
    shares = run.shares()
    computes = shares["compute"] >= sum(share for state, share in shares.items() if state.startswith("idle"))
    true = {VerdictKind.UNKNOWN, whole.verdict.kind} | ({VerdictKind.COMPUTE} if computes else set())
    assert report.verdict.kind in true, report.verdict.sentence
    assert not [*false_claims(run, report)]
    new = {finding.code for finding in report.findings} - {finding.code for finding in whole.findings}
    assert not [code for code in new if not code.startswith("A") and code not in NEEDS_NO_TABLE]
    if "calls" in lack or "copies" in lack:
        assert "because the host is still busy" not in report.verdict.sentence
