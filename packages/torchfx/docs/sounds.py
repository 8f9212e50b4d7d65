"""Lets readers hear and see each filter and effect: recordings and pictures, made when the site is built.

The source is the recording of `torchfx demo`. A processor runs as in its example, with each name of its first choices,
and with three values of each of its first numbers: near the lower end, in the middle and near the upper end of the
range that random values come from.
"""

from __future__ import annotations

import hashlib
import html
import json
import math
import shutil
import warnings
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import torch
from sphinx.application import Sphinx

import torchfx as fx
from reference_pages import before_reading, write
from torchfx.catalogue import Entry, available
from torchfx.demo.music import recording
from torchfx.parameters import REQUIRED, Choice, Level, Number
from torchfx.spec import build, example_text

FOLDER = Path(__file__).parent / "_generated" / "sounds"
"""Copied into the site by `html_extra_path`."""

KEPT = Path(__file__).parents[3] / "docs" / "_build" / "sounds.json"
"""The text of the pages and a hash of its sources: a later build reuses the text if the hash is the same."""

SECONDS = 2.5
PLACES = (0.1, 0.5, 0.9)
"""Where in its range each of the three values of a parameter lies."""

MOST = 4
"""At most this number of a processor's parameters has sounds."""

MOST_NAMES = 6
"""A choice among more names has no sounds."""

COLOURS = ("#d08700", "#0b69a3", "#7a3db8", "#1b7f4d", "#b3261e", "#555555")
"""The curves of a picture have these colours: at least as many as `PLACES` and `MOST_NAMES`."""


@dataclass(frozen=True)
class Setting:
    """A processor with a label and what the source sounds like after it."""

    label: str
    module: fx.Processor
    wave: fx.Wave


@cache
def source() -> fx.Wave:
    """Return the recording that all processors process."""
    return fx.Wave(torch.from_numpy(recording(SECONDS)), 44_100)


def value_at(number: Number, part: float) -> float:
    """Return the value at a part of the range that random values come from, with two digits."""
    low, high = number.drawn_range(source().fs)
    value = low * (high / low) ** part if number.logarithmic else low + (high - low) * part
    return float(f"{value:.2g}")


def settings(entry: Entry) -> dict[str, list[tuple[str, dict[str, Any]]]]:
    """Return values of the first parameters, each as a label and as an argument: three of a number, every choice."""
    found: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for each in entry.declarations:
        if len(found) == MOST:
            break
        if each.number is not None and each.default is not None:
            values = [value_at(each.number, part) for part in PLACES]
            found[each.name] = [(f"{each.name} = {each.number.show(value)}", {each.name: value}) for value in values]
        elif isinstance(each, Choice) and len(each.names) <= MOST_NAMES:
            found[each.name] = [(f"{each.name} = {name}", {each.name: name}) for name in each.names]
    return found


def heard(module: fx.Processor) -> fx.Wave | None:
    """Return the source after a module, or None if that is no sound of one or two channels, or cannot run."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wave = source() | module
    except (fx.TorchFXError, RuntimeError):
        return None
    found = isinstance(wave, fx.Wave) and wave.ys.dim() == 2 and 1 <= wave.ys.shape[0] <= 2 and wave.ys.shape[1] > 0
    return wave if found and bool(wave.ys.isfinite().all()) else None


def file_of(wave: fx.Wave, made_of: str) -> str:
    """Write a recording unless it is there, and return its file's name; peaks above full scale are turned down."""
    name = hashlib.sha256(f"{fx.__version__} {made_of}".encode()).hexdigest()[:16] + ".mp3"
    path = FOLDER / name
    if not path.exists():
        FOLDER.mkdir(parents=True, exist_ok=True)
        peak = float(wave.ys.abs().max())
        part = wave[: int(4 * wave.fs)] if len(wave) > 4 * wave.fs else wave
        (part * min(1.0, 0.98 / max(peak, 1e-9))).save(path)
    return name


def player(name: str, label: str) -> str:
    """Return a player for a file of `FOLDER`, for a page in `reference/MODULE/`."""
    return (
        f'<audio controls preload="none" src="../../sounds/{name}" '
        f'aria-label="{html.escape(label, quote=True)}"></audio>'
    )


def curve(module: fx.Processor, wave: fx.Wave) -> tuple[str, torch.Tensor, torch.Tensor]:
    """Return what a picture shows, with x and y: the response in dB, or the level of the output over time in dBFS."""
    fs = source().fs
    frequencies = torch.logspace(math.log10(20), math.log10(fs / 2.01), 400, dtype=torch.float64)
    try:
        response = module.magnitude_db(frequencies, fs=fs).reshape(-1, 400)[0].clamp(min=-90)
    except fx.TorchFXError:  # not linear, or it changes with time
        hop = int(wave.fs) // 100
        frames = wave.ys.mean(0)[: len(wave) // hop * hop].reshape(-1, hop)
        level = 20 * frames.square().mean(-1).clamp(min=1e-9).sqrt().log10()
        return "level", torch.arange(len(level)) / 100, level
    return "response", frequencies, response


def picture(entry: Entry, before: fx.Wave, heard_with: dict[str, list[Setting]]) -> str:
    """Draw the settings of the parameter that changes most, and return the file's name.

    Args:
        entry: the processor.
        before: what a picture of levels has in grey.
        heard_with: the settings by parameter.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    path = FOLDER / f"{entry.name}.png"
    figure = Figure(figsize=(8, 2.8), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    drawn = max(heard_with.values(), key=_spread)
    kind = curve(drawn[0].module, drawn[0].wave)[0]
    if kind == "level":
        _, x, y = curve(fx.effect.Reverse(), before)
        axes.plot(x, y, label="before", color="#9aa5b1", linewidth=1)
    for setting, colour in zip(drawn, COLOURS, strict=False):
        _, x, y = curve(setting.module, setting.wave)
        (axes.semilogx if kind == "response" else axes.plot)(x, y, label=setting.label, color=colour, linewidth=1.2)
    low, high = axes.get_ylim()
    axes.set_ylim(min(low, (low + high) / 2 - 3), max(high, (low + high) / 2 + 3))
    axes.set(
        xlabel="Hz" if kind == "response" else "s", ylabel="dB" if kind == "response" else "dBFS, per 10 ms",
        title=f"{entry.name}: {'response' if kind == 'response' else 'level over time'}",
    )  # fmt: skip
    figure.legend(loc="outside right upper", fontsize=8)
    axes.grid(alpha=0.3)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)
    return path.name


def _spread(settings: list[Setting]) -> float:
    """Return how far the curves of the first and the last setting lie apart, in dB."""
    (_, _, first), (_, _, last) = (curve(each.module, each.wave) for each in (settings[0], settings[-1]))
    return float((first - last).abs().mean()) if first.shape == last.shape else math.inf


def section(entry: Entry) -> tuple[str, str]:
    """Return what a page has before the documentation, lines to copy, and after it: a picture and players."""
    module = build(example_text(entry))
    package = entry.module.rpartition(".")[2]
    given = ", ".join(f"{name}={plain(value)!r}" for name, value in required(entry).items())
    lines = (
        f"```python\nwave | fx.{package}.{entry.name}({given})\n```\n\n"
        f"```sh\ntorchfx process in.wav out.wav --effect '{example_text(entry)}'\n```\n\n"
    )
    wave = heard(module)
    if wave is None:
        return lines, ""
    found = {name: made for name, values in settings(entry).items() if (made := tried(entry, values))}
    example = Setting(f"{entry.name}({given})", module, wave)
    every = [example, *(setting for made in found.values() for setting in made)]
    rows = [(each.label, file_of(each.wave, f"{entry.name} {each.label}")) for each in every]
    rows.insert(0, ("unprocessed", file_of(source(), "source")))
    image = picture(entry, source(), found or {"": [example]})
    plot = f'<img class="plot" src="../../sounds/{image}" alt="Plot of {entry.name} at several settings">'
    body = "\n".join(f"<tr><td>{html.escape(label)}</td><td>{player(name, label)}</td></tr>" for label, name in rows)
    table = f'<table class="sounds docutils"><tbody>\n{body}\n</tbody></table>'
    link = "[How it sounds](#how-it-sounds): a plot and sound examples.\n\n"
    others = "The other rows differ from it in one parameter." if len(rows) > 2 else ""
    heading = f"\n## How it sounds\n\n`{every[0].label}` is the example above. {others}".rstrip()
    return lines + link, f"{heading}\n\n{plot}\n\n{table}\n"


def plain(value: Any) -> Any:
    """Return a tensor as lists, a level as its text, and other values as they are."""
    if isinstance(value, Level):
        return str(value)
    return value.tolist() if isinstance(value, torch.Tensor) else value


def tried(entry: Entry, values: list[tuple[str, dict[str, Any]]]) -> list[Setting]:
    """Return the settings with audible differences."""
    found = []
    for label, given in values:
        try:
            module = entry.load()(**{**required(entry), **given})
        except (fx.TorchFXError, TypeError):  # a value that does not fit the others
            continue
        wave = heard(module)
        if wave is not None:
            found.append(Setting(label, module, wave))
    return found


def required(entry: Entry) -> dict[str, Any]:
    """Return the values of the parameters that the example has."""
    module = build(example_text(entry))
    named = (each.name for each in entry.declarations if each.default is REQUIRED or each.typical)
    return {name: getattr(module, name) for name in named}


def _section_of(name: str) -> tuple[str, str]:
    torch.manual_seed(0)
    return section(available()[name])


def _sources() -> str:
    """Return a hash of all that sounds are made of: the package with its native library, PyTorch, and this file."""
    found = hashlib.sha256(torch.__version__.encode())
    package = Path(fx.__file__).parent
    libraries = (path for place in fx.__path__ for path in Path(place).rglob("*.so"))
    for path in sorted({*package.rglob("*.py"), *libraries, Path(__file__)}):
        found.update(path.read_bytes())
    return found.hexdigest()


def for_each_processor(function: Callable[[str], Any]) -> dict[str, Any]:
    """Return what a function of this folder makes of the name of each processor; as many run at once as cores."""
    workers = ProcessPoolExecutor(mp_context=get_context("spawn"), initializer=torch.set_num_threads, initargs=(1,))
    with workers as pool:
        return dict(zip(available(), pool.map(function, available()), strict=True))


@cache
def sections() -> dict[str, tuple[str, str]]:
    """Return what the page of each processor has before and after the documentation."""
    made_of = _sources()
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() and FOLDER.exists() else {}
    if kept.get("made of") != made_of:
        KEPT.unlink(missing_ok=True)
        shutil.rmtree(FOLDER, ignore_errors=True)
        kept = {"made of": made_of, "sections": for_each_processor(_section_of)}
        write(KEPT, json.dumps(kept))
    sections: dict[str, tuple[str, str]] = kept["sections"]
    return sections


def _extra(app: Sphinx, module: str, name: str) -> tuple[str, str]:
    entry = available().get(name.lower())
    described = entry is not None and entry.name == name and entry.module == module
    return sections()[name.lower()] if described else ("", "")


def gallery() -> str:
    """Return the list of all filters and effects: each with its page, what it does, and how it sounds."""
    parts = []
    for module in dict.fromkeys(entry.module for entry in available().values()):
        members = sorted((each for each in available().values() if each.module == module), key=lambda each: each.name)
        rows = "".join(f"| [{each.name}](reference/{module}/{each.name}.md) | {each.summary} |\n" for each in members)
        parts.append(f"## {module.rpartition('.')[2].capitalize()}s\n\n| name | description |\n|---|---|\n{rows}\n")
    return "".join(parts)


def _write_gallery(app: Sphinx) -> None:
    write(FOLDER.parent / "gallery.md", gallery())


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("reference-page-extra", _extra)
    before_reading(app, _write_gallery)
    return {"parallel_read_safe": True}
