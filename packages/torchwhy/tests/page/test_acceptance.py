"""What the page promises, in a real browser: Chromium through playwright."""

import functools
import random
import re
import statistics

import numpy as np
import pytest

from tests.page.generated import generated
from tests.traces import Story
from torchwhy.page.assemble import page
from torchwhy.page.joining import Source, joined
from torchwhy.page.report_page import trace_page
from torchwhy.page.timeline import timeline_of
from torchwhy.report.trace_report import describe
from torchwhy.rules.diagnose import diagnose

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
    opened.stage("(s.visit(17), s.look(1e6, 3e6))")
    opened.page.wait_for_timeout(400)
    address = opened.page.url
    opened.page.goto("about:blank")
    opened.page.goto(address)
    opened.page.wait_for_selector('html[data-ready="1"]', state="attached")
    assert opened.stage("[s.selected, s.seen.t0, s.seen.t1]") == [17, 1e6, 3e6]


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
    opened.page.locator("input[type=search]").fill("<img")
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
    opened.stage("s.visit(20)")
    found = axe.run(opened.page).response["violations"]
    assert [(one["id"], [node["html"] for node in one["nodes"]][:3]) for one in found] == []
    moving = "document.getAnimations().length"
    assert opened.page.evaluate(moving) == 0


@pytest.mark.parametrize("media", ["screen", "print"])
def test_without_scripts_everything_but_the_timeline_is_there(open_page, text, trace, findings, media):
    opened = open_page(text, ready=False, java_script_enabled=False)
    opened.page.emulate_media(media=media)
    shown = opened.page.locator("body").inner_text()
    for finding in findings:
        assert finding.title in shown
    for each in ("verdict", "steps", "findings", "tables"):
        assert opened.page.locator(f"#{each}").is_visible()
    assert not opened.page.locator("#timeline").is_visible()
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
    opened.stage("s.look(50e6, 60e6)")
    shown = opened.page.evaluate("torchwhyReport.stages.map((one) => [one.seen.t0, one.seen.t1])")
    assert shown == [[50e6, 60e6]] * 2
    assert opened.messages == []


def test_the_devices_of_all_ranks_stand_together(open_page):
    ranks = joined([Source(f"rank {i}", timeline_of(program()), 1000 * i) for i in range(3)])
    opened = open_page(page('<button data-show="rank:2">2</button><div id="stage"></div>', "job", [ranks]))
    shown = opened.stage("t.bands.filter((_, i) => !s.folded.has(i)).map((band) => [band.source, band.side])")
    assert shown == [[f"rank {i}", "device"] for i in range(3)]
    opened.page.locator('[data-show="rank:2"]').click()
    assert opened.page.locator(".speech").inner_text() == "Shown: rank 2"
    assert opened.messages == []
