"""Python frames: whose code they are, and modules."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from typing import Final

from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.meaning.libraries import VOCABULARIES

__all__ = [
    "BACKWARD_CALL",
    "CAPTURE_BEGIN_CALL",
    "CAPTURE_END_CALL",
    "CAPTURE_FUNCTION",
    "COLLECTING",
    "FORMATTING",
    "INSIDE_PYTORCH",
    "LOGGING",
    "MAKING_TENSORS",
    "MODULE",
    "MODULE_PREFIX",
    "PRINTING",
    "PROFILER",
    "PYTORCHS_FORWARD",
    "READING",
    "RECOMPUTING_FRAME",
    "SAVING",
    "SINGLE_TENSOR_UPDATE",
    "called_name",
    "code_of",
    "file_and_line",
    "line_of",
    "own_frame",
    "short_frame",
]

MODULE_PREFIX: Final = "nn.Module: "
INSIDE_PYTORCH: Final = ("torch/", MODULE_PREFIX, "<built-in", "<frozen", "<string>")
"""Beginnings of frames, with short paths, that are not the program's own."""

MODULE: Final = Meaning(r"nn\.Module: ", Kind.PYTHON)
"""A call of a module: "nn.Module: Linear_3" is the third instance of its class."""

PYTORCHS_FORWARD: Final = Meaning(r"(.*[/\\])?torch[/\\]nn[/\\].*: forward$", Kind.PYTHON)
"""The forward pass of a module that PyTorch itself brings."""

PROFILER: Final = Meaning(r"(.*[/\\])?torch[/\\](autograd|profiler)[/\\].*profiler\.py", Kind.PYTHON)
"""The profiler itself."""

RECOMPUTING_FRAME: Final = Meaning(r".*checkpoint\.py\(\d+\): (recompute_fn|_run_fn_with_dynamo_disabled)", Kind.PYTHON)
"""Activation checkpointing computes a part of the forward pass again."""

BACKWARD_CALL: Final = Meaning(
    r"(.*[/\\])?torch[/\\](_tensor\.py.*: backward|autograd[/\\]__init__\.py.*: (backward|grad))$"
    r"|<built-in method run_backward of ",
    Kind.PYTHON,
)
"""The program asks for gradients; what passes in it is autograd's time."""

COLLECTING: Final = Meaning(
    r"<built-in (method|function) collect of module|<built-in function collect>|gc\.py.*collect", Kind.PYTHON
)
"""A call of `gc.collect()`."""

FORMATTING: Final = Meaning(r"(.*[/\\])?torch[/\\]_tensor_str\.py", Kind.PYTHON)
"""A tensor is turned into text."""

PRINTING: Final = FORMATTING | Meaning(r".*(<built-in function print>|logging/__init__\.py)", Kind.PYTHON)
"""Something is printed or logged."""

MAKING_TENSORS: Final = Meaning(r"<built-in method (as_)?tensor of type ", Kind.PYTHON)
"""torch.tensor and torch.as_tensor: lists are read number by number."""

SAVING: Final = Meaning(
    r"(.*[/\\])?(torch[/\\]serialization\.py.*: save|safetensors[/\\].*: save|numpy[/\\].*: save|pickle\.py.*: dump)"
    r"|<built-in method dumps? of module|<built-in function dumps?>",
    Kind.PYTHON,
)
"""Tensors or objects are written to a file."""

READING: Final = Meaning(
    r"(.*[/\\])?(torch[/\\]serialization\.py.*: load|numpy[/\\].*: (load|fromfile|genfromtxt)|PIL[/\\]|cv2[/\\]"
    r"|pandas[/\\]io|soundfile\.py|h5py[/\\]|imageio[/\\]|wave\.py|csv\.py|torchaudio[/\\]|torchvision[/\\](io|datasets))"
    r"|<built-in method (open|read|readlines|imread|loads?) of |<built-in function (open|read|loads?)>",
    Kind.PYTHON,
)
"""Files are read or decoded."""

LOGGING: Final = PRINTING | Meaning(
    r"(.*[/\\])?(json[/\\]|wandb[/\\]|mlflow[/\\]|matplotlib[/\\]|tensorboardX?[/\\]|torch[/\\]utils[/\\]tensorboard|tqdm[/\\])"
    r"|<built-in method (tolist|write|flush) of ",
    Kind.PYTHON,
)
"""Numbers go to a log, or are made ready for it."""

SINGLE_TENSOR_UPDATE: Final = Meaning(r".*\b_single_tensor_\w+", Kind.PYTHON)
"""An optimizer of PyTorch goes through its parameters one by one."""

CAPTURE_BEGIN_CALL: Final = Meaning(
    r".*torch[/\\]cuda[/\\]graphs\.py.*: capture_begin|<built-in method capture_begin of", Kind.PYTHON
)
CAPTURE_END_CALL: Final = Meaning(
    r".*torch[/\\]cuda[/\\]graphs\.py.*: capture_end|<built-in method capture_end of", Kind.PYTHON
)
CAPTURE_FUNCTION: Final = Meaning(
    r".*\.py(\(\d+\)|:\d+): _{0,2}(capture|make_graphed)(?!_(begin|end)$)\w*$", Kind.PYTHON
)
"""A function that records CUDA graphs, as programs and inference servers name theirs: capture_model, _capture_graph."""

_FRAME: Final = re.compile(r"(?P<file>[^<>]+\.py)(\((?P<line>\d+)\)|:(?P<number>\d+))")
_BUILT_IN: Final = re.compile(r"<built-in (method|function) (?P<name>\w+)(?P<torch> of type object)?")
_LIBRARIES: Final = re.compile(
    r"(^|.*[/\\])((site|dist)-packages|lib[/\\]python\d|torch|torchwhy|triton|numpy|_dynamo|torchgen"
    + "".join(f"|{re.escape(each.folder)}" for each in VOCABULARIES)
    + r")[/\\]"
    r"|(PIL|cv2|einops|fsspec|h5py|imageio|librosa|matplotlib|mlflow|pandas|pyarrow|safetensors|scipy|skimage"
    r"|sklearn|tensorboard|tensorboardX|wandb)[/\\]"  # the profiler leaves out the folder of packages
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
        whose = code_of(frame)
        if whose == "program":
            return frame
        if whose:
            second = second or frame
    return second


def code_of(frame: str) -> str:
    """Return whose code a frame is: "program", "framework" (calls PyTorch for the program), or "" for all else.

    >>> code_of("train.py(34): step"), code_of("transformers/trainer.py(9): train"), code_of("torch/hub.py(1): f")
    ('program', 'framework', '')
    """
    found = _FRAME.match(frame)
    if not found or _LIBRARIES.match(found["file"]) or _standard(found["file"]):
        return ""
    return "framework" if _FRAMEWORKS.match(found["file"]) else "program"


def short_frame(name: str) -> str:
    """Return a Python frame as file, line and function, without the folders; any other name as it is.

    >>> short_frame("transformers/models/videomae/processing.py(40): preprocess"), short_frame("aten::mm")
    ('processing.py(40): preprocess', 'aten::mm')
    """
    found = _FRAME.match(name)
    return re.split(r"[/\\]", found["file"])[-1] + name[found.end("file") :] if found else name


def line_of(frame: str) -> str:
    """Return a frame as a line of the program is shown, a script's own code without a number.

    The profiler notes a function by the line where it begins; a script by the line that ran when recording began.

    >>> line_of("train.py(34): step"), line_of("train.py(57): <module>")
    ('train.py(34): step', 'train.py: <module>')
    """
    return re.sub(r"(?<=\.py)(\(\d+\)|:\d+)(?=: <module>$)", "", frame)


def called_name(name: str) -> str:
    """Return how a program would write the function of a frame; any other name as it is.

    >>> called_name("torch/serialization.py(953): save"), called_name("json/__init__.py(183): dumps")
    ('torch.serialization.save', 'json.dumps')
    >>> called_name("<built-in method tensor of type object at 0x7f89090cea40>")
    'torch.tensor'
    """
    builtin = _BUILT_IN.match(name)
    found = _FRAME.match(name)
    if builtin or not found:
        return f"{'torch.' if builtin['torch'] else ''}{builtin['name']}" if builtin else name
    parts = [part for part in re.split(r"[/\\]", found["file"].removesuffix(".py")) if part != "__init__"]
    if "site-packages" in parts:
        parts = parts[parts.index("site-packages") + 1 :]
    return ".".join((*parts[-3:], name[found.end() :].removeprefix(": ")))


def file_and_line(name: str) -> tuple[str, int] | None:
    """Return where the code of a Python frame is; None for any other name.

    >>> file_and_line("models/net.py(40): forward"), file_and_line("aten::mm")
    (('models/net.py', 40), None)
    """
    found = _FRAME.match(name)
    return (found["file"], int(found["line"] or found["number"])) if found else None


def _standard(file: str) -> bool:
    """Whether a file belongs to Python itself; the profiler writes those as "threading.py" or "asyncio/events.py"."""
    first = re.split(r"[/\\]", file.removesuffix(".py"))[0]
    return first in sys.stdlib_module_names or first.startswith("<")
