"""How vLLM and SGLang are asked to record themselves.

Sources: vLLM 0.33 (`entrypoints/serve/profile/api_router.py`, `v1/engine/async_llm.py`, `profiler/wrapper.py`,
`config/profiler.py`), SGLang 0.5.23 (`srt/entrypoints/http_server.py`, `srt/managers/io_struct.py`,
`srt/managers/scheduler_components/profiler_manager.py`). Options that an older server does not know are omitted: its
OpenAPI document says which fields a request may have.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from torchwhy.attach.http import Address, RefusedError
from torchwhy.errors import TorchWhyError
from torchwhy.wording import safe

__all__ = ["Recording", "Server", "find_server"]

_START: Final = "/start_profile"
_STOP: Final = "/stop_profile"
_STOPPING_S: Final = 1800.0
"""According to vLLM's documentation, writing a large trace takes up to ten minutes."""

_DEPTH: Final = 20

_WANTS_KEY: Final = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN})
_NOT_THERE: Final = frozenset({HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED})


@dataclass(frozen=True)
class Recording:
    """The recording that is requested from a server.

    Attributes:
        name: unique; the server's files begin with it where it knows names.
        steps: rounds of the scheduler, after which the server ends by itself where it can.
        shapes, stacks: of the operators.
        folder: where the server writes, on its machine; "" leaves it to the server.
    """

    name: str
    steps: int
    shapes: bool = True
    stacks: bool = False
    folder: str = ""


@dataclass(frozen=True)
class Server:
    """A server that can record itself.

    Attributes:
        kind: "vLLM" or "SGLang".
        version: "" where it does not say.
        model: the first that it serves.
        fields: that the request to start may have; None where the server does not say.
        folder: where it writes, as it says; "" where it does not.
    """

    address: Address
    kind: str
    version: str
    model: str
    fields: frozenset[str] | None = None
    folder: str = ""

    @property
    def name(self) -> str:
        """Kind and version, as one line that is safe to show."""
        return safe(f"{self.kind} {self.version}".rstrip())

    @property
    def is_bounded(self) -> bool:
        """Whether the server itself ends the recording after a number of steps."""
        return self.kind == "SGLang" or "max_iterations" in (self.fields or ())

    def folders(self, given: str) -> tuple[Path, ...]:
        """Return where its traces may be: the folder given, the one it names, or those where it writes by default."""
        if given or self.folder:
            return (Path(given or self.folder),)
        variable = "VLLM_TORCH_PROFILER_DIR" if self.kind == "vLLM" else "SGLANG_TORCH_PROFILER_DIR"
        known = [os.environ[variable]] if os.environ.get(variable) else []
        if self.kind == "SGLang":
            known += ["/tmp", tempfile.gettempdir()]
        return tuple(dict.fromkeys(map(Path, known)))

    def wrote(self, path: Path, recording: Recording) -> bool:
        """Whether a new file may be of this recording: by its name, where the server knows names."""
        field = "profile_id" if self.kind == "SGLang" else "profile_prefix"
        if field in (self.fields or ()) or (self.fields is None and self.kind == "SGLang"):
            return recording.name in path.name
        return ("-TP-" if self.kind == "SGLang" else ".pt.trace.json") in path.name

    def start(self, recording: Recording) -> None:
        """Begin to record.

        Raises:
            RefusedError: the server records nothing; the message says what it lacks.
            UnreachableError: no answer came; the server may record.
        """
        try:
            self.address.post(_START, self._request(recording), _STOPPING_S)
        except RefusedError as error:
            raise RefusedError(self._why_refused(error), error.status) from error

    def stop(self, timeout_s: float = _STOPPING_S) -> bool:
        """End the recording, and wait until the files are written; return whether the server recorded until now.

        SGLang answers with an error where its steps had passed and it has ended by itself.

        Args:
            timeout_s: how long to wait for that; the server ends the recording anyway.

        Raises:
            RefusedError, UnreachableError: the server may go on recording.
        """
        try:
            self.address.post(_STOP, timeout_s=timeout_s)
        except RefusedError as error:
            if self.kind == "SGLang" and error.status == HTTPStatus.INTERNAL_SERVER_ERROR:
                return False
            raise
        return True

    def _request(self, recording: Recording) -> dict[str, Any] | None:
        if self.kind == "SGLang":
            body: dict[str, Any] = {
                "num_steps": recording.steps,
                "activities": ["CPU", "GPU"],
                "with_stack": recording.stacks,
                "record_shapes": recording.shapes,
                "profile_id": recording.name,
            }
            if recording.folder:
                body["output_dir"] = recording.folder
            return {name: value for name, value in body.items() if self.fields is None or name in self.fields}
        body = {
            "profile_prefix": recording.name,
            "max_iterations": recording.steps,
            "profiler_kwargs": {"record_shapes": recording.shapes, "with_stack": recording.stacks},
        }
        return {name: value for name, value in body.items() if name in (self.fields or ())} or None

    def _why_refused(self, error: RefusedError) -> str:
        if error.status == HTTPStatus.CONFLICT:
            return f"{self.name} is already recording for another client: {error}"
        if error.status in _WANTS_KEY:
            return f"{self.name} requires a key to record: set TORCHWHY_API_KEY to it ({error})"
        if error.status in _NOT_THERE:
            return _no_profiler(self.name)
        return str(error)


def find_server(address: Address) -> Server:
    """Ask an address which server it is and whether it can record.

    Raises:
        UnreachableError: nothing answers there.
        TorchWhyError: it is neither vLLM nor SGLang, refuses to say, or was started without a profiler.
    """
    refusals: list[RefusedError] = []

    def asked(path: str) -> Any:
        try:
            return address.get(path)
        except RefusedError as error:
            refusals.append(error)
        return None

    first = _first_model(asked("/v1/models"))
    described = asked("/openapi.json")
    paths = _mapping(described).get("paths")
    info = _mapping(asked("/server_info?config_format=json") or asked("/get_server_info"))
    owner = str(first.get("owned_by", ""))
    version = str(_mapping(asked("/version")).get("version", ""))
    if owner == "sglang" or "internal_states" in info or "/get_model_info" in _mapping(paths):
        kind, version = "SGLang", str(info.get("version", version))
    elif owner == "vllm" or version:
        kind = "vLLM"
    else:
        raise TorchWhyError(_unknown(address, refusals))
    if paths and _START not in paths:
        raise TorchWhyError(_no_profiler(f"{kind} {version}".rstrip()))
    fields = _fields_of(_mapping(described), _START) if paths else None
    model = str(first.get("id") or info.get("served_model_name") or "")
    return Server(address, kind, version, model, fields, _folder_of(info) if kind == "vLLM" else "")


def _no_profiler(name: str) -> str:
    if name.startswith("vLLM"):
        return (
            f"{name} was started without its profiler: start it with --profiler-config "
            """'{"profiler": "torch", "torch_profiler_dir": "/a/folder"}' """
            "(before 0.13: with VLLM_TORCH_PROFILER_DIR=/a/folder)"
        )
    return f"{name} has no {_START}"


def _unknown(address: Address, refusals: Sequence[RefusedError]) -> str:
    """Why it is not known which server it is: only answers that pages are not there show that it is another one."""
    if key := next((one for one in refusals if one.status in _WANTS_KEY), None):
        return f"{address.url} requires a key, or another key: set TORCHWHY_API_KEY to it ({key})"
    if other := next((one for one in refusals if one.status not in _NOT_THERE), None):
        hint = "; give the address to which it redirects" if 300 <= other.status < 400 else ""
        return f"{address.url} does not show whether it is vLLM or SGLang: {other}{hint}"
    return f"{address.url} answers, but is neither vLLM nor SGLang: only these record on request"


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _first_model(models: Any) -> Mapping[str, Any]:
    data = _mapping(models).get("data")
    return _mapping(data[0]) if isinstance(data, list) and data else {}


def _folder_of(info: Mapping[str, Any]) -> str:
    """The folder in what vLLM says of itself in its development mode."""
    config = _mapping(_mapping(info.get("vllm_config")).get("profiler_config"))
    known = config.get("torch_profiler_dir") or _mapping(info.get("vllm_env")).get("VLLM_TORCH_PROFILER_DIR")
    return known if isinstance(known, str) else ""


def _fields_of(document: Mapping[str, Any], path: str) -> frozenset[str]:
    """The names that the body of a POST may have, by an OpenAPI document; none where it has no body."""
    asked: Any = _mapping(document.get("paths")).get(path)
    for name in ("post", "requestBody", "content", "application/json", "schema"):
        asked = _mapping(asked).get(name)
    return frozenset(_properties(document, asked, _DEPTH))


def _properties(document: Mapping[str, Any], schema: Any, depth: int) -> Iterator[str]:
    schema = _mapping(schema)
    if depth <= 0:
        return
    yield from _mapping(schema.get("properties"))
    for name in ("anyOf", "allOf", "oneOf"):
        for one in schema.get(name) or ():
            yield from _properties(document, one, depth - 1)
    reference = schema.get("$ref")
    if isinstance(reference, str) and reference.startswith("#/"):
        found: Any = document
        for part in reference[2:].split("/"):
            found = _mapping(found).get(part)
        yield from _properties(document, found, depth - 1)
