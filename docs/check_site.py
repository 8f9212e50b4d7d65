"""Open built sites in Chromium: `python docs/check_site.py [torchfx] [torchwhy]`; status 1 where a page has a fault.

A page of each kind is opened at two widths, light and dark. It must load without a console message, ask for nothing
outside the site, be no wider than the window, and have no violation that axe finds. Then the search must find words,
and what runs in the browser must sound as in Python. Needs chromium and the extra `browser` of torchwhy.
"""

from __future__ import annotations

import functools
import shutil
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Literal
from urllib.parse import quote

from build import PACKAGES, ROOT

BUILT = Path(__file__).parent / "_build"
WIDTHS = (1440, 390)
SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
FOUND = {
    "torchfx": {
        "compressor": "Compressor", "LUFS": "loudness", "hum": "how-to", "silence": "how-to", "pitch": "how-to",
        "room": "how-to", "microphone": "live", "DataLoader": "how-to", "exact": "exactness", "short clips": "how-to",
        "16 kHz mono": "how-to", "headroom": "glossary",
        "denoise": "how-to", "telephone": "how-to", "album": "loudness", "toml": "presets",
        "augmentation": "augmentation", "torchaudio.load": "from-torchaudio", "equalizer": "learn-an-eq",
    },
    "torchwhy": {
        "dataloader": "dataloader", "graph break": "graph-breaks", "C5": "transfer-share", "gpu idle": "tasks",
        "jupyter": "report-page", "torchrun": "profile", "ddp": "profile",
    },
}  # fmt: skip
"""For words that people look for, a page that the site's search must find: a part of its address."""

ALIKE = 1e-6
"""How far an output in the browser may lie from Python's, of full scale or of its peak where that is higher."""

AXE_RULES = {"runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "best-practice"]}


def kinds(site: Path) -> list[str]:
    """Return a page of each kind: of those in a top folder, as deep, with or without sounds the largest; and three."""
    largest: dict[tuple[str, int, bool, bool], Path] = {}
    for path in site.rglob("*.html"):
        parts, text = path.relative_to(site).parts, path.read_text(encoding="utf-8")
        kind = (parts[0] if len(parts) > 1 else "", len(parts), "<audio" in text, "<canvas" in text)
        if not parts[0].startswith("_"):
            largest[kind] = max(path, largest.get(kind, path), key=lambda each: each.stat().st_size)
    chosen = [site / "index.html", site / "search.html", site / "genindex.html", *largest.values()]
    return [path.relative_to(site).as_posix() for path in dict.fromkeys(chosen)]


class Quiet(SimpleHTTPRequestHandler):
    """Serves files without a line for each."""

    def log_message(self, *args: Any) -> None:
        """Write nothing."""


class Visit:
    """A page of a browser, and what it said."""

    def __init__(self, page: Any, address: str) -> None:
        self.page, self.address = page, address
        self.faults: list[str] = []
        page.on("console", lambda message: self.faults.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("request", lambda request: self._check(request.url))

    def _check(self, url: str) -> None:
        if not url.startswith((self.address, "data:", "blob:")):
            self.faults.append(f"asks for {url}")

    def check(self, path: str, axe: Any) -> Iterator[str]:
        """Yield the faults of a page of the site."""
        self.faults.clear()
        self.page.goto(self.address + path, wait_until="load")
        wide = self.page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        if wide > 0:
            self.faults.append(f"{wide} pixels wider than the window")
        for each in axe.run(self.page, options=AXE_RULES).response["violations"]:
            places = [node["html"][:120] for node in each["nodes"]]
            self.faults.append(f"axe {each['id']}: {len(places)} times, first {places[0]}")
        yield from self.faults

    def finds(self, word: str, wanted: str) -> bool:
        """Return whether the site's search finds a page by a word."""
        self.page.goto(f"{self.address}search.html?q={quote(word)}", wait_until="load")
        self.page.wait_for_selector("#search-results p.search-summary:not(:empty)")
        return bool(self.page.locator(f'#search-results ul.search li a[href*="{wanted}"]').count())


def otherwise_than_in_python(page: Any) -> Iterator[str]:
    """Yield the filters and effects that a page runs in the browser and whose output differs from Python's.

    Each processes noise with its sliders at both ends and in the middle.
    """
    sys.path[:0] = [str(ROOT / "packages" / "torchfx" / "docs"), str(Path(__file__).parent / "extensions")]
    import torch
    from browser import module_at

    import torchfx as fx
    from torchfx.catalogue import available

    page.wait_for_selector("#try[data-ready]", state="attached")
    rate = page.evaluate("torchfxData.rate")
    noise = torch.rand(2, 4000, generator=torch.Generator().manual_seed(0)) - 0.5
    for each in page.evaluate("torchfxData.processors.map(({name, sliders}) => ({name, sliders}))"):
        for part in (0, 0.5, 1):
            places = [round(part * (len(slider["values"]) - 1)) for slider in each["sliders"]]
            found = page.evaluate("asked => torchfxTry(...asked)", [each["name"], places, noise.tolist()])
            values = {slider["name"]: slider["values"][i] for slider, i in zip(each["sliders"], places, strict=True)}
            try:
                expected = (fx.Wave(noise, rate) | module_at(available()[each["name"].lower()], values)).ys
            except fx.TorchFXError:
                if found is not None:
                    yield f"{each['name']} with {values}: the browser runs it, Python refuses"
                continue
            off = float("inf") if found is None else float((torch.tensor(found) - expected).abs().max())
            if not off <= ALIKE * max(1.0, float(expected.abs().max())):
                yield f"{each['name']} with {values}: the browser's output is off by {off:.1e}"


def faults(package: str) -> Iterator[str]:
    """Yield what is wrong with a site."""
    from axe_playwright_python.sync_playwright import Axe
    from playwright.sync_api import sync_playwright

    site = BUILT / package
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    program = shutil.which("chromium") or shutil.which("google-chrome")
    pages = kinds(site)
    with sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for width in WIDTHS:
            for scheme in SCHEMES:
                page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
                visit = Visit(page, f"http://127.0.0.1:{server.server_port}/")
                for path in pages:
                    yield from (f"{package}/{path} at {width}, {scheme}: {each}" for each in visit.check(path, Axe()))
                if (width, scheme) == (WIDTHS[0], SCHEMES[0]):
                    for word, wanted in FOUND[package].items():
                        if not visit.finds(word, wanted):
                            yield f"{package}: the search for {word!r} does not find {wanted}"
                    if package == "torchfx":
                        page.goto(f"{visit.address}in-the-browser.html")
                        yield from (f"{package}/in-the-browser.html: {each}" for each in otherwise_than_in_python(page))
                page.close()
        browser.close()
    server.shutdown()


def main() -> int:
    """Check the sites that the arguments name, or both at once; return 1 if a page has a fault."""
    with ThreadPoolExecutor() as pool:
        found = pool.map(lambda package: list(faults(package)), sys.argv[1:] or PACKAGES)
    lines = [f"{each}\n" for of_site in found for each in of_site]
    sys.stdout.write("".join(lines))
    return int(bool(lines))


if __name__ == "__main__":
    sys.exit(main())
