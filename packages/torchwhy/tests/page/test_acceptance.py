"""What the page promises, in a real browser: Chromium through playwright."""

import functools
import random
import re
import statistics

import numpy as np
import pytest

from tests.page.generated import generated
from tests.traces import Story
from torchwhy import diff, load
from torchwhy.page.assemble import page
from torchwhy.page.joining import Source, joined
from torchwhy.page.report_page import difference_page, trace_page
from torchwhy.page.timeline import timeline_of
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose
from torchwhy.trace.meaning.kinds import GPU_WORK
from torchwhy.wording import duration

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


def page_of(trace, **options):
    """The whole page, as `torchwhy report` writes it."""
    diagnosis = diagnose(trace)
    return trace_page(trace, diagnosis, describe(trace, diagnosis, thorough=True), **options)


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


def test_900_000_events_open_within_two_seconds(open_page):
    timeline = timeline_of(generated(900_000))
    text = page('<h1>Large</h1><div id="stage"></div>', "Large", [timeline])
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
    opened.page.evaluate("document.querySelectorAll('details').forEach((one) => (one.open = true))")
    for k in range(len(findings)):
        opened.page.locator(f'#findings [data-show="finding:{k}"]').click()
        assert f"Finding {k + 1} of {len(findings)}: " in opened.page.locator(".shown").inner_text()
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


def test_what_fixing_is_worth_is_what_is_at_stake(opened, findings):
    """Of one finding the number on its card; of all no more than their sum; none where there is nothing to fix."""
    told, output = [], opened.page.locator("#if-fixed")
    boxes = opened.page.locator("[data-fix]").all()
    assert not output.is_visible()
    for box in boxes:
        box.check()
        number = int(box.get_attribute("data-fix"))
        stake = findings[number].time_us
        assert findings[number].severity != "info"
        assert float(output.get_attribute("data-ns")) == pytest.approx(1000 * stake, abs=1)
        assert duration(stake) in opened.page.locator(f"#finding-{number} .facts").inner_text()
        assert f"1 finding fixed: at most {duration(stake)} of" in output.inner_text()
        told.append(stake)
        box.uncheck()
    assert len(told) == sum(one.severity != "info" and one.time_us > 0 for one in findings) >= 2
    for box in boxes:
        box.check()
    window = opened.stage("t.window[1] - t.window[0]")
    assert 1000 * max(told) - 1 <= float(output.get_attribute("data-ns")) <= min(window, 1000 * sum(told) + 1)
    assert output.bounding_box()["y"] < 900  # its answer is in sight where the boxes are


def drag(opened, start, end, **options):
    """Drag over the view of the first timeline from one moment to another, nanoseconds; returns what is measured."""
    box = opened.page.locator(".view").bounding_box()
    place = "({} - s.seen.t0) / (s.seen.t1 - s.seen.t0) * s.width"
    left, right = (box["x"] + 1 + opened.stage(place.format(time)) for time in (start, end))
    opened.page.mouse.move(left, box["y"] + 60)
    opened.page.mouse.down()
    opened.page.mouse.move((left + right) / 2, box["y"] + 60)
    opened.page.mouse.move(right, box["y"] + 60)
    opened.page.mouse.up()
    return opened.stage("s.range")


def test_a_drag_measures_a_stretch(opened, trace):
    opened.page.locator(".view").scroll_into_view_if_needed()
    start, end = drag(opened, 50e6, 90e6)
    assert abs(start - 50e6) < 1e6
    assert abs(end - 90e6) < 1e6
    opened.page.wait_for_timeout(300)
    panel = opened.page.locator(".selected").inner_text()
    assert duration((end - start) / 1000) in panel
    labels = opened.stage("t.bands.map((band) => band.label)")
    # What the panel says of the stream, against the trace.
    work = trace.events.rows(*GPU_WORK)
    begins, ends = trace.events.ts[work] - trace.beginning, trace.events.end[work] - trace.beginning
    busy = float(np.maximum(0, np.minimum(ends, end) - np.maximum(begins, start)).sum())
    stream = next(label for label in labels if "stream" in label)
    row = opened.page.locator(".selected tr", has_text=stream).first
    assert row.locator("td").nth(1).inner_text() == duration(busy / 1000)
    assert row.locator("td").nth(3).inner_text() == duration((end - start - busy) / 1000)
    opened.page.locator(".selected button", has_text="copy").click()
    copied = opened.page.evaluate("document.documentElement.dataset.copied")
    assert f"| {stream} | {duration(busy / 1000)} |" in copied
    opened.page.keyboard.press("f")
    seen = opened.stage("[s.seen.t0, s.seen.t1]")
    assert seen[0] < start < end < seen[1] < end + 0.1 * (end - start)
    opened.page.keyboard.press("Escape")
    assert opened.stage("s.range") is None
    assert opened.messages == []


def test_a_stretch_is_saved_as_a_trace_that_can_be_read(opened, tmp_path):
    opened.stage("s.measure([40e6, 95e6])")
    with opened.page.expect_download() as waiting:
        opened.page.locator(".selected button", has_text="save").click()
    file = tmp_path / "stretch.json"
    waiting.value.save_as(file)
    smaller = load(file)
    inside = opened.stage("[...t.start].filter((one, i) => one < 95e6 && t.end[i] > 40e6).length")
    assert int(smaller.events.count_by_kind[1:].sum()) == inside
    assert len(smaller.kernels()) == 3
    assert (smaller.links.launch >= 0).all()
    assert smaller.diagnose() is not None


def test_who_calls_whom_adds_up(opened):
    opened.stage("s.measure([0, 100e6])")
    opened.page.locator(".selected button", has_text="flame graph").click()
    widths = opened.page.evaluate(
        "[...document.querySelectorAll('.box')].map((b) => [b.style.top, parseFloat(b.style.width)])"
    )
    lines = {}
    for top, width in widths:
        lines[top] = lines.get(top, 0) + width
    assert lines["0px"] == pytest.approx(100, abs=0.5)
    assert max(lines.values()) <= 100.01
    opened.page.locator(".flame ~ .wide tr", has_text="__next__").first.wait_for()
    own = opened.page.locator(".wide tr", has_text="__next__").first.locator("td").nth(1).inner_text()
    assert own == "40.0 ms"
    opened.page.locator(".wide tr", has_text="aten::copy_").first.locator("button").click()
    titles = opened.page.locator(".icicle .box").evaluate_all("(boxes) => boxes.map((box) => box.title.split(':')[0])")
    assert titles == ["aten", "ProfilerStep#1", "aten"]  # its caller below it; what it calls is too short to be drawn
    opened.page.locator("button", has_text="all calls").click()
    opened.page.locator("select[aria-label=Time]").select_option("device")
    assert "kernel0" in opened.page.locator(".icicle").inner_text()
    assert opened.messages == []


def test_a_finding_is_copied_as_markdown(opened, findings):
    opened.page.locator('[data-copy="0"]').click()
    copied = opened.page.evaluate("document.documentElement.dataset.copied")
    assert copied.startswith(f"### {findings[0].title}\n")
    for part in (findings[0].cause, findings[0].fix, findings[0].code, "#show=finding:0"):
        assert part in copied


def test_search_counts_the_calls(opened, trace):
    table = trace.kernels()
    for name, calls in zip(table["name"], table["calls"], strict=True):
        opened.page.locator(".tools input[type=search]").fill(str(name))
        assert opened.page.locator(".count").inner_text() == str(calls)
    opened.page.locator(".tools input[type=search]").press("Enter")
    assert opened.page.locator(".count").inner_text() == f"1/{calls}"
    opened.page.locator(".tools input[type=search]").press("Enter")
    assert opened.page.locator(".count").inner_text() == f"2/{calls}"


def test_arrows_lead_to_the_launch_of_each_kernel(opened, trace):
    timeline, links = timeline_of(trace), trace.links
    for k in random.Random(0).sample(range(len(links.work)), 50):
        work, launch = timeline.position[links.work[k]], timeline.position[links.launch[k]]
        assert opened.stage(f"(s.select({work}), s.arrows)") == [[launch, work]]


def test_the_timeline_is_used_with_keys_alone(opened):
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
    assert opened.page.locator('[aria-pressed="true"]').get_attribute("data-show") == "finding:0"
    keys.press("Escape")
    assert opened.stage("[s.selected, s.lit, s.stretches]") == [-1, None, None]


def test_the_address_finds_the_place_again(opened, browser):
    opened.page.keyboard.press("n")
    opened.page.locator("[data-fix]").first.check()
    opened.stage("(s.visit(17), s.fold(0, true), s.look(1e6, 3e6), s.measure([1.5e6, 2e6]))")
    opened.page.wait_for_timeout(400)
    address = opened.page.url
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert opened.stage("[s.selected, s.seen.t0, s.seen.t1, s.range]") == [17, 1e6, 3e6, [1.5e6, 2e6]]
    assert opened.stage("s.arrangement.folded.has(0)")
    assert "Finding 1 of" in opened.page.locator(".shown").inner_text()
    assert opened.page.locator("[data-fix]").first.is_checked()
    box = opened.page.locator(".stage").bounding_box()
    assert 0 <= box["y"] < 400  # the timeline is what one sees


def test_marks_have_notes_and_come_back(opened):
    opened.page.locator(".view").focus()
    opened.stage("(s.visit(17), s.look(0, 100e6))")
    opened.page.keyboard.press("m")
    opened.page.keyboard.type("the copy & <b>begins</b>, 50%")
    opened.page.keyboard.press("Enter")
    opened.stage("s.select(-1)")
    opened.page.keyboard.press("m")
    opened.page.keyboard.press("Enter")
    assert opened.page.evaluate("document.activeElement.className") == "view"
    marks = "s.marks.all.map((mark) => [mark.time, mark.note])"
    wanted = sorted([[opened.stage("Math.round(t.start[17])"), "the copy & <b>begins</b>, 50%"], [50e6, ""]])
    assert opened.stage(marks) == wanted
    assert (
        f"{duration((wanted[1][0] - wanted[0][0]) / 1000)} after mark 1" in opened.page.locator(".marks").inner_text()
    )
    pixel = "[...s.strokes.getImageData(Math.round(50e6 / 100e6 * s.width * devicePixelRatio), 200, 1, 1).data]"
    assert opened.stage(pixel)[3] == 255  # its line
    opened.page.wait_for_timeout(400)
    address = opened.page.url
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert opened.stage(marks) == wanted
    opened.page.locator(".marks [aria-label='Remove mark 1']").click()
    assert opened.stage(marks) == wanted[1:]
    assert opened.messages == []


def test_rows_are_pinned_hidden_moved_and_made_taller(opened):
    view = opened.page.locator(".view")
    view.scroll_into_view_if_needed()
    shown = "s.layout.bands.map(({ band, pinned }) => [band, pinned])"
    bands = opened.stage("t.bands.length")
    assert bands >= 2
    box = view.bounding_box()
    last = bands - 1
    where = opened.stage(f"s.layout.of[{last}].top") + 34 + 8  # its heading, below the ruler
    opened.page.mouse.move(box["x"] + 20, box["y"] + where)
    view.locator(".row-tools button", has_text="pin").click()
    assert opened.stage(shown)[0] == [last, True]
    event = opened.stage(f"t.rowBegins[t.bands[{last}].firstRow]")
    opened.stage(f"(s.select({event}), s.fit())")
    pane = opened.stage("s.layout.pane")
    x, y = opened.stage(
        f"[(t.start[{event}] + t.end[{event}] - 2 * s.seen.t0) / 2 / (s.seen.t1 - s.seen.t0) * s.width, 34 + 18 + 7]"
    )
    for scroll in (0, 40, 1e9):
        opened.stage(f"s.scrollTo({scroll})")
        assert opened.stage(f"s.eventUnder({x}, {y})") == event  # it does not move
    assert y < 34 + pane
    opened.page.locator("details.rows summary").click()
    opened.page.locator("details.rows li", has_text=opened.stage("t.bandLabel(0)")).locator("text=hide").click()
    assert opened.page.locator("details.rows summary").inner_text() == "rows (1 hidden)"
    assert 0 not in [band for band, _ in opened.stage(shown)]
    opened.page.locator("select[aria-label='Height of the rows']").select_option("30")
    assert opened.stage("s.layout.pane") > pane
    opened.page.wait_for_timeout(400)
    address, before = opened.page.url, opened.stage(shown)
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert opened.stage(shown) == before
    assert opened.stage("s.layout.row") == 30
    opened.stage("s.visit(0)")  # what is shown is never hidden
    assert 0 in [band for band, _ in opened.stage(shown)]
    opened.page.locator("details.rows summary").click()
    opened.page.locator("details.rows button", has_text="as it was").click()
    assert opened.stage(shown) == [[band, False] for band in range(bands)]
    assert opened.messages == []


def modular():
    """A model of two blocks, each of two layers, in two steps; with Python frames."""
    story = Story()
    for i in range(2):
        at = 10_000 * i
        story.step(i, at=at, us=9_000)
        story.frame("nn.Module: Net_0", at=at + 100, us=8_000)
        for b in range(2):
            story.frame(f"nn.Module: Block_{b}", at=at + 200 + 4_000 * b, us=3_500)
            for k in range(2):
                start = at + 300 + 4_000 * b + 1_500 * k
                story.frame(f"nn.Module: Linear_{k}", at=start, us=1_000)
                story.op("aten::mm", at=start + 100, us=800)
                story.kernel("gemm", at=start + 300, us=500 * (1 + b), launch_at=start + 200)
    return story.trace()


def test_modules_are_a_tree_that_opens_level_by_level(open_page):
    opened = open_page(page_of(modular()))
    opened.stage("s.measure([0, 20e6])")
    opened.page.locator(".selected button", has_text="modules").click()
    names = "[...document.querySelectorAll('.stage tbody button.link:not(.level)')].map((b) => b.textContent)"
    tree = opened.page.locator(".stage .wide")
    cells = lambda name: tree.locator("tr", has_text=name).first.locator("td").all_inner_texts()[1:]  # noqa: E731
    assert cells("Net_0") == ["6.00 ms", "100%", "0 us", "16.0 ms", "2"]
    assert cells("Block_1") == ["4.00 ms", "67%", "0 us", "7.00 ms", "2"]
    tree.locator("tr", has_text="Block_0").locator("button.level").press("Enter")
    assert tree.locator("tr", has_text="Linear_").count() == 4
    tree.locator("tr", has_text="Block_1").locator("button.level").click()
    assert tree.locator("tr", has_text="Linear_").count() == 2
    tree.locator("tr", has_text="Block_1").locator("button.link:not(.level)").click()
    lit = "t.name.reduce((n, name, i) => n + (s.lit.before[i + 1] > s.lit.before[i]), 0)"
    assert opened.stage(lit) == 2 + 4  # its calls, and the kernels below it
    opened.page.locator("select[aria-label=Step]").select_option(index=1)
    assert cells("Net_0") == ["3.00 ms", "100%", "0 us", "8.00 ms", "1"]
    assert "Net_0" in opened.page.evaluate(names)
    assert opened.messages == []


def test_tables_tell_amounts_of_a_step(opened, trace):
    opened.page.locator("summary", has_text="Operators").click()
    table = opened.page.locator("details[open] table[data-sortable]")
    row = table.locator("tbody tr").first
    found = next(one for one in trace.ops() if one["name"] == row.locator("td").first.inner_text())
    at = table.locator("th").all_inner_texts().index("host total")
    cell = row.locator("td").nth(at)
    assert cell.inner_text() == duration(found["host_total_us"])
    opened.page.locator("details[open] label", has_text="per step").locator("input").check()
    assert cell.inner_text() == duration(found["host_total_us"] / 4)
    opened.page.locator("details[open] label", has_text="per step").locator("input").uncheck()
    assert cell.inner_text() == duration(found["host_total_us"])
    shares = table.locator("tbody tr:not(.total)").evaluate_all(
        f"(rows) => rows.map((row) => [parseFloat(row.cells[{at}].style.getPropertyValue('--share')) || 0, "
        f"Number(row.cells[{at}].dataset.value)])"
    )
    most = max(value for _, value in shares)
    assert [share for share, _ in shares] == pytest.approx([100 * value / most for _, value in shares])


def test_columns_that_say_nothing_are_left_out(opened, trace):
    empty = {c for c, values in trace.kernels().columns.items() if not any(one not in (0, -1, "") for one in values)}
    assert {"registers", "adapted"} <= empty
    opened.page.locator("summary", has_text="Kernels").click()
    titles = set(opened.page.locator("details[open] table[data-sortable] th").all_inner_texts())
    assert {"name", "calls", "total"} <= titles
    assert not {column.removesuffix("_us").replace("_", " ") for column in empty} & titles


def test_an_event_is_found_again_in_a_coarser_page(open_page):
    timeline = timeline_of(generated(20_000))
    text = page('<h1>x</h1><div id="stage"></div>', "x", [timeline])
    opened = open_page(text)
    chosen = int(np.argmax(timeline.end - timeline.start))
    opened.stage(f"s.visit({chosen})")
    opened.page.wait_for_timeout(400)
    place = opened.page.url.split("#")[1]
    coarse = open_page(page('<h1>x</h1><div id="stage"></div>', "x", [timeline], max_size=len(text) - 60_000))
    coarse.page.goto("about:blank")
    coarse.page.goto(f"file://{coarse.file}#{place}")
    coarse.page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert coarse.stage("t.count") < len(timeline)
    assert coarse.stage("[t.text(s.selected), Math.round(t.start[s.selected] / 1000)]") == [
        timeline.names[timeline.name[chosen]],
        int(timeline.start[chosen] // 1000),
    ]


def test_tables_are_sorted_by_their_headings(opened, trace):
    opened.page.locator("summary", has_text="Kernels").click()
    table = opened.page.locator("details[open] table[data-sortable]")
    table.locator("th button", has_text="calls").click()
    assert table.locator("th[aria-sort=descending]").inner_text() == "calls"
    calls = [row["calls"] for row in trace.kernels()]
    at = table.locator("th").all_inner_texts().index("calls")
    rows = table.locator("tbody tr:not(.total)").all()
    assert [int(row.locator("td").nth(at).inner_text()) for row in rows] == sorted(calls, reverse=True)


def test_the_theme_is_switched(opened):
    paper = "getComputedStyle(document.body).backgroundColor"
    opened.page.locator("#theme").click()
    light = opened.page.evaluate(paper)
    opened.page.locator("#theme").click()
    assert opened.page.locator("#theme").inner_text() == "Theme: dark"
    assert opened.page.evaluate(paper) != light


def hostile():
    """Every text that a trace may bring tries to become something else."""
    bad = [
        "</script><script>window.pwned=1</script>",
        '<img src=x onerror="window.pwned=1">',
        "__proto__",
        "constructor",
    ]
    bad += ["\u2028\u2029\u202egnirts\u202c", "${window.pwned=1}", "A" * 100_000, "<!--", "]]>", "&lt;b&gt;", "x\x00y"]
    story = Story(gpu=bad[0])
    story.events.append({"ph": "M", "name": "thread_name", "pid": 100, "tid": 100, "args": {"name": bad[1]}})
    for i, name in enumerate(bad * 5):
        story.note(f"ProfilerStep#{i}{name}", at=1000 * i, us=999)
        story.frame(f"{name}.py(3): {name}", at=1000 * i, us=998)
        story.op(name, at=1000 * i + 10, us=900, **{"Input Dims": [[name]]})
        story.kernel(name, at=1000 * i + 100, us=500, launch_at=1000 * i + 20)
    return story.trace(bad[1])


def test_a_hostile_trace_does_nothing(open_page):
    opened = open_page(page_of(hostile()))
    opened.page.locator(".tools input[type=search]").fill("<img")
    opened.stage("(s.foldFrames(false), s.next(1))")
    for link in opened.page.locator("button[data-show]:visible").all()[:10]:
        link.click()
    for box in opened.page.locator("[data-fix]").all():
        box.check()
    assert opened.messages == []
    assert len(opened.requests) == 1
    assert opened.page.evaluate("[window.pwned, ({}).pwned, document.images.length]") == [None, None, 0]


@pytest.mark.parametrize(
    "code",
    [
        "document.body.innerHTML = '<b>x</b>'",
        "document.querySelector('script').text = 'window.pwned = 1'",
        "await import('data:text/javascript,1')",
        "await fetch('https://example.org')",
        "await new Promise((good, bad) => Object.assign(new Image(), {onload: good, onerror: bad, src: 'http://[::1]:9/'}))",
    ],
)
def test_the_policy_refuses_what_the_scripts_never_do(opened, code):
    tried = f"(async () => {{ try {{ {code}; return 'done' }} catch (error) {{ return 'refused' }} }})()"
    assert opened.page.evaluate(tried) == "refused"
    assert opened.page.evaluate("window.pwned") is None


def test_a_bound_on_the_size_is_held_and_told(open_page):
    trace = generated(200_000)
    timeline = timeline_of(trace)
    made = functools.partial(page, '<h1>x</h1><div id="stage"></div>', "x", [timeline])
    bound = len(made().encode()) // 4
    text = made(max_size=bound)
    assert len(text.encode()) <= bound
    opened = open_page(text)
    told = " ".join(opened.page.locator("#stage .note").all_inner_texts())
    assert "rounded down to 1.00 us" in told
    left_out = int(re.search(r"([\d,]+) (?:events?|Python frames?) shorter", told)[1].replace(",", ""))
    assert opened.stage("t.count") == len(timeline) - left_out


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing(open_page, text, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened = open_page(text, color_scheme=scheme, reduced_motion="reduce")
    opened.page.locator("summary").first.click()
    opened.stage("(s.visit(20), s.marks.add(5e7), s.arrange((rows) => rows.pinned.add(0)))")
    opened.page.locator("summary", has_text="Kernels").click()
    if scheme == "dark":
        opened.page.locator(".tools input[type=search]").fill("kernel")
    else:
        opened.stage("s.measure([0, 1e8])")
        opened.page.locator(".selected button", has_text="flame graph").click()
    opened.page.locator("details.rows summary").click()
    found = axe.run(opened.page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
    moving = "document.getAnimations().length"
    assert opened.page.evaluate(moving) == 0


def test_axe_finds_nothing_on_the_page_of_two_traces(open_page, trace):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright").Axe()
    opened = open_page(difference_page(trace, program(), diff(trace, program())))
    found = axe.run(opened.page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []


@pytest.mark.parametrize("media", ["screen", "print"])
def test_without_scripts_everything_but_the_timeline_is_there(open_page, text, trace, findings, media):
    opened = open_page(text, ready=False, java_script_enabled=False)
    opened.page.emulate_media(media=media)
    shown = opened.page.locator("body")
    for finding in findings:
        folded = media == "screen" and finding.severity == "info"
        assert finding.title in (shown.text_content() if folded else shown.inner_text())
    for each in ("verdict", "steps", "findings", "tables"):
        assert opened.page.locator(f"#{each}").is_visible()
    assert not opened.page.locator("#timeline").is_visible()
    if media == "print":  # closed tables are printed
        for title in ("Kernels", "Operators"):
            assert opened.page.locator("details", has_text=title).locator("td").first.is_visible()
        assert opened.page.pdf().startswith(b"%PDF")


def cpu_only():
    story = Story(gpu=None)
    story.op("aten::mm", at=0, us=20)
    return story.trace()


def gpu_only():
    story = Story()
    story.kernel("gemm", at=0, us=20)
    return story.trace()


def without_steps():
    story = Story()
    for i in range(20):
        story.op(f"aten::op{i}", at=i * 97 % 1000, us=20 + i)
        story.kernel(f"k{i}", at=2000 + i * 97, us=20, launch_at=i * 97 % 1000)
    return story.trace()


def thousand_streams():
    story = Story()
    for i in range(1000):
        story.kernel("gemm", at=i, us=20, stream=i)
    return story.trace()


def near_two_to_the_53():
    story = Story()
    story.step(1, at=2**53 // 1000 - 1000, us=900)
    story.kernel("gemm", at=2**53 // 1000 - 500, us=20, launch_at=2**53 // 1000 - 600)
    return story.trace()


def damaged():
    story = Story()
    story.op("aten::mm", at=0, us=20)
    story.op("aten::mm", at=30, us=-5)
    story.op("aten::mm", at=10**15, us=5)
    story.kernel("gemm", at=40, us=10**14)
    return story.trace()


ODD = [cpu_only, gpu_only, without_steps, thousand_streams, near_two_to_the_53, damaged, lambda: Story().trace()]


@pytest.mark.parametrize("made", ODD, ids=lambda made: made.__name__.replace("<lambda>", "empty"))
def test_odd_traces_open_quietly(open_page, made):
    trace = made()
    opened = open_page(page_of(trace))
    opened.page.keyboard.press("f")
    opened.page.locator(".view").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "w", "d", "s", ".", ",", "n", "Escape", "f"):
        opened.page.keyboard.press(key)
    opened.page.mouse.move(500, 500)
    opened.page.mouse.wheel(0, 100)
    assert opened.messages == []
    assert opened.stage("t.count") == len(timeline_of(trace))


def test_two_timelines_move_together(open_page, trace):
    made = [timeline_of(trace), timeline_of(program())]
    opened = open_page(page('<div id="stage-0"></div><div id="stage-1"></div>', "both", made))
    views = "torchwhyReport.stages.map((one) => [one.seen.t0, one.seen.t1])"
    first, second = opened.page.evaluate(views)
    assert first == second  # from the first paint
    opened.stage("s.look(50e6, 60e6)")
    shown = opened.page.evaluate("torchwhyReport.stages.map((one) => [one.seen.t0, one.seen.t1])")
    assert shown == [[50e6, 60e6]] * 2
    assert opened.messages == []


def test_two_timelines_of_different_lengths_keep_one_scale(open_page):
    long, short = program(), Story()
    short.step(1, at=30_000, us=99_000)
    short.kernel("gemm", at=31_000, us=90_000, launch_at=30_500)
    made = [timeline_of(long), timeline_of(short.trace())]
    opened = open_page(page('<div id="stage-0"></div><div id="stage-1"></div>', "both", made))
    views = "torchwhyReport.stages.map((s) => [s.seen.t0 - s.timeline.window[0], s.seen.t1 - s.timeline.window[0]])"
    gestures = ("stages[0].fit()", "stages[1].zoom(0.5)", "stages[1].fit()", "stages[0].pan(9)", "stages[1].pan(-9)")
    for gesture in ("1", *gestures):
        opened.page.evaluate(f"(({{stages}}) => {gesture})(torchwhyReport)")
        first, second = opened.page.evaluate(views)
        assert first == pytest.approx(second, abs=1)


def test_a_phone_shows_all_of_it(browser, open_page, text):
    opened = open_page(text, viewport={"width": 390, "height": 844}, has_touch=True)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= 390
    assert opened.page.locator("header").bounding_box()["height"] < 60
    touch = opened.page.context.new_cdp_session(opened.page)
    opened.page.locator(".view").scroll_into_view_if_needed()
    box = opened.page.locator(".view").bounding_box()
    middle, y = box["x"] + box["width"] / 2, box["y"] + 80

    def fingers(kind, *xs, y=y):
        points = [{"x": x, "y": y, "id": i} for i, x in enumerate(xs)]
        touch.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    before = opened.stage("s.seen.t1 - s.seen.t0")
    fingers("touchStart", middle - 30, middle + 30)
    for apart in (45, 60, 90):
        fingers("touchMove", middle - apart, middle + apart)
    fingers("touchEnd")
    assert opened.stage("s.seen.t1 - s.seen.t0") == pytest.approx(before / 3, rel=0.05)
    top = opened.page.evaluate("scrollY")
    fingers("touchStart", middle)
    for step in range(1, 8):
        fingers("touchMove", middle, y=y - 20 * step)
    fingers("touchEnd")
    opened.page.wait_for_timeout(300)
    assert opened.page.evaluate("scrollY") != top  # a swipe scrolls the page: the timeline is no trap
    assert opened.messages == []


def test_a_search_lists_the_names_it_found(opened, trace):
    opened.page.locator(".tools input[type=search]").fill(r"/kernel\d/")
    table = trace.kernels()
    opened.page.wait_for_timeout(300)
    cells = "[...document.querySelectorAll('.selected tbody tr')].map((row) => [...row.cells].map((c) => c.innerText))"
    assert [[row[0], row[1], row[4]] for row in opened.page.evaluate(cells)] == [
        [row["name"], duration(row["total_us"]), str(row["calls"])] for row in table
    ]
    opened.page.locator(".selected tbody button").first.click()
    assert opened.stage("s.lit.count") == table["calls"][0]
    opened.page.keyboard.press("Escape")
    assert "Drag to measure" in opened.page.locator(".selected").inner_text()


def test_only_rows_with_what_is_found_are_shown_on_demand(opened):
    opened.page.locator(".tools input[type=search]").fill("kernel1")
    opened.page.locator("details.rows summary").click()
    opened.page.locator("details.rows label", has_text="only rows").locator("input").check()
    sides = "s.layout.bands.map(({ band }) => t.bands[band].side)"
    assert opened.stage(sides) == ["device"]
    opened.page.locator(".tools input[type=search]").fill("")
    assert len(opened.stage(sides)) == opened.stage("t.bands.length")


def test_a_pointer_over_work_tells_what_it_is_and_points_at_its_launch(opened):
    opened.stage("(s.look(51e6, 60e6), s.element.scrollIntoView())")
    work, launch = opened.stage("[t.work[1], t.launch[1]]")
    box = opened.page.locator(".view").bounding_box()
    x, y = opened.stage(
        f"[((t.start[{work}] + t.end[{work}]) / 2 - s.seen.t0) / (s.seen.t1 - s.seen.t0) * s.width, "
        f"34 - s.seen.y + s.layout.of[t.bandOf(t.rowOf({work}))].top + 18 + 7]"
    )
    opened.page.mouse.move(box["x"] + 1 + x, box["y"] + y)
    assert opened.stage("s.hinted") == [[launch, work]]
    told = opened.page.locator(".tip").inner_text().splitlines()
    assert told[0].startswith(opened.stage(f"t.label({work})") + ": ")
    assert opened.stage(f"t.bandLabel(t.bandOf(t.rowOf({work})))") in told[1]
    opened.page.mouse.move(box["x"] + 1 + x, box["y"] - 50)
    assert opened.stage("s.hinted") == []
    assert not opened.page.locator(".tip").is_visible()


def test_search_knows_expressions_and_kinds(opened):
    search, count = opened.page.locator(".tools input[type=search]"), opened.page.locator(".count")
    search.fill("/kernel[01]/")
    of_two = opened.stage("t.name.reduce((n, name) => n + /kernel[01]/.test(t.names[name]), 0)")
    assert count.inner_text() == str(of_two)
    opened.page.locator("select[aria-label='Kind of events']").select_option("1")
    assert count.inner_text() == "none found"
    search.fill("/(/")
    assert count.inner_text() == "not a regular expression"
    search.fill("")
    operators = opened.stage("t.kind.reduce((n, kind) => n + (kind === 1), 0)")
    assert count.inner_text() == str(operators)


def test_search_and_the_next_one_take_less_than_a_frame(open_page):
    timeline = timeline_of(generated(1_200_000))
    opened = open_page(page('<h1>Large</h1><div id="stage"></div>', "Large", [timeline]))
    took = opened.page.evaluate(
        """(() => { const input = document.querySelector(".tools input[type=search]"), took = [];
        const stage = torchwhyReport.stages[0];
        for (const text of ["a", "ad", "add", "addm"]) { input.value = text; const began = performance.now();
          input.dispatchEvent(new Event("input")); took.push(performance.now() - began) }
        const next = []; for (let i = 0; i < 4; i++) { const began = performance.now(); stage.next(1);
          next.push(performance.now() - began) }
        return [took, next] })()"""
    )
    assert statistics.median(took[0]) < 32  # half of it on an idle machine
    assert statistics.median(took[1]) < 32


def test_the_devices_of_all_ranks_stand_together(open_page):
    ranks = joined([Source(f"rank {i}", timeline_of(program()), 1000 * i) for i in range(3)])
    opened = open_page(page('<button data-show="rank:2">2</button><div id="stage"></div>', "job", [ranks]))
    shown = opened.stage(
        "t.bands.filter((_, i) => !s.arrangement.folded.has(i)).map((band) => [band.source, band.side])"
    )
    assert shown == [[f"rank {i}", "device"] for i in range(3)]
    opened.page.locator('[data-show="rank:2"]').click()
    assert opened.page.locator(".speech").inner_text() == "Shown: rank 2"
    assert opened.messages == []
