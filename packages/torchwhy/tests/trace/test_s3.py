"""Traces in a bucket are read by the protocol of S3: from a server on this machine, which may fail."""

import csv
import http.client
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from tests.analysis.programs import computing
from tests.command_line import run_here
from tests.ranks.jobs import write_job

pytest.importorskip("moto.server")
s3fs = pytest.importorskip("s3fs")

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::ResourceWarning")


@pytest.fixture(scope="module")
def server():
    """An S3 server; yields its port."""
    from moto.server import ThreadedMotoServer

    running = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    running.start()
    yield running.get_host_and_port()[1]
    running.stop()


def lose_half(client, port):
    """Let all requests reach a server on a port, but cut the answers that have the file of rank 1."""

    class Proxy(BaseHTTPRequestHandler):
        def do_GET(self):
            connection = http.client.HTTPConnection("127.0.0.1", port)
            connection.request(self.command, self.path, headers=dict(self.headers))
            answer = connection.getresponse()
            body = answer.read()
            self.send_response(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in ("connection", "transfer-encoding"):
                    self.send_header(name, value)
            self.end_headers()
            cut = self.path.endswith("rank1.json")
            self.wfile.write(body[: len(body) // 2] if cut else body)
            connection.close()

        do_HEAD = do_GET

        def log_message(self, *_):
            pass

    proxy = ThreadingHTTPServer(("127.0.0.1", 0), Proxy)
    threading.Thread(target=proxy.serve_forever, daemon=True).start()
    client.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{proxy.server_port}")
    return proxy


@pytest.fixture
def client(server, monkeypatch):
    """The environment of a client; nothing of an earlier one is kept."""
    for name, value in {
        "AWS_ENDPOINT_URL": f"http://127.0.0.1:{server}", "AWS_MAX_ATTEMPTS": "1", "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "name", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true",
    }.items():  # fmt: skip
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(s3fs.S3FileSystem, "retries", 1)
    s3fs.S3FileSystem.clear_instance_cache()
    yield monkeypatch
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.fixture
def near(client, tmp_path):
    """A folder whose `runs` is also s3://traces/runs."""
    (tmp_path / "runs/single").mkdir(parents=True)
    write_job(tmp_path / "runs/even", 2)
    write_job(tmp_path / "runs/slow", 3, compute=[300, 300, 700])
    computing().write(tmp_path / "runs/single/trace.json.gz")
    bucket = s3fs.S3FileSystem()
    if not bucket.exists("traces"):
        bucket.mkdir("traces")
        bucket.put(str(tmp_path / "runs"), "traces/", recursive=True)
    client.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path


def rows(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_a_bucket_is_read_as_a_folder_is(near):
    for name in ("slow", "single", "single/trace.json.gz"):
        here, there = (run_here("explain", f"{place}runs/{name}", folder=near) for place in ("", "s3://traces/"))
        assert (there.returncode, there.stdout) == (0, here.stdout)
    for place, name in (("", "near.csv"), ("s3://traces/", "far.csv")):
        assert run_here("export", f"{place}runs", "--to", "csv", "-o", name, folder=near).returncode == 0
    assert len(rows(near / "far.csv")) == 6
    assert rows(near / "far.csv") == rows(near / "near.csv")


@pytest.mark.parametrize("url", ["s3://no-such/runs", "s3://traces/none", "s3://traces/runs/slow/rank7.json"])
def test_what_is_not_there_is_an_error(near, url):
    for command in (("explain",), ("report",), ("export", "--to", "csv")):
        ran = run_here(command[0], url, *command[1:], folder=near)
        assert (ran.returncode, ran.stderr) == (3, f"error: {url} does not exist\n")


def test_a_server_that_forbids_or_does_not_answer_is_an_error(near, client):
    url = "s3://traces/runs/slow"
    client.setattr("moto.settings.INITIAL_NO_AUTH_ACTION_COUNT", 0)
    s3fs.S3FileSystem.clear_instance_cache()
    ran = run_here("explain", url, folder=near)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith(f"error: {url} cannot be reached: Forbidden")
    client.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    s3fs.S3FileSystem.clear_instance_cache()
    ran = run_here("explain", url, folder=near)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith(f"error: {url} cannot be reached: Could not connect")


def test_a_connection_that_is_lost_costs_one_rank_or_is_an_error(near, client, server):
    proxy = lose_half(client, server)
    s3fs.S3FileSystem.clear_instance_cache()
    ran = run_here("explain", "s3://traces/runs/slow/rank1.json", folder=near)
    assert (ran.returncode, ran.stdout) == (3, "")
    assert ran.stderr.startswith("error: s3://traces/runs/slow/rank1.json cannot be reached: ")
    ran = run_here("explain", "s3://traces/runs/slow", folder=near)
    assert ran.returncode == 0
    assert "rank1.json cannot be reached" in " ".join(ran.stdout.split())
    proxy.shutdown()
    proxy.server_close()
