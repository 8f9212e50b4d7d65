"""A server that speaks the protocol of vLLM's and SGLang's profiler and writes traces with their labels."""

import gzip
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tests.traces import Story

NEW = {
    "vLLM": ("profile_prefix", "delay_iterations", "max_iterations", "profiler_kwargs"),
    "SGLang": (
        "output_dir",
        "start_step",
        "num_steps",
        "activities",
        "profile_by_stage",
        "with_stack",
        "record_shapes",
        "profile_id",
        "merge_profiles",
        "profile_prefix",
    ),
}
"""Fields of the request to start, vLLM 0.33 and SGLang 0.5.23."""


class StandIn:
    """The server, from `with` to its end.

    Args:
        kind: "vLLM" or "SGLang".
        folder: where it writes its traces.
        fields: that its OpenAPI document names; None: there is no document.
        development: whether it shows its configuration.
        refuses: the status with which it answers a request to start.
        ranks: how many traces it writes.
        key: that requests to the profiler need.

    Attributes:
        calls: paths of all POST requests, in order.
        bodies: of the requests to start.
        requests: bodies of the completions.
        recording: whether it records now.
    """

    def __init__(
        self, kind, folder, fields=(), development=False, refuses=0, ranks=1, key="", profiler=True, frontend=False,
        answer_s=0.0,
    ):  # fmt: skip
        self.kind, self.folder, self.development, self.refuses = kind, Path(folder), development, refuses
        self.fields, self.ranks, self.key, self.profiler, self.frontend = fields, ranks, key, profiler, frontend
        self.answer_s = answer_s
        self.calls, self.bodies, self.requests = [], [], []
        self.recording, self.steps, self.body, self.lock = False, [], {}, threading.Lock()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.0"

            def log_message(self, *_):
                pass

            def do_GET(self):
                outer.get(self)

            def do_POST(self):
                length = int(self.headers.get("Content-Length") or 0)
                data = self.rfile.read(length)
                outer.calls.append(self.path)
                outer.post(self, json.loads(data) if data else None)

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.handle_error = lambda request, address: None  # a client may go away at any time
        self.url = f"http://127.0.0.1:{self.http.server_port}"

    def __enter__(self):
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def get(self, request):
        answers = {"/v1/models": {"data": [{"id": "org/tiny model", "owned_by": self.kind.lower()}]}}
        if self.kind == "vLLM":
            answers["/version"] = {"version": "0.33.0"}
            config = {"profiler_config": {"torch_profiler_dir": str(self.folder)}}
            if self.development:
                answers["/server_info"] = {"vllm_config": config, "vllm_env": {}}
        else:
            answers["/server_info"] = {"version": "0.5.23", "internal_states": []}
        if self.fields is not None:
            answers["/openapi.json"] = self.document()
        found = answers.get(request.path.partition("?")[0])
        reply(request, 200 if found is not None else 404, found if found is not None else {"detail": "Not Found"})

    def document(self):
        """What FastAPI writes for an optional body."""
        body = {"anyOf": [{"$ref": "#/components/schemas/Start"}, {"type": "null"}]}
        content = {"requestBody": {"content": {"application/json": {"schema": body}}}} if self.fields else {}
        paths = {"/v1/models": {"get": {}}} | ({"/start_profile": {"post": content}} if self.profiler else {})
        properties = {name: {} for name in self.fields}
        return {"paths": paths, "components": {"schemas": {"Start": {"properties": properties}}}}

    def post(self, request, body):
        if request.path == "/v1/completions":
            self.complete(request, body)
            return
        if not self.profiler:
            reply(request, 404, {"detail": "Not Found"})
        elif self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
            reply(request, 401, {"error": "Unauthorized"})
        elif request.path == "/start_profile":
            self.bodies.append(body)
            if self.refuses:
                reply(request, self.refuses, {"error": {"message": "A profiling session is already active."}})
                return
            self.recording, self.steps, self.body = True, [], body or {}
            reply(request, 200, "")
        elif request.path == "/stop_profile":
            if self.kind == "SGLang" and not self.recording:
                reply(request, 500, "Internal Server Error")
                return
            if self.recording:
                self.write()
            reply(request, 200, "")

    def complete(self, request, body):
        """Answer in a stream; the scheduler's rounds are recorded."""
        prompt, tokens = len(body["prompt"]), body["max_tokens"]
        self.requests.append(body)
        request.send_response(200)
        request.end_headers()
        for number in range(tokens):
            with self.lock:
                self.round(prompt if not number else 0)
            send(request, {"choices": [{"text": "x"}]})
            time.sleep(self.answer_s)
        send(request, {"choices": [], "usage": {"completion_tokens": tokens}})
        request.wfile.write(b"data: [DONE]\n\n")

    def round(self, prompt):
        """One round of the scheduler, with one request in it."""
        if not self.recording:
            return
        if self.kind == "vLLM":
            self.steps.append(
                f"execute_context_1({prompt})_generation_0(0)" if prompt else "execute_context_0(0)_generation_1(1)"
            )
        else:
            self.steps.append(f"step[EXTEND bs=1 toks={prompt}]" if prompt else "step[DECODE bs=1]")
        most = self.body.get("num_steps") or self.body.get("max_iterations")
        if most and len(self.steps) >= most:
            self.write()

    def write(self):
        """Write the traces, as the servers call them."""
        self.recording = False
        prefix = self.body.get("profile_prefix")
        for rank in range(self.ranks):
            story = Story(rank=rank if self.ranks > 1 else None)
            for i, name in enumerate(self.steps):
                story.note(name, 100 * i, 80)
                story.op("aten::mm", 100 * i + 10, 20)
                story.kernel("k", 100 * i + 30, 50, launch_at=100 * i + 15)
            if self.kind == "vLLM":
                place = f"dp0_pp0_tp{rank}_dcp0_ep0_rank{rank}.{time.time_ns()}.pt.trace.json.gz"
                file = f"{prefix}_{place}" if prefix else place
            else:
                name = self.body.get("profile_id") or str(time.time())
                file = f"{name}-TP-{rank}.trace.json.gz"
            folder = Path(self.body.get("output_dir") or self.folder)
            (folder / file).write_bytes(gzip.compress(story.text().encode()))
        if self.frontend:
            file = f"{prefix}_host_1.async_llm.{time.time_ns()}.pt.trace.json.gz"
            (self.folder / file).write_bytes(gzip.compress(Story().text().encode()))


def reply(request, status, answer):
    data = json.dumps(answer).encode() if answer else b""
    request.send_response(status)
    request.send_header("Content-Length", str(len(data)))
    request.end_headers()
    request.wfile.write(data)


def send(request, answer):
    request.wfile.write(f"data: {json.dumps(answer)}\n\n".encode())
    request.wfile.flush()
