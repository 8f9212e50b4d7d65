"""The page in a real browser."""

import pytest

from tests.page.generated import generated
from torchwhy.page.assemble import page
from torchwhy.page.timeline import timeline_of

pytestmark = pytest.mark.browser


def test_a_page_opens_quietly_and_has_every_event(open_page):
    timeline = timeline_of(generated(1000))
    opened = open_page(page('<h1>A report</h1><div id="stage"></div>', "A report", [timeline]))
    assert opened.messages == []
    assert len(opened.requests) == 1
    assert opened.stage("t.start.reduce((a, b) => a + b)") == int(timeline.start.sum())
    assert opened.stage("t.count") == len(timeline)
    assert opened.page.locator("#stage canvas").count() == 3
