"""Hints for misspelt commands and options, and for the names that other tools give them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import typer
from typer.core import TyperGroup

_UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]  # typer may carry click, or import it

__all__ = ["COMMANDS", "EXAMPLES", "OPTIONS", "Commands", "check_program", "example"]

COMMANDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(
        ("analyse", "analyze", "diagnose", "inspect", "read", "show", "stats", "summary", "why"), "explain"
    ),
    **dict.fromkeys(("critical-path", "ops", "kernels", "print", "sql", "top-ops"), "explain TRACE --table NAME"),
    **dict.fromkeys(("capture", "launch", "prof", "record", "run", "start", "trace"), "profile"),
    **dict.fromkeys(("attach", "dump", "pid", "top"), "profile --pid 1234"),
    **dict.fromkeys(("cmp", "compare", "delta", "versus", "vs"), "diff"),
    **dict.fromkeys(("gui", "open", "perfetto", "ui", "web"), "view"),
    **dict.fromkeys(("html", "page", "render"), "report"),
    **dict.fromkeys(("autotune", "optimise", "optimize", "speedup", "tune"), "try"),
    **dict.fromkeys(("bench", "benchmark", "time", "timeit"), "measure"),
    **dict.fromkeys(("allocator", "mem", "oom", "snapshot"), "memory"),
    **dict.fromkeys(("convert", "save"), "export"),
    **dict.fromkeys(("flamegraph", "speedscope"), "export TRACE --to speedscope"),
    **dict.fromkeys(("crop", "slice", "trim"), "cut"),
    **dict.fromkeys(("combine", "join"), "merge"),
    **dict.fromkeys(("assert", "budget", "check", "ci"), "gate"),
    **dict.fromkeys(("lint", "list", "rules"), "rule"),
    **dict.fromkeys(("regressions", "runs", "trend"), "history"),
    **dict.fromkeys(("env", "status", "version", "versions"), "info"),
    **dict.fromkeys(("peaks", "roofline"), "experiment peaks"),
    **dict.fromkeys(("server", "serve"), "mcp"),
    **dict.fromkeys(("hang", "hangs", "ranks"), "explain FOLDER"),
}
"""The names of commands in HTA, nsys, py-spy, TensorBoard and others, and the command here."""

OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("d", "duration", "t", "time", "timeout"), ("--seconds", "--max-time", "--budget")),
    **dict.fromkeys(("delay", "skip", "skip-first", "y"), ("--wait",)),
    **dict.fromkeys(("iterations", "num-steps", "steps"), ("--active", "--steps")),
    **dict.fromkeys(("record-shapes",), ("--shapes",)),
    **dict.fromkeys(("memory-usage", "profile-memory"), ("--memory",)),
    **dict.fromkeys(("backtrace", "native", "python-stacks", "stack", "with-stack"), ("--stacks",)),
    **dict.fromkeys(("with-flops",), ("--flops",)),
    **dict.fromkeys(("with-modules",), ("--modules",)),
    **dict.fromkeys(("gpu", "gpus"), ("--cuda", "--device")),
    **dict.fromkeys(("p", "process"), ("--pid",)),
    **dict.fromkeys(("address", "host", "server", "url"), ("--attach",)),
    **dict.fromkeys(("dest", "dir", "folder", "logdir", "o", "out", "output-dir", "to"), ("--out", "--output")),
    **dict.fromkeys(("file", "out-file", "output"), ("--output", "--out")),
    **dict.fromkeys(("csv",), ("--to", "torchwhy export TRACE --to csv")),
    **dict.fromkeys(("html",), ("torchwhy report TRACE",)),
    **dict.fromkeys(("f", "json", "markdown", "md", "output-format", "sarif"), ("--format",)),
    **dict.fromkeys(("l", "lines", "max", "n", "rows", "top", "topk"), ("--limit",)),
    **dict.fromkeys(("order", "order-by", "s", "sort-by"), ("--sort",)),
    **dict.fromkeys(("group-by-input-shape", "group-by-shape"), ("--by-shape",)),
    **dict.fromkeys(("disable", "exclude", "without"), ("--ignore",)),
    **dict.fromkeys(("enable", "include", "only", "rule", "rules"), ("--select",)),
    **dict.fromkeys(("exit-code", "level", "severity", "strict"), ("--fail-on",)),
    **dict.fromkeys(("max-slowdown", "threshold", "tolerance"), ("--fail-on-slower",)),
    **dict.fromkeys(("cores", "num-threads", "workers"), ("--threads",)),
    **dict.fromkeys(("browser", "launch", "show"), ("--open",)),
    **dict.fromkeys(("overwrite", "y", "yes"), ("--force",)),
    **dict.fromkeys(("all", "debug", "details"), ("--verbose",)),
    **dict.fromkeys(("database", "db"), ("--store",)),
    **dict.fromkeys(("from", "old"), ("--good", "--since")),
    **dict.fromkeys(("max-tokens",), ("--tokens",)),
    **dict.fromkeys(("n-runs", "repeats", "times"), ("--runs", "--repeat")),
    **dict.fromkeys(("q", "quiet", "silent"), ("2> /dev/null after the command; the report goes to stderr",)),
    "v": ("--verbose",),
}
"""The names of options in other tools, and the options here; the first that the command has is suggested, or a text."""

EXAMPLES: Final[Mapping[str, str]] = {"--pid": "1234", "--size": "512", "--tokens": "2000"}
"""Values of numeric options without a default; for others 4 is an example."""


class Commands(TyperGroup):
    """The command's group; its errors about unknown commands and options, and about numbers, carry a hint."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before the command's name."""
        ctx.meta["torchwhy.words"] = tuple(args)
        with _with_hints():
            return super().parse_args(ctx, args)

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        """Find the command."""
        if self.get_command(ctx, args[0]) is None and not ctx.resilient_parsing:
            ctx.fail(f"No such command {args[0]!r}. {_command_hint(args[0], self.commands)}")
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: Any) -> Any:
        """Parse and run the command."""
        with _with_hints():
            return super().invoke(ctx)


@contextmanager
def _with_hints() -> Iterator[None]:
    try:
        yield
    except _UsageError as error:
        found: Any = error
        param = getattr(error, "param", None)
        if hasattr(error, "possibilities") and found.ctx is not None:  # no such option
            found.message = f"{found.message.rstrip('.')}. {_option_hint(found.option_name, found.ctx)}"
            found.possibilities = None
        elif param is not None and "is not a valid" in found.message and _is_number(param):
            found.message += f" Write for example {max(param.opts, key=len)} {example(param)}."
        raise


def check_program(ctx: typer.Context, words: list[str] | None) -> list[str] | None:
    """Return the words of a program; raise if the first is an unknown option instead, except for Python's -c.

    Raises:
        UsageError: it is.
    """
    if words and words[0].startswith("--"):
        ctx.fail(f"No such option: {words[0]}. {_option_hint(words[0], ctx)}")
    return words


def example(option: Any) -> str:
    """Return a value of a numeric option that works: its default, or an example."""
    long = max(option.opts, key=len)
    return str(option.default) if isinstance(option.default, int | float) else EXAMPLES.get(long, "4")


def _is_number(option: Any) -> bool:
    return any(kind in option.type.name for kind in ("int", "float"))


def _command_hint(word: str, known: Collection[str]) -> str:
    from torchwhy.spelling import closest  # only after a mistake

    if word.endswith(".py"):
        return f"To profile a program: torchwhy profile {word}"
    reading = f"To read a trace: torchwhy explain {word}"
    if word.endswith((".json", ".gz", ".sqlite", ".nsys-rep", ".pftrace")):
        return reading
    other, is_folder = COMMANDS.get(word.lower()), Path(word).is_dir()
    if other:  # a folder may have the name by chance
        return f"Write: torchwhy {other}{f' ({reading})' if is_folder else ''}"
    if is_folder:
        return reading
    best = closest(word.lower(), known)
    return f"Did you mean {best!r}?" if best else "torchwhy -h lists the commands."


def _option_hint(name: str, ctx: Any) -> str:
    """Return a hint for an option that a command does not have."""
    from torchwhy.spelling import closest  # only after a mistake

    known = _long_options(ctx.command)
    plain = _whole(name, ctx.meta.get("torchwhy.words", ()))
    for other in OPTIONS.get(plain, ()):
        if other in known or not other.startswith("--"):
            return f"Write: {other}"
    best = closest(plain, [each[2:] for each in known])
    return f"Did you mean --{best}?" if best else f"{ctx.command_path} -h lists the options."


def _whole(name: str, words: Sequence[str]) -> str:
    """Return an option's name without dashes: after a single dash only the first letter was read, and all is meant."""
    if not name.startswith("--"):
        name = next((word for word in words if word.startswith(name) or (word[:1] == "-" and name[1:] in word)), name)
    return name.lstrip("-").partition("=")[0].lower().replace("_", "-")


def _long_options(command: Any) -> list[str]:
    return [name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("--")]
