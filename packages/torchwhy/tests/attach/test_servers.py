"""`torchwhy profile --attach`: a running inference server records itself, is stopped again, and is explained."""

import contextlib
import dataclasses
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

import torchwhy
from tests.attach.stand_in import NEW, StandIn
from tests.command_line import run_here
from torchwhy.attach.http import Address, RefusedError, UnreachableError
from torchwhy.attach.load import Load, drive
from torchwhy.attach.recording import Plan, record
from torchwhy.attach.servers import find_server
from torchwhy.errors import ArgumentError, TorchWhyError

SMALL = Load(requests=2, prompt_tokens=7, output_tokens=4)


@pytest.fixture
def theirs(tmp_path):
    """The folder that the server writes into."""
    folder = tmp_path / "theirs"
    folder.mkdir()
    return folder


def recorded(server, tmp_path, **plan):
    """Record with a load; return what came of it."""
    return record(find_server(Address(server.url)), Plan(**{"load": SMALL, **plan}), tmp_path / "run")


@pytest.mark.parametrize("kind", NEW)
@pytest.mark.parametrize("modern", [True, False])
def test_a_load_is_recorded_and_read_by_phase(kind, modern, theirs, tmp_path, monkeypatch):
    monkeypatch.setenv("VLLM_TORCH_PROFILER_DIR", str(theirs))
    monkeypatch.setenv("SGLANG_TORCH_PROFILER_DIR", str(theirs))
    fields = NEW[kind] if modern else () if kind == "vLLM" else ("num_steps", "activities", "output_dir")
    with StandIn(kind, theirs, fields) as server:
        done = recorded(server, tmp_path)
    assert done.notes == ()
    assert done.traces == (tmp_path / "run" / "trace.json.gz",)
    rows = {row["phase"]: row for row in torchwhy.load(done.traces[0]).phases().rows()}
    assert (rows["prefill"]["steps"], rows["prefill"]["tokens"]) == (2, 14)
    assert rows["decode"]["steps"] == rows["decode"]["tokens"] in range(1, 7)
    assert done.load.output_tokens == 8
    assert ("up to 6 steps recorded" in done.summary) == (modern or kind == "SGLang")
    assert server.calls.count("/start_profile") == server.calls.count("/stop_profile") == 1
    assert not server.recording
    assert set(server.bodies[0] or {}) <= set(fields)
    run = json.loads((tmp_path / "run" / "run.json").read_text())
    assert (run["server"], run["requests"], run["prompt_tokens"]) == (kind, 2, 7)


def test_a_warm_up_of_the_same_size_is_not_recorded(theirs, tmp_path):
    with StandIn("SGLang", theirs, NEW["SGLang"]) as server:
        recorded(server, tmp_path, warmup=2, folder=str(theirs))
    assert server.calls == ["/v1/completions"] * 4 + ["/start_profile"] + ["/v1/completions"] * 2 + ["/stop_profile"]
    prompts = [tuple(body["prompt"]) for body in server.requests]
    assert {len(prompt) for prompt in prompts} == {7}
    assert len({prompt[:3] for prompt in prompts}) == 6  # no cache of prompts answers


def test_without_a_load_others_requests_are_watched(theirs, tmp_path):
    with StandIn("vLLM", theirs, NEW["vLLM"], development=True) as server:

        def ask():
            while not server.recording:
                threading.Event().wait(0.005)
            drive(Address(server.url), "m", SMALL, 0)

        others = threading.Thread(target=ask)
        others.start()
        done = recorded(server, tmp_path, load=None, steps=5, seconds=20)
        others.join()
    assert sum(row["steps"] for row in torchwhy.load(done.traces[0]).phases().rows()) == 5
    assert server.bodies[0]["max_iterations"] == 5


def test_each_rank_has_its_trace_and_the_front_end_is_left_out(theirs, tmp_path):
    with StandIn("vLLM", theirs, NEW["vLLM"], ranks=2, frontend=True) as server:
        done = recorded(server, tmp_path, folder=str(theirs))
    assert [path.relative_to(tmp_path / "run").as_posix() for path in done.traces] == [
        "rank0/trace.json.gz", "rank1/trace.json.gz"
    ]  # fmt: skip
    assert "async_llm" in done.notes[0]
    assert torchwhy.load(done.traces[1]).info.rank == 1


def test_other_files_are_not_taken_for_the_servers(theirs, tmp_path):
    with StandIn("SGLang", theirs, NEW["SGLang"]) as server:
        threading.Timer(0.0, (theirs / "1.5-TP-0.trace.json.gz").write_bytes, (b"x",)).start()
        done = recorded(server, tmp_path, folder=str(theirs))
    assert torchwhy.load(done.traces[0]).phases()["phase"][0] in {"prefill", "decode"}


def test_a_folder_of_another_machine_is_named(tmp_path, theirs):
    with StandIn("vLLM", theirs, NEW["vLLM"]) as server:
        done = recorded(server, tmp_path)
    assert done.folder is None
    assert "--traces-dir" in done.notes[-1]
    assert server.calls[-1] == "/stop_profile"
    assert not (tmp_path / "run").exists()
    assert not (tmp_path / "run.partial").exists()


# The server is asked to stop again


def test_an_interrupt_stops_the_recording_and_keeps_it(theirs, tmp_path):
    with StandIn("vLLM", theirs, NEW["vLLM"], development=True, answer_s=0.3) as server:
        words = ["profile", "--attach", server.url, "--requests", "1", "--output-tokens", "200", "-o", "run"]
        program = subprocess.Popen(
            [sys.executable, "-m", "torchwhy", *words, "--warmup", "0"], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        )
        try:
            for line in program.stderr:
                if "recording vLLM" in line:
                    break
            while len(server.steps) < 2:
                assert program.poll() is None
                threading.Event().wait(0.01)
            program.send_signal(signal.SIGINT)
            _, said = program.communicate(timeout=60)
        finally:
            program.kill()
    assert program.returncode == 130
    assert server.calls[-1] == "/stop_profile"
    assert not server.recording
    assert "interrupted" in said
    assert (tmp_path / "run" / "trace.json.gz").is_file()


@pytest.mark.parametrize("trouble", [RuntimeError("boom"), KeyboardInterrupt(), SystemExit(1)])
def test_whatever_goes_wrong_the_server_is_stopped(trouble, theirs, tmp_path, monkeypatch):
    def drive_badly(*_):
        raise trouble

    monkeypatch.setattr("torchwhy.attach.recording.drive", drive_badly)
    with StandIn("SGLang", theirs, NEW["SGLang"]) as server:
        if isinstance(trouble, KeyboardInterrupt):
            assert recorded(server, tmp_path, warmup=0, folder=str(theirs)).interrupted
        else:
            with pytest.raises(type(trouble)):
                recorded(server, tmp_path, warmup=0, folder=str(theirs))
    assert server.calls == ["/start_profile", "/stop_profile"]
    assert not server.recording


def test_a_recording_of_somebody_else_is_left_alone(theirs, tmp_path):
    refused = pytest.raises(RefusedError, match="already recording for another client")
    with StandIn("vLLM", theirs, NEW["vLLM"], refuses=409) as server, refused:
        recorded(server, tmp_path, warmup=0)
    assert server.calls == ["/start_profile"]


def test_a_server_that_does_not_confirm_the_end_is_named(theirs, tmp_path, monkeypatch):
    with StandIn("vLLM", theirs, NEW["vLLM"], development=True) as server:
        whole = server.post

        def post(request, body):
            if request.path == "/stop_profile":
                request.connection.close()
            else:
                whole(request, body)

        monkeypatch.setattr(server, "post", post)
        done = recorded(server, tmp_path, warmup=0)
    assert "may still be recording" in done.notes[0]
    assert f"curl -X POST {server.url}/stop_profile" in done.notes[0]


# What is said of servers that cannot be recorded


def test_a_server_without_a_profiler_is_named(theirs):
    for fields in ((), None):
        refused = pytest.raises(TorchWhyError, match="--profiler-config")
        with StandIn("vLLM", theirs, fields, profiler=False) as server, refused:
            recorded(server, theirs, warmup=0)


def test_a_key_is_sent_and_asked_for(theirs, tmp_path):
    with StandIn("SGLang", theirs, NEW["SGLang"], key="secret") as server:
        with pytest.raises(RefusedError, match="TORCHWHY_API_KEY"):
            recorded(server, tmp_path, warmup=0)
        found = find_server(Address(server.url, "secret"))
        done = record(found, Plan(load=SMALL, folder=str(theirs)), tmp_path / "run")
    assert done.traces


def test_another_server_and_no_server(theirs):
    with StandIn("other", theirs, fields=None) as server:
        server.get = lambda request: request.send_error(404)
        with pytest.raises(TorchWhyError, match="neither vLLM nor SGLang"):
            find_server(Address(server.url))
    with pytest.raises(UnreachableError, match="did not answer"):
        find_server(Address(server.url))


@pytest.mark.parametrize(
    ("status", "said"),
    [(401, "TORCHWHY_API_KEY"), (403, "TORCHWHY_API_KEY"), (307, "to which it redirects"), (503, "does not show")],
)
def test_a_server_that_refuses_to_answer_may_be_one_of_these(status, said, theirs):
    refused = pytest.raises(TorchWhyError, match=said)
    with StandIn("SGLang", theirs, NEW["SGLang"]) as server, refused as raised:
        server.get = lambda request: request.send_error(status)
        find_server(Address(server.url))
    assert "neither" not in str(raised.value)


def test_an_answer_that_breaks_off_is_not_counted(theirs):
    def complete(request, body):
        request.send_response(200)
        request.end_headers()
        request.wfile.write(b'data: {"choices": [{"text": "x"}]}\n\n')

    with StandIn("vLLM", theirs) as server:
        server.complete = complete
        times = drive(Address(server.url), "m", SMALL, 0)
    assert (times.requests, times.failed) == (0, 2)
    assert "broke off" in times.why


def test_a_line_without_end_is_given_up(theirs):
    def complete(request, body):
        request.send_response(200)
        request.end_headers()
        while True:
            request.wfile.write(b"data: " * 10_000)

    with StandIn("vLLM", theirs) as server:
        server.complete = complete
        assert "a line of more than" in drive(Address(server.url), "m", Load(1, 7, 4), 0).why


class Misbehaving:
    """A server that sends pieces until its client goes away or it is closed.

    Args:
        head: sent at once.
        piece: sent again and again.
        every_s: seconds between two pieces.
        pieces: how many; then it closes the connection. None: without end.
    """

    def __init__(self, head, piece=b"", every_s=0.0, pieces=None):
        self.head, self.piece, self.every_s, self.pieces = head, piece, every_s, pieces
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.over = threading.Event()

    def __enter__(self):
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.listener.close()

    def serve(self):
        with contextlib.suppress(OSError), self.listener.accept()[0] as client:
            client.recv(65536)
            client.sendall(self.head)
            for _ in itertools.count() if self.pieces is None else range(self.pieces):
                if self.over.wait(self.every_s):
                    return
                client.sendall(self.piece)


OK, MANY = b"HTTP/1.1 200 OK\r\n", b"x" * 100_000
NOT_WHOLE = "not complete after 0.2 s"

MISBEHAVIOUR = {
    "says nothing": (b"", b"", 9, NOT_WHOLE),
    "drips its status": (b"", b"H", 0.01, NOT_WHOLE),
    "never ends its headers": (OK, b"a: b\r\n", 0.01, NOT_WHOLE),
    "goes on and on": (b"", b"HTTP/1.1 100 Continue\r\n\r\n", 0.01, NOT_WHOLE),
    "drips its answer": (OK + b"\r\n", b"1", 0.01, NOT_WHOLE),
    "drips a known number of bytes": (OK + b"Content-Length: 99999\r\n\r\n", b"1", 0.01, NOT_WHOLE),
    "drips chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\n1\r\n", 0.01, NOT_WHOLE),
    "drips an error": (b"HTTP/1.1 500 No\r\n\r\n", b"1", 0.01, "answered 500"),
    "sends without end": (OK + b"\r\n", MANY, 0, "more than 1,048,576 bytes"),
    "sends chunks without end": (
        OK + b"Transfer-Encoding: chunked\r\n\r\n", b"186a0\r\n" + MANY + b"\r\n", 0, "more than 1,048,576 bytes",
    ),
    "sends headers without end": (OK, b"a: " + b"b" * 1000 + b"\r\n", 0, "did not answer: got more than 100 headers"),
    "sends lines without end": (OK + b"\r\n", b"data: 1\n" * 9999, 0, "more than 1,048,576 bytes"),
}  # fmt: skip


@pytest.mark.parametrize("how", MISBEHAVIOUR)
@pytest.mark.parametrize("ask", ["get", "post", "stream"])
def test_an_answer_is_limited_in_time_and_size(how, ask, monkeypatch):
    monkeypatch.setattr("torchwhy.attach.http._MOST_BYTES", 1 << 20)
    head, piece, every_s, said = MISBEHAVIOUR[how]
    began, timeout_s = time.monotonic(), 0.2 if every_s else 60
    with Misbehaving(head, piece, every_s) as server:
        ways = {
            "get": lambda: Address(server.url).get("/x", timeout_s),
            "post": lambda: Address(server.url).post("/x", None, timeout_s),
            "stream": lambda: list(Address(server.url).stream("/x", {}, timeout_s)),
        }
        with pytest.raises(TorchWhyError) as raised:
            ways[ask]()
    assert time.monotonic() - began < 30
    assert said in str(raised.value) or (ask == "stream" and "line of more than" in str(raised.value))


@pytest.mark.parametrize("length", ["Content-Length: 9", "Transfer-Encoding: chunked"])
@pytest.mark.parametrize("body", [b"", b"1\r\n{", b'{"a": 1'])
def test_an_answer_that_ends_early_is_no_answer(length, body):
    head = OK + length.encode() + b"\r\n\r\n" + body
    refused = pytest.raises(UnreachableError, match=r"broke off its answer|did not answer")
    with Misbehaving(head, pieces=0) as server, refused:
        Address(server.url).get("/x", 5.0)


def test_names_of_the_server_cannot_steer_the_terminal(theirs, tmp_path):
    with StandIn("SGLang", theirs, NEW["SGLang"]) as server:
        found = dataclasses.replace(find_server(Address(server.url)), version="0\x1b[31m", model="a\x1b[5m\nb")
        done = record(found, Plan(load=SMALL, warmup=0, folder=str(theirs)), tmp_path / "run")
    assert "\x1b" not in done.summary
    assert "a\ufffd[5m b" in done.summary


def test_a_trace_that_cannot_be_read_is_no_success(theirs, tmp_path):
    with StandIn("vLLM", theirs, NEW["vLLM"], development=True) as server:
        server.write = lambda: (theirs / f"{server.body['profile_prefix']}.pt.trace.json.gz").write_bytes(b"")
        words = ["--requests", "1", "--output-tokens", "2", "--warmup", "0", "-o", "run"]
        ended = run_here("profile", "--attach", server.url, *words, folder=tmp_path)
    assert ended.returncode == 3
    assert "The trace was not read" in ended.stderr


def test_no_redirection_is_followed(theirs):
    with StandIn("vLLM", theirs) as other, StandIn("vLLM", theirs) as server:

        def redirect(request):
            request.send_response(302)
            request.send_header("Location", f"{other.url}/v1/models")
            request.end_headers()

        server.get = redirect
        with pytest.raises(RefusedError, match="302"):
            Address(server.url, "secret").get("/v1/models")


@pytest.mark.parametrize("url", ["ftp://host", "http://", "http://host:port", "file:///etc/passwd", ""])
def test_an_address_must_be_one(url):
    with pytest.raises(ArgumentError, match="must be an address"):
        Address(url)


def test_an_address_may_be_short():
    assert Address("localhost:8000/v1").url == "http://localhost:8000"
    assert Address("http://[::1]:8000").url == "http://[::1]:8000"


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--requests", "0"], "--requests must be from 1 to 1024, got 0"),
        (["--requests", "2", "--prompt-tokens", "0"], "--prompt-tokens must be > 0, got 0"),
        (["--active", "0"], "--active must be > 0, got 0"),
        (["--seconds", "0"], "--seconds must be > 0, got 0"),
        (["train.py"], "not a script"),
    ],
)
def test_misuse(options, said, tmp_path):
    done = run_here("profile", "--attach", "http://127.0.0.1:9", *options, folder=tmp_path)
    assert done.returncode == 2
    assert said in done.stderr


def test_options_of_servers_need_a_server(tmp_path):
    done = run_here("profile", "--requests", "2", "train.py", folder=tmp_path)
    assert done.returncode == 2
    assert "--attach" in done.stderr


def test_the_command_reports_by_phase_without_pytorch(theirs, tmp_path):
    with StandIn("vLLM", theirs, NEW["vLLM"], development=True) as server:
        command = "import sys; sys.modules['torch'] = None; from torchwhy.cli import main; main()"
        words = ["profile", "--attach", server.url, "--requests", "2", "--prompt-tokens", "7", "--output-tokens", "4"]
        done = subprocess.run(
            [sys.executable, "-c", command, *words], cwd=tmp_path, capture_output=True, text=True, check=False,
            env={**os.environ, "NO_COLOR": "1"}, timeout=60,
        )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "vLLM 0.33.0" in done.stderr
    assert "Steps of the server by phase and batch size" in done.stderr
    assert "2 requests answered" in done.stderr
    assert Path(tmp_path / "traces" / "org-tiny-model" / "report.html").is_file()
