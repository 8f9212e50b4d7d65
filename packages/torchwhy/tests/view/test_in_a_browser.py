"""The page of `torchwhy view` in Chromium, against a viewer that only notes what it gets."""

import json
import threading
from http.server import BaseHTTPRequestHandler

import pytest

from torchwhy.view import server

pytestmark = [pytest.mark.many, pytest.mark.browser]

VIEWER = """<!doctype html><script>
const heard = [];
addEventListener("message", async ({ data, source, origin }) => {
  heard.push(data === "PING" ? "PING" : "trace");
  if (heard.length === 3) source.postMessage("PONG", "*");  // a viewer is busy at first
  if (data === "PING") return;
  const { buffer, title } = data.perfetto;
  await fetch("/told", { method: "POST", body: JSON.stringify({ heard, title, origin, hash: location.hash }) });
  await fetch("/bytes", { method: "POST", body: buffer });
});
</script>"""


class Stub(server._Server):
    """Answers PING at the third time and keeps what is posted."""

    def __init__(self):
        super().__init__(StubHandler)
        self.posted, self.complete = {}, threading.Event()


class StubHandler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(VIEWER.encode())

    def do_POST(self):
        self.server.posted[self.path] = self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()
        if self.path == "/bytes":
            self.server.complete.set()

    def log_message(self, *args):
        pass


def test_the_viewer_gets_the_bytes_of_the_file_after_it_answered(browser, tmp_path):
    trace = tmp_path / "a trace.json.gz"
    trace.write_bytes(bytes(range(256)) * 4096)
    with Stub() as stub, server.TraceServer(trace, f"{stub.origin}/#!/?visStart=1&visEnd=2") as served:
        context = browser.new_context()
        requests, messages = [], []
        context.on("request", lambda request: requests.append(request.url))
        page = context.new_page()
        page.on("console", lambda message: messages.append(message.text))
        page.goto(served.url)
        page.get_by_role("button").click()
        page.get_by_text("The viewer has the trace.").wait_for()
        assert served.wait(60)
        assert stub.complete.wait(60)
        told = json.loads(stub.posted["/told"])
        context.close()
    assert stub.posted["/bytes"] == trace.read_bytes()
    assert told["heard"][:3] == ["PING"] * 3
    assert told["heard"].count("trace") == 1
    assert (told["title"], told["hash"]) == ("a trace.json.gz", "#!/?visStart=1&visEnd=2")
    assert all(url.startswith((served.url, stub.origin)) for url in requests)
    assert not [text for text in messages if "favicon" not in text]


def test_another_page_than_the_viewer_gets_nothing(browser, tmp_path):
    """The tab went elsewhere before it answered: what is there now is not who was meant."""
    trace = tmp_path / "trace.json"
    trace.write_text("[]")
    with Stub() as meant, Stub() as other, server.TraceServer(trace, meant.origin) as served:
        context = browser.new_context()
        context.route(f"{meant.origin}/**", lambda route: route.fulfill(status=302, headers={"Location": other.origin}))
        page = context.new_page()
        page.goto(served.url)
        with context.expect_page() as opened:
            page.get_by_role("button").click()
        opened.value.wait_for_url(f"{other.origin}/**")
        opened.value.wait_for_timeout(1000)
        assert page.get_by_role("status").text_content() == "Waiting for the viewer."
        assert not served.wait(0)
        context.close()
    assert not other.posted
