"""JSON over HTTP to one server, with the standard library.

Whatever a server sends, an answer ends within its time limit and has a limited size.
"""

from __future__ import annotations

import contextlib
import http.client
import io
import json
import socket
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from typing import Any, Final

from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.wording import safe

__all__ = ["Address", "RefusedError", "UnreachableError"]

_LOCAL: Final = frozenset({"localhost", "127.0.0.1", "::1", "0.0.0.0"})
_MOST_BYTES: Final = 64 << 20
"""Maximum bytes of one answer: an OpenAPI document has about 1 MB, an event of a stream about 300 bytes."""

_MOST_LINE: Final = 1 << 20
"""Bytes of one event of a stream: it has the text of a few tokens."""


class UnreachableError(TorchWhyError):
    """No whole answer came: nothing listens, the connection broke, time ran out or the answer is too long."""


class RefusedError(TorchWhyError):
    """The server answered with an error.

    Attributes:
        status: of HTTP, such as 404.
    """

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A key is sent to no other server than the one that was named."""

    def redirect_request(self, *_: Any) -> None:
        """Follow nothing: the answer is an error."""


class _Until(io.RawIOBase):
    """The bytes that a socket receives until its timeout is over, which limits all of them together."""

    def __init__(self, connection: socket.socket) -> None:
        super().__init__()
        self._socket, self._limit_s = connection, connection.gettimeout() or 0.0
        self._end_s = time.monotonic() + self._limit_s
        self._received = connection.makefile("rb", 0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any, /) -> int | None:
        left_s = self._end_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"its answer was not complete after {self._limit_s:g} s")
        self._socket.settimeout(left_s)
        try:
            return self._received.readinto(buffer)
        except TimeoutError:
            raise TimeoutError(f"its answer was not complete after {self._limit_s:g} s") from None

    def close(self) -> None:
        self._received.close()
        super().close()


class _Answer(http.client.HTTPResponse):
    """An answer of which status, headers and body together are limited in time."""

    def __init__(self, sock: socket.socket, *arguments: Any, **more: Any) -> None:
        super().__init__(sock, *arguments, **more)
        self.fp.close()
        self.fp = io.BufferedReader(_Until(sock))


class _Connection(http.client.HTTPConnection):
    response_class = _Answer


class _SecureConnection(http.client.HTTPSConnection):
    response_class = _Answer


class _Handler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_Connection, req)


class _SecureHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        return self.do_open(_SecureConnection, req)


class Address:
    """Where a server listens.

    Args:
        url: "http://localhost:8000"; a path such as "/v1" at its end is left out.
        key: sent as a bearer token where it is not empty.

    Raises:
        ArgumentError: that is no address of HTTP.
    """

    def __init__(self, url: str, key: str = "") -> None:
        """Check the address; nothing is sent."""
        parts = urllib.parse.urlsplit(url if "://" in url else f"http://{url}")
        try:
            port = parts.port
        except ValueError as error:
            raise ArgumentError(f"--attach must be an address such as http://localhost:8000, got {url!r}") from error
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise ArgumentError(f"--attach must be an address such as http://localhost:8000, got {url!r}")
        host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
        self.url = f"{parts.scheme}://{host}" + (f":{port}" if port else "")
        self.is_local = parts.hostname in _LOCAL
        self._key = key
        proxies = [urllib.request.ProxyHandler({})] if self.is_local else []
        self._opener = urllib.request.build_opener(_NoRedirect, _Handler, _SecureHandler, *proxies)

    def get(self, path: str, timeout_s: float = 10.0) -> Any:
        """Return the JSON at a path, or the text that is there.

        Args:
            path: of the server.
            timeout_s: in which the whole answer must arrive.

        Raises:
            UnreachableError, RefusedError: see there.
        """
        return _decoded(self._bytes("GET", path, None, timeout_s))

    def post(self, path: str, body: Any = None, timeout_s: float = 60.0) -> Any:
        """Send JSON, or nothing, to a path and return the answer.

        Args:
            path: of the server.
            body: is sent as JSON; None: nothing.
            timeout_s: in which the whole answer must arrive.

        Raises:
            UnreachableError, RefusedError: see there.
        """
        return _decoded(self._bytes("POST", path, body, timeout_s))

    def stream(self, path: str, body: Any, timeout_s: float = 600.0) -> Iterator[Any]:
        """Send JSON and yield the objects of an answer in server-sent events, each when it comes, until `[DONE]`.

        Raises:
            UnreachableError: see there; also if the answer ends before `[DONE]`, or has a line of more than 1 MB, or
                more than 64 MB.
            RefusedError: see there.
        """
        try:
            received = 0
            with self._opener.open(self._request("POST", path, body), timeout=timeout_s) as answer:
                while line := answer.readline(_MOST_LINE):
                    received += len(line)
                    if len(line) == _MOST_LINE:
                        raise UnreachableError(f"{self.url}{path} answered with a line of more than {_MOST_LINE} bytes")
                    if received > _MOST_BYTES:
                        raise UnreachableError(self._too_long(path))
                    data = line.strip().removeprefix(b"data:").strip()
                    if not line.startswith(b"data:"):
                        continue
                    if data == b"[DONE]":
                        return
                    yield _decoded(data)
        except (OSError, http.client.HTTPException) as error:
            raise self._trouble(path, error) from error
        raise UnreachableError(f"{self.url}{path} broke off its answer")

    def _request(self, method: str, path: str, body: Any) -> urllib.request.Request:
        data = json.dumps(body).encode() if body is not None else b"" if method == "POST" else None
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = "application/json"
        if self._key:
            headers["Authorization"] = f"Bearer {self._key}"
        return urllib.request.Request(self.url + path, data, headers, method=method)

    def _bytes(self, method: str, path: str, body: Any, timeout_s: float) -> bytes:
        try:
            with self._opener.open(self._request(method, path, body), timeout=timeout_s) as answer:
                data: bytes = answer.read(_MOST_BYTES + 1)
                if len(data) > _MOST_BYTES:
                    raise UnreachableError(self._too_long(path))
                if answer.length:
                    raise UnreachableError(f"{self.url}{path} broke off its answer")
                return data
        except (OSError, http.client.HTTPException) as error:
            raise self._trouble(path, error) from error

    def _too_long(self, path: str) -> str:
        return f"{self.url}{path} answered with more than {_MOST_BYTES:,} bytes"

    def _trouble(self, path: str, error: Exception) -> TorchWhyError:
        if isinstance(error, urllib.error.HTTPError):
            said = ""
            with error, contextlib.suppress(OSError, http.client.HTTPException):
                said = _message(error.read(4096))
            return RefusedError(f"{self.url}{path} answered {error.code}{said}", error.code)
        reason = getattr(error, "reason", error)
        return UnreachableError(f"{self.url}{path} did not answer: {reason or type(error).__name__}")


def _decoded(data: bytes) -> Any:
    try:
        return json.loads(data)
    except (ValueError, RecursionError):
        return data.decode("utf-8", "replace")


def _message(data: bytes) -> str:
    """A short description of an error."""
    found = _decoded(data)
    for name in ("error", "message", "detail"):
        if isinstance(found, dict) and name in found:
            found = found[name]
    text = safe(" ".join(str(found).split()))[:200]
    return f": {text}" if text else ""
