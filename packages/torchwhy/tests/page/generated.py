"""Traces of any size for tests of the page: nested calls in steps, kernels they launch, Python frames."""

import numpy as np

from torchwhy.trace.file.columns import ABSENT, Argument, Columns, Repairs
from torchwhy.trace.model.trace import Trace


def generated(events: int, *, depth: int = 4, frames: bool = True, seed: int = 0) -> Trace:
    """A trace of about so many drawn events, made without a file."""
    rng = np.random.default_rng(seed)
    per_group = depth + 2 + (depth if frames else 0)  # operators, a launch, its kernel, frames around them
    groups = max(events // per_group, 1)
    program = np.arange(groups) % 500  # does the same again and again, and takes a little longer or shorter each time
    length = rng.integers(4_000, 60_000, 500)[program] + rng.integers(0, 200, 500)[program]
    begins = np.concatenate(([0], np.cumsum(length + rng.integers(0, 5_000, 500)[program])[:-1])) + 1_000
    texts = [
        "cpu_op",
        "cuda_runtime",
        "kernel",
        "python_function",
        "user_annotation",
        "1",
        "2",
        "7",
        "cudaLaunchKernel",
    ]
    texts += [f"aten::operator_{i}" for i in range(100)]
    texts += [f"void kernel_{i}<float>(int, float*)" for i in range(40)]
    texts += [f"model/layers.py({i}): forward" for i in range(200)]
    number = {text: i for i, text in enumerate(texts)}
    parts = []  # category, name, thread, start, duration, correlation

    def add(category, name, thread, start, duration, correlation=ABSENT):
        columns = (number[category], name, number[thread], start, duration, correlation)
        parts.append(np.stack([np.broadcast_to(np.asarray(one, np.int64), (groups,)) for one in columns]))

    for level in range(depth):
        inset = 100 * (level + 1)
        if frames:
            name = number["model/layers.py(0): forward"] + rng.integers(0, 200, 500)[program]
            add("python_function", name, "1", begins + inset // 2, length - inset - rng.integers(0, 40, groups))
        name = number["aten::operator_0"] + rng.integers(0, 100, 500)[program]
        add("cpu_op", name, "1", begins + inset, length - 2 * inset - rng.integers(0, 40, groups))
    ids = np.arange(1, groups + 1)
    add("cuda_runtime", number["cudaLaunchKernel"], "1", begins + 1_000, 1_500, ids)
    kernels = number["void kernel_0<float>(int, float*)"] + rng.integers(0, 40, 500)[program]
    add("kernel", kernels, "7", begins + 3_000, length - 3_500 + rng.integers(0, 100, groups), ids)
    steps = np.arange(0, groups, max(groups // 10, 1))
    for i, first in enumerate(steps.tolist()):
        last = min(first + max(groups // 10, 1), groups) - 1
        texts.append(f"ProfilerStep#{i}")
        start, end = begins[first] - 10, begins[last] + length[last]
        row = (number["user_annotation"], len(texts) - 1, number["1"], start, end - start, ABSENT)
        parts.append(np.array(row, np.int64)[:, None])
    category, name, thread, start, duration, correlation = np.concatenate(parts, axis=1)
    count = len(category)
    known = np.flatnonzero(correlation != ABSENT).astype(np.int32)
    arguments = {"correlation": Argument(known, correlation[known])}
    return Trace(
        "generated",
        Columns(
            phase=np.full(count, ord("X"), np.uint8),
            ts=start,
            dur=duration,
            category=category.astype(np.int32),
            name=name.astype(np.int32),
            pid=np.where(thread == number["7"], number["2"], number["1"]).astype(np.int32),
            tid=thread.astype(np.int32),
            flow=np.full(count, ABSENT),
            offset=np.arange(count, dtype=np.int64),
            arguments=arguments,
            texts=texts,
            top={},
            size=count,
            repairs=Repairs(),
        ),
    )
