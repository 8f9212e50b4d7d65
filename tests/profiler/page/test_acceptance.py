"""What the page promises, in a real browser: Chromium through playwright."""

import html
import random
import statistics

import numpy as np
import pytest

from profiler.page.generated import generated
from profiler.traces import Story
from torchfx.profiler.page.assemble import page
from torchfx.profiler.page.timeline import timeline_of

pytestmark = [pytest.mark.browser, pytest.mark.many]


def program():
    """Four steps, each of which waits for its batch, copies it from pageable memory, and computes a little."""
    story = Story()
    for i in range(4):
        at = 100_000 * i
        story.step(i + 1, at=at, us=99_000)
        story.note("enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", at=at + 10, us=40_000)
        story.op("aten::copy_", at=at + 41_000, us=9_000)
        story.copy("HtoD (Pageable -> Device)", at=at + 41_100, us=8_000, size=40_000_000, launch_at=at + 41_050)
        for k in range(20):
            start = at + 51_000 + 1_500 * k
            story.op(f"aten::op{k % 3}", at=start, us=900)
            story.kernel(f"void kernel{k % 3}<float>(int)", at=start + 500, us=800, launch_at=start + 300)
        story.call("cudaDeviceSynchronize", at=at + 82_000, us=2_000)
    return story.trace()


def static_part(findings):
    """What Python writes around a timeline, as far as scripts look for it."""
    items = "".join(
        f'<li><button type="button" data-show="finding:{k}">{html.escape(finding.title)}</button>'
        f'<label><input type="checkbox" data-fix="{k}"> if fixed</label></li>'
        for k, finding in enumerate(findings)
    )
    return (
        f'<main><h1>A report</h1><button type="button" id="theme">Theme</button><ul>{items}</ul>'
        '<output id="if-fixed"></output><section id="timeline"><h2>Timeline</h2><div id="stage"></div></section>'
        "<table data-sortable><thead><tr><th>name</th><th>calls</th></tr></thead><tbody>"
        '<tr><td>a</td><td data-value="9">9</td></tr><tr><td>b</td><td data-value="10">10</td></tr>'
        '<tr class="total"><td>all</td><td data-value="19">19</td></tr></tbody></table></main>'
    )


@pytest.fixture(scope="module")
def trace():
    return program()


@pytest.fixture(scope="module")
def findings(trace):
    found = trace.diagnose()
    assert len(found) >= 3
    return found


@pytest.fixture
def opened(open_page, trace, findings):
    return open_page(page(static_part(findings), "A report", [timeline_of(trace, findings)]))


def test_900_000_events_open_within_two_seconds(open_page):
    timeline = timeline_of(generated(900_000))
    text = page(static_part([]), "Large", [timeline])
    assert len(text) <= 5_000_000
    ready, painted = [], []
    for _ in range(3):
        opened = open_page(text)
        ready.append(opened.page.evaluate("performance.getEntriesByName('ready')[0].startTime"))
        painted.append(opened.page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
    assert statistics.median(ready) < 2000
    assert statistics.median(painted) < 600
    sums = opened.stage("[t.start, t.end, t.name, t.launch, t.work].map((one) => one.reduce((a, b) => a + b, 0))")
    columns = (timeline.start, timeline.end, timeline.name, timeline.launch, timeline.work)
    assert sums == [int(column.sum()) for column in columns]
    times = opened.stage(
        """(() => { const times = [];
        for (const zoom of [1, 8, 64, 1000, 30000]) {
          const length = (t.span[1] - t.span[0]) / zoom;
          for (let i = 0; i < 24; i++) {
            const from = t.span[0] + (t.span[1] - t.span[0] - length) * i / 24;
            s.look(from, from + length);
            const began = performance.now(); s.draw(); times.push(performance.now() - began);
          }
        } return times })()"""
    )
    assert len(times) == 120
    assert statistics.median(times) <= 16
    assert np.percentile(times, 95) <= 50


def test_each_finding_is_shown_with_its_evidence_in_view(opened, findings):
    for k in range(len(findings)):
        opened.page.locator(f'[data-show="finding:{k}"]').click()
        edges = opened.stage(
            f"""(() => {{ const f = t.findings[{k}], scale = s.width / (s.seen.t1 - s.seen.t0);
            const x = (time) => (time - s.seen.t0) * scale;
            return [...f.stretches.start, ...f.stretches.end].map(x)
              .concat(f.evidence.flatMap((e) => [...e].flatMap((i) => [x(t.start[i]), x(t.end[i])]))) }})()"""
        )
        assert all(-1 <= x <= 1601 for x in edges)
        selected = opened.stage("s.selected")
        evidence = opened.stage(f"t.findings[{k}].evidence.flatMap((e) => [...e])")
        assert selected in evidence or not evidence
    assert opened.page.locator('[data-show][aria-pressed="true"]').count() == 1


def test_what_fixing_is_worth_is_a_union(opened, findings):
    lengths, window = opened.stage(
        "[t.findings.map((f) => f.stretches.start.reduce((sum, a, i) => sum + f.stretches.end[i] - a, 0)), "
        "t.window[1] - t.window[0]]"
    )
    for box in opened.page.locator("[data-fix]").all():
        box.check()
    saved = float(opened.page.locator("#if-fixed").get_attribute("data-ns"))
    assert max(lengths) <= saved <= min(window, sum(lengths))
    assert "If fixed: at most" in opened.page.locator("#if-fixed").inner_text()


def test_search_counts_the_calls(opened, trace):
    table = trace.kernels()
    for name, calls in zip(table["name"], table["calls"], strict=True):
        opened.page.locator("input[type=search]").fill(str(name))
        assert opened.page.locator(".count").inner_text() == str(calls)
    opened.page.locator("input[type=search]").press("Enter")
    assert opened.page.locator(".count").inner_text() == f"1/{calls}"
    opened.page.locator("input[type=search]").press("Enter")
    assert opened.page.locator(".count").inner_text() == f"2/{calls}"


def test_arrows_lead_to_the_launch_of_each_kernel(opened, trace):
    timeline, links = timeline_of(trace), trace.links
    for k in random.Random(0).sample(range(len(links.work)), 50):
        work, launch = timeline.position[links.work[k]], timeline.position[links.launch[k]]
        assert opened.stage(f"(s.select({work}), s.arrows)") == [[launch, work]]


def test_the_timeline_is_used_with_keys_alone(opened, findings):
    keys = opened.page.keyboard
    opened.page.locator(".view").focus()
    width = opened.stage("s.seen.t1 - s.seen.t0")
    keys.press("w")
    assert opened.stage("s.seen.t1 - s.seen.t0") < width
    keys.press("f")
    keys.press("ArrowRight")
    first = opened.stage("s.selected")
    keys.press("ArrowRight")
    assert opened.stage("s.selected") == first + 1
    assert "ProfilerStep#2, annotation, 99.0 ms, at 100 ms, on" in opened.page.locator(".speech").inner_text()
    keys.press("ArrowDown")
    assert "__next__" in opened.stage("t.text(s.selected)")
    assert opened.page.evaluate("getComputedStyle(document.querySelector('.view')).outlineStyle") == "solid"
    keys.press("/")
    assert opened.page.evaluate("document.activeElement.type") == "search"
    keys.type("kernel1")
    keys.press("Escape")
    keys.press(".")
    assert opened.stage("t.text(s.selected)") == "void kernel1<float>(int)"
    keys.press("n")
    assert opened.page.locator('[aria-pressed="true"]').inner_text() == findings[0].title
    keys.press("Escape")
    assert opened.stage("[s.selected, s.lit, s.stretches]") == [-1, None, None]


def test_the_address_finds_the_place_again(opened, browser):
    opened.stage("(s.visit(17), s.look(1e6, 3e6))")
    opened.page.wait_for_timeout(400)
    address = opened.page.url
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert opened.stage("[s.selected, s.seen.t0, s.seen.t1]") == [17, 1e6, 3e6]


def test_tables_are_sorted_by_their_headings(opened):
    opened.page.locator("th >> text=calls").click()
    first = [row.inner_text().split() for row in opened.page.locator("tbody tr").all()]
    assert first == [["b", "10"], ["a", "9"], ["all", "19"]]
    opened.page.locator("th >> text=name").click()
    assert opened.page.locator("tbody tr").first.inner_text().split() == ["a", "9"]


def test_the_theme_is_switched(opened):
    paper = "getComputedStyle(document.body).backgroundColor"
    opened.page.locator("#theme").click()
    light = opened.page.evaluate(paper)
    opened.page.locator("#theme").click()
    assert opened.page.locator("#theme").inner_text() == "Theme: dark"
    assert opened.page.evaluate(paper) != light
