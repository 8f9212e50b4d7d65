"""A page opened in a browser, for tests; they skip where playwright or Chromium isn't installed.

`TORCHWHY_BROWSER=1`, which .ci/run sets, makes that a failure.
"""

import os
import shutil

import pytest


def chromium():
    """A started Chromium, or a skip."""
    missing = pytest.fail if os.environ.get("TORCHWHY_BROWSER") == "1" else pytest.skip
    program = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    if program is None:
        missing("Chromium is not installed")
    try:
        from playwright.sync_api import sync_playwright
    except ModuleNotFoundError:
        missing("playwright is not installed")
    return sync_playwright(), program


class Opened:
    """A page that is ready, and what it said on the way.

    Attributes:
        file: of the page.
        page: of playwright.
        messages: console messages, errors and dialogs.
        requests: addresses it asked for, its own included.
    """

    def __init__(self, browser, file, *, ready=True, **context):
        self.file = file
        self.context = browser.new_context(**{"viewport": {"width": 1600, "height": 900}, **context})
        self.page = self.context.new_page()
        self.messages, self.requests = [], []
        self.page.on("console", lambda message: self.messages.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.messages.append(f"error: {error}"))
        self.page.on("dialog", lambda dialog: (self.messages.append("a dialog"), dialog.dismiss()))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self._clock = self.context.new_cdp_session(self.page)
        self._clock.send("Performance.enable", {"timeDomain": "threadTicks"})
        self.page.goto(f"file://{file}")
        if ready:  # by an attribute: the page's policy forbids what wait_for_function does
            self.page.wait_for_selector('html[data-ready="1"]', state="attached")

    def thread_ms(self):
        """Milliseconds of the processor that the page's thread has taken so far: other programs don't count."""
        metrics = self._clock.send("Performance.getMetrics")["metrics"]
        return next(one["value"] for one in metrics if one["name"] == "ThreadTime") * 1000

    def processor_ms(self, expression):
        """Likewise, what a script takes."""
        before = self.thread_ms()
        self.page.evaluate(expression)
        return self.thread_ms() - before

    def stage(self, expression):
        """The value of a JavaScript expression with the first stage as `s` and its timeline as `t`."""
        return self.page.evaluate(
            f"(() => {{const s = torchwhyReport.stages[0], t = s.timeline; return {expression}}})()"
        )
