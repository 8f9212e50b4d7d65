import pytest

from tests.page.browser import Opened


@pytest.fixture
def open_page(browser, tmp_path):
    """Open an HTML text: `open_page(text)`; further arguments are those of a browser's context."""
    opened = []

    def open_(text, **options):
        file = tmp_path / f"page-{len(opened)}.html"
        file.write_text(text, encoding="utf-8")
        opened.append(Opened(browser, file, **options))
        return opened[-1]

    yield open_
    for one in opened:
        one.context.close()
