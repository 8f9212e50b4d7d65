"""Requests of known size to an inference server, all at once, and how long its answers took."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median
from typing import Any

from torchwhy.attach.http import Address
from torchwhy.errors import ArgumentError, TorchWhyError
from torchwhy.wording import safe

__all__ = ["Load", "LoadTimes", "drive"]

_TOKENS = (100, 1000)
"""Numbers of the tokens that prompts are made of: vocabularies have more, and special tokens are rarely there."""

_MOST = 1024


@dataclass(frozen=True)
class Load:
    """The requests to send.

    Attributes:
        requests: sent at once, from 1 to 1024.
        prompt_tokens: of each, > 0; prompts share no beginning, so that no cache of prompts answers.
        output_tokens: that each asks for, > 0, whatever the model would end with.

    Raises:
        ArgumentError: a number out of its range.
    """

    requests: int
    prompt_tokens: int = 512
    output_tokens: int = 32

    def __post_init__(self) -> None:
        """Check the numbers."""
        if not 1 <= self.requests <= _MOST:
            raise ArgumentError(f"--requests must be from 1 to {_MOST}, got {self.requests}")
        for name in ("prompt_tokens", "output_tokens"):
            if getattr(self, name) < 1:
                raise ArgumentError(f"--{name.replace('_', '-')} must be > 0, got {getattr(self, name)}")

    @property
    def steps(self) -> int:
        """Rounds that the server takes at most: a prefill for each request, and a decode for each further token."""
        return self.requests + self.output_tokens


@dataclass(frozen=True)
class LoadTimes:
    """The server's answers, as this process measured them.

    Attributes:
        requests: that were answered.
        failed: that were not, with the reason of the first in `why`.
        seconds: from the first request to the last answer.
        first_token_s: median until the first piece of an answer.
        between_tokens_s: median between two pieces of an answer; None where answers came in one piece.
        output_tokens: of all answers, as the server counts them; None where it does not.
    """

    requests: int
    failed: int
    why: str
    seconds: float
    first_token_s: float | None
    between_tokens_s: float | None
    output_tokens: int | None


@dataclass(frozen=True)
class _Answer:
    moments: tuple[float, ...]
    tokens: int | None
    error: str = ""


def drive(address: Address, model: str, load: Load, seed: int) -> LoadTimes:
    """Send the requests at once to the completions endpoint and wait for all answers.

    Args:
        address: of a server that speaks OpenAI's protocol.
        model: its name there.
        load: how many and how long.
        seed: another seed makes other prompts.
    """
    chance = random.Random(seed)
    prompts = [[chance.randrange(*_TOKENS) for _ in range(load.prompt_tokens)] for _ in range(load.requests)]
    began = time.perf_counter()
    answers: list[_Answer] = []
    threads = [
        threading.Thread(
            target=lambda prompt=prompt: answers.append(_ask(address, model, prompt, load.output_tokens)), daemon=True
        )
        for prompt in prompts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()  # an interrupt ends the wait; requests on their way are given up when the process ends
    return _summed(answers, began)


def _ask(address: Address, model: str, prompt: list[int], tokens: int) -> _Answer:
    body = {
        "model": model,
        "prompt": prompt,
        "max_tokens": tokens,
        "temperature": 0,
        "ignore_eos": True,
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    moments = [time.perf_counter()]
    counted: int | None = None
    try:
        for piece in address.stream("/v1/completions", body):
            found: dict[str, Any] = piece if isinstance(piece, dict) else {}
            if found.get("error"):
                return _Answer(tuple(moments), None, safe(f"{found['error']}"[:200]))
            if found.get("choices"):
                moments.append(time.perf_counter())
            usage = found.get("usage")
            if isinstance(usage, dict) and isinstance(usage.get("completion_tokens"), int):
                counted = usage["completion_tokens"]
    except TorchWhyError as error:
        return _Answer(tuple(moments), None, str(error))
    return _Answer(tuple(moments), counted, "" if len(moments) > 1 else "the answer was empty")


def _summed(answers: Sequence[_Answer], began: float) -> LoadTimes:
    good = [answer for answer in answers if not answer.error]
    between = [later - earlier for answer in good for earlier, later in pairwise(answer.moments[1:])]
    tokens = [answer.tokens for answer in good if answer.tokens is not None]
    return LoadTimes(
        len(good),
        len(answers) - len(good),
        next((answer.error for answer in answers if answer.error), ""),
        max((answer.moments[-1] for answer in answers), default=began) - began,
        median(answer.moments[1] - answer.moments[0] for answer in good) if good else None,
        median(between) if between else None,
        sum(tokens) if good and len(tokens) == len(good) else None,
    )
