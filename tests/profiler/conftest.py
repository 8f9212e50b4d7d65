import pytest

from profiler.page.browser import chromium


@pytest.fixture(scope="session")
def browser():
    started, program = chromium()
    with started as playwright:
        one = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        yield one
        one.close()
