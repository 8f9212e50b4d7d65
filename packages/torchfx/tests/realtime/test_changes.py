"""Parameters that are assigned while a stream runs: it follows without a click."""

import weakref

import pytest
import torch
from torch import nn

import torchfx as fx
from torchfx.errors import StreamError
from torchfx.plan import plan_of
from torchfx.plan.handover import eased
from torchfx.realtime import Stream, engine

FS = 48_000
BLOCK = 64


def tone(seconds=0.25, hertz=440.0):
    t = torch.arange(round(seconds * FS), dtype=torch.float64) / FS
    return torch.sin(2 * torch.pi * hertz * t).expand(2, -1)


def roughness(y):
    """Return the largest change of the derivative: a click is a step, whose second difference is its height."""
    return float(y.diff(n=2).abs().max())


def run(stream, x, change, at=100):
    """Return a stream's output with a change before block `at`."""
    parts = []
    for i, block in enumerate(x.split(BLOCK, dim=-1)):
        if i == at:
            change()
        parts.append(stream.process(block))
    return torch.cat(parts, dim=-1)


CHANGES = {
    "a gain that drops": (lambda: fx.effect.Gain(1.0), lambda m: setattr(m, "gain", 0.05)),
    "a polarity": (lambda: fx.effect.Gain(1.0), lambda m: setattr(m, "gain", -1.0)),
    "a cutoff": (lambda: fx.filter.LoButterworth(2000, order=4), lambda m: setattr(m, "cutoff", 200)),
    "a low cutoff": (lambda: fx.filter.HiButterworth(20, order=8), lambda m: setattr(m, "cutoff", 2000)),
    "taps": (lambda: fx.filter.DesignableFIR(1000, 301), lambda m: setattr(m, "cutoff", 9000)),
    "an order": (lambda: fx.filter.LoButterworth(2000, order=2), lambda m: setattr(m, "order", 9)),
    "a clamp": (lambda: fx.effect.Gain(3.0), lambda m: setattr(m, "clamp", True)),
    "a module more": (lambda: fx.FilterChain(fx.effect.Gain(1.0)), lambda m: m.append(fx.filter.HiButterworth(500))),
    "a module less": (lambda: fx.filter.LoButterworth(300) | fx.effect.Gain(2.0), lambda m: m.__delitem__(0)),
    "beside a network": (lambda: fx.effect.Gain(1.0) | nn.Tanh(), lambda m: setattr(m[0], "gain", 0.1)),
    "in place": (lambda: fx.filter.FIR([1.0, 0.5]), lambda m: m.b.mul_(0.1)),
    "what is learned": (lambda: fx.effect.Gain(nn.Parameter(torch.tensor(1.0))), lambda m: m.gain.data.fill_(0.1)),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_makes_no_click(name):
    make, change = CHANGES[name]
    x, module = tone(), make()
    y = run(Stream(module, FS, 2), x, lambda: change(module))
    start = 100 * BLOCK
    steady = max(roughness(y[..., 2000:start]), roughness(y[..., start + 4000 :]))
    assert roughness(y[..., 2000:]) < 3 * steady + 2e-3


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_arrives(name):
    """Long after it, the stream does what a new one with the new parameters does."""
    make, change = CHANGES[name]
    x, module = tone(0.5), make()
    y = run(Stream(module, FS, 2), x, lambda: change(module))
    changed = make()
    change(changed)
    fresh = Stream(changed, FS, 2).process(x)
    late = slice(20_000, None)
    assert float((y[..., late] - fresh[..., late]).abs().max()) < 1e-6


def test_the_state_is_taken_over():
    """A filter far from settled goes on from where it was, and not from rest."""
    x, module = torch.ones(2, 6400, dtype=torch.float64), fx.filter.LoButterworth(20)
    y = run(Stream(module, FS, 2), x, lambda: setattr(module, "cutoff", 25), at=50)
    assert float(y.diff().min()) > -2e-4  # its own overshoot; a start from rest would make it drop to 0


def test_equal_values_change_nothing():
    x, module = tone(), fx.filter.LoButterworth(2000)
    undisturbed = Stream(fx.filter.LoButterworth(2000), FS, 2).process(x)
    y = run(Stream(module, FS, 2), x, lambda: setattr(module, "cutoff", 2000))
    assert float((y - undisturbed).abs().max()) < 1e-12


def test_changes_faster_than_the_glide_are_all_followed_in_the_end():
    x, module = tone(0.5), fx.effect.Gain(0.0)
    stream, parts = Stream(module, FS, 2), []
    for i, block in enumerate(x.split(BLOCK, dim=-1)):
        module.gain = min(i / 100, 1.0)
        parts.append(stream.process(block))
    y = torch.cat(parts, dim=-1)
    assert torch.equal(y[..., -2000:], x[..., -2000:])
    assert roughness(y) < 0.02


SERIES = {
    "sections": lambda: fx.filter.LoButterworth(2000, order=3),
    "sections for each channel": lambda: fx.filter.LoButterworth(torch.tensor([2000.0, 3000.0]), order=3),
    "beside a network": lambda: fx.filter.LoButterworth(2000) | nn.Tanh() | fx.filter.HiButterworth(50),
}


@pytest.mark.parametrize("name", SERIES)
def test_the_last_of_many_changes_arrives(name):
    x, module, changed = tone(0.7), SERIES[name](), SERIES[name]()
    part = module if isinstance(module, fx.filter.LoButterworth) else module[0]
    other = changed if isinstance(changed, fx.filter.LoButterworth) else changed[0]
    cutoffs = iter([500.0, 1000.0, 700.0, 4000.0, 900.0])
    stream, parts = Stream(module, FS, 2), []
    for i, block in enumerate(x.split(BLOCK, dim=-1)):
        if i % 20 == 10 and (cutoff := next(cutoffs, None)) is not None:
            part.cutoff = other.cutoff = part.cutoff * 0 + cutoff
        parts.append(stream.process(block))
    y, fresh = torch.cat(parts, dim=-1), Stream(changed, FS, 2).process(x)
    assert float((y[..., -9000:] - fresh[..., -9000:]).abs().max()) < 1e-9
    assert roughness(y[..., 2000:]) < 0.01


def test_a_change_does_not_depend_on_the_split():
    def listen(sizes):
        module = fx.filter.LoButterworth(3000, order=3)
        stream = Stream(module, FS, 2)
        first = stream.process(x[..., :1000])
        module.cutoff = 300
        return torch.cat([first, *(stream.process(block) for block in x[..., 1000:].split(sizes, dim=-1))], dim=-1)

    x = tone(0.1)
    assert float((listen(64) - listen(3800)).abs().max()) < 1e-12
    assert float((listen(1) - listen(3800)).abs().max()) < 1e-12


JUMPS = {
    "a low-pass of odd order": (lambda: fx.filter.LoButterworth(20_000, order=5), "cutoff", 100),
    "a type": (lambda: fx.filter.Butterworth(300, order=7, btype="highpass"), "btype", "lowpass"),
    "a crossover": (lambda: fx.filter.LoLinkwitzRiley(20_000, order=6), "cutoff", 47),
    "a de-esser": (lambda: fx.effect.DeEsser(cutoff=15_000), "cutoff", 40),
    "a ladder": (lambda: fx.filter.Ladder(15_000, resonance=0.9), "cutoff", 50),
    "a high-pass of a ladder": (lambda: fx.filter.Ladder(600, mode="HPF24"), "cutoff", 23_000),
    "a phaser": (lambda: fx.effect.Phaser(centre_frequency=1300, feedback=0.0), "centre_frequency", 23_000),
}


@pytest.mark.parametrize("name", JUMPS)
def test_a_jump_is_no_louder_than_the_settings(name):
    """States that were handed on section by section gave up to 1e7 times as much."""
    make, parameter, value = JUMPS[name]
    x, module = 0.5 * tone(1.0), make()
    y = run(Stream(module, FS, 2), x, lambda: setattr(module, parameter, value), at=90)
    assert float(y.abs().max()) < 0.6
    assert roughness(y[..., 90 * BLOCK :]) < 3 * roughness(x) + 2e-3


def test_a_link_that_is_toggled_is_crossed_to():
    module = fx.effect.Compressor(-30.0, attack_ms=1.0)
    x = tone(0.5) * torch.tensor([[1.0], [0.1]])
    y = run(Stream(module, FS, 2), x, lambda: setattr(module, "link", False))
    fresh = Stream(fx.effect.Compressor(-30.0, attack_ms=1.0, link=False), FS, 2).process(x)
    assert float((y - fresh)[..., -4000:].abs().max()) < 0.01 * float(fresh.abs().max())
    assert roughness(y[..., 2000:]) < 2 * roughness(x)


def test_another_number_of_bands_is_refused_before_the_block_is_taken():
    module, x = fx.filter.LogFilterBank(num_bands=1), tone()
    stream, undisturbed = Stream(module, FS, 2), Stream(fx.filter.LogFilterBank(num_bands=1), FS, 2)
    first = stream.process(x[..., :5000])
    module.num_bands = 3
    with pytest.raises(StreamError, match=r"output cannot change its shape, from \(2, 1\) to \(2, 3\)"):
        stream.process(x[..., 5000:])
    module.num_bands = 1
    y = torch.cat([first, stream.process(x[..., 5000:])], dim=-1)
    assert float((y - undisturbed.process(x)).abs().max()) < 1e-12


def test_steps_that_stay_run_on_and_hear_no_start():
    """A reverberator behind a filter that jumps: as behind the two outputs of the filter, crossed."""
    x = tone(0.5, 100.0)
    chain = fx.filter.HiButterworth(20, order=2) | fx.effect.Reverb(wet_level=1.0, dry_level=0.0)
    y = run(Stream(chain, FS, 2), x, lambda: setattr(chain[0], "cutoff", 3000))
    alone = fx.filter.HiButterworth(20, order=2)
    filtered = run(Stream(alone, FS, 2), x, lambda: setattr(alone, "cutoff", 3000))
    reverberated = Stream(fx.effect.Reverb(wet_level=1.0, dry_level=0.0), FS, 2).process(filtered)
    assert float((y - reverberated).abs().max()) < 1e-12


def test_a_state_saved_during_a_change_is_the_new_setting_s():
    x, module = tone(), fx.filter.LoButterworth(2000, order=3)
    stream = Stream(module, FS, 2)
    stream.process(x[..., :6000])
    module.cutoff = 300
    stream.process(x[..., 6000:6064])
    other = Stream(module, FS, 2)
    other.state = stream.state
    rest = [each.process(x[..., 6064:]) for each in (other, stream)]
    late = slice(3000, None)
    assert float((rest[0] - rest[1])[..., late].abs().max()) < 1e-12


def test_a_change_of_one_thing_costs_the_rest_nothing():
    chain = fx.filter.HiButterworth(80) | fx.effect.Compressor(-20.0) | fx.effect.Reverb()
    stream, x = Stream(chain, FS, 2), tone()
    stream.process(x[..., :64])
    before = {id(value) for value in stream._runner.own_state}
    chain[1].ratio = 8.0
    stream.process(x[..., :64])
    during = stream._runner.own_state
    assert {id(value) for value in during} > before
    own = len(chain[1].init_state((2,), FS))
    assert len(during) == len(before) + own + 1  # the compressor's state, and how far the change is


@pytest.mark.parametrize("late", [False, True], ids=["in time", "late"])
def test_steps_that_came_while_it_ran_are_steps_like_others(late):
    """What was appended is heard as in a new stream, follows its parameters, and stays when others change."""
    chain = fx.filter.HiButterworth(80) | fx.effect.Compressor(-20.0)
    stream, x = Stream(chain, FS, 2), tone(1.5)
    parts = [stream.process(x[..., :9600])]
    chain.append(fx.effect.Limiter(-3.0) if late else fx.effect.Tremolo(5.0))
    chain.append(fx.effect.Gain(0.5))
    parts.append(stream.process(x[..., 9600:19_200]))
    parts.append(stream.process(x[..., 19_200:19_264]))
    kept = {id(value) for value in stream._runner.own_state}
    chain[1].ratio = 8.0
    parts.append(stream.process(x[..., 19_264:24_000]))
    assert kept < {id(value) for value in stream._runner.own_state}
    chain[3].gain = 0.25
    y = torch.cat([*parts, *map(stream.process, x[..., 24_000:].split(480, dim=-1))], dim=-1)
    assert roughness(y) < 2 * roughness(x)
    fresh = fx.filter.HiButterworth(80) | fx.effect.Compressor(-20.0, ratio=8.0) | chain[2] | fx.effect.Gain(0.25)
    expected = Stream(fresh, FS, 2).process(x)
    swing = 0.0 if late else 0.6  # a tremolo that began later swings later
    assert float((y - expected)[..., -4800:].abs().max()) < 1e-3 + swing
    assert stream.latency_samples == Stream(fresh, FS, 2).latency_samples
    assert stream.flush().shape[-1] == stream.latency_samples


@pytest.mark.parametrize("lengths", [(3000, 3000, 3000), (1500, 1100, 1300, 4000)])
def test_long_responses_that_follow_each_other_are_themselves(lengths):
    torch.manual_seed(0)
    responses = [torch.randn(length) * 0.02 for length in lengths for _ in range(2)]
    module, x = fx.filter.Convolution(responses[0]), torch.randn(2, 40 * 512)
    stream = Stream(module, FS, 2)
    for response in responses[1:]:
        module.ir = response
        for block in x.split(512, dim=-1):
            y = stream.process(block)
        expected = module(torch.cat([x[:, -4608:]], dim=-1))[:, -512:]
        assert float((y - expected).abs().max()) < 1e-5 * float(expected.abs().max())
    assert len(stream._runner.works) <= 2


def test_another_response_in_true_stereo_does_not_repeat_the_old_tail():
    torch.manual_seed(0)
    module = fx.filter.Convolution(torch.randn(2, 2, 500) * 0.05)
    stream = Stream(module, FS, 2)
    stream.process(torch.randn(2, 9600))
    module.ir = torch.randn(2, 2, 4000) * 0.05
    y = stream.process(torch.zeros(2, 9600))
    assert float(y[:, 1000:].abs().max()) == 0


LINES = {
    "a shorter delay": (lambda: fx.effect.Delay(0.1), "time", 0.05),
    "a longer delay": (lambda: fx.effect.Delay(0.05), "time", 0.1001),
    "a delay with feedback": (lambda: fx.effect.Delay(0.1, feedback=0.7, mix=0.5), "time", 0.25),
    "a short delay with feedback": (lambda: fx.effect.Delay(0.01, feedback=0.7, mix=0.5), "time", 0.02),
    "a comb": (lambda: fx.effect.Delay(0.002, feedback=0.7, mix=0.5), "time", 0.001),
    "a time of two lines": (lambda: fx.effect.PingPongDelay(0.1, feedback=0.7), "time", 0.25),
    "a damping": (lambda: fx.effect.Reverb(damping=1.0, wet_level=1.0, dry_level=0.0), "damping", 0.0),
    "a room": (lambda: fx.effect.Reverb(room_size=1.0, wet_level=1.0, dry_level=0.0), "room_size", 0.0),
    "a small room": (lambda: fx.effect.FDNReverb(size=0.1), "rt60", 0.5),
    "a delay before a high-pass": (lambda: fx.effect.Delay(0.1) | fx.filter.HiButterworth(100), "time", 0.07),
    "a feedback": (lambda: fx.effect.PingPongDelay(0.05, feedback=0.7), "feedback", 0.1),
    "a decay": (lambda: fx.effect.FDNReverb(), "low_rt60", 0.2),
    "all of a decay": (lambda: fx.effect.FDNReverb(), "rt60", 0.2),
    "a freeze": (lambda: fx.effect.Reverb(), "freeze_mode", True),
}


@pytest.mark.parametrize("name", LINES)
def test_no_step_enters_a_delay_line(name):
    """It would come out one delay later."""
    make, parameter, value = LINES[name]
    module, x = make(), 0.5 * tone(1.5, 220.0)
    x[..., :9600] *= eased(torch.linspace(0, 1, 9600))  # a delay line would repeat its start
    part = module[0] if isinstance(module, fx.FilterChain) else module
    y = run(Stream(module, FS, 2), x, lambda: setattr(part, parameter, value), at=750)
    changed = make()
    setattr(changed[0] if part is not module else changed, parameter, value)
    steady = max(roughness(Stream(each, FS, 2).process(x)[..., 48_000:]) for each in (make(), changed))
    assert roughness(y[..., 48_000:]) < 2.5 * steady


def test_a_side_chain_s_filter_does_not_burst():
    module = fx.effect.Compressor(-6.0, ratio=20.0, release_ms=100.0, sidechain=fx.filter.LoButterworth(5000))
    x = 0.4 * tone(0.5, 2000.0)
    y = run(Stream(module, FS, 2), x, lambda: setattr(module, "sidechain", fx.filter.LoButterworth(20)))
    peaks = y[0, 5000:-280].reshape(-1, 480).abs().amax(-1)
    assert float(peaks.min()) > 0.39


@pytest.mark.parametrize("drives", [(1.0, 0.0), (0.0, 1.0)])
@pytest.mark.parametrize("filter_first", [False, True])
def test_an_effect_that_becomes_part_of_a_filter_is_heard_until_that_is(drives, filter_first):
    """A high-pass without drive is linear and joins the low-pass beside it: neither is ever heard alone."""
    before, after = drives
    ladder = fx.filter.Ladder(17_000, resonance=0.1, drive=before, mode="HPF24")
    lowpass = fx.filter.LoButterworth(40)
    chain = fx.FilterChain(lowpass, ladder) if filter_first else fx.FilterChain(ladder, lowpass)
    y = run(Stream(chain, FS, 2), tone(1.0, 200.0), lambda: setattr(ladder, "drive", after), at=200)
    assert float(y[:, 150 * BLOCK :].abs().max()) < 1e-6  # each by itself: 1e-2 and more


def test_a_module_with_a_value_for_each_channel_may_be_appended():
    chain = fx.FilterChain(fx.effect.Gain(0.5))
    stream, x = Stream(chain, FS, 3), tone().mean(0).expand(3, -1)
    stream.process(x[:, :6000])
    chain.append(fx.effect.Distortion(torch.tensor([0.0, 1.0, 5.0]), oversample=4))
    assert stream.process(x[:, 6000:]).isfinite().all()


def test_resamplers_are_not_appended_to_a_running_stream():
    chain = fx.FilterChain(fx.effect.Gain(0.5))
    stream, x = Stream(chain, FS, 2), tone()
    stream.process(x[:, :6000])
    for each in (fx.filter.Resample(44_100), fx.effect.Distortion(), fx.filter.Resample(48_000)):
        chain.append(each)
    with pytest.raises(StreamError, match="changes the sample rate"):
        stream.process(x[:, 6000:])


def test_a_latency_that_grows_early_makes_no_gap():
    module, x = fx.effect.PitchShift(5.0, n_fft=1024), 0.5 * tone(0.5)
    y = run(Stream(module, FS, 2), x, lambda: setattr(module, "semitones", -12.0), at=25)
    envelope = y[0, 4000:-320].reshape(-1, 240).abs().amax(-1)
    assert float(envelope.min()) > 0.2


def test_a_branch_that_becomes_late_does_not_silence_the_sum():
    branch = fx.FilterChain(fx.effect.Gain(0.5))
    module, x = fx.effect.Gain(0.5) + branch, tone(1.0)
    y = run(Stream(module, FS, 2), x, lambda: branch.append(fx.effect.Distortion(0.0, oversample=4)))
    assert float(y[0, 5000:-280].reshape(-1, 480).abs().amax(-1).min()) > 0.6


def test_what_is_measured_lives_until_it_was(monkeypatch):
    """The memory of a live program is measured by running one on addresses of tensors."""
    seen, alive = [], []
    rest, function = engine.LiveProgram._rest, engine._function

    def watched(self):
        state = rest(self)
        seen.extend(map(weakref.ref, state))
        return state

    def calling(name):
        if name == "program_measure":
            alive.append(bool(seen) and all(one() is not None for one in seen))
        return function(name)

    monkeypatch.setattr(engine.LiveProgram, "_rest", watched)
    monkeypatch.setattr(engine, "_function", calling)
    engine.LiveProgram(plan_of(fx.filter.LoButterworth(1000, order=5), 48_000).frozen(), 2, 64).free()
    assert alive == [True]
