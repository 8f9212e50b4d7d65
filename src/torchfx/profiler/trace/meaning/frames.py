"""Python frames: whose code they are, and modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Final

from torchfx.profiler.trace.meaning.kinds import Kind, Meaning

__all__ = ["MODULE", "MODULE_PREFIX", "PROFILER", "own_frame", "short_frame"]

MODULE_PREFIX: Final = "nn.Module: "
MODULE: Final = Meaning(r"nn\.Module: ", Kind.PYTHON)
"""A call of a module: "nn.Module: Linear_3" is the third instance of its class."""

PROFILER: Final = Meaning(r"(.*[/\\])?torch[/\\](autograd|profiler)[/\\].*profiler\.py", Kind.PYTHON)
"""The profiler itself."""

_FRAME: Final = re.compile(r"(?P<file>[^<>]+\.py)(\(\d+\)|:\d+)")
_LIBRARIES: Final = re.compile(
    r"(^|.*[/\\])((site|dist)-packages|lib[/\\]python\d|torch|torchfx|triton|numpy|_dynamo|torchgen)[/\\]"
)

_FRAMEWORKS: Final = re.compile(
    r"(transformers|diffusers|accelerate|peft|trl|timm|torchvision|torchaudio|torchtune|torchtitan|lightning\w*"
    r"|pytorch_lightning|ignite|fastai|deepspeed|megatron|fairseq2?|vllm|apex|xformers|flash_attn|tqdm)[/\\]"
)
"""Code that calls PyTorch for the program: better than nothing, worse than the program's own line."""


def own_frame(stack: Sequence[str]) -> str:
    """Return the innermost frame of the program's own code, else of a framework's; "" where there is neither.

    Args:
        stack: frames, innermost first, as "train.py(34): step".

    >>> own_frame(["<built-in method mm>", "torch/nn/modules/linear.py(114): forward", "train.py(34): step"])
    'train.py(34): step'
    """
    second = ""
    for frame in stack:
        found = _FRAME.match(frame)
        if found and not _LIBRARIES.match(found["file"]) and not _standard(found["file"]):
            if not _FRAMEWORKS.match(found["file"]):
                return frame
            second = second or frame
    return second


def short_frame(name: str) -> str:
    """Return a Python frame as file, line and function, without the folders; any other name as it is.

    >>> short_frame("transformers/models/videomae/processing.py(40): preprocess"), short_frame("aten::mm")
    ('processing.py(40): preprocess', 'aten::mm')
    """
    found = _FRAME.match(name)
    return re.split(r"[/\\]", found["file"])[-1] + name[found.end("file") :] if found else name


def _standard(file: str) -> bool:
    """Whether a file belongs to Python itself; the profiler writes those as "threading.py" or "asyncio/events.py"."""
    first = re.split(r"[/\\]", file.removesuffix(".py"))[0]
    return first in sys.stdlib_module_names or first.startswith("<")
