"""Rounds of inference servers: what their labels hold, and how long each phase and batch size takes."""

import random

import pytest

from tests.command_line import run_here
from tests.traces import Story
from torchwhy.trace.meaning.serving import server_step


def simple(prefills, prompt, decodes):
    return f"execute_context_{prefills}({prompt})_generation_{decodes}({decodes})"


def detailed(prefills, prompt, decodes):
    context = f"context_{prefills}(sq{prompt}sk{2 * prompt}sqsq7sqsk9)"
    return f"execute_{prompt + decodes}_{context}_generation_{decodes}(sq{decodes}sk99sqsq1sqsk88)"


def tensorrt(prefills, prompt, decodes):
    return f"[Executor] _forward_step 5: {prefills} ctx reqs, {prompt} ctx tokens, {decodes} gen reqs"


def sglang(prefills, prompt, decodes):
    """With detailed annotations, which alone tell the tokens of a mixed batch."""
    mode = "MIXED" if prefills and decodes else "EXTEND" if prefills else "DECODE"
    tokens = f" toks={prompt}" if mode == "EXTEND" else ""
    counts = f" c_sq={prompt} c_sk=9" if prefills else ""
    counts += f" g_sq={decodes} g_sqsq=1" if decodes else ""
    return f"step[{mode} bs={prefills + decodes}{tokens}{counts} forward_id=77]"


@pytest.mark.parametrize("spelling", [simple, detailed, tensorrt, sglang])
def test_every_spelling_says_phase_requests_and_tokens(spelling):
    chance = random.Random(3)
    for _ in range(200):
        prefills, decodes = chance.choice(
            [(0, 3), (2, 0), (1, 7), (chance.randrange(1, 300), chance.randrange(1, 300))]
        )
        prompt = prefills * chance.randrange(1, 5000)
        found = server_step(spelling(prefills, prompt, decodes))
        assert found.phase == ("mixed" if prefills and decodes else "prefill" if prefills else "decode")
        assert (found.requests, found.tokens) == (prefills + decodes, prompt + decodes)


@pytest.mark.parametrize(
    ("name", "phase", "requests", "tokens"),
    [
        ("execute_new_1_cached_7", "mixed", 8, None),
        ("step[VERIFY bs=3]", "verify", 3, None),
        ("step[DRAFT bs=3]", "draft", 3, None),
        ("step[MIXED bs=3]", "mixed", 3, None),
        ("step[EXTEND bs=2 toks=77]", "prefill", 2, 77),
        ("step[DECODE bs=9]", "decode", 9, 9),
        ("step[IDLE bs=0]", "idle", 0, None),
        ("execute_context_0(0)_generation_0(0)", "idle", 0, 0),
    ],
)
def test_what_labels_do_not_say_is_not_guessed(name, phase, requests, tokens):
    assert server_step(name) == (phase, requests, tokens)


def rounds(*spans, gpu=True):
    """Rounds as (label, when it begins, how long its label is, how long its kernel), microseconds."""
    story = Story(gpu="NVIDIA H100" if gpu else None)
    for name, at, us, kernel in spans:
        story.note(name, at, us)
        story.op("aten::mm", at + 1, 5)
        if gpu:
            story.kernel("k", at + 20, kernel, launch_at=at + 10)
    return story


def test_a_round_lasts_until_the_next_that_generates():
    prefill, decode = simple(1, 512, 0), simple(0, 0, 4)
    table = rounds(
        (prefill, 0, 100, 300),  # 400 us until requests go on
        (decode, 400, 50, 80),  # its own work until 500: the server may have had nothing to do
        (prefill, 2000, 100, 300),
        (decode, 2400, 50, 200),  # 150 us: the next is prepared while the device works
        (decode, 2550, 50, 60),  # the last: its own work
    ).trace()
    rows = {row["phase"]: row for row in table.phases().rows()}
    assert (rows["prefill"]["steps"], rows["prefill"]["time_us"], rows["prefill"]["tokens"]) == (2, 800, 1024)
    assert rows["decode"]["time_us"] == pytest.approx(100 + 150 + 80)
    assert rows["decode"]["median_us"] == 100
    assert rows["decode"]["us_per_token"] == pytest.approx(330 / 12)
    assert rows["decode"]["tokens_per_s"] == pytest.approx(12 / 330e-6)
    assert rows["decode"]["device_us"] == 80


@pytest.mark.parametrize("seed", range(5))
def test_every_round_is_in_one_row_and_none_counts_twice(seed):
    chance = random.Random(seed)
    at, spans, tokens = 0, [], 0
    for _ in range(60):
        prefills, decodes = chance.choice([(0, 3), (2, 0), (1, 7), (0, 8)])
        us = chance.randrange(30, 90)
        spans.append((simple(prefills, 100 * prefills, decodes), at, us, chance.randrange(1, 200)))
        tokens += 100 * prefills + decodes
        at += us + chance.randrange(500)
    trace = rounds(*spans).trace()
    rows = trace.phases().rows()
    assert sum(row["steps"] for row in rows) == 60
    assert sum(row["tokens"] for row in rows) == tokens
    assert len({(row["phase"], row["requests"]) for row in rows}) == len(rows)
    assert sum(row["time_us"] for row in rows) <= trace.window.us + 1e-6
    assert [row["time_us"] for row in rows] == sorted((row["time_us"] for row in rows), reverse=True)


def test_other_programs_have_no_phases(tmp_path):
    story = Story()
    for at in story.steps(3, 100):
        story.op("aten::mm", at + 1, 50)
    assert len(story.trace().phases()) == 0


def test_a_server_on_the_processor_has_no_column_of_a_gpu(tmp_path):
    spans = [(simple(0, 0, 4), 100 * i, 80, 30) for i in range(5)]
    for gpu in (True, False):
        path = rounds(*spans, gpu=gpu).write(tmp_path / "trace.json")
        said = run_here("explain", path, folder=tmp_path).stdout
        assert "Steps of the server by phase and batch size" in said
        head = next(line for line in said.splitlines() if "90% within" in line)
        assert ("GPU busy" in head) is gpu
