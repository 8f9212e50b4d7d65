"""Triton's interpreter, in a process of its own: it must be asked for before Triton is imported.

`run` calls a GPU backend on CPU tensors; tiles are small, as each operation of a kernel takes the interpreter
a tenth of a millisecond.
"""

import os
from collections import Counter
from concurrent.futures import ProcessPoolExecutor
from importlib import import_module
from multiprocessing import get_context

import numpy as np


def noise(*shape, dtype=None, layout="whole", seed=0):
    """Return noise, float32 unless told, in one of the layouts that callers have."""
    import torch

    x = torch.from_numpy(np.random.default_rng(seed).standard_normal(shape)).to(dtype or torch.float32)
    if layout == "every second":
        return torch.stack([x, x + 1], dim=-1).flatten(-2)[..., ::2]
    if layout == "interleaved":
        return x.movedim(-1, 0).contiguous().movedim(0, -1)
    return x


def interpreter():
    """Return a pool of one process that interprets."""
    return ProcessPoolExecutor(1, mp_context=get_context("spawn"), initializer=_interpret)


def _interpret():
    os.environ["TRITON_INTERPRET"] = "1"
    import torch

    np.seterr(all="ignore")
    torch.use_deterministic_algorithms(True)  # fills empty tensors with NaN: what is read must have been written
    from triton.runtime.interpreter import ScanOps

    ScanOps.generic_scan = _doubling_scan


def _doubling_scan(scan, inputs):
    """Combine pairs at distances 1, 2, 4, ..., as lanes do; the interpreter's own scan goes from one to the next."""
    values, distance = inputs, 1
    while distance < len(inputs[0].handle.data):
        earlier = [scan.to_tensor(np.roll(each.handle.data, distance), each.dtype) for each in values]
        found = scan.combine_fn.fn(*earlier, *values)
        values = [
            scan.to_tensor(np.append(old.handle.data[:distance], new.handle.data[distance:]), old.dtype)
            for old, new in zip(values, found, strict=True)
        ]
        distance *= 2
    return values


def elementwise(kernel, *arrays, results):
    """Return what a kernel of two_float_kernels.py finds: so many arrays like the first."""
    import torch

    kernels = import_module("two_float_kernels")
    found = [torch.from_numpy(np.full_like(arrays[0], np.nan)) for _ in range(results)]
    getattr(kernels, kernel)[(1,)](*map(torch.from_numpy, arrays), *found, N=len(arrays[0]))
    return [each.numpy() for each in found]


def run(name, arguments, lanes=4, log_t=2, processors=132, pairs=False, **constants):
    """Return the results of an operator, and how often the kernel did float64 arithmetic, by kind.

    Args:
        name: the operator.
        arguments: its arguments.
        lanes, log_t: a tile is `lanes` times 2^log_t samples.
        processors: how many multiprocessors to share the work among.
        pairs: whether the chip is one with few float64 units.
        constants: of the operator's `triton.py`, to be replaced.
    """
    import triton.language as tl
    from triton.runtime import interpreter as own

    from operators import backend, declared
    from torchfx._ops import triton_launch

    module = import_module(f"{declared(name)[0]}.triton")
    triton_launch.INTERPRETED = (processors, lanes)
    triton_launch.device_properties.cache_clear()
    triton_launch.INTERPRETED_FLOAT64_IS_SLOW = pairs
    triton_launch.float64_is_slow.cache_clear()
    constants |= {"LOG_T": {4: log_t, 8: log_t}} if hasattr(module, "LOG_T") else {}
    before = {key: getattr(module, key) for key in constants}
    for key, value in constants.items():
        setattr(module, key, value)
    counts: Counter[str] = Counter()
    builder = own.InterpreterBuilder
    kinds = {"create_fma": "fma", "create_fmul": "mul", "create_fadd": "add", "create_fsub": "add"}
    originals = {method: getattr(builder, method) for method in kinds}

    def counting(method):
        def call(self, x, *rest):
            counts[kinds[method]] += x.dtype.scalar == tl.float64
            return originals[method](self, x, *rest)

        return call

    for method in kinds:
        setattr(builder, method, counting(method))
    try:
        import_module("torchfx._ops")
        return [result.numpy() for result in backend(name, "triton")(*arguments)], dict(counts)
    finally:
        for method, original in originals.items():
            setattr(builder, method, original)
        for key, value in before.items():
            setattr(module, key, value)
