"""Steps of inference servers: how vLLM, SGLang and TensorRT-LLM label a round of their scheduler, and its phase."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = ["SERVER_STEP", "phase"]

SERVER_STEP: Final = Meaning(
    r"step\[[A-Z][A-Z_0-9]*\b"  # SGLang: step[DECODE bs=32], step[EXTEND bs=1 toks=1024]
    r"|execute_(context|new)_\d+"  # vLLM: execute_context_1(512)_generation_7(7), formerly execute_new_1_cached_7
    r"|\[Executor\] _forward_step \d+:",  # TensorRT-LLM: ... 1 ctx reqs, 512 ctx tokens, 7 gen reqs
    Kind.ANNOTATION,
)
"""One round of a server's scheduler: the model run once on the requests at hand."""

_MODE: Final = re.compile(r"step\[([A-Z][A-Z_0-9]*)")
_MODES: Final = (("DRAFT", "draft"), ("VERIFY", "verify"), ("DECODE", "decode"), ("EXTEND", "prefill"))
_REQUESTS: Final = (
    re.compile(r"execute_context_(?P<prefill>\d+)(\(\d+\))?_generation_(?P<decode>\d+)"),
    re.compile(r"execute_new_(?P<prefill>\d+)_cached_(?P<decode>\d+)"),
    re.compile(r"\[Executor\] _forward_step \d+:.*?(?P<prefill>\d+) ctx reqs.*?(?P<decode>\d+) gen reqs"),
)


def phase(name: str) -> str:
    """Return what a server's step does: "prefill", "decode", "mixed" or another of its modes; "" for other names.

    >>> phase("step[DECODE bs=32]"), phase("execute_context_1(512)_generation_7(7)"), phase("ProfilerStep#5")
    ('decode', 'mixed', '')
    """
    if found := _MODE.match(name):
        mode = found[1]
        known = (meant for part, meant in _MODES if part in mode)
        return next(known, "prefill" if "PREFILL" in mode else mode.lower())
    for pattern in _REQUESTS:
        if found := pattern.match(name):
            some, others = int(found["prefill"]), int(found["decode"])
            return "mixed" if some and others else "prefill" if some else "decode" if others else "idle"
    return ""
