"""Watches a program in its own process: when its steps begin, what it computes, and what could be changed about it."""

from __future__ import annotations

import functools
import itertools
import random
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any, Final

from torchwhy.capture.launch.discovery import Source
from torchwhy.capture.launch.hooks import StepWatch
from torchwhy.capture.launch.importing import after_import
from torchwhy.processors import usable_processors
from torchwhy.tuning.records import Facts, Loader, Record, Request, Results

__all__ = ["EnoughStepsError", "Observer", "program_line"]

WATCHED: Final = 3
"""The outputs of modules are kept in this number of steps, which are among those that are not timed."""

SETTLED: Final = 8
"""A source of steps is accepted after this many steps; an optimizer at once, since it takes precedence."""

CALLS: Final = 64
LOSSES: Final = 2000
PARAMETERS: Final = 2000
SAMPLE: Final = 256
"""How many calls of a module, losses and tensors are kept, and elements of each tensor."""


class EnoughStepsError(BaseException):
    """Ends the program from within, so that its `finally` clauses and exit functions run; nothing else catches it."""


class Observer:
    """Observes the program of a `Request` in this process.

    Changes add to `at_first_call`, called with each outermost module before it runs for the first time, and to
    `after_first_step`, called with each of those that the first step called. `compile` is `torch.compile`, unobserved.
    """

    def __init__(self, request: Request) -> None:
        self.at_first_call: list[Callable[[Any], None]] = []
        self.after_first_step: list[Callable[[Any], None]] = []
        self.compile: Callable[..., Any] = _nothing
        self.ended_early = False
        self._request = request
        self._imported_ns = 0
        self._stamps_ns: list[int] = []
        self._events: list[Any] = []  # of a GPU, one for each stamp
        self._source = self._label = ""
        self._watch: StepWatch | None = None
        self._alone = False  # whether nothing but steps is looked for
        self._modules: list[Any] = []  # outermost ones, in the order of their first calls
        self._kinds: list[str] = []
        self._images = self._compiles = self._anomaly = False
        self._running: list[Any] = []
        self._hooks: list[Any] = []
        self._loaders: list[Loader] = []
        self._threads = 0
        self._threads_set = ""
        self._losses: list[Any] = []
        self._outputs: dict[str, list[list[float]]] = {}
        self._held: dict[int, list[Any]] = {}  # parameters by the id of an optimizer's first
        self._optimizers: list[str] = []
        self._fused: list[bool] = []

    def start(self) -> None:
        """Begin as soon as the program imports PyTorch."""
        random.seed(0)
        after_import("torch", lambda module: self._torch_is_loaded())

    def _torch_is_loaded(self) -> None:
        import numpy as np
        import torch

        torch.manual_seed(0)
        np.random.seed(0)  # noqa: NPY002  (the generator that programs use)
        if threading.current_thread() is threading.main_thread():
            self._watch_modules()
            self._watch_results()
            self._watch_settings()
            wanted = Source(self._request.source) if self._request.source else None
            self._watch = StepWatch(wanted, self._begin, self._step, lambda: not self._alone, contain=lambda act: act)
        for apply in self._request.apply:
            apply(self)
        self._imported_ns = time.perf_counter_ns()

    # Steps

    def _begin(self, label: str, before: int) -> None:
        assert self._watch is not None
        assert self._watch.source is not None
        self._label, self._source = label, self._watch.source.value
        self._stamps_ns, self._events = [], []
        self._stamp()
        if self._request.source:
            self._only_time()
        self._first_step_is_over()

    def _only_time(self) -> None:
        if not self._alone and self._watch is not None:
            self._alone = True
            self._watch.only_time(self._step)

    def _step(self) -> None:
        self._stamp()
        steps = len(self._stamps_ns) - 1
        if steps >= WATCHED:
            self._look_no_more()
        if self._source == Source.OPTIMIZER.value or steps >= SETTLED:
            self._only_time()
        spent_s = (self._stamps_ns[-1] - self._stamps_ns[0]) / 1e9
        if steps >= self._request.fewest and spent_s >= self._request.most_s and not self.ended_early:
            self.ended_early = True
            raise EnoughStepsError

    def _stamp(self) -> None:
        cuda = sys.modules["torch"].cuda
        if cuda.is_initialized() and not cuda.is_current_stream_capturing():
            event = cuda.Event(enable_timing=True)
            event.record()
            self._events.append(event)
        self._stamps_ns.append(time.perf_counter_ns())

    def _first_step_is_over(self) -> None:
        torch = sys.modules["torch"]
        self._threads, self._anomaly = torch.get_num_threads(), torch.is_anomaly_enabled()
        acts, self.after_first_step = self.after_first_step, []
        if acts:
            self._look_no_more()  # hooks change what is compiled
        for act in acts:
            for module in self._modules:
                act(module)

    # Outermost modules

    def _watch_modules(self) -> None:
        import torch
        from torch.nn.modules.module import register_module_forward_hook, register_module_forward_pre_hook

        def begins(module: Any, args: Any) -> None:
            if self._running or threading.current_thread() is not threading.main_thread():
                return
            self._running.append(module)
            if not any(module is known for known in self._modules):
                self._first_call(module)

        def ends(module: Any, args: Any, result: Any) -> None:
            if self._running and self._running[0] is module:
                self._running.clear()
                self.keep_output(module, result)

        self._hooks = [
            register_module_forward_pre_hook(begins),
            register_module_forward_hook(ends, always_call=True),
        ]
        self.compile = original = torch.compile

        @functools.wraps(original)
        def compiling(*args: Any, **options: Any) -> Any:
            self._compiles = True
            self._look_no_more()
            return original(*args, **options)

        _replace(torch, "compile", compiling)

    def _first_call(self, module: Any) -> None:
        from torch.nn import Conv2d

        if len(self._modules) < CALLS:
            self._modules.append(module)
            self._kinds.append(type(module).__name__)
            self._images = self._images or any(isinstance(inner, Conv2d) for inner in module.modules())
            for act in self.at_first_call:
                act(module)

    def _look_no_more(self) -> None:
        while self._hooks:
            self._hooks.pop().remove()
        self._running.clear()

    def keep_output(self, module: Any, result: Any) -> None:
        """Keep a sample of what a module returned, in the first steps."""
        if len(self._stamps_ns) > WATCHED:
            return
        from torch.utils._pytree import tree_leaves

        place = next((i for i, known in enumerate(self._modules) if known is module), None)
        if place is None:
            return
        kept = self._outputs.setdefault(f"module {place}, step {len(self._stamps_ns)}", [])
        if len(kept) < CALLS:
            kept.append([number for leaf in tree_leaves(result) for number in _sample(leaf)])

    # Losses and parameters

    def _watch_results(self) -> None:
        import torch
        from torch.optim.optimizer import register_optimizer_step_post_hook

        original: Any = torch.Tensor.backward

        @functools.wraps(original)
        def backward(this: Any, *args: Any, **options: Any) -> Any:
            if this.numel() == 1 and len(self._losses) < LOSSES and not torch.compiler.is_compiling():
                self._losses.append(this.detach().clone())
            return original(this, *args, **options)

        _replace(torch.Tensor, "backward", backward)

        def stepped(optimizer: Any, args: Any, options: Any) -> None:
            parameters = optimizer.param_groups[0]["params"]
            if id(parameters[0]) not in self._held and len(self._held) < 8:
                every = [one for group in optimizer.param_groups for one in group["params"]]
                self._held[id(parameters[0])] = every
                self._optimizers.append(type(optimizer).__name__)
                self._fused.append(all(group.get("fused") for group in optimizer.param_groups))

        register_optimizer_step_post_hook(stepped)

    # What could be changed

    def _watch_settings(self) -> None:
        import torch
        from torch.utils.data import DataLoader, IterableDataset

        set_threads, make = torch.set_num_threads, DataLoader.__init__

        @functools.wraps(set_threads)
        def setting(count: int) -> None:
            self._threads_set = self._threads_set or program_line()
            set_threads(count)

        @functools.wraps(make)
        def making(this: Any, *args: Any, **options: Any) -> None:
            make(this, *args, **options)
            self._loaders.append(
                Loader(
                    this.num_workers, this.persistent_workers, this.prefetch_factor, this.pin_memory,
                    isinstance(this.dataset, IterableDataset), program_line(),
                )
            )  # fmt: skip

        _replace(torch, "set_num_threads", setting)
        _replace(DataLoader, "__init__", making)

    def record(self) -> Record:
        """Return what was seen, when the program has ended."""
        ended_ns = time.perf_counter_ns()
        torch = sys.modules.get("torch")
        if torch is None or not self._imported_ns:
            return Record(error="the program did not import PyTorch")
        if torch.cuda.is_initialized():
            torch.cuda.synchronize()
            ended_ns = time.perf_counter_ns()
        stamps = self._stamps_ns if len(self._stamps_ns) > 1 else [self._imported_ns, ended_ns]
        steps_us = [(after - before) / 1e3 for before, after in itertools.pairwise(stamps)]
        if len(self._events) == len(stamps):  # a GPU may be behind
            steps_us = [1e3 * a.elapsed_time(b) for a, b in itertools.pairwise(self._events)]
        found = len(self._stamps_ns) > 1
        return Record(
            steps_us, (stamps[0] - self._imported_ns) / 1e3, self._source if found else "",
            self._label if found else "", self.ended_early, self._results(), self._facts(torch),
        )  # fmt: skip

    def _results(self) -> Results:
        losses = [number for loss in self._losses for number in _sample(loss)[:1]]
        parameters = [one for held in self._held.values() for one in held][:PARAMETERS]
        return Results(losses, self._outputs, [_sample(one) for one in parameters])

    def _facts(self, torch: Any) -> Facts:
        return Facts(
            threads=self._threads or torch.get_num_threads(),
            processors=usable_processors(),
            threads_set=self._threads_set,
            libraries=_libraries(),
            loaders=tuple(self._loaders[:CALLS]),
            cuda=torch.cuda.is_initialized(),
            trained=bool(self._losses or self._held),
            optimizers=tuple(dict.fromkeys(self._optimizers)),
            fused=all(self._fused),
            steps=len(self._stamps_ns) > 1,
            modules=tuple(dict.fromkeys(self._kinds)),
            images=self._images,
            compiled=self._compiles,
            anomaly=self._anomaly,
            matmul_precision=torch.get_float32_matmul_precision(),
            cudnn_benchmark=torch.backends.cudnn.benchmark,
            bf16=_multiplies_in_bf16(),
        )


def _nothing(function: Any) -> Any:
    """Stand for `torch.compile` until PyTorch is imported."""
    return function


def _replace(owner: Any, name: str, value: Any) -> None:
    setattr(owner, name, value)


def _sample(value: Any) -> list[float]:
    """Numbers from all over a tensor, and its sum; [] for what isn't a plain tensor."""
    import torch

    if type(value) not in (torch.Tensor, torch.nn.Parameter) or value.layout != torch.strided or not value.numel():
        return []
    with torch.no_grad():
        plain = torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
        flat = plain.detach().reshape(-1)
        numbers = flat[:: -(-len(flat) // SAMPLE)].to(torch.float64).cpu()
        return [*map(float, numbers), float(flat.to(torch.float64).sum())]


def program_line() -> str:
    """Return the innermost line of the program itself on the stack, as "train.py:31"; "" if nothing on it is."""
    outside = (str(Path(__file__).parents[1]), str(Path(sys.modules["torch"].__file__ or "").parent), "<frozen")
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith(outside):
            return f"{Path(name).name}:{frame.f_lineno}"
        frame = frame.f_back
    return ""


def _libraries() -> tuple[str, ...]:
    """Names of the libraries that are loaded, where the system says so (Linux)."""
    try:
        lines = Path("/proc/self/maps").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    paths = {line.split(maxsplit=5)[5] for line in lines if ".so" in line and len(line.split(maxsplit=5)) == 6}
    names = {Path(path).name.partition(".so")[0].partition("-")[0] for path in paths}
    return tuple(sorted(name for name in names if name.startswith("lib")))


def _multiplies_in_bf16() -> bool:
    """Whether oneDNN multiplies float32 in bfloat16 if allowed: with AMX or on ARM; AVX-512 has no such products."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return False
    return bool(set(text.split()) & {"amx_bf16", "bf16"})
