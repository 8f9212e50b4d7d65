"""The plugin in TensorBoard's own application: it lists the runs and serves their pages, and nothing else."""

import gzip
import json
import threading

import pytest

from tests.traces import Story

application = pytest.importorskip("tensorboard.backend.application")
base_plugin = pytest.importorskip("tensorboard.plugins.base_plugin")
testing = pytest.importorskip("werkzeug.test")
serving = pytest.importorskip("werkzeug.serving")
wrappers = pytest.importorskip("werkzeug.wrappers")

from torchwhy.tensorboard_plugin import TorchwhyPlugin  # noqa: E402

PREFIX = "/data/plugin/torchwhy"


def story(name="aten::mm"):
    told = Story()
    told.step(1, 0, 1000)
    told.op(name, 10, 500)
    return told.text()


@pytest.fixture
def logs(tmp_path):
    """A run of `torchwhy profile` with two windows, one of the handler, and things that are neither."""
    run = tmp_path / "logs" / "sweep" / "run-1"
    (run / "tensorboard").mkdir(parents=True)
    (run / "run.json").write_text("{}")
    (run / "report.html").write_text("<p>the page of the run")
    for name in ("trace.json.gz", "trace-2.json.gz", "tensorboard/host_1.17.pt.trace.json.gz"):
        (run / name).write_bytes(gzip.compress(story().encode()))
    (tmp_path / "logs" / "host_1.17.pt.trace.json").write_text(story("<script>alert(1)</script>"))
    (tmp_path / "logs" / "broken.pt.trace.json").write_text("no trace")
    (tmp_path / "logs" / "notes.json").write_text("{}")
    (tmp_path / "secret.pt.trace.json").write_text(story("secret"))
    return tmp_path / "logs"


@pytest.fixture
def client(logs):
    plugin = TorchwhyPlugin(base_plugin.TBContext(logdir=str(logs)))
    assert plugin.is_active()
    return testing.Client(application.TensorBoardWSGI([plugin]))


def test_runs_are_listed_by_folder_and_window(client):
    assert json.loads(client.get(f"{PREFIX}/runs").data) == [
        "broken.pt.trace.json", "host_1.17.pt.trace.json", "sweep/run-1", "sweep/run-1 trace-2.json.gz",
    ]  # fmt: skip


def test_the_tab_is_announced(client):
    told = json.loads(client.get("/data/plugins_listing").data)["torchwhy"]
    assert (told["enabled"], told["tab_name"]) == (True, "torchwhy")
    assert told["loading_mechanism"]["module_path"].endswith("/torchwhy/index.js")
    script = client.get(f"{PREFIX}/index.js")
    assert script.content_type.startswith("text/javascript")
    assert b"export async function render()" in script.data


def test_a_run_shows_the_page_it_has(client):
    answer = client.get(f"{PREFIX}/page", query_string={"run": "sweep/run-1"})
    assert (answer.status_code, answer.data) == (200, b"<p>the page of the run")
    assert answer.headers["Content-Security-Policy"] == "default-src 'none'"


def test_other_traces_get_a_page(client):
    answer = client.get(f"{PREFIX}/page", query_string={"run": "host_1.17.pt.trace.json"})
    assert "script-src 'sha256-" in answer.headers["Content-Security-Policy"]
    text = answer.text
    assert '<section id="findings"' in text
    assert "<script>alert" not in text
    assert (
        '<section id="findings"'
        in client.get(f"{PREFIX}/page", query_string={"run": "sweep/run-1 trace-2.json.gz"}).text
    )


def test_a_file_that_is_no_trace_is_told(client):
    answer = client.get(f"{PREFIX}/page", query_string={"run": "broken.pt.trace.json"})
    assert "is not a trace" in answer.text


@pytest.mark.parametrize(
    "run",
    ["", "../secret.pt.trace.json", "/etc/passwd", "sweep/run-1/../../../secret.pt.trace.json", "notes.json", "\0"],
)
def test_there_is_no_way_out_of_the_folder(client, run):
    assert client.get(f"{PREFIX}/page", query_string={"run": run}).status_code == 404


def test_a_folder_without_runs(tmp_path):
    for logdir in (str(tmp_path), str(tmp_path / "none"), "", None):
        plugin = TorchwhyPlugin(base_plugin.TBContext(logdir=logdir))
        assert not plugin.is_active()


FRAME = (
    '<!doctype html><html lang="en"><title>torchwhy</title><body><script type="module">'
    'import { render } from "./index.js"; render();</script>'
)
HOST = (
    '<!doctype html><html lang="en"><title>TensorBoard</title><body class="dark-mode"><h1>TensorBoard</h1>'
    f'<iframe title="torchwhy" src="{PREFIX}/frame" style="width:90vw;height:80vh"></iframe>'
)


@pytest.fixture
def address(logs):
    """Of a page that shows the tab as TensorBoard does, in a frame of its own origin."""
    tensorboard = application.TensorBoardWSGI([TorchwhyPlugin(base_plugin.TBContext(logdir=str(logs)))])

    def answer(environ, start_response):
        text = {"/": HOST, f"{PREFIX}/frame": FRAME}.get(environ["PATH_INFO"])
        if text is None:
            return tensorboard(environ, start_response)
        return wrappers.Response(text, content_type="text/html")(environ, start_response)

    server = serving.make_server("127.0.0.1", 0, answer, threaded=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    thread.join()


@pytest.mark.browser
def test_the_tab_is_as_dark_as_tensorboard_and_its_choice_has_a_label(browser, address):
    context = browser.new_context(color_scheme="light")
    page = context.new_page()
    page.goto(address)
    tab = page.frame_locator("iframe")
    choice = tab.get_by_label("Run", exact=True)
    choice.wait_for()
    assert choice.locator("option").count() == 4
    choice.select_option("host_1.17.pt.trace.json")
    report = tab.frame_locator("iframe")
    report.locator('html[data-ready="1"]').wait_for(state="attached")

    def colours():
        return [
            each.locator("body").evaluate("body => getComputedStyle(body).backgroundColor") for each in (tab, report)
        ]

    report.locator('html[data-theme="dark"]').wait_for(state="attached")
    assert colours() == ["rgb(18, 18, 18)", "rgb(20, 23, 26)"]
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    found = axe.run(page.frames[1]).response["violations"]
    assert found == [], [(one["id"], [node["target"] for node in one["nodes"]]) for one in found]
    page.evaluate('document.body.classList.remove("dark-mode")')
    report.locator('html[data-theme="light"]').wait_for(state="attached")
    assert colours() == ["rgb(255, 255, 255)", "rgb(255, 255, 255)"]
    context.close()
