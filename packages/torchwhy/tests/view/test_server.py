"""The server of `torchwhy view`: one page, one trace, one browser."""

import http.client
import socket
import urllib.error
import urllib.request

import pytest

from torchwhy.view.server import TraceServer, ViewerServer

TRACE = b'{"traceEvents": []}'


@pytest.fixture
def served(tmp_path):
    (tmp_path / "trace <1>.json").write_bytes(TRACE)
    (tmp_path / "secret.txt").write_text("no")
    with TraceServer(tmp_path / "trace <1>.json", "https://viewer.example/#!/?visStart=1&visEnd=2") as server:
        yield server


def get(url, **options):
    return urllib.request.urlopen(urllib.request.Request(url, **options), timeout=60)


def test_the_page_names_the_trace_and_the_viewer(served):
    with get(served.url) as answer:
        page, policy = answer.read().decode(), answer.headers["Content-Security-Policy"]
    assert "<h1>trace &lt;1&gt;.json</h1>" in page
    assert 'data-viewer="https://viewer.example/#!/?visStart=1&amp;visEnd=2"' in page
    assert "$" not in page
    assert policy.startswith("default-src 'none'; script-src 'self';")


def test_the_trace_is_served_as_it_is_and_the_end_is_told(served):
    with get(f"{served.url}trace") as answer:
        assert answer.read() == TRACE
    assert not served.wait(0)
    with get(f"{served.url}done", method="POST"):
        assert served.wait(60)


def test_nothing_else_is_served(served):
    secret = served.root
    paths = [
        "/",
        "/trace",
        f"{secret}secret.txt",
        f"{secret}../secret.txt",
        f"{secret}%2e%2e/secret.txt",
        f"{secret}done",
    ]
    for path in paths:
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(served.origin + path)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        get(f"{served.origin}/done", method="POST")
    assert not served.wait(0)


def test_a_page_that_reaches_it_by_another_host_name_gets_nothing(served):
    """A name that an attacker lets point here after its page was loaded: the browser sends the name."""
    connection = http.client.HTTPConnection("127.0.0.1", served.server_port, timeout=60)
    connection.request("GET", f"{served.root}trace", headers={"Host": f"evil.example:{served.server_port}"})
    assert connection.getresponse().status == 404
    connection.close()


def test_it_listens_on_this_machine_only_and_ends(tmp_path):
    with TraceServer(tmp_path / "none.json", "https://viewer.example") as server:
        assert server.server_address[0] == "127.0.0.1"
        assert server.root not in {"/", "//"}
        with pytest.raises(urllib.error.HTTPError, match="410"):
            get(f"{server.url}trace")
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", server.server_port), timeout=60)


def test_a_viewer_made_of_files(tmp_path):
    (tmp_path / "viewer").mkdir()
    (tmp_path / "viewer" / "index.html").write_text("the viewer")
    (tmp_path / "secret.txt").write_text("no")
    (tmp_path / "viewer" / "assets").mkdir()
    with ViewerServer(tmp_path / "viewer") as server:
        with get(f"{server.origin}/") as answer:
            assert answer.read() == b"the viewer"
        for path in ("/../secret.txt", "/%2e%2e/secret.txt", "/assets/"):
            with pytest.raises(urllib.error.HTTPError, match="404"):
                get(server.origin + path)
        with pytest.raises(http.client.RemoteDisconnected):
            get(f"{server.origin}/vizviewer_info")
        server.wait_until_quiet(0.01)
