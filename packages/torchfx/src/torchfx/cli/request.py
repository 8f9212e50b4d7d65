"""The options that `torchfx process`, `convert`, `features` and `watch` share."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer

__all__ = ["Effects", "Force", "Request", "SomeEffects", "takes_request"]

_EFFECT = typer.Option("--effect", "-e", metavar="NAME:PARAMETERS", help="A filter or effect; repeat for a chain.")
Effects = Annotated[list[str], _EFFECT]
SomeEffects = Annotated[list[str] | None, _EFFECT]
Force = Annotated[bool, typer.Option("--force", "-f", help="Overwrite existing outputs.")]


@dataclass(frozen=True)
class Request:
    """Options of a request on the command line."""

    effect: SomeEffects = None
    preset: Annotated[
        str | None,
        typer.Option(
            "--preset",
            metavar="FILE",
            help="A TOML file, or podcast, speech-16k or broadcast-r128; for features whisper, kaldi, librosa, nemo or "
            "torchaudio. The suffix of OUT and --format override its format.",
        ),
    ] = None
    rate: Annotated[
        str | None,
        typer.Option(
            "--rate",
            "-r",
            metavar="HZ",
            help="Sample rate of the output, converted after the effects; features are computed at this rate.",
        ),
    ] = None
    loudness: Annotated[
        float | None,
        typer.Option("--loudness", metavar="LUFS", help="Integrated loudness of each output, as -14."),
    ] = None
    true_peak: Annotated[
        float | None,
        typer.Option(
            "--true-peak",
            metavar="DB",
            help="Level that no peak exceeds before encoding, as -1. With --loudness, but not with --album, the gain "
            "before the limiter is raised until the output has its loudness.",
        ),
    ] = None
    album: Annotated[
        bool,
        typer.Option(
            "--album",
            help="Measure all inputs as one programme and give them the same gain, so that together they have "
            "--loudness.",
        ),
    ] = False
    format: Annotated[
        str | None,
        typer.Option(
            "--format",
            metavar="NAME",
            help="Format of the outputs: wav, flac, ogg, mp3, m4a ...; for features npy, npz, safetensors, parquet. It "
            "must not contradict OUT's suffix, which is the default.",
        ),
    ] = None
    bits: Annotated[int | None, typer.Option("--bits", help="Bits per sample; by default the source's.")] = None
    bitrate: Annotated[
        str | None,
        typer.Option(
            "--bitrate",
            metavar="128k",
            help="Bit rate of a lossy format; by default at least the bit rate of a lossy source.",
        ),
    ] = None
    raw: Annotated[
        str | None,
        typer.Option("--raw", metavar="RATE,CHANNELS,s16", help="Format of raw samples: u8, s16, s24, s32, f32, f64."),
    ] = None
    recursive: Annotated[
        bool, typer.Option("--recursive", "-R", help="Include subfolders, and keep the folder structure.")
    ] = False
    jobs: Annotated[
        int | None,
        typer.Option(
            "--jobs", "-j", min=1, help="Number of files to process at the same time.", show_default="all processors"
        ),
    ] = None
    engine: Annotated[
        str,
        typer.Option(
            "--engine", help="What processes the files: processes, threads, or ray (a cluster, or a local instance)."
        ),
    ] = "processes" if sys.platform == "linux" else "threads"
    skip_existing: Annotated[
        bool,
        typer.Option(
            "--skip-existing", help="Keep a manifest in OUT, and process only new, changed and unfinished files."
        ),
    ] = False
    failures: Annotated[
        Path | None,
        typer.Option("--failures", metavar="FILE", help="Write a table of failures to this file, as CSV or JSON."),
    ] = None
    dry_run: Annotated[bool, typer.Option("--dry-run", "-n", help="Print the planned work and write nothing.")] = False
    force: Force = False
    allow_nan: Annotated[bool, typer.Option("--allow-nan", help="Exit 0 even if samples are NaN or infinite.")] = False


def takes_request(without: tuple[str, ...] = ()) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of `Request`; it is called with them as its argument `request`."""
    shared = [field for field in fields(Request) if field.name not in without]
    hints = get_type_hints(Request, include_extras=True)

    def decorate(command: Callable[..., None]) -> Callable[..., None]:
        own = [each for each in inspect.signature(command, eval_str=True).parameters.values() if each.name != "request"]
        options = [
            inspect.Parameter(
                field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=hints[field.name]
            )
            for field in shared
        ]
        assert all(field.default is not MISSING for field in shared)

        def called(**given: Any) -> None:
            chosen = {field.name: given.pop(field.name) for field in shared}
            command(**given, request=Request(**chosen))

        called.__name__, called.__doc__ = command.__name__, command.__doc__
        own = [each.replace(kind=inspect.Parameter.KEYWORD_ONLY) for each in own]
        called.__signature__ = inspect.Signature([*own, *options])  # type: ignore[attr-defined]
        called.__annotations__ = {each.name: each.annotation for each in [*own, *options]}
        return called

    return decorate
