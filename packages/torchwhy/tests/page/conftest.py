import pytest

from tests.page.browser import Opened
from tests.page.program import page_of, program


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


@pytest.fixture(scope="module")
def trace():
    return program()


@pytest.fixture(scope="module")
def findings(trace):
    found = trace.diagnose()
    assert len(found) >= 3
    return found


@pytest.fixture(scope="module")
def text(trace):
    return page_of(trace)


@pytest.fixture
def opened(open_page, text):
    return open_page(text)
