"""The plugin in TensorBoard's own application: it lists the runs and serves their pages, and nothing else."""

import gzip
import json

import pytest

from tests.traces import Story

application = pytest.importorskip("tensorboard.backend.application")
base_plugin = pytest.importorskip("tensorboard.plugins.base_plugin")
testing = pytest.importorskip("werkzeug.test")

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
