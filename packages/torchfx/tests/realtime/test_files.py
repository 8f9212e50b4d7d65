"""Files block by block: the result is that of the whole signal, in constant memory."""

import io
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

import torchfx as fx
from torchfx import audio_io, spec
from torchfx.effect import AddBackgroundNoise, AddNoise, Gain, Normalize
from torchfx.errors import ArgumentError, AudioFileError, StreamError
from torchfx.filter import DesignableFIR, HiButterworth, LoButterworth
from torchfx.realtime import FileReport, StreamProcessor, process_file

FS = 48_000
FRAMES = 2000

CHAINS = {
    "gain": lambda: Gain(0.5),
    "iir": lambda: LoButterworth(3000, order=5),
    "fir": lambda: DesignableFIR(2000, 101),
    "chain": lambda: HiButterworth(80) | Gain("-3dB") | DesignableFIR(8000, 31) | LoButterworth(9000),
    "parallel": lambda: LoButterworth(500) + Gain(0.25),
    "chain with a parallel": lambda: Gain(0.5) | (LoButterworth(500) + HiButterworth(5000)) | LoButterworth(9000),
    "network": lambda: nn.Sequential(LoButterworth(3000), nn.Tanh(), Gain(0.5)),
    "normalize": lambda: Normalize(0.9),
    "chain before normalize": lambda: LoButterworth(3000) | Normalize("-1dB"),
    "chain after normalize": lambda: HiButterworth(100) | Normalize(0.9) | LoButterworth(3000) | Gain(0.7),
    "two normalizes": lambda: Normalize(0.5) | LoButterworth(3000) | Normalize(0.9),
    "white noise": lambda: Gain(0.5) | AddNoise(10.0),
    "pink noise": lambda: LoButterworth(3000) | AddNoise(10.0, "pink", seed=3) | Gain(0.5),
    "reverse": lambda: fx.effect.Reverse(),
    "chain with reverse": lambda: (
        Normalize(0.5) | LoButterworth(3000) | fx.effect.Reverse() | Normalize(0.9) | Gain(0.5)
    ),
    "other lengths": lambda: fx.effect.TrimSilence(-6.0) | fx.effect.Pad(0.01, 0.02) | fx.effect.Fade(0.02, 0.02),
    "recorded noise": lambda: AddBackgroundNoise(noise(1, 300), 10.0, offset="100 samples") | Gain(0.5),
}


class Ahead(fx.Processor):
    """A causal processor that lags: each sample becomes the mean of itself and the 20 around it."""

    def init_state(self, shape, rate, dtype, device):
        return (torch.zeros(*shape, 20, dtype=dtype, device=device),)

    def step(self, x, state, rate):
        both = torch.cat([state[0], x], dim=-1)
        mean = both.double().unfold(-1, 21, 1).mean(-1).to(x.dtype) if x.shape[-1] else x
        return mean, (both[..., both.shape[-1] - 20 :],)

    def latency_samples(self, rate):
        return 10


class Half(fx.Processor):
    """Every other sample: half the rate."""

    def init_state(self, shape, rate, dtype, device):
        return (torch.zeros((), dtype=dtype, device=device),)

    def step(self, x, state, rate):
        first = int(state[0])
        return x[..., first::2], ((state[0] + x.shape[-1]) % 2,)

    def output_rate(self, rate):
        return rate / 2


class Reverse(fx.Processor):
    """Needs the whole signal."""

    def forward(self, x):
        return x.flip(-1)


def noise(channels=2, frames=FRAMES, seed=0):
    return (torch.rand(channels, frames, generator=torch.Generator().manual_seed(seed)) - 0.5) * 1.2


@pytest.fixture
def source(tmp_path):
    audio_io.save(tmp_path / "source.wav", noise(), FS, bits_per_sample=24)
    return tmp_path / "source.wav"


# --- equality ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [16, 24])
@pytest.mark.parametrize("name", CHAINS)
def test_a_file_block_by_block_is_bit_for_bit_the_whole(tmp_path, name, bits):
    """The same file that `Wave.from_file`, `|` and `save` make."""
    source, whole, blocks = (tmp_path / f"{each}.wav" for each in ("source", "whole", "blocks"))
    audio_io.save(source, noise(), FS, bits_per_sample=bits)
    (fx.Wave.from_file(source) | CHAINS[name]()).save(whole, bits_per_sample=bits)
    for block in (7, 256, FRAMES, 10 * FRAMES):
        process_file(CHAINS[name](), source, blocks, block)
        assert blocks.read_bytes() == whole.read_bytes(), f"blocks of {block}"


@pytest.mark.parametrize("name", ["iir", "fir", "parallel", "chain after normalize"])
def test_blocks_of_one_sample_are_bit_for_bit_the_whole(tmp_path, name):
    source, whole, blocks = (tmp_path / f"{each}.wav" for each in ("source", "whole", "blocks"))
    audio_io.save(source, noise(frames=300), FS, bits_per_sample=24)
    (fx.Wave.from_file(source) | CHAINS[name]()).save(whole, bits_per_sample=24)
    process_file(CHAINS[name](), source, blocks, 1)
    assert blocks.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("block", [1, 7, 1024])
@pytest.mark.parametrize(("bound", "dtype"), [(1e-6, torch.float32), (1e-12, torch.float64)])
@pytest.mark.parametrize("name", CHAINS)
def test_floats_are_those_of_the_whole_within_rounding(tmp_path, name, bound, dtype, block):
    x = noise(frames=200 if block == 1 else FRAMES).to(dtype)
    audio_io.save(tmp_path / "source.wav", x, FS)
    whole = (fx.Wave(x, FS) | CHAINS[name]()).ys
    process_file(CHAINS[name](), tmp_path / "source.wav", tmp_path / "blocks.wav", block)
    y, _ = audio_io.load(tmp_path / "blocks.wav")
    assert y.dtype == dtype
    assert float((y - whole).abs().max()) <= bound * float(whole.abs().max())


@pytest.mark.parametrize("block", [1, 7, 64, 299, 300, 4096])
def test_latency_is_compensated(tmp_path, block):
    audio_io.save(tmp_path / "source.wav", noise(frames=300), FS)
    chain = Ahead() | Gain(0.5) | Ahead()
    whole = (fx.Wave.from_file(tmp_path / "source.wav") | chain).ys
    assert process_file(chain, tmp_path / "source.wav", tmp_path / "blocks.wav", block).frames == 300
    y, _ = audio_io.load(tmp_path / "blocks.wav")
    assert y.shape == whole.shape
    assert float((y - whole).abs().max()) < 1e-6


def test_latency_may_exceed_the_file(tmp_path):
    audio_io.save(tmp_path / "source.wav", noise(frames=3), FS)
    whole = (fx.Wave.from_file(tmp_path / "source.wav") | Ahead()).ys
    process_file(Ahead(), tmp_path / "source.wav", tmp_path / "blocks.wav", 2)
    assert torch.allclose(audio_io.load(tmp_path / "blocks.wav")[0], whole, atol=1e-7)


@pytest.mark.parametrize("block", [1, 7, 301])
def test_latency_at_another_rate_is_compensated(tmp_path, block):
    audio_io.save(tmp_path / "source.wav", noise(frames=301), FS)
    chain = Ahead() | Half() | Ahead() | LoButterworth(2000)
    whole = (fx.Wave.from_file(tmp_path / "source.wav") | chain).ys
    assert process_file(chain, tmp_path / "source.wav", tmp_path / "half.wav", block).frames == 151
    assert torch.allclose(audio_io.load(tmp_path / "half.wav")[0], whole, rtol=0, atol=1e-6)


@pytest.mark.parametrize("block", [1, 7, 301])
def test_a_processor_may_change_the_rate(tmp_path, block):
    audio_io.save(tmp_path / "source.wav", noise(frames=301), FS)
    report = process_file(Gain(0.5) | Half(), tmp_path / "source.wav", tmp_path / "half.wav", block)
    assert (report.frames, report.fs, report.duration_s) == (151, 24_000, 151 / 24_000)
    y, fs = audio_io.load(tmp_path / "half.wav")
    assert fs == 24_000
    assert torch.equal(y, noise(frames=301)[:, ::2] * 0.5)


@pytest.mark.parametrize("suffix", ["flac", "ogg", "mp3"])
def test_passes_over_compressed_files_read_the_same_samples(tmp_path, suffix):
    audio_io.save(tmp_path / f"source.{suffix}", noise(frames=40_000), FS)
    whole = (fx.Wave.from_file(tmp_path / f"source.{suffix}") | CHAINS["two normalizes"]()).ys
    process_file(CHAINS["two normalizes"](), tmp_path / f"source.{suffix}", tmp_path / "y.wav", 999, encoding="FLOAT")
    assert torch.allclose(audio_io.load(tmp_path / "y.wav")[0], whole, rtol=0, atol=2e-6)


def test_a_stream_processor_gives_the_same(tmp_path, source):
    process_file(CHAINS["chain"](), source, tmp_path / "a.wav")
    seen = []
    report = StreamProcessor(CHAINS["chain"](), chunk_size=512).process_file(
        source, tmp_path / "b.wav", lambda done, total: seen.append((done, total))
    )
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    assert report.frames == FRAMES
    assert seen[0] == (512, FRAMES)


def test_processing_leaves_no_state_in_the_processor(tmp_path, source):
    chain = CHAINS["chain after normalize"]()
    for name in ("a.wav", "b.wav"):
        process_file(chain, source, tmp_path / name, 100)
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()


def test_learned_parameters_leave_no_graph(tmp_path, source):
    chain = Gain(nn.Parameter(torch.tensor(0.5))) | LoButterworth(nn.Parameter(torch.tensor(3000.0)))
    process_file(chain, source, tmp_path / "a.wav", 500)
    with torch.no_grad():
        whole = (fx.Wave.from_file(source) | chain).ys
    assert torch.allclose(audio_io.load(tmp_path / "a.wav")[0], whole, atol=2**-23)


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_the_target_may_be_the_source(source):
    expected = audio_io.load(source)[0] * 0.5
    process_file(Normalize(1.0) | Gain(0.5), source, source, 100)
    peak = float(expected.abs().max())
    assert torch.allclose(audio_io.load(source)[0], expected * (0.5 / peak), atol=2**-22)
    assert [path.name for path in source.parent.iterdir()] == ["source.wav"]


def test_bit_depth_and_tags_are_kept(tmp_path):
    tags = {"title": "A title", "copyright": "CC0"}
    audio_io.save(tmp_path / "a.flac", noise(), FS, bits_per_sample=16, tags=tags)
    process_file(Gain(0.5), tmp_path / "a.flac", tmp_path / "b.flac")
    assert audio_io.info(tmp_path / "b.flac") == audio_io.AudioInfo(FS, 2, FRAMES, "FLAC", "PCM_16", tags)
    process_file(Gain(0.5), tmp_path / "a.flac", tmp_path / "b.wav")
    assert audio_io.info(tmp_path / "b.wav") == audio_io.AudioInfo(FS, 2, FRAMES, "WAV", "PCM_16", tags)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ("WAV", "PCM_24")),
        ({"bits_per_sample": 16}, ("WAV", "PCM_16")),
        ({"encoding": "DOUBLE"}, ("WAV", "DOUBLE")),
    ],
)  # fmt: skip
def test_another_encoding_may_be_asked_for(tmp_path, source, options, expected):
    process_file(Gain(0.5), source, tmp_path / "b.wav", **options)
    found = audio_io.info(tmp_path / "b.wav")
    assert (found.format, found.encoding) == expected


@pytest.mark.parametrize(("options", "encoding"), [({}, "PCM_24"), ({"bits_per_sample": 16}, "PCM_16")])
def test_a_format_may_be_asked_for_where_the_suffix_names_none(tmp_path, source, options, encoding):
    process_file(Gain(0.5), source, tmp_path / "b.bin", format="flac", **options)
    found = audio_io.info(tmp_path / "b.bin")
    assert (found.format, found.encoding) == ("FLAC", encoding)


def test_file_objects_go_in_and_out(source):
    into, out = io.BytesIO(source.read_bytes()), io.BytesIO()
    process_file(CHAINS["chain before normalize"](), into, out, 100, format="wav")
    out.seek(0)
    whole = (fx.Wave.from_file(source) | CHAINS["chain before normalize"]()).ys
    assert torch.allclose(audio_io.load(out)[0], whole, atol=2**-23)


# --- memory -----------------------------------------------------------------------------------------------------------


def test_no_more_than_a_block_is_read_or_written_at_a_time(tmp_path, source, monkeypatch):
    read, written = [], []
    plain_read, plain_write = audio_io.Reader.read, audio_io.Writer.write
    monkeypatch.setattr(audio_io.Reader, "read", lambda self, count: read.append(count) or plain_read(self, count))
    monkeypatch.setattr(audio_io.Writer, "write", lambda self, ys: written.append(ys.shape[1]) or plain_write(self, ys))
    process_file(CHAINS["chain after normalize"]() | Ahead(), source, tmp_path / "b.wav", 300)
    assert max(read) <= 300
    assert max(written) <= 300
    assert sum(written) == FRAMES


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of resident memory from /proc")
def test_memory_does_not_grow_with_the_file(tmp_path):
    """The samples are 13 MB as floats; a WAV with a hole instead of zeros takes no room."""
    frames, source = 400_000, tmp_path / "long.wav"
    audio_io.save(source, torch.zeros(8, 1), FS, bits_per_sample=16)
    header = bytearray(source.read_bytes()[:-16])
    header[4:8], header[-4:] = (
        (len(header) - 8 + frames * 16).to_bytes(4, "little"),
        (frames * 16).to_bytes(4, "little"),
    )
    source.write_bytes(header)
    with source.open("r+b") as file:
        file.truncate(len(header) + frames * 16)
    chain = Normalize(0.5) | LoButterworth(1000) | AddNoise(20.0, "pink") | Gain(0.5)
    audio_io.save(tmp_path / "short.wav", torch.zeros(8, 1 << 15), FS, bits_per_sample=16)
    process_file(chain, tmp_path / "short.wav", tmp_path / "b.wav", 1 << 13)  # what is made once is there now
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts again
    report = process_file(chain, source, tmp_path / "b.wav", 1 << 13)
    assert (report.frames, report.passes) == (frames, 3)
    assert resident("VmHWM") - before < 4e6


@pytest.mark.skipif(sys.platform != "linux", reason="reads the peak of resident memory from /proc")
@pytest.mark.parametrize("effect", ["reverse", "noisereduction:n_fft=256", "timestretch:1.2", "trimsilence:-80"])
def test_memory_does_not_grow_where_an_effect_reads_from_anywhere(tmp_path, effect):
    """The samples are 12 MB as floats."""
    audio_io.save(tmp_path / "long.wav", noise(1, 3_000_000), FS)
    audio_io.save(tmp_path / "short.wav", noise(1, 300_000), FS)
    chain = spec.build(effect)
    process_file(chain, tmp_path / "short.wav", tmp_path / "b.wav")
    before = resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")
    process_file(chain, tmp_path / "long.wav", tmp_path / "b.wav")
    assert resident("VmHWM") - before < 8e6


def resident(name):
    """Return a figure of this process' memory, bytes."""
    [line] = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(name + ":")]
    return int(line.split()[1]) * 1024


# --- progress, report -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "passes"), [("iir", 1), ("normalize", 2), ("two normalizes", 3)])
def test_progress_counts_all_passes_up_to_the_total(tmp_path, source, name, passes):
    seen = []
    report = process_file(CHAINS[name](), source, tmp_path / "b.wav", 768, lambda *figures: seen.append(figures))
    assert report == FileReport(FRAMES, FS, 2, passes, None, None)
    done, totals = zip(*seen, strict=True)
    assert set(totals) == {passes * FRAMES}
    assert done[-1] == passes * FRAMES
    steps = [b - a for a, b in zip((0, *done), done, strict=False)]
    assert steps == [768, 768, FRAMES - 1536] * passes


def test_progress_grows_to_the_total_where_an_effect_reads_from_anywhere(tmp_path, source):
    seen = []
    chain = CHAINS["chain with reverse"]()
    report = process_file(chain, source, tmp_path / "b.wav", 768, lambda *figures: seen.append(figures))
    assert report.passes == 4
    assert seen == sorted(seen)
    assert seen[-1] == (4 * FRAMES, 4 * FRAMES)


@pytest.mark.parametrize("block", [1, 7, 100, 1000])
def test_samples_that_are_not_finite_are_counted_in_and_out(tmp_path, block):
    x = torch.zeros(2, 500)
    x[0, 123] = x[1, 123] = x[1, 200] = float("nan")
    x[1, 321] = float("inf")
    audio_io.save(tmp_path / "a.wav", x, FS)
    report = process_file(Gain(0.5), tmp_path / "a.wav", tmp_path / "b.wav", block)
    assert (report.not_finite_in, report.not_finite_out) == ((4, 123), (4, 123))
    report = process_file(LoButterworth(1000), tmp_path / "a.wav", tmp_path / "b.wav", block)
    assert report.not_finite_in == (4, 123)
    assert report.not_finite_out == (2 * (500 - 123), 123)  # a recursion does not forget


def test_what_a_processor_makes_infinite_is_counted_in_its_output_alone(tmp_path):
    class Overflow(nn.Sequential):
        """Beyond what float32 holds from the 400th frame on."""

    x = torch.full((1, 500), 1.0)
    x[0, 400:] = 3e38
    audio_io.save(tmp_path / "a.wav", x, FS)
    report = process_file(Overflow(Gain(1e10)), tmp_path / "a.wav", tmp_path / "b.wav", 64)
    assert (report.not_finite_in, report.not_finite_out) == (None, (100, 400))


def test_large_finite_samples_are_finite(tmp_path):
    """Their sum is not."""
    audio_io.save(tmp_path / "a.wav", torch.full((1, 500), 3e38), FS)
    report = process_file(Gain(1.0), tmp_path / "a.wav", tmp_path / "b.wav")
    assert (report.not_finite_in, report.not_finite_out) == (None, None)


# --- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Reverse, r"Reverse\(\) needs the whole signal|Reverse .* needs the whole signal"),
        (lambda: Gain(0.5) | Reverse() | Gain(2.0), r"Reverse \(2nd of 3\) needs the whole signal"),
        (lambda: Gain(0.5) + (LoButterworth(500) | Reverse()), r"Reverse \(2nd of 2\) needs the whole signal"),
        (lambda: nn.Sequential(nn.Conv1d(2, 2, 3)), "Conv1d"),
        (lambda: Gain(0.5) + Normalize(), "Normalize"),
    ],
)
def test_modules_that_need_the_whole_signal_are_refused_by_name_and_nothing_is_written(tmp_path, source, make, message):
    with pytest.raises(StreamError, match=message):
        process_file(make(), source, tmp_path / "b.wav")
    assert [path.name for path in tmp_path.iterdir()] == ["source.wav"]


@pytest.mark.parametrize("block", [0, -1])
def test_a_block_has_samples(tmp_path, source, block):
    with pytest.raises(ArgumentError, match=f"block must be a whole number >= 1, got {block}"):
        process_file(Gain(0.5), source, tmp_path / "b.wav", block)
    with pytest.raises(ArgumentError, match=f"chunk_size must be a whole number >= 1, got {block}"):
        StreamProcessor(Gain(0.5), block)


def test_errors_leave_the_target_as_it_was(tmp_path, source):
    target = tmp_path / "b.wav"
    target.write_bytes(b"what was there")
    with pytest.raises(ArgumentError, match=r"cutoff must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 30000"):
        process_file(LoButterworth(30_000), source, target)
    with pytest.raises(AudioFileError, match="no such file"):
        process_file(Gain(0.5), tmp_path / "missing.wav", target)
    with pytest.raises(RuntimeError, match="enough"):
        process_file(Gain(0.5), source, target, 100, stop)
    assert target.read_bytes() == b"what was there"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.wav", "source.wav"]


def stop(done, total):
    if done > 1000:
        raise RuntimeError("enough")


def test_a_reader_may_have_been_read_from(tmp_path, source):
    with audio_io.Reader(source) as reader:
        reader.read(1234)
        report = process_file(Gain(1.0), reader, tmp_path / "b.wav")
    assert report.frames == FRAMES
    assert (tmp_path / "b.wav").read_bytes() == source.read_bytes()
