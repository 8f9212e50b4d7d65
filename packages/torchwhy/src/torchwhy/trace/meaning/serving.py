"""Steps of inference servers: how vLLM, SGLang and TensorRT-LLM label a round of their scheduler, and what it holds.

Sources: `annotate_profile` in vLLM 0.33 (`v1/worker/gpu_worker.py`), `build_step_span_name` in SGLang 0.5.23
(`srt/utils/profile_utils.py`).
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = ["SERVER_STEP", "ServerStep", "phase", "server_step"]

SERVER_STEP: Final = Meaning(
    r"step\[[A-Z][A-Z_0-9]*\b"  # SGLang: step[DECODE bs=32], step[EXTEND bs=1 toks=1024]
    r"|execute_(context|new)_\d+"  # vLLM: execute_context_1(512)_generation_7(7), formerly execute_new_1_cached_7
    r"|execute_\d+_context_\d+"  # vLLM's detailed_trace_annotation: execute_519_context_1(sq512sk512...)_generation_...
    r"|\[Executor\] _forward_step \d+:",  # TensorRT-LLM: ... 1 ctx reqs, 512 ctx tokens, 7 gen reqs
    Kind.ANNOTATION,
)
"""One round of a server's scheduler: the model run once on the requests at hand."""

_MODE: Final = re.compile(r"step\[(?P<mode>[A-Z][A-Z_0-9]*)(?: bs=(?P<batch>\d+))?(?: toks=(?P<tokens>\d+))?")
_MODES: Final = (("DRAFT", "draft"), ("VERIFY", "verify"), ("DECODE", "decode"), ("EXTEND", "prefill"))
_QUERIES: Final = re.compile(r" [cg]_sq=(\d+)")
"""SGLang's detailed annotations: tokens of the prompts (c) and of the answers (g) in the batch."""

_REQUESTS: Final = (
    re.compile(
        r"execute_context_(?P<prefill>\d+)(\((?P<prompt>\d+)\))?_generation_(?P<decode>\d+)(\((?P<answer>\d+)\))?"
    ),
    re.compile(
        r"execute_\d+_context_(?P<prefill>\d+)\(sq(?P<prompt>\d+)\w*\)_generation_(?P<decode>\d+)\(sq(?P<answer>\d+)"
    ),
    re.compile(r"execute_new_(?P<prefill>\d+)_cached_(?P<decode>\d+)"),
    re.compile(
        r"\[Executor\] _forward_step \d+:.*?(?P<prefill>\d+) ctx reqs(.*?(?P<prompt>\d+) ctx tokens)?"
        r".*?(?P<answer>(?P<decode>\d+)) gen reqs"
    ),
)


class ServerStep(NamedTuple):
    """The contents of a round.

    Attributes:
        phase: "prefill", "decode", "mixed" (both), "idle", or another mode of the server: "draft", "verify", ...
        requests: in the batch; None where the label does not say.
        tokens: that the model is run on, of prompts and answers; None where the label does not say.
    """

    phase: str
    requests: int | None
    tokens: int | None


def server_step(name: str) -> ServerStep | None:
    """Return what the label of a server's step says; None for other names.

    >>> server_step("execute_context_1(512)_generation_7(7)")
    ServerStep(phase='mixed', requests=8, tokens=519)
    >>> server_step("step[DECODE bs=32]")
    ServerStep(phase='decode', requests=32, tokens=32)
    """
    if found := _MODE.match(name):
        return _of_sglang(name, found)
    for pattern in _REQUESTS:
        if found := pattern.match(name):
            some, others = int(found["prefill"]), int(found["decode"])
            counted = found.groupdict()
            prompt, answer = counted.get("prompt"), counted.get("answer")
            tokens = int(prompt) + int(answer) if prompt and answer else None
            what = "mixed" if some and others else "prefill" if some else "decode" if others else "idle"
            return ServerStep(what, some + others, tokens)
    return None


def _of_sglang(name: str, found: re.Match[str]) -> ServerStep:
    mode = found["mode"]
    known = (meant for part, meant in _MODES if part in mode)
    what = next(known, "prefill" if "PREFILL" in mode else mode.lower())
    requests = int(found["batch"]) if found["batch"] else None
    detailed = _QUERIES.findall(name)
    if detailed:
        tokens: int | None = sum(map(int, detailed))
    elif found["tokens"]:
        tokens = int(found["tokens"])
    else:
        tokens = requests if mode == "DECODE" else None  # one for each request
    return ServerStep(what, requests, tokens)


def phase(name: str) -> str:
    """Return what a server's step does: "prefill", "decode", "mixed" or another of its modes; "" for other names.

    >>> phase("step[DECODE bs=32]"), phase("execute_context_1(512)_generation_7(7)"), phase("ProfilerStep#5")
    ('decode', 'mixed', '')
    """
    found = server_step(name)
    return found.phase if found else ""
