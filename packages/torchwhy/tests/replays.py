"""Programs that capture CUDA graphs, replay them, or run the same work without, as traces."""

import json

from tests.traces import Story

LAYER = [  # operator, kernel, and the size of the grid per example
    ("aten::mm", "gemm_64x64", 1),
    ("aten::add", "elementwise_add", 4),
    ("aten::mm", "gemm_64x64", 2),
    ("aten::gelu", "elementwise_gelu", 2),
]
MODEL = [("aten::embedding", "gather", 1), *LAYER * 3, ("aten::mm", "gemm_128x64", 8)]


def dims(operator, batch, place):
    return f"[[{batch}, {64 + place % 4}]]" if operator != "aten::embedding" else f"[[{batch}]]"


class Program(Story):
    """A program whose work is described by lists of (operator, kernel, grid)."""

    def __init__(self, **top):
        super().__init__(gpu="NVIDIA H100 80GB HBM3", **top)
        self.at = 0

    def _around(self, operator, batch, place, module, us):
        self.frame("server.py(7): run", self.at, us)
        self.frame(f"nn.Module: {module}", self.at, us)
        self.op(
            operator,
            self.at,
            us,
            **{"Input Dims": json.loads(dims(operator, batch, place)), "Input type": ["c10::BFloat16"]},
        )

    def launches(self, work, batch, *, module="Model_0", run, named=True, first=0):
        """Make calls that launch this work: it runs after them, or is captured and runs nothing."""
        for place, (operator, kernel, size) in enumerate(work, first):
            self._around(operator, batch, place, module, 8)
            grid, block = [size * batch, 1, 1], [128, 1, 1]
            if run:
                self.kernel(kernel, self.at + 20, 4, launch_at=self.at + 2, grid=grid, block=block)
            else:
                told = {"kernel": kernel, "grid": grid, "block": block} if named else {}
                self.call("hipLaunchKernel" if named else "cudaLaunchKernel", self.at + 2, **told)
            self.at += 10
        self.at += 20

    def capture(self, work, batch, **how):
        self.call("hipStreamBeginCapture", self.at)
        self.at += 5
        self.launches(work, batch, run=False, **how)
        self.call("hipStreamEndCapture", self.at)
        self.at += 5

    def replay(self, work, batch, *, grids=True, streams=(7,), nodes=False, graph=1):
        """Launch a graph."""
        self.correlation += 1
        self.add("cuda_runtime", "cudaGraphLaunch", self.at, 5, correlation=self.correlation)
        for i, (_, kernel, size) in enumerate(work):
            sizes = {"grid": [size * batch, 1, 1], "block": [128, 1, 1]} if grids else {}
            args = {"device": 0, "stream": streams[i % len(streams)], "correlation": self.correlation, **sizes}
            args |= {"graph node id": graph << 32 | i, "graph id": graph} if nodes else {}
            at = self.at + 10 + 4 * i
            self.events.append(
                {
                    "ph": "X",
                    "cat": "kernel",
                    "name": kernel,
                    "pid": 0,
                    "tid": args["stream"],
                    "ts": at,
                    "dur": 3,
                    "args": args,
                }
            )
        self.at += 20 + 4 * len(work)
