"""The instructions of a program: one training loop, written out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from math import ceil, prod

from tests.simulator.kernels import (
    COMM,
    COMPUTE,
    COPY,
    FLASH,
    FUSED_ADAM,
    GAMMA_BETA,
    LAYER_NORM,
    LAYER_NORM_GRADIENT,
    MEAN,
    NORM,
    SIZES,
    SOFTMAX,
    SUM,
    allreduce,
    copy,
    functor,
    matmul,
    pointwise,
)
from tests.simulator.machine import Batch, Busy, Call, Enter, Exit, Instruction, Mark, Thread, Work, Workers
from tests.simulator.program import Program, Recording

WARM_UP = 3
"""Steps before the recorded ones."""
HALF = "c10::BFloat16"
Inputs = Sequence[tuple[str, Sequence[int]]]
"""The types and shapes of an operator's inputs."""
COMMUNICATED = {
    "Collective name",
    "In msg nelems",
    "Out msg nelems",
    "Group size",
    "dtype",
    "Process Group Name",
    "Process Group Ranks",
}
GELU_IN_PIECES = (
    ("aten::pow", "pow_tensor_scalar_kernel_impl"),
    ("aten::mul", "MulFunctor"),
    ("aten::add", "CUDAFunctor_add"),
    ("aten::mul", "MulFunctor"),
    ("aten::tanh", "tanh_kernel_cuda"),
    ("aten::add", "CUDAFunctorOnSelf_add"),
    ("aten::mul", "MulFunctor"),
    ("aten::mul", "MulFunctor"),
)
ADAM_IN_PIECES = (
    ("aten::mul_", "MulFunctor", 4),
    ("aten::lerp_", "lerp_scalar_kernel", 6),
    ("aten::mul_", "MulFunctor", 4),
    ("aten::addcmul_", "addcmul_cuda_kernel", 8),
    ("aten::sqrt", "sqrt_kernel_cuda", 4),
    ("aten::div_", "DivFunctor", 4),
    ("aten::add_", "CUDAFunctorOnSelf_add", 4),
    ("aten::addcdiv_", "addcdiv_cuda_kernel", 8),
)


@dataclass(frozen=True)
class Size:
    """The model and its batches."""

    blocks: int
    hidden: int
    heads: int
    sequence: int
    batch: int

    @property
    def tokens(self) -> int:
        return self.batch * self.sequence


@dataclass(frozen=True)
class Plan:
    """The sizes of a program, and the times of its parts without any fault, in nanoseconds."""

    size: Size
    step: int
    device: int
    backward: int


@dataclass(frozen=True)
class Saved:
    """What the backward pass needs of an operator of the forward pass."""

    node: str
    sequence: int
    work: tuple[tuple[str, Work], ...]
    parameters: tuple[tuple[str, int], ...] = ()


@lru_cache(maxsize=4096)
def strides(dims: tuple[int, ...]) -> list[int]:
    """The strides of a contiguous tensor."""
    return [prod(dims[place + 1 :]) for place in range(len(dims))]


class Script:
    """Writes the instructions of one rank."""

    def __init__(self, program: Program, plan: Plan, late: bool) -> None:
        self.program, self.plan = program, plan
        self.size, self.device = plan.size, program.device
        self.out: list[Instruction] = []
        self.step_number = 0
        self._sequence = 40
        self._graph: list[Work] | None = None
        self._speed = program.between("host speed", 0.7, 1.5)
        self._saved: list[Saved] = []
        self._sites: dict[str, int] = {}
        self._around = [""]
        self._late = late
        self._lateness = program.uniform("lateness", 1.15, 1.6)

    # Events

    def _vary(self, key: str) -> float:
        """A number from 0 to 1, by how often this happened in this step: what else happens changes nothing."""
        self._sites[key] = self._sites.get(key, 0) + 1
        return self.program.draw(f"{key} {self._sites[key]} {self.step_number}")

    def us(self, time: float, doing: str = "python") -> None:
        """The host is busy."""
        if self._graph is not None or time <= 0:
            return
        varied = 0.9 + 0.2 * self._vary(f"{self._around[-1]} {doing}")
        if doing in {"python", "dispatch"}:
            varied *= self._speed
        self.out.append(Busy(round(1000 * time * varied), doing))

    @contextmanager
    def event(self, cat: str, name: str, args: dict[str, object] | None = None) -> Iterator[None]:
        if self._graph is not None:
            yield
            return
        self.out.append(Enter(cat, name, args))
        self._around.append(name)
        yield
        self._around.pop()
        self.out.append(Exit())

    @contextmanager
    def frame(self, name: str, cost: float = 1.0) -> Iterator[None]:
        if not self.program.recording.stacks:
            self.us(cost)
            yield
            return
        with self.event("python_function", name):
            self.us(cost)
            yield

    @contextmanager
    def op(
        self,
        name: str,
        cost: float = 3.0,
        inputs: Inputs = (),
        sequence: int | None = None,
    ) -> Iterator[None]:
        args: dict[str, object] = {}
        if self.program.recording.shapes and inputs:
            args |= {
                "Concrete Inputs": ["" for _ in inputs],
                "Input type": [dtype for dtype, _ in inputs],
                "Input Strides": [strides(tuple(dims)) for _, dims in inputs],
                "Input Dims": [list(dims) for _, dims in inputs],
            }
        if sequence is not None:
            args |= {"Sequence number": sequence, "Fwd thread id": 0}
        with self.event("cpu_op", name, args):
            self.us(cost * 0.7, "dispatch")
            yield
            self.us(cost * 0.3, "dispatch")

    def call(self, name: str, cost: float, work: Sequence[Work] = (), **kwargs: object) -> None:
        if self._graph is not None:
            self._graph += [replace(one, replayed=True) for one in work]
            return
        works = []
        for one in work:
            factor = 0.97 + 0.06 * self._vary(one.name)
            if self._late and one.kind == "compute":
                factor *= self._lateness
            if one.collective:
                factor = 1.0
            works.append(one.again(round(one.duration * factor)))
        self.out.append(Call(name, round(1000 * cost * self._speed), tuple(works), **kwargs))  # type: ignore[arg-type]

    def launch(self, work: Work, cost: float = 4.5) -> None:
        if work.cat == "kernel":
            self.call(
                "cudaLaunchKernelExC" if "cublas" in work.name or work.collective else "cudaLaunchKernel", cost, [work]
            )
        elif work.cat == "gpu_memset":
            self.call("cudaMemsetAsync", cost, [work])
        else:
            self.call("cudaMemcpyAsync", cost, [work])

    def kernel_op(
        self,
        name: str,
        work: Work | Sequence[Work],
        inputs: Inputs = (),
        cost: float = 5.0,
        sequence: int | None = None,
    ) -> None:
        works = [work] if isinstance(work, Work) else work
        with self.op(name, cost, inputs, sequence):
            if name in {"aten::addmm", "aten::mm", "aten::linear"}:
                self.us(3, "dispatch")
            for one in works:
                self.launch(one)

    def synchronize(self, waits: str) -> None:
        self.call("cudaDeviceSynchronize" if waits == "device" else "cudaStreamSynchronize", 2.0, waits=waits)

    def item(self, dtype: str = "float") -> None:
        """tensor.item()."""
        with (
            self.frame("<built-in method item of Tensor object at 0x7f3a5c0b12d0>"),
            self.op("aten::item", 2, [(dtype, [])]),
            self.op("aten::_local_scalar_dense", 3, [(dtype, [])]),
        ):
            pinned = self.program.choice("item copies", ("DtoH pinned", "DtoH pageable"))
            work = copy(self.device, SIZES[dtype], pinned)
            if pinned.endswith("pageable"):
                self.call("cudaMemcpyAsync", 6, [work], waits="work")
            else:
                self.call("cudaMemcpyAsync", 6, [work])
            self.synchronize(f"stream {COMPUTE}")

    # The loop

    def write(self) -> list[Instruction]:
        program = self.program
        cold = program.on("cold")
        with self.frame("train.py(141): <module>"), self.frame("train.py(118): main"):
            for number in range(WARM_UP + program.steps):
                self.step_number, self._sites = number, {}
                if number == WARM_UP:
                    self.out.append(Mark("start"))
                self.out.append(Mark(number))
                with self.event("user_annotation", f"ProfilerStep#{number}"):
                    self.step(number, slow=cold and number == WARM_UP)
                    with self.frame("torch/profiler/profiler.py(737): step", 4):
                        self.us(20)
            self.step_number += 1
            self.out.append(Mark(WARM_UP + program.steps))
            self.out.append(Call("cudaDeviceSynchronize", 2000, waits="device"))
            self.out.append(Mark("stop"))
        return self.out

    def step(self, number: int, *, slow: bool = False) -> None:
        program = self.program
        self.batch(number)
        self.input_copy(number)
        if program.on("host-tensors"):
            self.host_tensors()
        if slow:
            self.warm_up()
        with self.frame("train.py(64): train_step", 2):
            self.zero_grad()
            every = max(1, program.steps // 2)
            if program.on("recompile") and number >= WARM_UP and (number - WARM_UP) % every == every - 1:
                self.recompile(number)
            graph = "eager-small" in program.planted and not program.on("eager-small")
            if graph:
                self._graph = []
            parts = program.choice("parts of a batch", (2, 4)) if "accumulation" in program.planted else 1
            for part in range(parts):
                self.forward()
                self.backward(part, reduces=program.on("accumulation") or part == parts - 1)
            if graph:
                works, self._graph = self._graph or [], None
                with self.frame("torch/cuda/graphs.py(139): replay", 3):
                    self.call("cudaGraphLaunch", 6 + 0.15 * len(works), works)
            self.optimizer()
        if program.on("gc") and program.draw(f"collects in {number}") < 0.6:
            self.us(self.plan.step / 1000 * program.between(f"garbage {number}", 0.4, 4), "garbage")
        if program.on("item"):
            with self.frame("train.py(83): log_loss", 2):
                self.item()
                self.us(15)
        if program.on("print"):
            self.print_tensor()
        if "norms" in program.planted:
            self.norms(read=program.on("norms"))
        if program.on("outputs-to-host"):
            self.outputs_to_host()
        if program.on("log-rarely") and number % 3 == 2:
            self.log_rarely()
        if program.on("synchronize"):
            with self.frame("torch/cuda/__init__.py(1083): synchronize", 3):
                self.synchronize("device")
        if program.on("evaluation") and number % 3 == 2:
            self.evaluation()
        if program.on("checkpoint") and number % 3 == 2:
            self.checkpoint()

    def batch(self, number: int) -> None:
        program = self.program
        inside = program.on("loader-in-process")
        iterator = "_SingleProcessDataLoaderIter" if inside else "_MultiProcessingDataLoaderIter"
        with (
            self.frame("torch/utils/data/dataloader.py(701): __next__", 3),
            self.event("user_annotation", f"enumerate(DataLoader)#{iterator}.__next__"),
        ):
            if not inside:
                with self.frame("torch/utils/data/dataloader.py(1327): _next_data", 5):
                    self.out.append(Batch(number))
                    self.us(40)
                return
            load = self.plan.step / 1000 * program.between("load in process", 0.1, 2.0)
            with (
                self.frame("torch/utils/data/dataloader.py(757): _next_data", 5),
                self.frame("torch/utils/data/_utils/fetch.py(50): fetch", 3),
            ):
                for _ in range(8):
                    with self.frame("dataset.py(31): __getitem__", 1):
                        self.us(load / 10, "loading")
                with (
                    self.frame("torch/utils/data/_utils/collate.py(398): default_collate", 4),
                    self.op("aten::stack", 8, [("TensorList", [])]),
                    self.op("aten::cat", 4, [("TensorList", [])]),
                ):
                    self.us(load / 5, "loading")

    def workers(self) -> Workers:
        program = self.program
        count = program.choice("workers", (2, 4, 8))
        slow = program.uniform("slow loading", 1.15, 3.0) if program.on("loader-slow") else 0.4
        return Workers(count, round(self.plan.step * slow * count))

    def batch_bytes(self) -> int:
        program = self.program
        share = 0.003
        if {"pageable", "copy-serial"} & set(program.planted):
            share = program.between("share of copying", 0.05, 0.3)
        return max(4096, int(self.plan.step / 1000 * share * self.device.bus) // 4096 * 4096)

    def input_copy(self, number: int) -> None:
        program, nbytes = self.program, self.batch_bytes()
        dims = [self.size.batch, nbytes // 4 // self.size.batch]
        inputs: Inputs = [("float", dims)]
        aside = "copy-serial" in program.planted and not program.on("copy-serial")
        stream = COPY if aside else COMPUTE
        with (
            self.frame("train.py(59): to_device", 2),
            self.frame("<built-in method to of Tensor object at 0x7f3a5c0b1410>", 1),
            self.op("aten::to", 2, inputs),
            self.op("aten::_to_copy", 4, inputs),
        ):
            with self.op("aten::empty_strided", 5):
                pass
            with self.op("aten::copy_", 5, [*inputs, *inputs]):
                if program.on("pageable"):
                    # The driver waits for the stream, then copies through its own buffers while the caller waits.
                    self.call("cudaMemcpyAsync", 8, [copy(self.device, nbytes, "HtoD pageable", stream)], waits="work")
                    self.synchronize(f"stream {stream}")
                else:
                    self.launch(copy(self.device, nbytes, "HtoD pinned", stream), 6)
        if aside:
            # The batch of the next step: this step waits for the copy of the step before.
            if number:
                self.call("cudaStreamWaitEvent", 1.5, obeys=(COMPUTE, f"batch {number - 1}"))
            self.call("cudaEventRecord", 1.5, records=(COPY, f"batch {number}"))

    def host_tensors(self) -> None:
        program = self.program
        count = program.choice("host tensors", (2, 4, 8))
        elements = int(program.between("host elements", 2e4, 2e6))
        with self.frame("train.py(52): make_masks", 3):
            for _ in range(count):
                inputs = [("float", [elements])]
                with self.frame("<built-in method rand of type object at 0x7f3b1d2c6a40>"), self.op("aten::rand", 4):
                    with self.op("aten::empty", 3):
                        pass
                    with self.op("aten::uniform_", 2, inputs):
                        self.us(elements / 500, "dispatch")
                with (
                    self.frame("<built-in method to of Tensor object at 0x7f3a5c0b1500>"),
                    self.op("aten::to", 2, inputs),
                    self.op("aten::_to_copy", 4, inputs),
                ):
                    with self.op("aten::empty_strided", 5):
                        pass
                    with self.op("aten::copy_", 5, [*inputs, *inputs]):
                        self.call(
                            "cudaMemcpyAsync", 8, [copy(self.device, 4 * elements, "HtoD pageable")], waits="work"
                        )
                        self.synchronize(f"stream {COMPUTE}")

    def warm_up(self) -> None:
        """A first step: kernels are loaded, algorithms chosen, memory taken."""
        with self.op("aten::empty", 5):
            for _ in range(3):
                self.call(
                    "cudaMalloc",
                    self.plan.step / 1000 * self.program.between("first memory", 0.05, 0.3),
                    doing="memory",
                )
        with self.op("aten::zeros", 5):
            self.call(
                "cuLibraryLoadData", self.plan.step / 1000 * self.program.between("first load", 0.5, 3), doing="memory"
            )

    def forward(self) -> None:
        program, size, device = self.program, self.size, self.device
        tokens, hidden, heads = size.tokens, size.hidden, size.heads
        self._saved = []
        with self.frame("nn.Module: Transformer_0", 4), self.frame("model.py(88): forward", 3):
            for block in range(size.blocks):
                with self.frame(f"nn.Module: Block_{block}", 4), self.frame("model.py(52): forward", 3):
                    if program.on("python"):
                        with self.frame("model.py(39): route", 1):
                            self.us(self.plan.step / 1000 / size.blocks * program.between("slow Python", 0.15, 1.2))
                    self.norm(2 * block)
                    self.linear(4 * block, hidden, 3 * hidden)
                    if program.on("lock"):
                        self.wait_for_lock(block)
                    if program.on("contiguous"):
                        inputs: Inputs = [(HALF, [tokens, 3 * hidden])]
                        for _ in range(program.choice("how many copies", (1, 2, 3))):
                            with (
                                self.frame("<built-in method contiguous of Tensor object at 0x7f3a5c0b1690>"),
                                self.op("aten::contiguous", 2, inputs),
                                self.op("aten::clone", 3, inputs),
                            ):
                                with self.op("aten::empty_like", 3):
                                    pass
                                self.kernel_op(
                                    "aten::copy_",
                                    pointwise(device, functor("direct_copy_kernel_cuda"), tokens * 3 * hidden, 8),
                                    [*inputs, *inputs],
                                )
                    self.attention(block)
                    self.linear(4 * block + 1, hidden, hidden)
                    self.plain("aten::add", "CUDAFunctor_add", tokens * hidden, 6, "AddBackward0")
                    self.norm(2 * block + 1)
                    self.linear(4 * block + 2, hidden, 4 * hidden)
                    self.activation(tokens * 4 * hidden)
                    self.linear(4 * block + 3, 4 * hidden, hidden, special=block == 0)
                    self.plain("aten::add", "CUDAFunctor_add", tokens * hidden, 6, "AddBackward0")
                    if program.on("small-gemms"):
                        self.loop_of_products(tokens, hidden, heads)
                    elif "small-gemms" in program.planted:
                        dims = [heads, tokens // 8, hidden // heads]
                        self.kernel_op(
                            "aten::bmm",
                            matmul(device, heads, tokens // 8, hidden // heads, hidden // heads, HALF),
                            [(HALF, dims), (HALF, [heads, hidden // heads, hidden // heads])],
                        )
                    if "small-grid" in program.planted:
                        blocks = max(1, device.sms // 12) if program.on("small-grid") else None
                        elements = int(tokens * hidden * program.between("scan", 0.5, 4))
                        self.kernel_op(
                            "mylib::scan",
                            pointwise(
                                device, "void scan_kernel<float>(float*, float const*, int)", elements, 4, blocks=blocks
                            ),
                            [("float", [elements])],
                        )
                    if program.on("allocator"):
                        with self.op("aten::empty", 4):
                            self.call("cudaMalloc", program.between("cudaMalloc", 80, 600), doing="memory")
                        if block % 2:
                            with self.op("aten::empty", 4):
                                self.call(
                                    "cudaFree", program.between("cudaFree", 100, 500), waits="device", doing="memory"
                                )
            self.norm(2 * size.blocks)
        with self.frame("nn.Module: MSELoss_0", 4):
            inputs = [(HALF, [tokens, hidden]), (HALF, [tokens, hidden])]
            work = pointwise(device, functor("MSEFunctor"), tokens * hidden, 4)
            self._sequence += 1
            self.kernel_op(
                "aten::mse_loss",
                [
                    work,
                    replace(
                        work,
                        name=MEAN,
                    ),
                ],
                inputs,
                sequence=self._sequence,
            )
            self._saved.append(Saved("MseLossBackward0", self._sequence, (("aten::mse_loss_backward", work),)))

    def norm(self, number: int) -> None:
        tokens, hidden = self.size.tokens, self.size.hidden
        inputs: Inputs = [(HALF, [tokens, hidden]), (HALF, [hidden]), (HALF, [hidden])]
        with (
            self.frame(f"nn.Module: LayerNorm_{number}", 3),
            self.frame("<built-in method layer_norm of type object at 0x7f3b1d2c6a40>", 1),
        ):
            self._sequence += 1
            with self.op("aten::layer_norm", 3, inputs):
                self.kernel_op(
                    "aten::native_layer_norm",
                    pointwise(self.device, LAYER_NORM, tokens * hidden, 4),
                    inputs,
                    sequence=self._sequence,
                )
        gradients = [
            (
                "aten::native_layer_norm_backward",
                pointwise(self.device, LAYER_NORM_GRADIENT, tokens * hidden, 6),
            ),
            (
                "aten::native_layer_norm_backward",
                pointwise(
                    self.device,
                    GAMMA_BETA,
                    tokens * hidden,
                    4,
                ),
            ),
        ]
        self._saved.append(
            Saved("NativeLayerNormBackward0", self._sequence, tuple(gradients), (("weight", hidden), ("bias", hidden)))
        )

    def linear(self, number: int, wide: int, out: int, *, special: bool = False) -> None:
        tokens, device = self.size.tokens, self.device
        dtype = HALF
        if special and self.program.on("double"):
            dtype = "double"
        elif special and self.program.on("sgemm"):
            dtype = "float"
        inputs: Inputs = [(dtype, [out]), (dtype, [tokens, wide]), (dtype, [wide, out])]
        with (
            self.frame(f"nn.Module: Linear_{number}", 3),
            self.frame("torch/nn/modules/linear.py(124): forward", 2),
            self.frame("<built-in function linear>", 1),
            self.op("aten::linear", 3, [inputs[1], (dtype, [out, wide]), inputs[0]]),
        ):
            if self.program.on("cast"):
                self.cast(tokens * wide)
            with self.op("aten::t", 2, [(dtype, [out, wide])]), self.op("aten::transpose", 1, [(dtype, [out, wide])]):
                pass
            self._sequence += 1
            self.kernel_op("aten::addmm", matmul(device, 1, tokens, wide, out, dtype), inputs, 6, self._sequence)
        self._saved.append(
            Saved(
                "AddmmBackward0",
                self._sequence,
                (
                    ("aten::mm", matmul(device, 1, tokens, out, wide, dtype)),
                    ("aten::mm", matmul(device, 1, out, tokens, wide, dtype)),
                    ("aten::sum", pointwise(device, SUM, tokens * out, SIZES[dtype])),
                ),
                (("weight", wide * out), ("bias", out)),
            )
        )

    def plain(self, name: str, kernel: str, elements: int, size: float, node: str | None) -> None:
        inputs: Inputs = [(HALF, [elements])] * (2 if "add" in name or "mul" in name else 1)
        self._sequence += 1
        self.us(1.5)
        self.kernel_op(name, pointwise(self.device, functor(kernel), elements, size), inputs, sequence=self._sequence)
        if node and name != "aten::add":
            work = pointwise(self.device, functor(kernel + "_backward"), elements, 6)
            self._saved.append(Saved(node, self._sequence, ((f"{name}_backward", work),)))

    def activation(self, elements: int) -> None:
        """GELU: one kernel, or its formula in pieces."""
        with self.frame("nn.Module: GELU_0", 3):
            if not self.program.on("tiny-kernels"):
                self.plain("aten::gelu", "GeluCUDAKernelImpl", elements, 4, "GeluBackward0")
                return
            for name, kernel in GELU_IN_PIECES:
                self.plain(
                    name,
                    kernel,
                    elements,
                    6 if name != "aten::tanh" else 4,
                    name.removeprefix("aten::").capitalize() + "Backward0",
                )

    def attention(self, block: int) -> None:
        size, device = self.size, self.device
        per_head = size.hidden // size.heads
        dims = [size.batch, size.heads, size.sequence, per_head]
        inputs: Inputs = [(HALF, dims)] * 3
        products = size.batch * size.heads
        if self.program.on("plain-attention"):
            weights = products * size.sequence**2
            flat = [(HALF, [products, size.sequence, per_head]), (HALF, [products, per_head, size.sequence])]
            first = matmul(device, products, size.sequence, per_head, size.sequence, HALF)
            second = matmul(device, products, size.sequence, size.sequence, per_head, HALF)
            softmax = pointwise(
                device,
                SOFTMAX,
                weights,
                4,
            )
            square = [products, size.sequence, size.sequence]
            with self.frame("model.py(27): attend", 2):
                self._sequence += 1
                with self.op("aten::matmul", 4, flat):
                    self.kernel_op("aten::bmm", first, flat, 6, self._sequence)
                self._saved.append(
                    Saved("BmmBackward0", self._sequence, (("aten::bmm", second), ("aten::bmm", second)))
                )
                self.plain("aten::div", "DivFunctor", weights, 4, "DivBackward0")
                self._sequence += 1
                with self.op("aten::softmax", 2, [(HALF, square)]):
                    self.kernel_op("aten::_softmax", softmax, [(HALF, square)], sequence=self._sequence)
                self._saved.append(
                    Saved(
                        "SoftmaxBackward0",
                        self._sequence,
                        (
                            (
                                "aten::_softmax_backward_data",
                                replace(softmax, name=softmax.name.replace("forward", "backward")),
                            ),
                        ),
                    )
                )
                self._sequence += 1
                with self.op("aten::matmul", 4, [(HALF, square), flat[0]]):
                    self.kernel_op("aten::bmm", second, [(HALF, square), flat[0]], 6, self._sequence)
                self._saved.append(Saved("BmmBackward0", self._sequence, (("aten::bmm", first), ("aten::bmm", second))))
            return
        flops = 4 * products * size.sequence**2 * per_head
        work = pointwise(
            device,
            FLASH,
            products * size.sequence * per_head,
            8,
        )
        work.duration = max(work.duration, int(2000 + 1000 * flops / (0.5 * device.tensor)))
        with (
            self.frame("<built-in function scaled_dot_product_attention>", 1),
            self.op("aten::scaled_dot_product_attention", 4, inputs),
            self.op("aten::_scaled_dot_product_flash_attention", 6, inputs),
        ):
            self._sequence += 1
            self.kernel_op("aten::_flash_attention_forward", work, inputs, 8, self._sequence)
        back = replace(
            work,
            name=work.name.replace("fwd_kernel", "bwd_dq_dk_dv_loop_seqk_parallel_kernel"),
            duration=int(2.5 * work.duration),
        )
        self._saved.append(
            Saved(
                "ScaledDotProductFlashAttentionBackward0", self._sequence, (("aten::_flash_attention_backward", back),)
            )
        )

    def loop_of_products(self, tokens: int, hidden: int, heads: int) -> None:
        per_head = hidden // heads
        inputs: Inputs = [(HALF, [tokens // 8, per_head]), (HALF, [per_head, per_head])]
        with self.frame("model.py(45): per_head", 2):
            for _ in range(heads):
                self.us(2)
                with self.op("aten::matmul", 2, inputs):
                    self.kernel_op("aten::mm", matmul(self.device, 1, tokens // 8, per_head, per_head, HALF), inputs, 6)

    def backward(self, part: int = 0, *, reduces: bool = True) -> None:
        program = self.program
        frames = ("torch/_tensor.py(525): backward", "torch/autograd/__init__.py(242): backward",
                  "torch/autograd/graph.py(815): _engine_run_backward",
                  "<built-in method run_backward of torch._C._EngineBase object at 0x7f3b2c1d5e80>")  # fmt: skip
        gradients: list[int] = []
        self._bucket, self._buckets = 0, 0
        with self.frame(frames[0], 4), self.frame(frames[1], 4), self.frame(frames[2], 2), self.frame(frames[3], 2):
            if self._graph is None:
                self.out.append(Thread("autograd"))
            for saved in reversed(self._saved):
                with (
                    self.op(f"autograd::engine::evaluate_function: {saved.node}", 3, sequence=saved.sequence),
                    self.op(saved.node, 3, sequence=saved.sequence),
                ):
                    for name, work in saved.work:
                        self.kernel_op(name, work, self.gradient_inputs(work, saved))
                for _, elements in saved.parameters:
                    gradients.append(elements)
                    self.accumulate(elements, part, reduces=reduces)
            if self._graph is None:
                if program.ranks > 1 and self._bucket:
                    self.reduce(self._bucket, f"last of {part}")
                self.out.append(Thread("main"))
        if program.ranks > 1 and reduces:
            if program.on("serial-allreduce"):
                with self.frame("train.py(33): average_gradients", 3):
                    total = 2 * sum(gradients)
                    for part in range(self.bucket_count()):
                        self.reduce(total // self.bucket_count(), f"after {part}", aside=False)
            self.call("cudaStreamWaitEvent", 1.5, obeys=(COMPUTE, f"reduced {self._buckets}"))

    def gradient_inputs(self, work: Work, saved: Saved) -> Inputs:
        if saved.node != "AddmmBackward0" or "gemm" not in work.name:
            return [(HALF, [self.size.tokens, self.size.hidden])]
        wide = saved.parameters[0][1] // saved.parameters[1][1]
        out = saved.parameters[1][1]
        dtype = (
            "double"
            if "f64" in work.name or "dgemm" in work.name
            else "float"
            if "sgemm" in work.name or "f32f32_f32f32" in work.name
            else HALF
        )
        if work is saved.work[0][1]:
            return [(dtype, [self.size.tokens, out]), (dtype, [out, wide])]
        return [(dtype, [out, self.size.tokens]), (dtype, [self.size.tokens, wide])]

    def accumulate(self, elements: int, part: int, *, reduces: bool) -> None:
        program = self.program
        with (
            self.op("autograd::engine::evaluate_function: torch::autograd::AccumulateGrad", 2),
            self.op("torch::autograd::AccumulateGrad", 2),
        ):
            if program.on("zero-grad") or part:
                self.kernel_op(
                    "aten::add_",
                    pointwise(self.device, functor("CUDAFunctor_add"), elements, 6),
                    [(HALF, [elements])] * 2,
                )
            else:
                with self.op("aten::detach", 2):
                    pass
        if program.ranks == 1 or program.on("serial-allreduce") or not reduces:
            return
        if program.on("small-allreduces"):
            self.reduce(2 * elements, str(self._buckets))
            return
        self._bucket += 2 * elements
        if self._bucket >= 2 * self.parameter_count() // self.bucket_count():
            self.reduce(self._bucket, f"{self._buckets} of {part}")
            self._bucket = 0

    def bucket_count(self) -> int:
        return self.program.choice("buckets", (3, 5, 8))

    def parameter_count(self) -> int:
        hidden = self.size.hidden
        return self.size.blocks * (12 * hidden * hidden + 13 * hidden) + 2 * hidden

    def reduce(self, nbytes: int, key: str, *, aside: bool = True) -> None:
        """An all-reduce of gradients, on the stream for communication."""
        program = self.program
        seconds = self.plan.backward / 1000 * program.uniform("share of communication", 0.2, 0.6)
        rate = 2 * self.parameter_count() / max(seconds, 1.0)
        latency = program.between("latency of a collective", 15, 90)
        work = allreduce(self.device, f"{self.step_number} {key}", nbytes, rate, latency, program.ranks)
        elements = nbytes // 2
        args = {name: value for name, value in work.args.items() if name in COMMUNICATED}
        self._buckets += 1
        with self.op("c10d::allreduce_", 8, [(HALF, [elements])]), self.event("cpu_op", "record_param_comms", args):
            self.us(4, "dispatch")
            self.call("cudaEventRecord", 1, records=(COMPUTE, f"ready {self._buckets}"))
            self.call("cudaStreamWaitEvent", 1, obeys=(COMM, f"ready {self._buckets}"))
            with self.event("user_annotation", "nccl:all_reduce"):
                self.us(6, "dispatch")
                self.launch(work, 6)
            self.call("cudaEventRecord", 1, records=(COMM, f"reduced {self._buckets}"))
        if not aside:
            self.call("cudaStreamWaitEvent", 1.5, obeys=(COMPUTE, f"reduced {self._buckets}"))

    def parameters(self) -> list[int]:
        hidden = self.size.hidden
        norms, square = [hidden, hidden], hidden**2
        attention, layers = [3 * square, 3 * hidden, square, hidden], [4 * square, 4 * hidden, 4 * square, hidden]
        block = norms + attention + norms + layers
        return block * self.size.blocks + [hidden, hidden]

    def zero_grad(self) -> None:
        with (
            self.frame("torch/optim/optimizer.py(955): zero_grad", 3),
            self.event("user_annotation", "Optimizer.zero_grad#AdamW.zero_grad"),
        ):
            self.us(10)
            if self.program.on("zero-grad"):
                for elements in self.parameters():
                    self.us(1)
                    with self.op("aten::zero_", 2, [(HALF, [elements])]):
                        self.kernel_op(
                            "aten::fill_",
                            pointwise(self.device, functor("FillFunctor"), elements, 2),
                            [(HALF, [elements])],
                        )

    def optimizer(self) -> None:
        with (
            self.frame("torch/optim/optimizer.py(465): wrapper", 4),
            self.event("user_annotation", "Optimizer.step#AdamW.step"),
            self.frame("torch/optim/adamw.py(164): step", 10),
        ):
            if self.program.on("loop-optimizer"):
                with self.frame("torch/optim/adamw.py(319): _single_tensor_adamw", 5):
                    for elements in self.parameters():
                        self.update(elements)
                return
            parameters = self.parameters()
            pieces = max(1, ceil(len(parameters) / 36))
            work = pointwise(self.device, FUSED_ADAM, sum(parameters) // pieces, 14)
            with self.frame("torch/optim/adamw.py(560): _fused_adamw", 20):
                self.kernel_op("aten::_fused_adamw_", [work] * pieces, [("TensorList", [])], 30)

    def update(self, elements: int) -> None:
        for name, kernel, size in ADAM_IN_PIECES:
            self.us(2)
            self.kernel_op(
                name,
                pointwise(self.device, functor(kernel), elements, size),
                [(HALF, [elements])] * (2 if size > 4 else 1),
                4,
            )

    def print_tensor(self) -> None:
        with (
            self.frame("<built-in function print>", 3),
            self.frame("torch/_tensor.py(461): __repr__", 4),
            self.frame("torch/_tensor_str.py(621): _str_intern", 10),
        ):
            one = functor("AbsFunctor", "float")
            for name in ("aten::detach", "aten::isfinite", "aten::abs", "aten::ne", "aten::masked_select"):
                if name == "aten::detach":
                    with self.op(name, 2, [("float", [])]):
                        pass
                    continue
                self.kernel_op(name, pointwise(self.device, one, 1, 8), [("float", [])])
            self.item()
            self.us(60)
            self.item()
            self.us(self.program.between("printing", 80, 800), "printing")

    def norms(self, *, read: bool) -> None:
        with self.frame("train.py(71): log_norms", 2):
            for elements in self.parameters():
                self.us(3)
                self.kernel_op(
                    "aten::linalg_vector_norm", pointwise(self.device, NORM, elements, 2), [(HALF, [elements])]
                )
                if read:
                    self.item()

    def wait_for_lock(self, block: int) -> None:
        """An operator has returned; another thread holds the interpreter's lock until its turn is over."""
        if self.program.draw(f"lock taken {block} {self.step_number}") < 0.7:
            share = self.program.between("lock held", 0.15, 1.5) / self.size.blocks
            self.us(self.plan.step / 1000 * share, "waiting for the interpreter")

    def cast(self, elements: int) -> None:
        """Activations of float32, cast for one product."""
        inputs: Inputs = [("float", [elements])]
        with self.op("aten::to", 2, inputs), self.op("aten::_to_copy", 4, inputs):
            with self.op("aten::empty_strided", 5):
                pass
            work = pointwise(self.device, functor("bfloat16_copy_kernel_cuda"), elements, 6)
            self.kernel_op("aten::copy_", work, [(HALF, [elements]), *inputs])

    def outputs_to_host(self) -> None:
        """outputs.cpu(), and metrics of them."""
        time = self.plan.step / 1000 * self.program.between("outputs", 0.05, 0.4)
        elements = int(time * self.device.pageable) // 2
        inputs: Inputs = [(HALF, [elements])]
        with (
            self.frame("train.py(77): metrics", 2),
            self.frame("<built-in method cpu of Tensor object at 0x7f3a5c0b1840>"),
            self.op("aten::to", 2, inputs),
            self.op("aten::_to_copy", 4, inputs),
        ):
            with self.op("aten::empty_strided", 5):
                pass
            with self.op("aten::copy_", 5, [*inputs, *inputs]):
                self.call("cudaMemcpyAsync", 8, [copy(self.device, 2 * elements, "DtoH pageable")], waits="work")
                self.synchronize(f"stream {COMPUTE}")

    def log_rarely(self) -> None:
        with self.frame("train.py(90): log", 3):
            for _ in range(self.program.choice("numbers to log", (4, 16, 64))):
                self.item()
                self.us(8)
            self.us(self.plan.step / 1000 * self.program.between("writing logs", 0.1, 1.5), "printing")

    def evaluation(self) -> None:
        saved = self._saved
        with self.frame("train.py(95): evaluate", 5):
            for _ in range(self.program.choice("batches to evaluate", (1, 2, 4))):
                self.forward()
                self.item()
        self._saved = saved

    def checkpoint(self) -> None:
        with self.frame("torch/serialization.py(943): save", 10):
            for elements in self.parameters():
                inputs: Inputs = [(HALF, [elements])]
                with self.op("aten::to", 2, inputs), self.op("aten::_to_copy", 4, inputs):
                    with self.op("aten::empty_strided", 5):
                        pass
                    with self.op("aten::copy_", 5, [*inputs, *inputs]):
                        self.call(
                            "cudaMemcpyAsync", 8, [copy(self.device, 2 * elements, "DtoH pageable")], waits="work"
                        )
                        self.synchronize(f"stream {COMPUTE}")
                with self.frame(
                    "<built-in method write_record of torch._C.PyTorchFileWriter object at 0x7f3a5c0b2f30>", 2
                ):
                    self.us(2 * elements / 1500, "writing")

    def recompile(self, number: int) -> None:
        duration = self.plan.step / 1000 * self.program.between("compiling", 1.5, 8)
        with (
            self.frame("torch/_dynamo/convert_frame.py(1345): __call__", 5),
            self.op("dynamo", 5),
            self.op("_compile.compile_inner (dynamo_timed)", 5),
            self.op("compile_attempt_0 (dynamo_timed)", 3),
            self.op("OutputGraph.call_user_compiler (dynamo_timed)", 3),
        ):
            self.us(duration, "compiling")
        with self.op(f"Torch-Compiled Region: 0/{number - WARM_UP + 1}", 10):
            elements = self.size.tokens * self.size.hidden
            self.kernel_op(
                "triton_poi_fused_add_mul_0", pointwise(self.device, "triton_poi_fused_add_mul_0", elements, 6)
            )


def late_rank(program: Program) -> int:
    """The rank whose device is slower, or -1."""
    return int(program.draw("who is late") * program.ranks) if program.on("straggler") else -1


@lru_cache(maxsize=256)
def plan_of(program: Program) -> Plan:
    """Choose sizes such that the device, without any fault, takes the share of the host's time that the seed wants."""
    healthy = replace(program, active=frozenset(), free=frozenset(), ranks=1)
    size = Size(
        blocks=program.choice("blocks", (2, 3, 4, 6)),
        hidden=program.choice("hidden", (512, 768, 1024)),
        heads=8,
        sequence=program.choice("sequence", (128, 256, 512)),
        batch=1,
    )
    small = "eager-small" in program.planted
    wanted = program.between("small", 0.12, 0.6) if small else program.between("device to host", 1.3, 4.0)
    (host, few, _), (_, many, _) = (_times(healthy, replace(size, batch=batch)) for batch in (8, 64))
    slope = max(1.0, (many - few) / 56)
    size = replace(size, batch=min(4096, max(1, round(8 + (wanted * host - few) / slope))))
    host, device, backward = _times(healthy, size)
    return Plan(size, max(device, round(device / 3) if small else host), device, backward)


def _times(program: Program, size: Size) -> tuple[int, int, int]:
    """The host's, the device's and the backward pass's time of a step, if each had no other to wait for."""
    plain = replace(program, planted=(), recording=Recording(shapes=False))
    one = Script(plain, Plan(size, 1_000_000, 1_000_000, 1_000_000), late=False)
    one.step(WARM_UP)
    costs = 1.2
    host = sum(each.duration for each in one.out if isinstance(each, (Busy, Call)))
    work = [each for call in one.out if isinstance(call, Call) for each in call.work]
    device = sum(each.duration + 700 for each in work)
    inside, backward = False, 0
    for each in one.out:
        if isinstance(each, Thread):
            inside = each.name == "autograd"
        if inside and isinstance(each, Call):
            backward += sum(work.duration + 700 for work in each.work)
    return round(host * costs), device, backward
