"""The command `torchfx`: one file per subcommand, each imported only when it runs.

Exit status: 0 fine, 1 findings or some files failed, 2 misuse, 3 cannot read or run.
"""

from __future__ import annotations

import atexit
import gc
import os
import re
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from torchfx.checks import quantity, sample_rate
from torchfx.cli.misuse import Commands
from torchfx.cli.request import Effects, Force, Request, SomeEffects, takes_request
from torchfx.errors import ArgumentError

__all__ = ["app"]

# What one wants to do; `--help` lists the commands under these headings.
PROCESS: Final = "Process and convert files"
EDIT: Final = "Cut, join, mix and make files"
INSPECT: Final = "Look at files and at this installation"
EFFECTS: Final = "Filters and effects"
LIVE: Final = "Sound devices"
MORE: Final = "More"


def _rate(text: str) -> float:
    try:
        return sample_rate(text)
    except ArgumentError as error:
        raise typer.BadParameter(f"{error}; write for example 48000 or 44.1kHz") from None


def _decibels(text: str) -> float:
    return float(_number(text, "dB", "-40 or -40dB"))


def _seconds(text: str) -> float:
    clock = re.fullmatch(r"(?:(\d+):)?(\d+):(\d+\.?\d*)", str(text).strip())
    if clock:
        return 3600 * int(clock[1] or 0) + 60 * int(clock[2]) + float(clock[3])
    return float(_number(text, "s", "90, 90s or 1:30"))


def _number(text: str, unit: str, example: str) -> float:
    try:
        return quantity("the value", str(text), unit)[0]
    except ArgumentError as error:
        raise typer.BadParameter(f"{error}; write for example {example}") from None


Form = Annotated[str, typer.Option("--format", help="Output format: text or json.")]
Rate = Annotated[
    float, typer.Option("--rate", "-r", metavar="HZ", help="Sample rate, such as 48000 or 44.1kHz.", parser=_rate)
]
DeviceRate = Annotated[
    float | None,
    typer.Option(
        "--rate",
        "-r",
        metavar="HZ",
        show_default="48000, or the input file's",
        parser=_rate,
        help="Sample rate of the device.",
    ),
]
Block = Annotated[int, typer.Option("--block", help="Samples per block.")]
Png = Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Also write a plot to this file.")]
InputDevice = Annotated[str | None, typer.Option("--input", metavar="DEVICE", help="Number or name of the device.")]
OutputDevice = Annotated[str | None, typer.Option("--output", metavar="DEVICE", help="Number or name of the device.")]
Clock = Annotated[
    bool,
    typer.Option(
        "--clock",
        help="Run in real time without a device: --input and --output are files. Without them the input is silent and "
        "the output is discarded.",
    ),
]
Ceiling = Annotated[
    str,
    typer.Option(
        "--ceiling", metavar="DB", help="Mute the output above this level, dB relative to full scale; off: never."
    ),
]
Midi = Annotated[
    list[str] | None,
    typer.Option(
        "--midi",
        metavar="CONTROLLER=PARAMETER",
        help="Control a parameter with a MIDI controller, as in 7=cutoff; repeatable.",
    ),
]
Seconds = Annotated[
    float | None,
    typer.Option("--seconds", metavar="TIME", help="Duration; by default until q or Ctrl-C.", parser=_seconds),
]

app = typer.Typer(
    name="torchfx",
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"torchfx {version('torchfx')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Audio DSP for PyTorch: filters and effects for files, folders, streams and sound devices."""


@app.command(rich_help_panel=PROCESS)
@takes_request()
def process(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... OUT", help="Inputs: files, folders, globs, tables or -. Output: a file, a folder or -."
        ),
    ],
    request: Request,
) -> None:
    """Process audio files with a chain of filters and effects.

    Parameters are given by position or name; frequencies may have the unit Hz or
    kHz:

    torchfx process in.wav out.flac -e hibutterworth:80,order=4 -e gain:-3dB --rate 48kHz
    torchfx process songs/ out/ --loudness -14 --true-peak -1 --album

    OUT is a folder if there are several inputs, or if it ends in / or has no
    suffix. An input may be a folder, or a .csv or .parquet file that lists inputs
    in its column "path".
    """
    _keep_what_is_imported()
    from torchfx.cli import process as command

    raise typer.Exit(command.run(paths, request))


@app.command(rich_help_panel=PROCESS)
@takes_request(without=("effect", "preset", "loudness", "true_peak", "album"))
def convert(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... OUT", help="Inputs: files, folders, globs, tables or -. Output: a file, a folder or -."
        ),
    ],
    request: Request,
) -> None:
    """Change the format, bit depth or sample rate of audio files.

    torchfx convert talk.wav talk.flac
    torchfx convert recordings/ flacs/ --recursive --format flac
    """
    if request.rate is None:
        _start_at_once()
    else:
        _keep_what_is_imported()
    from torchfx.cli import process as command

    raise typer.Exit(command.run(paths, request, "convert"))


@app.command(rich_help_panel=PROCESS)
@takes_request(without=("bits", "bitrate", "loudness", "true_peak", "album"))
def features(
    paths: Annotated[
        list[str],
        typer.Argument(
            metavar="IN... OUT", help="Inputs: files, folders, globs, tables or -. Output: a file, a folder or -."
        ),
    ],
    request: Request,
) -> None:
    """Write features for speech recognition and other models: mel spectrograms, cepstra and others.

    torchfx features talk.wav talk.npy --preset whisper
    torchfx features recordings/ mels/ --recursive --skip-existing --preset whisper
    torchfx features recordings/ mfcc/ -e hibutterworth:80 -e mfcc:n_mfcc=13,n_mels=40 --rate 16kHz --format npz

    Each file holds an array (channels, bins, frames). Samples are converted to
    the rate that a preset needs. Outputs are .npy, .npz, .safetensors or .parquet
    files.
    """
    _keep_what_is_imported()
    from torchfx.cli import process as command

    raise typer.Exit(command.run(paths, request, "features"))


@app.command(rich_help_panel=PROCESS)
@takes_request(without=("dry_run", "skip_existing", "allow_nan", "album"))
def watch(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder to watch.")],
    output: Annotated[str, typer.Argument(metavar="OUT", help="The folder of the results.")],
    request: Request,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.01, help="Interval between checks.")
    ] = 1.0,
) -> None:
    """Process audio files as they arrive in a folder, until Ctrl-C.

    torchfx watch incoming/ clean/ --preset speech-16k

    A file has arrived when its size has not changed between two checks. A manifest
    in OUT lists the finished files, which are not processed again after a restart.
    """
    _keep_what_is_imported()
    from torchfx.cli import process as command

    raise typer.Exit(command.watch(folder, output, request, every))


@app.command(rich_help_panel=INSPECT)
def info(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE...]", help="Audio files.")] = None,
    form: Form = "text",
    loudness: Annotated[bool, typer.Option("--loudness", help="Also measure loudness and peak.")] = False,
) -> None:
    """Show the contents of audio files, or, without files, versions, threads, GPU and the backend of each device.

    Exit status 1: some files could not be read; 2: misuse; 3: no file could be
    read. torchfx stats measures loudness in detail.
    """
    if files and not loudness:
        _start_at_once()
    from torchfx.cli import info as command

    raise typer.Exit(command.run(files or [], form, loudness))


@app.command(rich_help_panel=INSPECT)
def stats(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Audio files.")],
    form: Form = "text",
    album: Annotated[bool, typer.Option("--album", help="Also measure all files together, as one programme.")] = False,
) -> None:
    """Measure the loudness of audio files: integrated, range, maxima, true peak (EBU R 128, ITU-R BS.1770).

    torchfx stats songs/*.flac --album

    Exit status 1: some files could not be measured; 2: misuse; 3: no file could
    be measured.
    """
    from torchfx.cli import stats as command

    raise typer.Exit(command.run(files, form, album))


@app.command(rich_help_panel=INSPECT)
def spectrogram(
    source: Annotated[str, typer.Argument(metavar="FILE", help="An audio file.")],
    png: Annotated[
        Path | None, typer.Option("--png", metavar="FILE", help="Write a plot to this file instead of the terminal.")
    ] = None,
    mel: Annotated[
        int | None, typer.Option("--mel", metavar="BANDS", help="Number of mel bands; by default FFT bins.")
    ] = None,
) -> None:
    """Plot the spectrogram of an audio file, from its noise floor up.

    torchfx spectrogram in.wav --mel 80 --png mel.png
    """
    from torchfx.cli import spectrogram as command

    raise typer.Exit(command.run(source, png, mel))


@app.command(rich_help_panel=EDIT)
def trim(
    source: Annotated[str, typer.Argument(metavar="IN", help="An audio file.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write.")],
    start: Annotated[str, typer.Option("--start", "-s", metavar="TIME", help="Start of the part.")] = "0",
    end: Annotated[str | None, typer.Option("--end", "-e", metavar="TIME", help="End of the part.")] = None,
    force: Force = False,
) -> None:
    """Copy a part of an audio file.

    torchfx trim in.wav out.wav --start 0.5 --end -250ms

    A TIME is in seconds, or has a unit: 250ms, 1:30, "480 samples". A negative
    TIME counts from the end.
    """
    _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(command.trim(source, target, start, end, force))


@app.command(rich_help_panel=EDIT)
def concat(
    paths: Annotated[list[str], typer.Argument(metavar="IN... OUT", help="Audio files, then the file to write.")],
    force: Force = False,
) -> None:
    """Concatenate audio files with the same sample rate and number of channels.

    torchfx concat first.wav second.wav out.wav
    """
    _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(command.concat(paths, force))


@app.command(rich_help_panel=EDIT)
def mix(
    paths: Annotated[list[str], typer.Argument(metavar="IN... OUT", help="Audio files, then the file to write.")],
    gain: Annotated[
        list[str] | None,
        typer.Option("--gain", "-g", metavar="DB", help="Gain of each input, in order; by default 0 dB."),
    ] = None,
    rate: Annotated[
        float | None,
        typer.Option(
            "--rate",
            "-r",
            metavar="HZ",
            help="Sample rate of the output; by default the highest of the inputs.",
            parser=_rate,
        ),
    ] = None,
    force: Force = False,
) -> None:
    """Mix audio files of any sample rates and lengths; mono files are added to all channels.

    torchfx mix voice.wav music.flac out.wav --gain 0 --gain -12
    """
    _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(command.mix(paths, gain or [], rate, force))


@app.command(rich_help_panel=EDIT)
def synth(
    kind: Annotated[
        str, typer.Argument(metavar="KIND", help="sine, square, saw, triangle, chirp, white, pink, brown or silence.")
    ],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write.")],
    length: Annotated[str, typer.Option("--length", "-l", metavar="TIME", help="Duration.")] = "1",
    frequency: Annotated[
        str, typer.Option("--frequency", metavar="HZ", help="Frequency of a tone, or start frequency of a chirp.")
    ] = "440",
    to: Annotated[str | None, typer.Option("--to", metavar="HZ", help="End frequency of a chirp.")] = None,
    level: Annotated[
        str | None,
        typer.Option(
            "--level",
            metavar="DBFS",
            help="Peak level (default -6), or RMS level of noise (default -20).",
            show_default=False,
        ),
    ] = None,
    rate: Rate = 48_000,
    channels: Annotated[
        int, typer.Option("--channels", help="Number of channels; noise differs between channels.")
    ] = 1,
    bits: Annotated[
        int | None, typer.Option("--bits", help="Bits per sample; by default the format's default.")
    ] = None,
    seed: Annotated[int, typer.Option("--seed", help="Seed of the noise.")] = 0,
    force: Force = False,
) -> None:
    """Write a test signal: alias-free tones, sweeps, noise, or silence.

    torchfx synth chirp sweep.wav --frequency 20 --to 20kHz --length 10
    torchfx synth pink noise.flac --length 60 --channels 2 --level -23
    """
    if kind not in {"white", "pink", "brown"}:
        _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(
        command.synth(
            kind, target, force, length=length, rate=rate, channels=channels, level_db=level, tone=frequency, end=to,
            seed=seed, bits=bits,
        )
    )  # fmt: skip


@app.command(rich_help_panel=EDIT)
def split(
    source: Annotated[str, typer.Argument(metavar="IN", help="An audio file.")],
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="The folder of the parts.")],
    every: Annotated[str | None, typer.Option("--every", metavar="TIME", help="Duration of a part.")] = None,
    silence: Annotated[
        float | None,
        typer.Option(
            "--silence",
            metavar="DB",
            help="Split where no channel is louder, dB relative to full scale.",
            parser=_decibels,
        ),
    ] = None,
    least: Annotated[str, typer.Option("--least", metavar="TIME", help="Minimum duration of a silence.")] = "0.3",
    suffix: Annotated[str | None, typer.Option("--suffix", help="Suffix of the parts, such as .flac.")] = None,
    force: Force = False,
) -> None:
    """Split an audio file into parts, by time or at silence, and print their names.

    torchfx split talk.flac parts --silence -40
    """
    _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(command.split(source, folder, every, silence, least, suffix, force))


@app.command(rich_help_panel=EFFECTS)
def effects(
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="A filter or effect.")] = None,
    form: Form = "text",
) -> None:
    """List the filters and effects, or show one: its parameters with ranges and defaults, and an example.

    torchfx effects
    torchfx effects compressor
    """
    from torchfx.cli import effects as command

    raise typer.Exit(command.run(name, form))


@app.command(rich_help_panel=EFFECTS)
def response(
    effect: Effects,
    rate: Rate = 48_000,
    png: Png = None,
    form: Form = "text",
) -> None:
    """Plot and describe the frequency response of a chain of filters.

    torchfx response -e lobutterworth:1kHz,4 --rate 48000

    Exit status 2: misuse, or an effect that is not linear and time-invariant; 3:
    the plot cannot be written.
    """
    from torchfx.cli import response as command

    raise typer.Exit(command.run(effect, rate, png, form))


@app.command(rich_help_panel=EFFECTS)
def suggest(
    effect: Effects,
    length: Annotated[str, typer.Option("--length", "-l", metavar="TIME", help="Duration of the signal.")] = "60",
    channels: Annotated[int, typer.Option("--channels", help="Number of channels of the signal.")] = 2,
    rate: Rate = 48_000,
    form: Form = "text",
) -> None:
    """Measure whether the CPU or the GPU is faster for a chain and a signal on this machine.

    torchfx suggest -e lobutterworth:1kHz,8 --length 10:00 --channels 12

    Exit status 2: misuse, or an effect that cannot be run.
    """
    from torchfx.cli import suggest as command

    raise typer.Exit(command.run(effect, length, channels, rate, form))


@app.command(rich_help_panel=LIVE)
def live(
    effect: Effects,
    rate: DeviceRate = None,
    block: Block = 256,
    channels: Annotated[int, typer.Option("--channels", help="Number of input and output channels.")] = 2,
    input_device: InputDevice = None,
    output_device: OutputDevice = None,
    midi: Midi = None,
    seconds: Seconds = None,
    clock: Clock = False,
    ceiling: Ceiling = "12",
) -> None:
    """Run a chain between a sound device's input and output, with a level meter, latency and xruns.

    Keys: up and down select a parameter, left and right change it, space toggles
    bypass, q quits.

    torchfx live -e lobutterworth:2kHz -e compressor:-20 --block 64 --midi 7=cutoff
    torchfx live -e reverb --clock --input in.wav --output out.wav

    Exit status 2: misuse; 3: the device cannot be opened, or has disappeared.
    """
    from torchfx.cli import live as command

    controllers = tuple(midi or ())
    request = command.Request(
        rate, block, channels, input_device, output_device, controllers, seconds, clock, ceiling
    )  # fmt: skip
    raise typer.Exit(command.live(effect, request))


@app.command(rich_help_panel=LIVE)
def play(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An audio file.")],
    effect: SomeEffects = None,
    block: Block = 256,
    output_device: OutputDevice = None,
    midi: Midi = None,
    seconds: Annotated[
        float | None,
        typer.Option("--seconds", metavar="TIME", help="Duration; by default to the end of the file.", parser=_seconds),
    ] = None,
    clock: Clock = False,
    ceiling: Ceiling = "12",
) -> None:
    """Play an audio file, optionally through a chain, with the keys and display of torchfx live.

    torchfx play in.wav -e lobutterworth:2kHz
    """
    from torchfx.cli import live as command

    controllers = tuple(midi or ())
    request = command.Request(None, block, None, None, output_device, controllers, seconds, clock, ceiling)
    raise typer.Exit(command.play(file, effect or [], request))


@app.command(rich_help_panel=LIVE)
def record(
    file: Annotated[str, typer.Argument(metavar="OUT", help="The file to write.")],
    effect: SomeEffects = None,
    rate: DeviceRate = None,
    block: Block = 256,
    channels: Annotated[int, typer.Option("--channels", help="Number of input channels.")] = 2,
    input_device: InputDevice = None,
    seconds: Seconds = None,
    force: Force = False,
    clock: Clock = False,
    ceiling: Ceiling = "12",
) -> None:
    """Record from a sound device into an audio file, which appears when the recording ends.

    torchfx record out.wav --channels 1 --seconds 10
    """
    from torchfx.cli import live as command

    request = command.Request(rate, block, channels, input_device, None, (), seconds, clock, ceiling)
    raise typer.Exit(command.record(file, effect or [], request, force))


@app.command(rich_help_panel=MORE)
def demo() -> None:
    """Synthesize a recording, filter it, and show the plan, the time and the deviation from SciPy."""
    from torchfx.cli import demo as command

    raise typer.Exit(command.run())


@app.command(rich_help_panel=MORE)
def completion(shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print a shell script that completes commands, options and names of effects.

    source <(torchfx completion bash)
    torchfx completion fish > ~/.config/fish/completions/torchfx.fish
    """
    from torchfx.cli import completion as command

    raise typer.Exit(command.run(shell, typer.main.get_command(app)))


def _start_at_once() -> None:
    """Keep NumPy from starting threads for matrices, which files do not need: 50 ms of 150 on 2 cores."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _keep_what_is_imported() -> None:
    """Spare the garbage collector what importing PyTorch makes, all of it in use until the end: 0.3 of 1.6 s."""
    gc.set_threshold(10_000)
    atexit.register(gc.freeze)  # or all of it is looked through once more at exit
