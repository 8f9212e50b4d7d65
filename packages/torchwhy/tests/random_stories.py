"""Random programs as traces: steps of loops that load, call operators, launch, copy, wait, exchange and replay graphs.

A recipe is plain data drawn by hypothesis; `build` plays it: a host thread with a clock, and streams that begin their
work when it was launched and the work before it has ended. What real files lack is left out on purpose: launches
before the recording, correlation ids, steps, the host's events.
"""

from __future__ import annotations

from collections import defaultdict

from hypothesis import strategies as st

from tests.traces import Story

GEMM = "ampere_sgemm_128x64_nn"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
NCCL = "ncclDevKernel_AllReduce_Sum_f32"
CUSTOM = "void vllm::cross_device_reduce_2stage<float, 8>(void*)"

LABELS = (
    "load_data",
    "forward",
    "evaluate",
    "log",
    "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__",
    "enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__",
    "Optimizer.step#AdamW.step",
    "Optimizer.zero_grad#AdamW.zero_grad",
    "Torch-Compiled Region: 0/0",
    "Torch-Compiled Region: 1/0",
    "Python GC",
    "gloo:all_reduce",
    "nccl:all_reduce",
)
OPERATORS = (
    "aten::mm",
    "aten::addmm",
    "aten::add",
    "aten::copy_",
    "aten::select",
    "aten::unbind",
    "aten::item",
    "aten::_softmax",
    "aten::bmm",
    "aten::convolution",
    "aten::_foreach_add_",
    "autograd::engine::evaluate_function: AddmmBackward0",
    "CompiledFunction",
    "entire_frame_compile",
)
WAITS = ("cudaDeviceSynchronize", "cudaStreamSynchronize", "cudaEventSynchronize", "hipStreamSynchronize", "cudaMalloc")
COPIES = (
    "HtoD (Pageable -> Device)",
    "HtoD (Pinned -> Device)",
    "DtoH (Device -> Pageable)",
    "DtoD (Device -> Device)",
)

length = st.sampled_from((1, 3, 8, 20, 60, 150, 400, 1500))
stream = st.sampled_from((7, 7, 7, 20))

single = st.one_of(
    st.tuples(st.just("op"), st.sampled_from(OPERATORS), length, st.just(())),
    st.tuples(st.just("kernel"), st.sampled_from((GEMM, GEMM, ADD, "triton_poi_fused_add_0")), length, stream),
    st.tuples(st.just("collective"), st.sampled_from((NCCL, CUSTOM)), length, st.just(20)),
    st.tuples(st.just("copy"), st.sampled_from(COPIES), length, stream),
    st.tuples(st.just("fill"), st.just(""), length, stream),
    st.tuples(st.just("wait"), st.sampled_from(WAITS), length, stream),
    st.tuples(st.just("graph"), st.sampled_from((GEMM, ADD)), length, st.integers(0, 4)),
    st.tuples(st.just("gap"), st.just(""), length, st.just(0)),
    st.tuples(st.just("backward"), st.sampled_from(("AddmmBackward0", "MulBackward0")), length, st.just(200)),
    st.tuples(st.just("memory"), st.just(""), length, st.sampled_from((-1, 0))),
    st.tuples(
        st.just("frame"), st.sampled_from(("train.py(12): step", "<built-in function collect>")), length, st.just(0)
    ),
    st.tuples(st.just("unlinked"), st.sampled_from((GEMM, NCCL)), length, stream),
    st.tuples(st.just("lost launch"), st.just(""), length, stream),
    st.tuples(st.just("without id"), st.just(GEMM), length, stream),
    st.tuples(st.just("by external id"), st.just(GEMM), length, stream),
    st.tuples(st.just("capture"), st.just(""), length, st.integers(0, 5)),
)
"""What the program does: (kind, name, microseconds, detail)."""


def _around(inner):
    within = st.lists(inner, max_size=4).map(tuple)
    return st.tuples(st.just("op"), st.sampled_from(OPERATORS), length, within) | st.tuples(
        st.just("note"), st.sampled_from(LABELS), length, within
    )


action = single | st.recursive(single, _around, max_leaves=6)
rounds = st.tuples(st.integers(1, 12), st.lists(action, min_size=1, max_size=4))
"""Actions of a step, that many times in a row."""

noise = st.tuples(
    st.sampled_from(("op", "note", "frame", "call", "kernel", "unlinked")),
    st.sampled_from((*OPERATORS, *LABELS, *WAITS)),
    st.integers(0, 6000),
    length,
    st.sampled_from((100, 200)),
)
"""Events at any time, which nothing else heeds: (kind, name, at, microseconds, thread)."""

stories = st.fixed_dictionaries(
    {
        "gpu": st.sampled_from(("NVIDIA A100-SXM4-80GB", "NVIDIA A100-SXM4-80GB", None)),
        "before": st.lists(action, max_size=3),
        "steps": st.sampled_from((0, 1, 3, 4, 6)),
        "step": st.lists(rounds, min_size=1, max_size=4),
        "first": st.sampled_from((1, 1, 1, 8)),
        "between": length | st.just(0),
        "after": st.lists(action, max_size=2),
        "noise": st.just([]) | st.lists(noise, max_size=12),
        "queued": st.sampled_from((0, 0, 0, 800, 5000)),
        "top": st.sampled_from(({}, {}, {"distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 4}})),
    }
)
"""Programs: `first`: how many times slower the first step is; `queued`: microseconds that the device still works on
what was launched before the recording began."""


class Player:
    """Plays a recipe: the host's clock, and until when each stream is busy."""

    def __init__(self, recipe):
        self.story = Story(gpu=recipe["gpu"], **recipe["top"])
        self.gpu = recipe["gpu"] is not None
        self.now, self.slower, self.allocated = 10.0, 1, 10**6
        self.free = defaultdict(float)

    def play(self, actions):
        for action in actions:
            self.now += 2
            getattr(self, action[0].replace(" ", "_"))(*action[1:])

    def _inside(self, add, name, us, children):
        begin = self.now
        self.now += 1
        self.play(children)
        self.now = max(self.now + 1, begin + us * self.slower)
        add(name, begin, self.now - begin)

    def op(self, name, us, children):
        self._inside(self.story.op, name, us, children)

    def note(self, name, us, children):
        self._inside(self.story.note, name, us, children)

    def gap(self, name, us, detail):
        self.now += us * self.slower

    def frame(self, name, us, detail):
        self.story.frame(name, self.now, us)
        self.now += us

    def backward(self, name, us, thread):
        self.story.op(f"autograd::engine::evaluate_function: {name}", self.now, us + 2, tid=thread)
        self.story.op(name, self.now + 1, us, tid=thread)
        self.now += us + 3

    def memory(self, name, us, device):
        self.allocated += us * 1000
        self.story.memory(self.now, us * 1000, self.allocated, 2 * self.allocated, device)

    def _begin(self, stream, us, launched):
        begin = max(self.free[stream], launched + 4)
        self.free[stream] = begin + us
        return begin

    def kernel(self, name, us, stream):
        if self.gpu:
            self.story.kernel(name, self._begin(stream, us, self.now), us, launch_at=self.now, stream=stream)
        self.now += 3

    collective = kernel

    def copy(self, kind, us, stream):
        if self.gpu:
            self.story.copy(kind, self._begin(stream, us, self.now), us, us * 1000, launch_at=self.now, stream=stream)
        self.now += 4

    def fill(self, name, us, stream):
        if self.gpu:
            self.story.fill(self._begin(stream, us, self.now), us, launch_at=self.now, stream=stream)
        self.now += 3

    def wait(self, name, us, stream):
        if self.gpu:
            until = max([self.now + 2, *self.free.values()]) if "Sync" in name else self.now + us
            self.story.call(name, self.now, until - self.now)
            self.now = until

    def graph(self, name, us, kernels):
        if self.gpu:
            launch = self.story.call("cudaGraphLaunch", self.now, 5)
            for _ in range(kernels):
                event = self.story.kernel(name, self._begin(7, us, self.now), us)
                event["args"]["correlation"] = launch["args"]["correlation"]
        self.now += 5

    def unlinked(self, name, us, stream):
        if self.gpu:
            self.story.kernel(name, self._begin(stream, us, self.now), us, stream=stream)

    def lost_launch(self, name, us, stream):
        if self.gpu:
            self.story.call("cudaLaunchKernel", self.now, 3)
        self.now += 3

    def by_external_id(self, name, us, stream):
        self.without_id(name, us, stream)
        if self.gpu:
            for event in self.story.events[-2:]:
                event["args"]["External id"] = self.story.external + 10**6
            self.story.external += 1

    def capture(self, name, us, launches):
        """A graph is recorded: its launches put nothing on the device."""
        if self.gpu:
            for call in ("cudaStreamBeginCapture", *["cudaLaunchKernel"] * launches, "cudaStreamEndCapture"):
                self.story.call(call, self.now, 3)
                self.now += 5
            self.story.call("cudaGraphInstantiate", self.now, us)
            self.now += us

    def without_id(self, name, us, stream):
        self.kernel(name, us, stream)
        if self.gpu:
            for event in self.story.events[-2:]:
                del event["args"]["correlation"]


def build(recipe):
    """Return the `Story` of a recipe."""
    player = Player(recipe)
    if player.gpu and recipe["queued"]:
        player.story.kernel(GEMM, 0, recipe["queued"])
        player.free[7] = recipe["queued"]
    player.play(recipe["before"])
    for number in range(recipe["steps"]):
        begin, player.slower = player.now, recipe["first"] if number == 0 else 1
        for times, actions in recipe["step"]:
            for _ in range(times):
                player.play(actions)
        player.story.step(number, begin, player.now - begin)
        player.now += recipe["between"]
    player.slower = 1
    player.play(recipe["after"])
    for kind, name, at, us, thread in recipe["noise"]:
        if kind in ("kernel", "unlinked"):
            player.story.kernel(GEMM, at + 5, us, launch_at=at if kind == "kernel" else None, tid=thread)
        else:
            getattr(player.story, kind)(name, at, us, thread)
    return player.story
