"""What a reader does with the timeline, in a real browser: measure, search, mark, arrange, follow."""

import random
import re

import numpy as np
import pytest

from tests.page.generated import generated
from tests.page.program import page_of
from tests.traces import Story
from torchwhy import load
from torchwhy.page.assemble import page
from torchwhy.page.timeline import timeline_of
from torchwhy.trace.meaning.kinds import GPU_WORK
from torchwhy.wording import duration

pytestmark = [pytest.mark.browser, pytest.mark.many]


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


def test_the_backward_pass_counts_for_modules_and_is_followed(open_page):
    story = Story()
    story.step(1, at=0, us=9_000)
    story.frame("nn.Module: Net_0", at=100, us=2_000)
    for k in range(2):
        number = {"Sequence number": k + 1}
        story.frame(f"nn.Module: Linear_{k}", at=200 + 900 * k, us=800)
        story.op("aten::mm", at=300 + 900 * k, us=600, **number)
        story.kernel("gemm", at=500 + 900 * k, us=100, launch_at=400 + 900 * k)
        at = 4_000 + 1_000 * k
        story.op("MmBackward0", at=at, us=900, tid=300, **{**number, "Fwd thread id": 1})
        story.kernel("dgrad", at=at + 300, us=200 + 100 * k, launch_at=at + 100, tid=300)
    opened = open_page(page_of(story.trace()))
    opened.stage("s.measure([0, 9e6])")
    opened.page.locator(".selected button", has_text="modules").click()
    tree = opened.page.locator(".stage .wide")
    cells = lambda name: tree.locator("tr", has_text=name).first.locator("td").all_inner_texts()[1:]  # noqa: E731
    assert cells("Net_0") == ["700 us", "100%", "200 us", "500 us", "0 us", "2.00 ms", "1"]
    assert cells("Linear_1") == ["400 us", "57%", "100 us", "300 us", "400 us", "800 us", "1"]
    opened.stage("(s.measure(null), s.visit([...t.name].findIndex((name) => t.names[name] === 'MmBackward0')))")
    opened.page.locator(".selected dt", has_text="backward of").wait_for()
    opened.page.locator(".selected dd button", has_text="aten::mm").first.click()
    assert opened.stage("t.text(s.selected)") == "aten::mm"
    assert "MmBackward0" in opened.page.locator(".selected").inner_text()
    assert opened.messages == []


def test_views_are_gone_back_to(opened):
    keys, view = opened.page.keyboard, "[s.seen.t0, s.seen.t1]"
    opened.page.locator(".view").focus()
    seen = [opened.stage(view)]
    for change in ("s.look(10e6, 60e6)", "s.look(20e6, 30e6)"):
        opened.stage(change)
        opened.page.wait_for_timeout(500)
        seen.append(opened.stage(view))
    for key, wanted in (("z", seen[1]), ("z", seen[0]), ("z", seen[0]), ("x", seen[1]), ("x", seen[2]), ("x", seen[2])):
        keys.press(key)
        assert opened.stage(view) == wanted
    assert opened.messages == []


def test_keys_zoom_at_the_pointer_and_the_middle_button_moves(opened):
    opened.page.locator(".view").scroll_into_view_if_needed()
    box = opened.page.locator(".view").bounding_box()
    x, y = box["x"] + 1 + 0.25 * opened.stage("s.width"), box["y"] + 60
    opened.page.mouse.move(x, y)
    at = opened.stage("s.cursor")
    opened.page.keyboard.press("w")
    assert opened.stage("s.timeAt(s.width / 4)") == pytest.approx(at, rel=1e-6)
    length = opened.stage("s.seen.t1 - s.seen.t0")
    opened.page.mouse.down(button="middle")
    opened.page.mouse.move(x + 50, y)
    opened.page.mouse.move(x + 100, y)
    opened.page.mouse.up(button="middle")
    assert opened.stage("s.timeAt(s.width / 4 + 100)") == pytest.approx(at, rel=1e-6)  # it stays under the pointer
    assert opened.stage("s.seen.t1 - s.seen.t0") == pytest.approx(length)
    assert opened.stage("[s.range, s.selected]") == [None, -1]


def test_search_says_what_is_wrong_and_finds_arguments(open_page):
    story = Story()
    story.step(1, at=0, us=900)
    for i in range(6):
        story.op("aten::mm", at=10 + 100 * i, us=80, **{"Input Dims": [[i % 3, 4], [4, 5]]})
    opened = open_page(page_of(story.trace()))
    search, count = opened.page.locator(".tools input[type=search]"), opened.page.locator(".count")
    search.fill("/mm(/")
    assert count.inner_text() == "no regular expression: Unterminated group"
    search.fill("shapes: [2, 4]")
    assert count.inner_text() == "2"
    search.press("Enter")
    assert opened.stage("t.argumentsOf(s.selected)[0][1]").replace(" ", "").startswith("[[2,4]")
    search.fill("grid: 1")  # no event has one: it is looked for in names
    assert count.inner_text() == "none found"


def test_what_an_arrow_leads_to_is_named_also_out_of_view(opened):
    opened.stage("(s.visit(t.work[0]), s.look(t.start[t.work[0]] + 1, t.end[t.work[0]] - 1))")
    boxes = opened.stage(
        """(() => { const said = [], fill = s.strokes.fillText;
        s.strokes.fillText = function (text, ...rest) { said.push(text); return fill.call(this, text, ...rest) };
        s.draw(); delete s.strokes.fillText; return said })()"""
    )
    assert any(re.fullmatch("\u2039 cudaMemcpyAsync, [0-9.]+ us before", text) for text in boxes)
    opened.page.keyboard.press("[")
    assert opened.stage("t.text(s.selected)") == "cudaMemcpyAsync"
    opened.page.keyboard.press("]")
    assert opened.stage("s.selected") == opened.stage("t.work[0]")


def test_curves_are_rows_with_values(open_page):
    story = Story()
    story.step(1, at=0, us=1000)
    story.op("aten::mm", at=0, us=1000)
    for i in range(10):
        story.memory(at=100 * i, size=10**6, allocated=i * 10**6)
    opened = open_page(page_of(story.trace()))
    band = opened.stage("t.bands.length")
    opened.stage("s.measure([250e3, 450e3])")
    opened.page.locator(".selected h3", has_text="of the window").wait_for()
    row = opened.page.locator(".selected tr", has_text="memory in use")
    assert row.locator("td").all_inner_texts()[1:] == ["2.00 MB", "3.00 MB", "4.00 MB"]
    opened.page.locator(".selected button", has_text="copy").click()
    copied = opened.page.evaluate("document.documentElement.dataset.copied")
    assert "| GPU 0 memory in use | 2.00 MB | 3.00 MB | 4.00 MB |" in copied
    opened.stage(f"s.arrange(({{ pinned }}) => pinned.add({band}))")
    assert opened.stage(f"s.layout.of[{band}].pinned")
    opened.page.locator(".view").scroll_into_view_if_needed()
    box = opened.page.locator(".view").bounding_box()
    x = box["x"] + 1 + opened.stage("(550e3 - s.seen.t0) / (s.seen.t1 - s.seen.t0) * s.width")
    opened.page.mouse.move(x, box["y"] + 34 + 30)
    tip = opened.page.locator(".tip").inner_text().split("\n")
    assert tip[0] == "GPU 0 memory in use: 5.00 MB"
    assert tip[1].startswith("+1.00 MB 50")
    assert tip[2] == "for 100 us"
    height = opened.stage("s.layout.pane")
    opened.page.mouse.click(x, box["y"] + 34 + 9)  # on its heading
    assert opened.stage("s.layout.pane") == height - 36
    assert opened.messages == []


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
    assert count.inner_text() == "no regular expression: Unterminated group"
    search.fill("")
    operators = opened.stage("t.kind.reduce((n, kind) => n + (kind === 1), 0)")
    assert count.inner_text() == str(operators)


def test_what_is_in_view_is_summed_up_where_nothing_is_chosen(opened):
    panel = opened.page.locator(".selected")
    for part in ("s.look(...t.span)", "s.look(t.span[0], (t.span[0] + t.span[1]) / 2)", "s.look(0, 50e6)"):
        opened.stage(part)
        length, events = opened.stage(
            "(() => {const within = (i) => t.end[i] > s.seen.t0 && t.start[i] < s.seen.t1;"
            "return [Math.min(s.seen.t1, t.span[1]) - Math.max(s.seen.t0, t.span[0]),"
            "t.start.reduce((sum, _, i) => sum + within(i), 0)]})()"
        )
        panel.locator("h3", has_text=f"In view: {duration(length / 1000)}, {events} events").wait_for()
    share = panel.locator("tbody tr", has_text="stream").first.locator("td").nth(2).inner_text()
    mean = panel.locator("tbody tr", has_text="busy, of each").locator("td").nth(2).inner_text()
    assert float(share.strip("%")) == pytest.approx(float(mean.strip("%")), abs=1)
    opened.stage("s.visit(3)")
    assert "In view" not in panel.inner_text()
    assert opened.messages == []


def test_a_drag_snaps_to_edges_and_its_ends_can_be_moved(opened):
    mouse, view = opened.page.mouse, opened.page.locator(".view")
    view.scroll_into_view_if_needed()
    event = opened.stage("t.work[3]")
    opened.stage(f"s.visit({event})")
    opened.page.keyboard.press("f")
    start, end = opened.stage(f"[t.start[{event}], t.end[{event}]]")
    box = view.bounding_box()
    x = "((time) => (time - s.seen.t0) / (s.seen.t1 - s.seen.t0) * s.width)"
    row = opened.stage(f"s.layout.of[t.bandOf(t.rowOf({event}))].top + 34 + 18 + 7 - s.seen.y + s.layout.pane")

    def place(time, beside=0):
        return box["x"] + 1 + opened.stage(f"{x}({time})") + beside, box["y"] + row

    def drag(from_, to):
        mouse.move(*from_)
        mouse.down()
        mouse.move(*to, steps=4)
        mouse.up()

    drag(place(start, -4), place(end, 4))
    assert opened.stage("s.range") == [start, end]
    middle = (start + end) / 2
    drag(place(end, 2), place(middle))  # takes hold of the end
    assert opened.stage("s.range")[0] == start
    assert opened.stage("s.range")[1] == pytest.approx(middle, rel=1e-3)
    opened.page.keyboard.down("Alt")
    drag(place(start, -20), place(end, 4))
    opened.page.keyboard.up("Alt")
    assert opened.stage("s.range")[1] > end
    assert opened.messages == []


def test_a_drag_beyond_the_edge_moves_the_view(opened):
    view = opened.page.locator(".view")
    view.scroll_into_view_if_needed()
    opened.stage("s.look(20e6, 60e6)")
    box = view.bounding_box()
    opened.page.mouse.move(box["x"] + 300, box["y"] + 60)
    opened.page.mouse.down()
    opened.page.mouse.move(box["x"] + box["width"] + 100, box["y"] + 60, steps=3)
    opened.page.wait_for_timeout(300)
    opened.page.mouse.up()
    seen, measured = opened.stage("s.seen"), opened.stage("s.range")
    assert seen["t0"] > 20e6
    assert measured[1] > seen["t1"]
    opened.page.wait_for_timeout(100)
    assert opened.stage("s.seen") == seen
    assert opened.messages == []


def test_keys_that_are_held_go_on_and_jumps_are_drawn_as_movements(opened):
    keys = opened.page.keyboard
    opened.page.locator(".view").focus()
    opened.stage("s.look(...t.span)")
    whole = opened.stage("s.seen.t1 - s.seen.t0")
    keys.press("w")
    assert opened.stage("s.seen.t1 - s.seen.t0") == pytest.approx(whole / 1.25)
    keys.down("w")
    opened.page.wait_for_timeout(600)
    keys.up("w")
    held = opened.stage("s.seen.t1 - s.seen.t0")
    assert held < whole / 1.25**3
    opened.page.wait_for_timeout(200)
    assert opened.stage("s.seen.t1 - s.seen.t0") == held
    assert opened.stage("s.glide.drawn") == opened.stage("s.seen")
    between = opened.page.evaluate(
        "() => new Promise((done) => {const s = torchwhyReport.stages[0], drawn = []; s.fit();"
        "const look = () => {drawn.push(s.glide.drawn.t1 - s.glide.drawn.t0);"
        "if (s.glide.from) requestAnimationFrame(look); else done(drawn)}; look()})"
    )
    assert between == sorted(between)
    assert between[0] == held
    assert between[-1] == pytest.approx(opened.stage("s.seen.t1 - s.seen.t0"))
    assert opened.messages == []


def test_who_asks_for_less_motion_sees_none(open_page, text):
    opened = open_page(text, reduced_motion="reduce")
    assert opened.stage("(s.look(20e6, 30e6), s.draw(), s.fit(), s.glide.from)") is None


def test_the_address_holds_the_window_and_the_kind(opened):
    opened.stage("(s.window = [20e6, 60e6], s.fit())")
    opened.page.locator(".tools select").first.select_option(label="kernels")
    opened.page.wait_for_timeout(600)
    state = "[s.window, s.lit.count, s.seen.t0]"
    wanted = opened.stage(state)
    address = opened.page.url
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert opened.stage(state) == wanted
