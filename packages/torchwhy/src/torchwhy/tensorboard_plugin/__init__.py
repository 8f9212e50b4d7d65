"""TensorBoard's tab "torchwhy": the report page of each run under the log directory. Needs tensorboard."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from html import escape
from pathlib import Path
from typing import Any, Final

from tensorboard.plugins import base_plugin
from werkzeug import Request, Response

from torchwhy.errors import TorchWhyError
from torchwhy.loading.trace import load
from torchwhy.page.report_page import page_of
from torchwhy.ranks.folder import later_windows
from torchwhy.wording import safe

__all__ = ["TorchwhyPlugin", "runs_below"]

SUFFIXES: Final = (".pt.trace.json", ".pt.trace.json.gz")
"""Ends of the names of the files of `torch.profiler.tensorboard_trace_handler`."""

_POLICY: Final = re.compile(r'http-equiv="Content-Security-Policy" content="([^"]*)"')
"""The content security policy of a page."""


class TorchwhyPlugin(base_plugin.TBPlugin):  # type: ignore[misc, unused-ignore]
    """Serves the list of runs, and the page of one of them.

    Args:
        context: of TensorBoard; its `logdir` is searched.
    """

    plugin_name = "torchwhy"

    def __init__(self, context: Any) -> None:
        self._folder = Path(context.logdir) if context.logdir else None

    def is_active(self) -> bool:
        """Return whether there is any run."""
        return self._folder is not None and any(True for _ in runs_below(self._folder))

    def frontend_metadata(self) -> Any:
        """Return the tab's name and its script."""
        return base_plugin.FrontendMetadata(es_module_path="/index.js", tab_name="torchwhy", disable_reload=True)

    def data_plugin_names(self) -> tuple[str, ...]:
        """Return no path: no summaries are read."""
        return ()

    def get_plugin_apps(self) -> dict[str, Callable[..., Any]]:
        """Return what answers under which address."""
        return {"/index.js": self._script, "/runs": self._runs, "/page": self._page}

    def _script(self, environ: Any, start_response: Any) -> Any:
        script = Path(__file__).with_name("index.js").read_text(encoding="utf-8")
        return _answer(script, "text/javascript")(environ, start_response)

    def _runs(self, environ: Any, start_response: Any) -> Any:
        return _answer(json.dumps(list(self._found())), "application/json")(environ, start_response)

    def _page(self, environ: Any, start_response: Any) -> Any:
        name = Request(environ).args.get("run", "")
        trace = self._found().get(name)  # a name from the list, never a path: there is no way out of the folder
        if trace is None:
            return _answer(f"no such run: {safe(name)}", "text/plain", 404)(environ, start_response)
        page = _page_of(trace)
        own = _POLICY.search(page)
        sources = [rule for rule in own[1].split("; ") if "-src" in rule] if own else ["default-src 'none'"]
        answer = _answer(page, "text/html")
        answer.headers["Content-Security-Policy"] = "; ".join(sources)  # TensorBoard asks for one of such rules
        return answer(environ, start_response)

    def _found(self) -> dict[str, Path]:
        return dict(sorted(runs_below(self._folder))) if self._folder is not None else {}


def _answer(text: str, kind: str, status: int = 200) -> Any:
    answer = Response(text, status, content_type=f"{kind}; charset=utf-8")
    answer.headers["X-Content-Type-Options"] = "nosniff"
    return answer


def runs_below(folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield name and trace of each run in a folder and the folders below it.

    A run is each window of a folder that `torchwhy profile` wrote, and each file of `tensorboard_trace_handler`.
    """
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        here = Path(place)
        if "run.json" in files and "trace.json.gz" in files:
            folders.clear()  # copies of the same traces may be in it, for another plugin
            first = here / "trace.json.gz"
            for trace in (first, *later_windows(first)):
                window = "" if trace == first else f" {trace.name}"
                yield f"{_name(here, folder)}{window}", trace
        else:
            for file in files:
                if file.endswith(SUFFIXES) and not file.startswith("."):
                    yield _name(here / file, folder), here / file


def _name(path: Path, folder: Path) -> str:
    name = path.relative_to(folder).as_posix()
    return path.name if name == "." else name


def _page_of(trace: Path) -> str:
    """The page that the run has, or one that is made now."""
    written = trace.with_name(trace.name.replace("trace", "report").removesuffix(".json.gz") + ".html")
    try:
        if (trace.parent / "run.json").is_file() and written.is_file():
            return written.read_text(encoding="utf-8")
        state = trace.stat()
        return _made(trace, state.st_size, state.st_mtime_ns)
    except (TorchWhyError, OSError) as error:
        return f"<!doctype html><meta charset=utf-8><title>torchwhy</title><p>{escape(safe(str(error)))}</p>"


@lru_cache(maxsize=4)
def _made(trace: Path, size: int, modified_ns: int) -> str:
    """The page of a trace of that size, changed then."""
    return page_of(load(trace), trace.name)
