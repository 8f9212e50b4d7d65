"""Write the traces that the site's tutorials read: `python -m tests.tutorial_traces FOLDER`, in packages/torchwhy.

Some were recorded (`tests/recorded`). The others are of programs that are simulated, so that everybody reads the same
numbers: a training loop with three mistakes, which are taken out one after the other, a server that generates text, and
a job of eight ranks with a slow one.
"""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

from tests.compile_log.logs import WHOLE
from tests.hangs.jobs import another_collective, job, write_dumps
from tests.ranks.jobs import write_job
from tests.simulator.chrome import write
from tests.simulator.program import Recording, draw
from tests.simulator.run import simulate
from tests.traces import Story

RECORDED = Path(__file__).parent / "recorded"
SEED = 5
MISTAKES = ("double", "loader-in-process", "item")
STAGES = ("slow", "single", "workers", "fast")
"""The training loop with all mistakes, then without the first, the first two, and all of them."""

RANKS, COMPUTES_US, SLOW_RANK, SLOWER_US = 8, 300, 5, 390

REQUESTS, WORDS, LAYERS = 4, 16, 12
KERNELS = ("rms_norm", "gemv_qkv", "rope", "flash_decode", "gemv_out", "gemv_mlp")
OPERATOR_US, KERNEL_US, LAUNCH_US = 14.0, 3.0, 4.0


def server(*, graphs: bool) -> Story:
    """Return the trace of a server that answers requests, a step for each.

    For each word it runs the layers, and reads the word to see whether the text has ended.

    Args:
        graphs: whether the layers are one CUDA graph, or launched kernel by kernel.
    """
    story = Story(gpu="NVIDIA H100 80GB HBM3", sms=132, record_shapes=1)
    clock = 0.0
    for request in range(REQUESTS):
        start = clock
        for _ in range(WORDS):
            done = _word_from_graph(story, clock) if graphs else _word_by_kernels(story, clock)
            story.op("aten::item", done[0], done[1] - done[0] + 12)
            story.op("aten::_local_scalar_dense", done[0] + 1, done[1] - done[0] + 10)
            story.copy("DtoH (Device -> Pageable)", done[1] + 1, 2, 8, launch_at=done[0] + 2)
            story.call("cudaStreamSynchronize", done[0] + 7, done[1] - done[0] + 2)
            clock = done[1] + 20
        story.step(request, start, clock - start)
    return story


def _word_by_kernels(story: Story, at: float) -> tuple[float, float]:
    """Write the layers of a word; return when the host and when the device is done."""
    free = at
    for layer in range(LAYERS):
        for place, name in enumerate(KERNELS):
            begin = at + (layer * len(KERNELS) + place) * OPERATOR_US
            story.op(f"serve::{name}", begin, OPERATOR_US - 1)
            free = max(free, begin + 6 + LAUNCH_US)
            story.kernel(name, free, KERNEL_US, launch_at=begin + 6, launch_us=LAUNCH_US)
            free += KERNEL_US
    return at + LAYERS * len(KERNELS) * OPERATOR_US, free


def _word_from_graph(story: Story, at: float) -> tuple[float, float]:
    """Write the replay of a word's layers; return when the host and when the device is done."""
    story.call("cudaGraphLaunch", at, 12)
    correlation, free = story.correlation, at + 14
    for _ in range(LAYERS):
        for name in KERNELS:
            event = story.kernel(name, free, KERNEL_US)
            event["args"]["correlation"] = correlation
            event["args"]["graph node id"] = len(story.events)
            free += KERNEL_US + 0.5
    return at + 14, free


def write_traces(folder: Path) -> None:
    """Write all traces into a folder, which may exist."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in (*RECORDED.glob("*.*"), *(RECORDED / "stories").glob("*.*")):
        shutil.copy(path, folder)
    (folder / "breaks.log").write_text(WHOLE.replace("/home/me/", ""))
    write_dumps(folder / "hanging_job", job(4, another_collective))
    program = draw(SEED, MISTAKES, recording=Recording(stacks=False))
    for mended, stage in enumerate(STAGES):
        write(simulate(program.without(*MISTAKES[:mended])), folder / f"{stage}.json.gz")
    server(graphs=False).write(folder / "server.json")
    server(graphs=True).write(folder / "server_graphs.json")
    compute = [SLOWER_US if rank == SLOW_RANK else COMPUTES_US for rank in range(RANKS)]
    write_job(folder / "eight_ranks", RANKS, compute=compute, steps=8)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m tests.tutorial_traces FOLDER")
    write_traces(Path(sys.argv[1]))
