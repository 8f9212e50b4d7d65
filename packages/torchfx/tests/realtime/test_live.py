"""Live audio: the file clock and a fake PortAudio give what whole signals give; changes have no clicks."""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import torchfx as fx
from torchfx import audio_io, spec
from torchfx.errors import ArgumentError, ArgumentTypeError, AudioFileError, StreamError, TorchFXError
from torchfx.realtime import FileClock, MidiMapping, RealtimeConfig, RealtimeProcessor, SoundDevice, parameters_of
from torchfx.realtime.backends import DeviceError, _DeviceInfo, _Parameters, _StreamInfo

FS = 48_000


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    """Devices that are called by hand may take their time."""
    monkeypatch.setattr("torchfx.realtime.live.SILENT_S", 1e9)


def equaliser() -> fx.FilterChain:
    bands = [fx.filter.Peaking(100 * 2**i, 1.0, 3.0) for i in range(8)]
    return fx.FilterChain(*bands)


def noise(samples: int, channels: int = 2) -> torch.Tensor:
    return 0.3 * torch.randn(channels, samples, generator=torch.Generator().manual_seed(3))


def played(chain: torch.nn.Module, x: Any, **options: Any) -> tuple[torch.Tensor, Any]:
    clock = FileClock(x)
    with RealtimeProcessor(chain, clock, RealtimeConfig(**options)) as live:
        assert live.wait(60)
    return clock.output, live.stats()


def played_without_python(chain: torch.nn.Module, x: torch.Tensor, block_size: int) -> tuple[Any, torch.Tensor]:
    """Return what played a signal of three channels, and what came out, once it is sure that no Python ran."""
    clock = FileClock(x)
    with RealtimeProcessor(chain, clock, RealtimeConfig(block_size=block_size, channels=3)) as live:
        assert live.wait(60)
        counters = live._engine.counters()  # type: ignore[union-attr]
    assert live.is_native
    assert counters["allocated"] == counters["failures"] == 0
    return live, clock.output


@pytest.mark.parametrize("samples", [1, 64, 5000])
def test_a_native_chain_gives_what_the_whole_signal_gives(samples):
    chain = equaliser() | fx.effect.Compressor(-30) | fx.effect.Reverb()
    x = noise(samples)
    y, stats = played(chain, x, block_size=64)
    assert y.shape == x.shape
    assert (y - (fx.Wave(x, FS) | chain).ys).abs().max() < 2e-7
    assert (stats.failures, stats.dropped, stats.latency_samples) == (0, 0, 0)


@pytest.mark.parametrize(
    "chain",
    [
        fx.effect.Gain(0.5) | torch.nn.Tanh(),
        fx.effect.Limiter(-6.0) | torch.nn.Tanh(),
        fx.effect.Compressor(-20.0, sidechain=fx.Memoryless(torch.nn.Tanh())) | fx.filter.LoButterworth(1000),
    ],
    ids=["module", "late", "side-chain"],
)
def test_steps_in_python_run_a_stated_number_of_blocks_later(chain):
    x = noise(3000)
    y, stats = played(chain, x, block_size=128, worker_blocks=3)
    assert y.shape == x.shape
    assert (y - (fx.Wave(x, FS) | chain).ys).abs().max() < 2e-7
    assert stats.latency_samples == 3 * 128 + fx.realtime.Stream(chain, FS, 2).latency_samples
    assert stats.late_results == 0


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize("true_peak", [True, False])
def test_a_native_limiter_lags_by_its_look_ahead(link, true_peak):
    limiter = fx.effect.Limiter(-20.0, link=link, true_peak=true_peak)
    chain = fx.filter.HiButterworth(80) | limiter | fx.effect.Gain(2.0)
    x = noise(3000)
    for size in (64, 1000):  # shorter and longer than the look-ahead
        y, stats = played(chain, x, block_size=size)
        assert stats.latency_samples == fx.realtime.Stream(chain, FS, 2).latency_samples > 64
        assert (y - (fx.Wave(x, FS) | chain).ys).abs().max() < 2e-7


@pytest.mark.parametrize("block_size", [17, 64, 1025])
def test_gates_side_chains_and_true_peaks_need_no_worker(block_size):
    voice = fx.effect.Expander(-40.0, sidechain=fx.filter.HiButterworth(150) | fx.effect.Compressor(-30.0))
    chain = fx.effect.NoiseGate(-20.0, sidechain=fx.filter.HiButterworth(80)) | voice
    chain = chain | fx.effect.Limiter(-12.0, true_peak=True)
    x = noise(9000, 3) * torch.linspace(0, 1, 9000)
    live, y = played_without_python(chain, x, block_size)
    assert live.latency_samples == chain[-1].latency_samples(FS)
    assert (y - (fx.Wave(x, FS) | chain).ys).abs().max() < 2e-7


@pytest.mark.parametrize("block_size", [17, 64, 1025])
def test_ladders_curves_and_transient_shapers_need_no_worker(block_size):
    voice = fx.effect.TransientShaper(9.0, 3.0) | fx.filter.Ladder(1000, resonance=0.9, drive=4.0)
    curves = fx.effect.Overdrive(6.0) | fx.effect.WaveShaper([-1.0, 0.2, 1.0]) | fx.effect.HardClip(-3.0, oversample=2)
    chain = voice | curves | fx.effect.SoftClip("arctan", 3.0) | fx.effect.BitCrush(30)
    x = noise(9000, 3) * torch.linspace(0, 1, 9000)
    live, y = played_without_python(chain, x, block_size)
    assert live.latency_samples == curves[-1].latency_samples(FS)
    exact = (fx.Wave(x.double(), FS) | chain).ys
    # At its end a whole signal is silence to each processor; here the ladder goes on to sound.
    assert (y - exact)[:, : -live.latency_samples].abs().max() < 2e-7


@pytest.mark.parametrize("block_size", [17, 64, 1025])
def test_modulation_needs_no_worker(block_size):
    chain = fx.effect.Tremolo(7.0) | fx.effect.Chorus() | fx.effect.Flanger(3.0, mix=0.3) | fx.effect.Vibrato()
    chain = chain | fx.effect.Phaser(2.0, stages=9) | fx.effect.RingModulation(300.0)
    x = noise(9000, 3)
    _, y = played_without_python(chain, x, block_size)
    assert (y - (fx.Wave(x, FS) | chain).ys).abs().max() < 3e-7


MIXING = fx.effect.Balance(0.3) | fx.effect.Pan(-0.4) | fx.effect.StereoWidth(1.7)


@pytest.mark.parametrize(
    ("chain", "channels"),
    [
        (fx.filter.FIR([1 / 3000] * 3000), 1),
        (fx.FilterChain(), 1),
        (MIXING | fx.effect.ChannelMatrix([[0.0, 1.0], [0.5, 0.5]]), 2),
        (fx.effect.MultibandCompressor([200, 2000], threshold_db=[-24.0, -20.0, -18.0]), 2),
        (fx.effect.MultibandCompressor(link=False) | fx.effect.DeEsser(), 2),
        (fx.filter.Comb(50) | fx.filter.Comb(120.0, q=3.0, ftype="peak"), 2),
    ],
    ids=["long", "empty", "mixing", "multiband", "bands", "combs"],
)
def test_odd_chains_are_native_too(chain, channels):
    x = noise(7000, channels)
    with RealtimeProcessor(chain, FileClock(x), RealtimeConfig(channels=channels)) as live:
        assert live.is_native
    y, _ = played(chain, x, block_size=100, channels=channels)
    assert (y - (fx.Wave(x, FS) | chain).ys).abs().max() < 2e-7


@pytest.mark.parametrize("link", [True, False])
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_dynamics_are_steps_of_native_programs(link, channels, dtype):
    chain = fx.effect.Compressor(-30.0, link=link) | fx.effect.Expander(-25.0, link=link)
    stream = fx.realtime.Stream(chain, FS, channels)
    x = noise(1000, channels).to(dtype)
    y = torch.cat([stream.process(x[:, i : i + 64]) for i in range(0, 1000, 64)], dim=-1)
    assert stream._runner is not None
    assert list(stream._runner._ends.values()) == [2]
    assert torch.equal(y, (fx.Wave(x, FS) | chain).ys)


@pytest.mark.parametrize("block_size", [1, 64, 1000])
def test_a_stream_runs_late_steps_natively(block_size):
    """Each ends its program: at first it gives fewer samples than it gets."""
    chain = fx.filter.HiButterworth(80) | fx.effect.Limiter(-12.0) | fx.effect.Gain(0.5)
    stream = fx.realtime.Stream(chain, FS, 2)
    x = noise(1025)
    y = torch.cat([*map(stream.process, x.split(block_size, dim=-1)), stream.flush()], dim=-1)
    assert stream._runner is not None
    assert list(stream._runner._ends.values()) == [2, 3]
    assert (y[:, stream.latency_samples :] - (fx.Wave(x, FS) | chain).ys).abs().max() < 1e-7


def changed(chain: fx.Processor, change: Any, level: float = 1.0, **options: Any) -> torch.Tensor:
    """Return what a constant becomes when `change(live)` is made while it runs."""

    def source() -> Iterator[torch.Tensor]:
        block = torch.full((2, 64), level)
        yield from [block] * 800
        change(live)
        while live.stats().changes < 1:
            yield block
        yield from [block] * 8

    clock = FileClock(source())
    live = RealtimeProcessor(chain, clock, RealtimeConfig(block_size=64, **options))
    with live:
        assert live.wait(60)
    return clock.output


def test_parameters_change_without_a_step():
    y = changed(fx.FilterChain(fx.effect.Gain(1.0)), lambda live: live.set("gain", 0.25), crossfade_ms=10.0)
    assert y[0, 0] == 1
    assert y[0, -1] == 0.25
    assert y.diff().abs().max() <= 1.5 * 1.01 * 0.75 / 480  # the steepest part of the way


@pytest.mark.parametrize("module", [False, True], ids=["native", "with a step in Python"])
def test_a_cutoff_that_jumps_makes_no_burst(module):
    """From 20 kHz to 100 Hz, of an odd order: states that were handed on section by section gave 3.5e6."""
    chain = fx.filter.LoButterworth(20_000, order=5) | (
        fx.Memoryless(torch.nn.Identity()) if module else fx.effect.Gain(1.0)
    )
    tone = 0.5 * torch.sin(2 * torch.pi * 440 / FS * torch.arange(FS)).expand(2, -1)

    def source() -> Iterator[torch.Tensor]:
        yield tone
        live.set("cutoff", 100)
        yield from [tone] * 4
        while live.is_native and live.stats().changes < 1:
            yield tone

    clock = FileClock(source())
    live = RealtimeProcessor(chain, clock, RealtimeConfig(block_size=64))
    with live:
        assert live.wait(60)
    assert clock.output.abs().max() <= 0.51
    assert clock.output[:, -100:].abs().max() < 1e-3
    assert live.stats().mutes == 0


def test_assignments_are_followed():
    chain = fx.effect.Gain(1.0) | fx.filter.LoButterworth(5000)
    y = changed(chain, lambda live: setattr(chain[0], "gain", 0.5))
    assert y[0, -1] == pytest.approx(0.5, abs=1e-6)


def test_new_parameters_take_the_state_over():
    y = changed(fx.filter.LoButterworth(20, order=4), lambda live: live.set("cutoff", 30))
    assert (y[:, 40_000:] - 1).abs().max() < 1e-4  # from rest it would begin at 0
    delay = changed(fx.effect.Gain(2.0) | fx.filter.FIR([0.0] * 200 + [1.0]), lambda live: live.set("gain", 1.0))
    assert delay[:, 300:].min() > 0.999


@pytest.mark.parametrize("true_peak", [True, False])
def test_a_limiter_goes_on_while_its_threshold_moves(true_peak):
    limiter = fx.effect.Limiter(-6.0, release_ms=10.0, true_peak=true_peak)
    y = changed(limiter, lambda live: live.set("threshold_db", -12.0))[:, :-400]  # before the end is in sight
    assert y[0, 10_000] == pytest.approx(10 ** (-6 / 20), rel=1e-6)
    assert y[0, -1] == pytest.approx(10 ** (-12 / 20), rel=1e-3)
    assert y[:, 10_000:].min() > 0.25  # from rest, its delay would be silent


def test_a_gate_goes_on_to_hold_while_its_side_chain_moves():
    gate = fx.effect.NoiseGate(-20.0, sidechain=fx.filter.LoButterworth(5000), hold_ms=100.0)
    y = changed(gate, lambda live: setattr(gate.sidechain, "cutoff", 50))
    assert y[:, 1000:].min() > 0.999  # from rest, nothing would be held and the side chain silent


def test_presets_are_crossed_to():
    y = changed(
        fx.effect.Gain(1.0), lambda live: live.switch(fx.effect.Gain(0.5) | fx.filter.LoButterworth(1000)), level=0.5
    )
    assert y[0, 0] == 0.5
    assert y[0, -1] == pytest.approx(0.25, abs=1e-3)
    assert y.diff().abs().max() < 0.01


def test_a_bypass_is_heard():
    def change(live: RealtimeProcessor) -> None:
        live.bypass()
        live.set("gain", 4.0)

    y = changed(fx.effect.Gain(2.0), change)
    assert y[0, 0] == 2
    assert y[0, -1] == 1


def test_files_come_in_and_go_out(tmp_path):
    x = noise(10_000)
    audio_io.save(tmp_path / "in.wav", x, FS)
    clock = FileClock(tmp_path / "in.wav", tmp_path / "out.wav")
    with RealtimeProcessor(fx.effect.Gain(0.5), clock) as live:
        live.wait()
    y, rate = audio_io.load(tmp_path / "out.wav")
    assert rate == FS
    assert torch.equal(y, 0.5 * x)


def test_a_source_that_fails_leaves_no_file(tmp_path):
    def source() -> Iterator[torch.Tensor]:
        yield noise(1000)
        raise AudioFileError("in.flac ends early: 1000 of 48000 frames")

    target = tmp_path / "out.wav"
    with (
        pytest.raises(AudioFileError, match="ends early"),
        RealtimeProcessor(fx.effect.Gain(0.5), FileClock(source(), target)) as live,
    ):
        live.wait()
    assert not list(tmp_path.iterdir())


def test_a_step_in_python_that_raises_ends_it():
    class Broken(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            raise RuntimeError("no model")

    with (
        pytest.raises(RuntimeError, match="no model"),
        RealtimeProcessor(fx.Memoryless(Broken()), FileClock(noise(1000))) as live,
    ):
        live.wait()


@pytest.mark.parametrize("seconds", [1, pytest.param(20, marks=pytest.mark.many)])
def test_a_busy_thread_beside_it_changes_nothing(seconds):
    chain = equaliser() | fx.effect.Compressor(-30) | fx.effect.Reverb()
    x = noise(seconds * FS)
    clock = FileClock(x, real_time=True)
    stop = threading.Event()

    def busy() -> None:
        while not stop.is_set():
            sum(i * i for i in range(10_000))

    thread = threading.Thread(target=busy)
    thread.start()
    try:
        with RealtimeProcessor(chain, clock, RealtimeConfig(block_size=64, crossfade_ms=1)) as live:
            assert live.wait(seconds + 60)
            counters = live._engine.counters()  # type: ignore[union-attr]
    finally:
        stop.set()
        thread.join()
    assert counters["allocated"] == counters["failures"] == 0
    assert counters["blocks"] >= seconds * FS // 64
    if counters["sheds"] == counters["starved"] == counters["dropped"] == 0:  # whatever else the machine does
        assert (clock.output - (fx.Wave(x, FS) | chain).ys).abs().max() < 2e-7


def test_a_change_that_cannot_run_live_leaves_the_sound_as_it_is():
    chain = fx.FilterChain(fx.effect.Compressor(-20.0))
    pa = FakePortAudio()
    with RealtimeProcessor(chain, SoundDevice(library=pa)) as live:
        chain[0].sidechain = fx.Memoryless(torch.nn.Tanh())
        while not live.stats().problem:
            live.wait(0.01)
        assert "must stay native; restart" in live.stats().problem
        assert pa.play(np.zeros((256, 2))).max() == 0
        chain[0].sidechain = None
        while live.stats().problem:
            live.wait(0.01)
    assert live.stats().failures == 0


# --- what must not be heard -------------------------------------------------------------------------------------------


class Doubled(torch.nn.Module):
    """Not native."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return 2 * x


CEILING = 10 ** (12 / 20)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -1e9])
@pytest.mark.parametrize(
    "chain",
    [
        fx.filter.LoButterworth(100, order=4) | fx.effect.Gain(2.0),
        fx.filter.FIR([0.5, *[1 / 3000] * 3000]),
        fx.effect.Compressor(-20.0) | fx.effect.Limiter(-1.0),
        fx.effect.Delay(0.01, feedback=0.5, mix=0.5),
        fx.filter.LoButterworth(100) | fx.Memoryless(Doubled()),
    ],
    ids=["sections", "partitions", "dynamics", "feedback", "worker"],
)
def test_bad_input_mutes_the_output_and_leaves_no_trace(chain, bad, tmp_path):
    x = noise(72_000)
    x[1, 5000] = bad
    clock = FileClock(x, tmp_path / "out.wav")
    with RealtimeProcessor(chain, clock, RealtimeConfig(block_size=64)) as live:
        assert live.wait(60)
    y = audio_io.load(tmp_path / "out.wav")[0]
    assert y.isfinite().all()
    assert y.abs().max() <= CEILING
    fine = x.clone()
    fine[1, 5000] = 0
    expected = (fx.Wave(fine, FS) | chain).ys
    if bool(((fx.Wave(x, FS) | chain).ys.abs() <= CEILING).all()):
        assert live.stats().mutes == 0  # behind a limiter
    else:
        assert live.stats().mutes == 1
        assert y[:, 5400:5700].abs().max() == 0  # NaNs in a state would stay
        assert (y[:, :4700] - expected[:, :4700]).abs().max() < 3e-7
        assert (y[:, 48_000:] - expected[:, 48_000:]).abs().max() < 1e-5
    assert live.stats().problem == ""


def test_a_burst_is_muted_until_it_is_over():
    """A gain of a million: nothing of it reaches the target, and a gain of 1 brings the sound back."""
    chain, block = fx.FilterChain(fx.effect.Gain(0.5)), torch.full((2, 64), 0.5)
    told: list[str] = []

    def source() -> Iterator[torch.Tensor]:
        yield from [block] * 800  # more than is made ready beforehand
        live.set("gain", 1e6)
        while not live.stats().mutes:
            yield block
        while len(told) < 400:
            told.append(live.stats().problem)
            yield block
        live.set("gain", 1.0)
        while live.stats().changes < 2 or "muted" in live.stats().problem:
            yield block
        yield from [block] * 10

    clock = FileClock(source())
    live = RealtimeProcessor(chain, clock, RealtimeConfig(block_size=64))
    with live:
        assert live.wait(60)
    y = clock.output
    assert y[0, 0] == 0.25
    assert y[0, -1] == 0.5
    assert y.isfinite().all()
    assert y.abs().max() <= CEILING
    assert live.stats().mutes == 1
    assert told[-1] == "the output is muted: the chain gives samples that are not finite or above 12 dBFS"


def test_a_ceiling_is_the_configurations():
    x = torch.full((2, 6400), 3.0)
    y, stats = played(fx.effect.Gain(1.0), x, ceiling_db=6.0)
    assert (stats.mutes, float(y.max())) == (1, 0.0)
    assert "above 6 dBFS" in stats.problem
    y, stats = played(fx.effect.Gain(1.0), torch.full((2, 6400), 1e9), ceiling_db=None)
    assert (stats.mutes, float(y.min())) == (0, 1e9)


# --- what goes wrong while it runs ------------------------------------------------------------------------------------


class Fragile(fx.effect.Gain):
    """A gain that breaks above 2."""

    error: type[Exception] = RuntimeError

    def lti(self, rate: float | None) -> Any:
        if self.gain > 2:
            raise self.error("too much")
        return super().lti(rate)


def until(condition: Any, pa: FakePortAudio) -> np.ndarray:
    """Play ones until a condition holds; return the last block."""
    for _ in range(2000):
        y = pa.play(np.ones((256, 2)))
        if condition():
            return y
        threading.Event().wait(0.005)
    raise AssertionError("it never came")


@pytest.mark.parametrize("error", [RuntimeError, AttributeError, ValueError, MemoryError, ZeroDivisionError])
def test_whatever_a_module_raises_the_next_good_value_is_heard(error, monkeypatch):
    monkeypatch.setattr(Fragile, "error", error)
    chain, pa = fx.FilterChain(Fragile(1.0), fx.effect.Gain(1.0)), FakePortAudio()
    with RealtimeProcessor(chain, SoundDevice(library=pa)) as live:
        live.set("0.gain", 3.0)
        y = until(lambda: live.stats().problem, pa)
        assert (y == 1).all()  # the old program goes on
        assert live.stats().problem == f"what was assigned last cannot run live: {error.__name__}: too much"
        with pytest.raises(StreamError, match="too much"):
            live.set("1.gain", 0.5)  # which does not put it right
        live.set("1.gain", 0.25)  # told once
        assert "too much" in live.stats().problem
        live.set("0.gain", 2.0)  # which does
        until(lambda: not live.stats().problem and live.stats().changes == 1, pa)
        assert (pa.play(np.ones((256, 2))) == 0.5).all()
        assert all(thread.is_alive() for thread in live._threads)


def test_a_value_that_puts_it_right_is_not_blamed():
    chain, pa = fx.FilterChain(Fragile(1.0)), FakePortAudio()
    with RealtimeProcessor(chain, SoundDevice(library=pa)) as live:
        live.set("gain", 3.0)
        until(lambda: live.stats().problem, pa)
        live.set("gain", 1.5)
        until(lambda: live.stats().changes, pa)
        live.set("gain", 3.0)
        until(lambda: live.stats().problem, pa)
        live.switch(fx.effect.Gain(0.5))
        until(lambda: live.stats().changes == 2, pa)
        assert live.stats().problem == ""


def test_a_program_that_cannot_be_made_leaves_the_old_one(monkeypatch):
    chain, pa = fx.FilterChain(fx.effect.Gain(1.0)), FakePortAudio()
    with RealtimeProcessor(chain, SoundDevice(library=pa)) as live:
        with monkeypatch.context() as patch:
            patch.setattr("torchfx.realtime.engine.LiveProgram._create", lambda *rest: 1 / 0)
            live.set("gain", 0.5)
            assert (until(lambda: live.stats().problem, pa) == 1).all()
            with pytest.raises(StreamError, match="ZeroDivisionError"):
                live.set("gain", 0.25)
        until(lambda: live.stats().changes, pa)
        assert (pa.play(np.ones((256, 2))) == 0.25).all()


def test_a_device_that_does_not_ask_blocks_nobody():
    with RealtimeProcessor(fx.effect.Gain(1.0), SoundDevice(library=FakePortAudio())) as live:
        for i in range(50):
            live.set("gain", i / 50)
            live.switch(fx.effect.Gain(1.0))
        assert live.stats().blocks == 0
        assert live.chain.gain == 1.0


def worked(chain: fx.FilterChain, change: Any, back: Any, problem: str) -> None:
    """Change a chain with steps in Python to one that cannot run, and back: the sound goes on."""

    def source() -> Iterator[torch.Tensor]:
        block = torch.full((2, 64), 0.5)
        yield from [block] * 800  # more than is made ready beforehand
        change()
        while not live.stats().problem:
            yield block
        told.append(live.stats().problem)
        yield from [block] * 100
        back()
        while live.stats().problem:
            yield block
        yield from [block] * 100

    told: list[str] = []
    clock = FileClock(source())
    live = RealtimeProcessor(chain, clock, RealtimeConfig(block_size=64))
    with live:
        assert live.wait(60)
    assert not live.is_native
    assert problem in told[0]
    assert (clock.output - 0.5).abs().max() < 1e-6  # no block is lost
    assert live.stats().late_results == 0


def test_a_worker_refuses_what_cannot_run_in_the_place_of_what_does():
    chain = fx.FilterChain(fx.effect.Compressor(0.0), fx.Memoryless(torch.nn.Identity()))
    worked(
        chain,
        lambda: chain.append(fx.filter.BandpassBank(num_bands=4)),
        lambda: chain.__delitem__(2),
        "must keep the channels, 2, got (2, 4)",
    )
    worked(chain, lambda: chain.append(fx.effect.Limiter()), lambda: chain.__delitem__(2), "the latency has to stay 0")
    fragile = fx.FilterChain(Fragile(1.0), fx.Memoryless(torch.nn.Identity()))
    worked(fragile, lambda: setattr(fragile[0], "gain", 3.0), lambda: setattr(fragile[0], "gain", 1.0), "too much")


def test_a_link_that_changes_is_crossed_to_where_all_is_native():
    compressor = fx.effect.Compressor(-20.0, link=True)
    y = changed(compressor, lambda live: live.set("link", False), level=0.5)
    assert y.isfinite().all()
    fresh = (fx.Wave(torch.full((2, 60_000), 0.5), FS) | fx.effect.Compressor(-20.0, link=False)).ys
    assert y[0, -1] == pytest.approx(float(fresh[0, -1]), abs=0.02)


def test_a_worker_that_does_not_keep_up_is_told():
    go_on = threading.Event()

    class Slow(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            go_on.wait(60)
            return x

    pa = FakePortAudio()
    with RealtimeProcessor(fx.Memoryless(Slow()), SoundDevice(library=pa)) as live:
        for _ in range(40):
            pa.play(np.ones((256, 2)))
        stats = live.stats()
        go_on.set()
    assert stats.late_results == 32  # the first 8 are not due
    assert stats.problem == (
        "the steps in Python do not keep up: 80% of the last 40 blocks were not done in time, "
        "the dry signal was output instead"
    )


def test_a_target_that_does_not_keep_up_is_told():
    go_on, pa = threading.Event(), FakePortAudio()
    device = SoundDevice(target=lambda block: go_on.wait(60), library=pa)
    with RealtimeProcessor(fx.effect.Gain(1.0), device) as live:
        rings = live._engine.counters()["blocks"] + 94  # type: ignore[union-attr]
        for _ in range(2 * rings):
            pa.play(np.ones((256, 2)))
        stats = live.stats()
        go_on.set()
    assert stats.dropped > 80
    assert "the target does not keep up: " in stats.problem


def test_an_end_is_told_at_the_next_change():
    def source() -> Iterator[torch.Tensor]:
        yield noise(1000)
        raise OSError("no such tape")

    live = RealtimeProcessor(fx.effect.Gain(0.5), SoundDevice(source(), library=FakePortAudio())).start()
    live._threads[1].join(60)
    assert live.stats().problem == "OSError: no such tape"
    with pytest.raises(StreamError, match="the live chain has ended: OSError: no such tape"):
        live.set("gain", 1.0)
    with pytest.raises(StreamError, match="has ended"):
        live.switch(fx.effect.Gain(1.0))
    with pytest.raises(OSError, match="no such tape"):
        live.stop()


# --- a sound device ---------------------------------------------------------------------------------------------------


class FakePortAudio:
    """PortAudio's functions with two devices, of which the second one hears only."""

    def __init__(self, default: int = 0) -> None:
        self.default, self.active, self.calls = default, 1, [0, 0]
        self._infos = [
            _DeviceInfo(2, b"Speakers and mic", 0, 2, 2, 0.01, 0.02, 0, 0, FS),
            _DeviceInfo(2, b"USB mic", 0, 1, 0, 0.005, 0, 0, 0, FS),
        ]

    def Pa_Initialize(self) -> int:
        self.calls[0] += 1
        return 0

    def Pa_Terminate(self) -> int:
        self.calls[1] += 1
        return 0

    def Pa_GetDeviceCount(self) -> int:
        return 2

    def Pa_GetDefaultInputDevice(self) -> int:
        return self.default

    Pa_GetDefaultOutputDevice = Pa_GetDefaultInputDevice

    def Pa_GetDeviceInfo(self, index: int) -> Any:
        return ctypes.pointer(self._infos[index])

    def Pa_GetStreamInfo(self, stream: Any) -> Any:
        return ctypes.pointer(_StreamInfo(1, 0.01, 0.02, FS))

    def Pa_OpenStream(self, stream, heard, played, rate, frames, flags, callback, user) -> int:
        self.opened = [None if each is None else _Parameters.from_address(each).device for each in (heard, played)]
        pointer, number = ctypes.c_void_p, ctypes.c_ulong
        kind = ctypes.CFUNCTYPE(ctypes.c_int, pointer, pointer, number, pointer, number, pointer)
        self.callback, self.user, self.frames = kind(callback), user, frames
        return 0 if rate == FS else -9997

    def Pa_GetErrorText(self, status: int) -> bytes:
        return {-9997: b"Invalid sample rate", -9988: b"Invalid stream pointer"}[status]

    def Pa_StartStream(self, stream: Any) -> int:
        return 0

    Pa_AbortStream = Pa_CloseStream = Pa_StartStream

    def Pa_IsStreamActive(self, stream: Any) -> int:
        return self.active

    def play(self, x: np.ndarray, flags: int = 0) -> np.ndarray:
        """Call the engine with a block (time, channels) as the device's thread does."""
        x = np.ascontiguousarray(x, np.float32)
        y = np.full_like(x, 9)
        status = self.callback(x.ctypes.data, y.ctypes.data, len(x), None, flags, self.user)
        if status == 1:
            self.active = 0
        return y


def test_a_device_calls_the_engine_itself():
    pa = FakePortAudio()
    with RealtimeProcessor(fx.effect.Gain(0.5), SoundDevice(library=pa), RealtimeConfig(block_size=4)) as live:
        x = np.arange(8).reshape(4, 2)
        assert (pa.play(x, flags=4) == 0.5 * x).all()
        stats = live.stats()
        assert (stats.blocks, stats.xruns, stats.input_peaks, stats.output_peaks) == (1, 1, (6.0, 7.0), (3.0, 3.5))
        assert stats.latency_s == pytest.approx(4 / FS + 0.03)
        assert live.stats().input_peaks == (0.0, 0.0)
        assert pa.opened == [0, 0]
    assert pa.calls == [1, 1]


def test_a_file_is_played_to_its_end_and_a_recording_kept(tmp_path):
    pa = FakePortAudio()
    config = RealtimeConfig(block_size=4)
    with RealtimeProcessor(fx.effect.Gain(0.5), SoundDevice(torch.ones(2, 6), library=pa), config) as live:
        assert live._fed.wait(60)
        y = np.concatenate([pa.play(np.zeros((4, 2))) for _ in range(2)])
        assert live.wait(10)
    assert y[:, 0].tolist() == [0.5] * 6 + [0.0] * 2
    assert pa.opened[0] is None

    pa = FakePortAudio()
    device = SoundDevice(target=tmp_path / "take.wav", playback=False, library=pa)
    with RealtimeProcessor(fx.effect.Gain(0.5), device, config):
        pa.play(np.ones((4, 2)))
    assert torch.equal(audio_io.load(tmp_path / "take.wav")[0], torch.full((2, 4), 0.5))
    assert pa.opened[1] is None


def test_a_device_that_vanishes_is_named():
    pa = FakePortAudio()
    live = RealtimeProcessor(fx.effect.Gain(0.5), SoundDevice(library=pa)).start()
    pa.active = -9988
    with pytest.raises(DeviceError, match="the sound device is gone: Invalid stream pointer"):
        live.wait(10)
    pa.active = 1
    live.start()
    pa.active = 0
    with pytest.raises(DeviceError, match="gone"):
        live.stop()


def test_a_device_that_no_longer_asks_is_gone(monkeypatch):
    monkeypatch.setattr("torchfx.realtime.live.SILENT_S", 0.01)
    live = RealtimeProcessor(fx.effect.Gain(0.5), SoundDevice(library=FakePortAudio())).start()
    with pytest.raises(DeviceError, match=r"no callback for 0\.01 s"):
        live.wait(60)


@pytest.mark.parametrize(
    ("default", "config", "message"),
    [
        (-1, {}, "no input device that PortAudio can see"),
        (0, {"input_device": "tape"}, "no input device 'tape' with 2 channels; .* 0: Speakers and mic"),
        (0, {"input_device": 1}, "no input device 1 with 2 channels"),
        (0, {"sample_rate": 44_100}, "2 channels at 44100 Hz and blocks of 256 samples: Invalid sample rate"),
    ],
)
def test_a_device_that_cannot_be_opened_says_why(default, config, message):
    live = RealtimeProcessor(fx.effect.Gain(0.5), SoundDevice(library=FakePortAudio(default)), RealtimeConfig(**config))
    with pytest.raises(DeviceError, match=message):
        live.start()


def test_without_sounddevice_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sounddevice", None)
    with pytest.raises(DeviceError, match=r"pip install sounddevice"):
        RealtimeProcessor(fx.effect.Gain(0.5)).start()


# --- misuse -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"sample_rate": 0}, r"sample_rate must lie in \(0, inf\) Hz, got 0"),
        ({"block_size": 0}, "block_size must be a whole number >= 1, got 0"),
        ({"channels": 0}, "channels must be a whole number >= 1, got 0"),
        ({"worker_blocks": 0}, "worker_blocks must be a whole number >= 1, got 0"),
        ({"crossfade_ms": 0}, r"crossfade_ms must lie in \(0, 10000\] ms, got 0"),
        ({"ceiling_db": 121}, r"ceiling_db must lie in \[-60, 120\] dB or be None, got 121"),
        ({"ceiling_db": float("nan")}, "ceiling_db must be finite"),
    ],
)
def test_configurations_are_checked(values, message):
    with pytest.raises(ArgumentError, match=message):
        RealtimeConfig(**values)


def test_chains_that_cannot_run_live_are_refused():
    clock = FileClock(noise(100))
    with pytest.raises(StreamError, match="whole signal"):
        RealtimeProcessor(fx.effect.Reverse(), clock)
    with pytest.raises(StreamError, match="sample rate"):
        RealtimeProcessor(spec.build("resample:44100"), clock)
    with pytest.raises(StreamError, match="must keep the channels, 2"):
        RealtimeProcessor(fx.effect.ChannelMatrix([[0.5, 0.5]]), clock)
    with pytest.raises(ArgumentTypeError, match="chain must be"):
        RealtimeProcessor("gain", clock)  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="source must be"):
        RealtimeProcessor(fx.effect.Gain(1), FileClock(3))  # type: ignore[arg-type]
    with pytest.raises(ArgumentTypeError, match="target must be"):
        RealtimeProcessor(fx.effect.Gain(1), FileClock(noise(100), 3))  # type: ignore[arg-type]


def test_misuse_while_it_runs_is_named(tmp_path):
    audio_io.save(tmp_path / "slow.wav", noise(100), 44_100)
    with (
        pytest.raises(ArgumentError, match="source must have the sample rate of the configuration, 48000 Hz, got 44"),
        RealtimeProcessor(fx.effect.Gain(0.5), FileClock(tmp_path / "slow.wav")) as live,
    ):
        live.wait()
    with (
        pytest.raises(ArgumentError, match="source must have 1 or 2 channels"),
        RealtimeProcessor(fx.effect.Gain(0.5), FileClock(noise(100, 3))) as live,
    ):
        live.wait()
    live = RealtimeProcessor(fx.effect.Gain(0.5) | fx.effect.Gain(2.0), SoundDevice(library=FakePortAudio()))
    with pytest.raises(StreamError, match="from start"):
        live.stats()
    with live:
        with pytest.raises(StreamError, match="runs already"):
            live.start()
        with pytest.raises(ArgumentError, match="wait needs timeout_s"):
            live.wait()
        with pytest.raises(ArgumentError, match=r"several parameters are called 'gain': there are 0\.gain, 1\.gain"):
            live.set("gain", 1)
        with pytest.raises(ArgumentError, match="no parameter is called 'cutoff'"):
            live.set("cutoff", 1)
        live.set("1.gain", 3.0)
        with pytest.raises(StreamError, match="fully native"):
            live.switch(torch.nn.Tanh())
        with pytest.raises(ArgumentTypeError, match="chain must be"):
            live.switch(None)  # type: ignore[arg-type]
    assert live.stats().blocks == 0


def test_the_times_of_calls_are_drawn(tmp_path):
    clock = FileClock(noise(1000))
    with RealtimeProcessor(fx.effect.Gain(0.5), clock) as live:
        live.wait()
        live.plot(tmp_path / "calls.png")
    assert (tmp_path / "calls.png").stat().st_size > 1000


# --- MIDI -------------------------------------------------------------------------------------------------------------


def control(control: int, value: int, channel: int = 0) -> SimpleNamespace:
    return SimpleNamespace(type="control_change", control=control, value=value, channel=channel)


def test_controllers_set_parameters_within_their_ranges():
    chain = fx.filter.LoButterworth(1000) | fx.effect.Reverb()
    live = RealtimeProcessor(chain, FileClock(noise(64)))
    mapping = MidiMapping(live, {1: "cutoff", 2: "1.room_size"}, channel=0)
    mapping.handle(control(1, 0))
    assert chain[0].cutoff == 20
    mapping.handle(control(1, 64))
    assert chain[0].cutoff == pytest.approx(20 * (21_600 / 20) ** (64 / 127))  # by ratio
    mapping.handle(control(2, 127))
    assert chain[1].room_size == 1
    for ignored in (control(2, 0, channel=1), control(9, 0), SimpleNamespace(type="note_on", note=60)):
        mapping.handle(ignored)
    assert chain[1].room_size == 1
    mido = pytest.importorskip("mido")
    mapping.handle(mido.Message("control_change", control=2, value=0))
    assert chain[1].room_size == 0


def test_mappings_are_checked():
    live = RealtimeProcessor(fx.filter.LoButterworth(1000), FileClock(noise(64)))
    with pytest.raises(ArgumentError, match="controller must be a whole number <= 127, got 128"):
        MidiMapping(live, {128: "cutoff"})
    with pytest.raises(ArgumentError, match="no parameter is called 'gain'"):
        MidiMapping(live, {1: "gain"})
    with pytest.raises(ArgumentError, match="controller 1 must set a number, one of cutoff"):
        MidiMapping(live, {1: "order"})
    with pytest.raises(ArgumentError, match="channel"):
        MidiMapping(live, {}, channel=16)


def test_without_mido_the_message_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "mido", None)
    live = RealtimeProcessor(fx.filter.LoButterworth(1000), FileClock(noise(64)))
    with pytest.raises(TorchFXError, match=r"pip install mido python-rtmidi"), MidiMapping(live, {}).listening():
        pass


def test_what_a_message_raises_is_told(monkeypatch):
    """Its thread is the MIDI library's, where nobody would see it."""
    callbacks = []

    @contextmanager
    def open_input(name: str, callback: Any) -> Iterator[None]:
        callbacks.append(callback)
        yield

    fake = SimpleNamespace(get_input_names=lambda: ["keys"], open_input=open_input)
    monkeypatch.setitem(sys.modules, "mido", fake)
    chain = fx.FilterChain(fx.effect.Gain(1.0))
    live = RealtimeProcessor(chain, SoundDevice(library=FakePortAudio()))
    with live, MidiMapping(live, {7: "gain"}).listening("key"):
        callbacks[0](control(7, 200))
        assert "value must be a whole number <= 127, got 200" in live.stats().problem
        callbacks[0](control(7, 0))
        assert live.stats().problem == ""


def test_parameters_are_found_by_place_and_name():
    chain = fx.filter.LoButterworth(1000) | fx.effect.Gain(1)
    assert [key for key in parameters_of(chain) if key != "fs"][:2] == ["0.cutoff", "0.order"]
    assert "1.gain" in parameters_of(chain)


def test_a_value_out_of_range_at_the_rate_is_refused_and_the_chain_stays():
    low = fx.filter.LoButterworth(1000)
    live = RealtimeProcessor(low, FileClock(torch.zeros(2, 480)), RealtimeConfig(block_size=64))
    with pytest.raises(ArgumentError, match=r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 50000"):
        live.set("cutoff", 50_000)
    assert low.cutoff == 1000
