"""Hints for misspelt commands and options, and for the names that other tools give them."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import Any, Final

import typer
from typer.core import TyperGroup

_UsageError: Final[type[Exception]] = typer.BadParameter.__mro__[1]  # typer may carry click, or import it

__all__ = ["COMMANDS", "EXAMPLES", "OPTIONS", "Commands", "example"]

COMMANDS: Final[Mapping[str, str]] = {
    **dict.fromkeys(("apply", "batch", "filter", "fx", "render", "run"), "process"),
    **dict.fromkeys(("encode", "resample", "transcode"), "convert"),
    **dict.fromkeys(("ffprobe", "inspect", "metadata", "probe", "show", "soxi"), "info"),
    **dict.fromkeys(("ebur128", "level", "levels", "loudness", "lufs", "measure", "r128", "volumedetect"), "stats"),
    **dict.fromkeys(("crop", "cut", "excerpt", "slice"), "trim"),
    **dict.fromkeys(("append", "cat", "concatenate", "join"), "concat"),
    **dict.fromkeys(("amix", "merge", "sum"), "mix"),
    **dict.fromkeys(("gen", "generate", "noise", "sine", "tone", "tones"), "synth"),
    **dict.fromkeys(("segment", "silencedetect"), "split"),
    **dict.fromkeys(("filters", "help", "list", "presets"), "effects"),
    **dict.fromkeys(("bode", "freqz", "frequency", "frequency-response", "plot"), "response"),
    **dict.fromkeys(("spec", "specgram", "showspectrumpic"), "spectrogram"),
    **dict.fromkeys(("extract", "fbank", "mel", "mfcc"), "features"),
    **dict.fromkeys(("bench", "benchmark", "device"), "suggest"),
    **dict.fromkeys(("jack", "monitor", "realtime", "stream"), "live"),
    **dict.fromkeys(("ffplay", "listen"), "play"),
    **dict.fromkeys(("capture", "rec"), "record"),
    **dict.fromkeys(("daemon", "follow"), "watch"),
    **dict.fromkeys(("env", "status", "version", "versions"), "info"),
}
"""The names of commands in SoX, FFmpeg and others, and the command here."""

OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("ar", "fs", "freq", "resample", "sample-rate", "samplerate", "sr"), ("--rate",)),
    **dict.fromkeys(("ac", "c", "nchannels"), ("--channels", "-e mono")),
    **dict.fromkeys(("af", "chain", "filter", "filters", "fx"), ("--effect",)),
    **dict.fromkeys(("b", "bit-depth", "depth", "sample-fmt"), ("--bits",)),
    **dict.fromkeys(("ab", "b:a", "bit-rate", "quality"), ("--bitrate",)),
    **dict.fromkeys(("acodec", "c:a", "codec", "t", "type"), ("--format", "--suffix", "the suffix of OUT")),
    **dict.fromkeys(("json",), ("--format",)),
    **dict.fromkeys(("from", "offset", "ss"), ("--start", "torchfx trim IN OUT --start TIME")),
    **dict.fromkeys(("stop", "to", "until"), ("--end", "torchfx trim IN OUT --end TIME")),
    **dict.fromkeys(
        ("d", "duration", "time"), ("--length", "--seconds", "--every", "--end", "torchfx trim IN OUT --end TIME")
    ),
    **dict.fromkeys(("overwrite", "y", "yes"), ("--force",)),
    **dict.fromkeys(("n-jobs", "num-workers", "parallel", "threads", "workers"), ("--jobs",)),
    **dict.fromkeys(("recurse", "subfolders"), ("--recursive",)),
    **dict.fromkeys(("no-clobber", "resume", "update"), ("--skip-existing",)),
    **dict.fromkeys(("simulate", "test", "what-if"), ("--dry-run",)),
    **dict.fromkeys(("backend", "executor"), ("--engine",)),
    **dict.fromkeys(("i", "in", "input"), ("--input", "the input's name alone, before the output's")),
    **dict.fromkeys(
        ("destination", "o", "out", "outdir", "output"), ("--output", "the output's name alone, after the input's")
    ),
    **dict.fromkeys(("figure", "image", "plot"), ("--png",)),
    **dict.fromkeys(("buffer", "block-size", "blocksize", "frames"), ("--block",)),
    **dict.fromkeys(("bands", "mels", "n-mels"), ("--mel",)),
    **dict.fromkeys(("threshold",), ("--silence", "--ceiling")),
    **dict.fromkeys(("f", "hz", "tone"), ("--frequency",)),
    **dict.fromkeys(("amplitude", "db"), ("--level", "--gain")),
    **dict.fromkeys(("loglevel", "q", "quiet", "v", "verbose"), ("2> /dev/null after the command for no messages",)),
}
"""What SoX, FFmpeg and others call an option, and the options here; the first that the command has is suggested, or a
text. Other words that name an effect suggest that effect."""

_SUFFIXES: Final = (".wav", ".flac", ".mp3", ".ogg", ".opus", ".m4a", ".aac", ".aiff")

EXAMPLES: Final[Mapping[str, str]] = {"--bits": "16", "--mel": "80"}
"""Values of numeric options without a default; for others 4 is an example."""


class Commands(TyperGroup):
    """The command's group; its errors about unknown commands and options, and about numbers, carry a hint."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the words before the command's name."""
        ctx.meta["torchfx.words"] = tuple(args)
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


def example(option: Any) -> str:
    """Return a value of a numeric option that works: its default, or an example."""
    long = max(option.opts, key=len)
    return str(option.default) if isinstance(option.default, int | float) else EXAMPLES.get(long, "4")


def _is_number(option: Any) -> bool:
    return any(kind in option.type.name for kind in ("int", "float"))


def _command_hint(word: str, known: Collection[str]) -> str:
    from torchfx.other_names import close_to  # only after a mistake

    if PurePath(word).suffix.lower() in _SUFFIXES:
        return f"To process a file: torchfx process {word} OUT -e EFFECT"
    other = COMMANDS.get(word.lower())
    if other:
        return f"Write: torchfx {other}"
    best = close_to(word.lower(), known)
    effect = None if best else _effect(word)
    if effect:
        return f"Write: torchfx process IN OUT -e {effect}"
    return f"Did you mean {best!r}?" if best else "torchfx -h lists the commands."


def _option_hint(name: str, ctx: Any) -> str:
    """Return a hint for an option that a command does not have."""
    from torchfx.other_names import close_to  # only after a mistake

    known = _long_options(ctx.command)
    plain = _whole(name, ctx.meta.get("torchfx.words", ()))
    for other in OPTIONS.get(plain, ()):
        if other in known or not other.startswith("--"):
            return f"Write: {other}"
    best = close_to(plain, [each[2:] for each in known])
    if best is None and len(plain) < 3:
        best = (close_to(f"--{plain}", known) or "")[2:] or None
    effect = _effect(plain) if "--effect" in known else None
    if effect:
        return f"Write: -e {effect}"
    return f"Did you mean --{best}?" if best else f"{ctx.command_path} -h lists the options."


def _effect(word: str) -> str | None:
    """Return the effect that a word names, as the command line spells it."""
    from torchfx.other_names import lookup

    found = [each.rpartition(".") for each in lookup(word)]
    return next((name.lower() for module, _, name in found if module in ("effect", "filter")), None)


def _whole(name: str, words: Sequence[str]) -> str:
    """Return an option's name without dashes: after a single dash only the first letter was read, and all is meant."""
    if not name.startswith("--"):
        name = next((word for word in words if word.startswith(name) or (word[:1] == "-" and name[1:] in word)), name)
    return name.lstrip("-").partition("=")[0].lower().replace("_", "-")


def _long_options(command: Any) -> list[str]:
    return [name for each in command.params for name in (*each.opts, *each.secondary_opts) if name.startswith("--")]
