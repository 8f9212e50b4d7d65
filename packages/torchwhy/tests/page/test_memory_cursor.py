"""The page of snapshots in a real browser."""

import pytest

from tests.allocator.test_memory_page import LINEAR, NET
from tests.allocator.test_snapshot import training
from tests.command_line import run_here

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_cursor_shows_the_values_of_the_moment(tmp_path, open_page, scheme):
    before, after = training(), training()
    after.alloc(7_000, LINEAR, NET)
    paths = [made.write(tmp_path / f"{name}.pickle") for name, made in (("a", before), ("b", after))]
    for given in (paths[:1], paths):
        run_here("memory", *given, "-o", tmp_path / "page.html", folder=tmp_path)
        opened = open_page((tmp_path / "page.html").read_text(), color_scheme=scheme)
        figure = opened.page.locator("figure.memory").first
        assert figure.locator("output").text_content() == "400 us: 120 kB allocated, 1.05 MB reserved"
        slider = figure.locator("input")
        slider.focus()
        slider.press("Home")
        assert figure.locator("output").text_content() == "0 us: 10.0 kB allocated, 1.05 MB reserved"
        box = figure.locator("> svg").bounding_box()
        opened.page.mouse.move(box["x"] + box["width"] * 350 / 1100, box["y"] + 5)
        assert figure.locator("output").text_content().endswith(": 70.0 kB allocated, 1.05 MB reserved")
        headings = opened.page.locator("th button.sort")
        headings.first.click()
        axe = pytest.importorskip("axe_playwright_python.sync_playwright")
        assert axe.Axe().run(opened.page).response["violations"] == []
        assert opened.messages == []
        assert len(opened.requests) == 1
