"""Write the report page of every trace in a folder and open it in Chromium.

    python tools/check_pages.py FOLDER

Each page must become ready without a message on the console and without a request. Needs the extra `browser` and
Chromium. Exit status 1: one did not.
"""

from __future__ import annotations

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from playwright.sync_api import Browser, sync_playwright

from torchwhy.errors import TraceError
from torchwhy.loading.trace import load
from torchwhy.page.report_page import trace_page
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose
from torchwhy.wording import size_text


def trouble_of(browser: Browser, page: Path) -> list[str]:
    """Faults of a page: messages on the console, requests, and a page that isn't ready in time."""
    said: list[str] = []
    view = browser.new_page(viewport={"width": 1600, "height": 900})
    view.on("console", lambda message: said.append(f"console: {message.text}"))
    view.on("pageerror", lambda error: said.append(f"error: {error}"))
    view.on("request", lambda request: None if request.url == page.as_uri() else said.append(f"asks for {request.url}"))
    view.goto(page.as_uri())
    try:
        view.wait_for_selector('html[data-ready="1"]', state="attached", timeout=30_000)
    except Exception as error:  # noqa: BLE001
        said.append(f"not ready: {error}")
    view.close()
    return said


def main(folder: Path) -> int:
    """Check every trace below the folder."""
    bad = 0
    with TemporaryDirectory() as given, sync_playwright() as playwright:
        browser = playwright.chromium.launch(args=["--no-sandbox"], executable_path="/usr/bin/chromium")
        for path in sorted(one for one in folder.rglob("*.json*") if one.name != "expected.json"):
            try:
                trace = load(path)
            except TraceError as error:
                print(f"{path.name}: no trace, {error}")
                continue
            diagnosis = diagnose(trace)
            page = Path(given) / f"{path.name}.html"
            text = trace_page(trace, diagnosis, describe(trace, diagnosis, thorough=True))
            page.write_text(text, encoding="utf-8")
            said = trouble_of(browser, page)
            bad += bool(said)
            print(f"{path.name}: {'; '.join(said) or 'ok'}, {size_text(len(text))}")
        browser.close()
    return int(bad > 0)


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1])))
