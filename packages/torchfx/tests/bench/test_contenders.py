"""Contenders in processes of their own: this Python's, a peer's, and ones that are wrong or broken."""

import sys
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.signal
import torch

from bench import chains, latency, seats, signals, throughput
from bench.contenders import torchaudio_library, worker
from bench.exact import deviation, exact_blocks
from bench.process import ContenderError, ContenderProcess, Peer, parse_peer
from bench.throughput import SUITES, Settings
from torchfx.errors import ArgumentError

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="peers are shell scripts")

SMALL = replace(SUITES["fir"], contenders=("copy", "torchfx", "scipy lfilter"))


def settings(*peers, durations=(0.05,), channels=(2,)):
    return Settings(durations, channels, rounds=3, limit_s=5, threads=1, peers=peers)


def collected(steps):
    rows, refused = [], []
    for measured in steps:
        rows += measured.rows
        refused += measured.refused
    return rows, refused


class InProcess(worker.Worker):
    """A contender of this Python at work in this process: importing PyTorch in another one takes seconds."""

    def __init__(self):
        super().__init__()
        self.peer = Peer()

    def ask(self, command, **arguments):
        return getattr(self, command)(**arguments)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        pass


@pytest.fixture(scope="module")
def in_process():
    """Let this Python's contenders work in this process, and peers in their own."""
    threads = torch.get_num_threads()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(seats, "ContenderProcess", lambda peer: ContenderProcess(peer) if peer.name else InProcess())
        patch.setattr(worker.gc, "collect", lambda: 0)  # before each turn, which takes long among the tests' objects
        yield
    torch.set_num_threads(threads)


@pytest.fixture(scope="module")
def peer(tmp_path_factory):
    """Another Python: one in which neither torch nor torchfx can be found."""
    folder = tmp_path_factory.mktemp("peer")
    (folder / "sitecustomize.py").write_text(
        "import importlib.util as u\nfind = u.find_spec\n"
        "u.find_spec = lambda name, package=None: None if name.startswith('torch') else find(name, package)\n"
    )
    python = folder / "python"
    python.write_text(f'#!/bin/sh\nPYTHONPATH={folder} exec {sys.executable} "$@"\n')
    python.chmod(0o755)
    return Peer("other", str(python))


@pytest.fixture(scope="module")
def with_peer(in_process, peer):
    return collected(throughput.run(SMALL, settings(peer, channels=(1, 2))))


def test_every_contender_is_exact_and_timed(with_peer):
    rows, refused = with_peer
    assert refused == []
    assert [row.contender for row in rows if row.channels == 2][:3] == ["copy", "torchfx", "scipy lfilter"]
    assert {row.channels for row in rows} == {1, 2}
    for row in rows:
        assert 0 < row.low_s <= row.time_s <= row.high_s
        assert row.rounds == 3
        assert row.ns_per_sample == pytest.approx(row.time_s / (row.channels * 2205) * 1e9, rel=1e-3)
        assert row.gb_per_s == pytest.approx(8 / row.ns_per_sample)
        assert row.of_copy > 0
    assert all(row.deviation < 2e-7 for row in rows if row.contender.startswith("torchfx"))


def test_a_peer_joins_the_same_table_with_what_it_has(with_peer):
    names = [row.contender for row in with_peer[0] if row.channels == 1]
    assert names == ["copy", "torchfx", "scipy lfilter", "other: scipy lfilter"]


def test_speed_ups_refer_to_the_baseline(with_peer):
    rows = {(row.contender, row.channels): row for row in with_peer[0]}
    assert rows["scipy lfilter", 2].speedup == 1
    assert rows["copy", 2].speedup is None
    fast = rows["torchfx", 2]
    assert fast.speedup_low <= fast.speedup <= fast.speedup_high


def test_a_peer_needs_no_torch(peer):
    with ContenderProcess(peer) as process:
        offered = process.ask("probe")
    assert offered == {
        "whole": {"scipy lfilter": ["cpu"], "scipy sosfilt": ["cpu"], "scipy oaconvolve": ["cpu"]},
        "streams": {"scipy sosfilt": ["cpu"]},
    }


@pytest.mark.parametrize(("off", "refused"), [(0.0, False), (1e-7, False), (3e-7, True), (np.nan, True)])
def test_a_wrong_contender_is_refused(tmp_path, off, refused):
    suite = SUITES["iir"]
    x = signals.noise(1, 500)
    right = next(block for _, _, block in exact_blocks(suite.chain, x))
    wrong = right.copy()
    wrong[123] += off * np.abs(right).max()

    class Process:
        peer = Peer()

        def ask(self, command, channel, start, stop, path):
            np.save(path, wrong[None][channel, start:stop])

    seat = seats.Seat("torchfx", "cpu", Process())
    answer = {"channels": 1, "samples": 500}
    if refused:
        with pytest.raises(ContenderError, match="off by"):
            seats.check(seat, suite.chain, x, answer, tmp_path)
    else:
        assert seats.check(seat, suite.chain, x, answer, tmp_path) == pytest.approx(off, abs=1e-9)
    with pytest.raises(ContenderError, match="1 x 499"):
        seats.check(seat, suite.chain, x, {"channels": 1, "samples": 499}, tmp_path)


def test_a_contender_that_fails_leaves_the_others_alone(in_process, monkeypatch):
    monkeypatch.setattr(seats, "BOUND", -1.0)  # nothing is exact enough: this library is refused, SciPy is not
    rows, refused = collected(throughput.run(SMALL, settings()))
    assert [row.contender for row in rows] == ["copy", "scipy lfilter"]
    assert {refusal.contender for refusal in refused} == {"torchfx"}
    assert all("off by" in refusal.reason for refusal in refused)


def test_what_would_not_fit_into_memory_is_left_out(in_process, monkeypatch):
    monkeypatch.setattr(throughput, "MEMORY", throughput.OVERHEAD)
    steps = list(throughput.run(replace(SMALL, contenders=("scipy lfilter",)), settings()))
    assert [(step.rows, step.refused) for step in steps] == [([], []), ([], [])]
    assert "left out: scipy lfilter, 2 x 0.05 s" in steps[1].notes[0]


def test_a_broken_process_says_why():
    with ContenderProcess(Peer()) as process, pytest.raises(ContenderError, match="no_such_command"):
        process.ask("no_such_command")


def test_a_peer_that_cannot_start_is_reported(in_process, tmp_path):
    python = tmp_path / "python"
    python.write_text("#!/bin/sh\necho there is nothing here >&2\nexit 1\n")
    python.chmod(0o755)
    _, refused = collected(throughput.run(SMALL, settings(Peer("empty", str(python)), durations=())))
    assert [(refusal.contender, refusal.reason) for refusal in refused] == [("empty", "there is nothing here")]


def test_peers_are_name_and_python():
    assert parse_peer(f"a={sys.executable}").python == sys.executable
    for text in ("a", "=b", "a="):
        with pytest.raises(ArgumentError, match="NAME=PYTHON"):
            parse_peer(text)
    with pytest.raises(ContenderError, match="no Python"):
        parse_peer("a=/no/such/python")


def test_blocks_give_the_whole_and_their_tail(in_process):
    steps = latency.run(latency.LatencySettings(blocks=(256,), channels=2, calls=100, threads=1))
    rows, refused = collected(steps)
    assert refused == []
    assert tuple(row.contender for row in rows) == latency.CONTENDERS
    for row in rows:
        assert row.deviation is None if row.contender == "torch.mul" else row.deviation < 2e-7
        assert 0 < row.p50_us <= row.p99_us <= row.p999_us <= row.max_us
        assert row.calls == sum(row.counts) == 100
        assert len(row.edges_us) == len(row.counts) + 1


@pytest.mark.parametrize("contender", latency.CONTENDERS)
def test_a_contender_on_blocks_is_checked_as_a_whole_or_from_rest_or_not_at_all(contender, tmp_path, one_thread):
    process, x = InProcess(), signals.noise(2, 640)
    np.save(tmp_path / "signal.npy", x)
    seat = seats.Seat(contender, "cpu", process)
    answer = process.prepare_stream(contender, chains.IIR.job("cpu", 2), str(tmp_path / "signal.npy"), 1, 64)
    off = latency.check_blocks(seat, x, answer, 64, tmp_path)
    if contender == "torch.mul":
        assert off is None
        assert np.array_equal(process.result, 2 * x)
        return
    assert off < 2e-7
    whole = seats.deviation(chains.IIR, x, lambda c, start, stop: process.result[c, start:stop])
    assert (whole > 1e-3) == (contender in latency.FROM_REST)


def test_percentiles_are_times_that_were_measured():
    row = latency.summarise("a", "cpu", 1, 441, [1000 * i for i in range(1, 1001)], 0.0)
    assert (row.p50_us, row.p99_us, row.p999_us, row.max_us) == (501, 991, 1000, 1000)
    assert row.deadline_us == 10_000


def test_a_library_with_torchaudios_calls_can_take_part(monkeypatch):
    """A stand-in with torchaudio's signatures: what is called must be the job's filters."""

    def lfilter(waveform, a_coeffs, b_coeffs, clamp=True, batching=True):
        assert not clamp
        return torch.from_numpy(scipy.signal.lfilter(b_coeffs.double(), a_coeffs.double(), waveform))

    def fftconvolve(x, y, mode="full"):
        assert x.shape[:-1] == y.shape[:-1]
        return torch.from_numpy(scipy.signal.fftconvolve(x, y, mode, axes=-1))

    stand_in = SimpleNamespace(lfilter=lfilter, fftconvolve=fftconvolve)
    monkeypatch.setitem(sys.modules, "torchaudio", SimpleNamespace(functional=stand_in))
    monkeypatch.setitem(sys.modules, "torchaudio.functional", stand_in)
    x = signals.noise(2, 1000)
    for chain, prepare in ((chains.IIR, torchaudio_library.lfilter), (chains.FIR, torchaudio_library.fftconvolve)):
        y = prepare(chain.job(), x)()
        assert deviation(chain, x, lambda c, start, stop, y=y: y[c, start:stop].numpy()) < seats.PEER_BOUND
