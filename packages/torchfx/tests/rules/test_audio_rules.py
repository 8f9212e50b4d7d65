"""Rules about audio: on traces of the machine's own programs, and on small made ones for GPUs that are not there."""

import os
import re
import subprocess
import sys

import case_audio  # noqa: F401 - it adds its cases to those of the rules
import pytest
import torch
from torch.profiler import ProfilerActivity, profile

import torchfx as fx
import torchwhy
from _torchfx_rules.vocabulary import DESIGN_FILTER, READ_AUDIO_FRAME
from tests.rules.cases import FIRES, SILENT
from torchfx import audio_io
from torchwhy.rules.catalogue import all_rules, find_rule
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.meaning.kernels.decoding import decode

MADE = "case_audio"


def slugs(trace):
    return {finding.slug for finding in diagnose(trace).findings}


@pytest.mark.parametrize(("slug", "story"), [case for case in FIRES if case[1].__module__ == MADE])
def test_fires(slug, story):
    assert slug in slugs(story().trace())


@pytest.mark.parametrize(("slug", "story"), [case for case in SILENT if case[1].__module__ == MADE])
def test_stays_silent(slug, story):
    assert slug not in slugs(story().trace())


def test_torchwhy_finds_the_rules():
    ours = {rule.code for rule in all_rules() if rule.function.__module__.startswith("_torchfx_rules.")}
    assert ours == {"G1", "G2", "G3", "G4", "G5", "G8", "G9"}
    assert find_rule("coefficients-recomputed-per-call").code == "G5"
    for code in ours:
        for heading in ("Sees:", "Costs:", "Fix:", "Known problems:"):
            assert f"\n\n{heading} " in find_rule(code).documentation


def test_torchwhy_knows_the_names_of_kernels():
    name = decode("torchfx_sos_scan_kernel")
    assert (name.library, name.operation, name.description) == ("torchfx", "audio", "filter of torchfx")


# --- recorded here, from the code as it is ----------------------------------------------------------------------


@pytest.fixture
def recorded(tmp_path):
    """Record steps of a program with stacks and shapes, and read the trace."""

    def record(step, steps=5):
        path = tmp_path / "trace.json"
        step(99)  # imports what it needs
        with profile(activities=[ProfilerActivity.CPU], with_stack=True, record_shapes=True) as p:
            for number in range(steps):
                with torch.profiler.record_function(f"ProfilerStep#{number}"):
                    step(number)
        p.export_chrome_trace(str(path))
        return torchwhy.load(path)

    return record


WAVE = fx.Wave(torch.randn(2, 4_000), 48_000)
MAKERS = {
    "butterworth": lambda k: fx.filter.LoButterworth(1000 + k, order=4),
    "chebyshev": lambda k: fx.filter.HiChebyshev1(100 + k),
    "elliptic": lambda k: fx.filter.Elliptic(1000 + k),
    "peaking": lambda k: fx.filter.Peaking(1000 + k, 1.0, 6.0),
    "fir": lambda k: fx.filter.DesignableFIR(1000 + k, 101),
}


@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_equal_filters_made_in_the_loop_are_seen_and_others_are_not(recorded, make):
    trace = recorded(lambda k: WAVE | make(3))
    assert "coefficients-recomputed-per-call" in slugs(trace)
    for step in (lambda k: WAVE | make(10 + k), lambda k: WAVE | make(20 + k) | make(20 + k)):
        trace = recorded(step)
        assert trace.events.any_of(DESIGN_FILTER)
        assert "coefficients-recomputed-per-call" not in slugs(trace)


def test_designs_by_operators_as_in_compiled_code_are_seen_where_they_stay(recorded):
    for change, seen in ((0, True), (7, False)):
        trace = recorded(lambda k, change=change: torch.ops.torchfx_ext.weighting_sos("A", 44_100.0 + change * k))
        assert ("coefficients-recomputed-per-call" in slugs(trace)) == seen


def test_filters_made_once_are_not(recorded):
    chain = fx.filter.LoButterworth(1000, order=4) | fx.filter.HiChebyshev1(100)
    WAVE | chain
    trace = recorded(lambda k: WAVE | chain)
    assert not trace.events.any_of(DESIGN_FILTER)
    assert {"coefficients-recomputed-per-call", "native-dispatch-count"}.isdisjoint(slugs(trace))


def test_filters_called_one_by_one_are_seen(recorded):
    low, high = fx.filter.LoButterworth(8000, order=4), fx.filter.HiButterworth(100, order=8)
    long = fx.Wave(torch.randn(2, 48_000), 48_000)
    long | low | high
    assert "native-dispatch-count" in slugs(recorded(lambda k: long | low | high))


def test_a_pipe_of_filters_with_coefficients_of_one_shape_is_seen(recorded):
    low, high, gain = fx.filter.LoButterworth(8000), fx.filter.HiButterworth(80), fx.effect.Gain("-3dB")
    long = fx.Wave(torch.randn(2, 48_000), 48_000)
    trace = recorded(lambda k: [long | high | low | gain for _ in range(3)])
    (found,) = [finding for finding in diagnose(trace).findings if finding.slug == "native-dispatch-count"]
    assert found.title == "30 calls of filters where 15 would do: up to 2 in a row on one signal"
    assert 0 < found.time_us <= found.evidence[0].time_us / 2  # the shorter call of each pair
    assert any(re.search(r"test_audio_rules\.py\(\d+\): <lambda>", frame) for frame in found.evidence[0].stack)


def test_one_filter_on_several_signals_and_a_fused_chain_are_no_pipe(recorded):
    low, high = fx.filter.LoButterworth(8000), fx.filter.HiButterworth(80)
    long, chain = fx.Wave(torch.randn(2, 48_000), 48_000), high | low

    def bank(k):
        before = long | high
        return before | torch.nn.Tanh(), before | low, before | high

    for step in (lambda k: [each | low for each in (long, long, long)], lambda k: long | chain, bank):
        assert "native-dispatch-count" not in slugs(recorded(step))


def test_a_pipe_beside_other_work_is_not(recorded):
    low, high = fx.filter.LoButterworth(8000), fx.filter.HiButterworth(80)
    short, weight = fx.Wave(torch.randn(1, 64), 48_000), torch.randn(1500, 1500)

    def step(k):
        torch.mm(weight, weight)
        return short | high | low

    assert "native-dispatch-count" not in slugs(recorded(step))


def test_short_signals_one_by_one_are_seen(recorded):
    low, clips = fx.filter.LoButterworth(1000), [fx.Wave(torch.randn(1, 400 + n), 8000) for n in range(20)]
    assert "many-short-files" in slugs(recorded(lambda k: [clip | low for clip in clips]))
    batch = fx.Wave(torch.randn(20, 400), 8000)
    assert "many-short-files" not in slugs(recorded(lambda k: batch | low))


WITHOUT_THE_LIBRARY = """
import sys, torch, torchfx as fx
low, wave = fx.filter.LoButterworth(1000, order=8), fx.Wave(torch.randn(2, 4000), 8000)
wave | low
with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as p:
    for number in range(3):
        with torch.profiler.record_function(f"ProfilerStep#{number}"):
            wave | low
p.export_chrome_trace(sys.argv[1])
"""


@pytest.mark.parametrize("native", [pytest.param("1", marks=pytest.mark.many), "0"])
def test_filters_without_the_native_library_are_seen(tmp_path, native):
    words = [sys.executable, "-c", WITHOUT_THE_LIBRARY, tmp_path / "trace.json"]
    subprocess.run(words, env={**os.environ, "TORCHFX_NATIVE": native}, check=True)
    assert ("reference-path" in slugs(torchwhy.load(tmp_path / "trace.json"))) == (native == "0")


@pytest.mark.parametrize("read", ["load", "from_file", "Reader", "av"])
def test_files_read_in_the_loop_are_seen(recorded, tmp_path, read):
    if read == "av":
        pytest.importorskip("av")
    path = tmp_path / ("noise.m4a" if read == "av" else "noise.flac")
    audio_io.save(path, 0.1 * torch.randn(2, 96_000), 48_000)

    def blocks():
        with audio_io.Reader(path) as reader:
            while len(reader.read(4096)[0]):
                pass

    step = {"load": lambda: audio_io.load(path), "from_file": lambda: fx.Wave.from_file(path), "Reader": blocks,
            "av": lambda: audio_io.load(path)}[read]  # fmt: skip
    trace = recorded(lambda k: step())
    own = [trace.events.named(row) for row in trace.events.of(READ_AUDIO_FRAME).tolist()]
    assert [name for name in own if re.search(r"torchfx/audio_io/", name)]
    assert "audio-load" in slugs(trace)


def test_a_loop_without_files_is_not(recorded):
    chain = fx.filter.LoButterworth(1000, order=4)
    assert "audio-load" not in slugs(recorded(lambda k: WAVE | chain))
