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
    "CHECKPOINT_SAMPLED",
    "COLLATE_CALL",
    "COLLECTING",
    "COPYING_OBJECTS",
    "FORMATTING",
    "HOOK_CALL",
    "INSIDE_PYTORCH",
    "JOINS_TO_ITSELF",
    "LAUNCHER",
    "LISTING",
    "LOADER_FRAME",
    "LOGGING",
    "LOOKS_UP_ROWS",
    "LOOPS",
    "MAKES_ARRAY",
    "MAKING_TENSORS",
    "MODULE",
    "MODULE_CALL",
    "MODULE_PREFIX",
    "OPTIMIZER_MADE",
    "PARAMETRIZATION",
    "PRINTING",
    "PROFILER",
    "PYTORCHS_FORWARD",
    "READING",
    "RECOMPUTING_FRAME",
    "SAVING",
    "SEARCHES",
    "SINGLE_TENSOR_UPDATE",
    "TAKES_LOCK",
    "TORCHWHYS",
    "WRAPPER_FRAME",
    "called_name",
    "code_of",
    "file_and_line",
    "line_of",
    "module_path",
    "own_frame",
    "own_place",
    "place_in_script",
    "program_path",
    "recorder_runs",
    "short_frame",
    "without_line",
    "without_numbers",
]

MODULE_PREFIX: Final = "nn.Module: "
INSIDE_PYTORCH: Final = ("torch/", MODULE_PREFIX, "<built-in", "<frozen", "<string>")
"""Beginnings of frames, with short paths, that are not the program's own."""

MODULE: Final = Meaning(r"nn\.Module: ", Kind.PYTHON)
"""A call of a module: "nn.Module: Linear_3" is the third instance of its class."""

MODULE_CALL: Final = Meaning(
    r"(.*[/\\])?torch[/\\]nn[/\\]modules[/\\]module\.py.*: _(wrapped_)?call_impl$", Kind.PYTHON
)
"""A module is called."""

PARAMETRIZATION: Final = Meaning(r"nn\.Module: ParametrizationList_\d+$", Kind.PYTHON)
"""A weight is computed by `torch.nn.utils.parametrize`."""

OPTIMIZER_MADE: Final = Meaning(
    r"(.*[/\\])?torch[/\\]optim[/\\](?!lr_scheduler|swa_utils)\w+\.py\(\d+\): __init__$", Kind.PYTHON
)
"""An optimizer of PyTorch is made."""

PYTORCHS_FORWARD: Final = Meaning(r"(.*[/\\])?torch[/\\]nn[/\\].*: forward$", Kind.PYTHON)
"""The forward pass of a module that PyTorch itself brings."""

PROFILER: Final = Meaning(r"(.*[/\\])?torch[/\\](autograd|profiler)[/\\].*profiler\.py", Kind.PYTHON)
"""The profiler itself."""

TORCHWHYS: Final = Meaning(r"(.*[/\\])?torchwhy[/\\]", Kind.PYTHON)
"""Code that finds the program's steps and records them, which is no part of the program."""

RECOMPUTING_FRAME: Final = Meaning(r".*checkpoint\.py\(\d+\): (recompute_fn|_run_fn_with_dynamo_disabled)", Kind.PYTHON)
"""Activation checkpointing computes a part of the forward pass again."""

BACKWARD_CALL: Final = Meaning(
    r"(.*[/\\])?torch[/\\](_tensor\.py.*: backward"
    r"|autograd[/\\](__init__\.py.*: (backward|grad)|graph\.py.*: _engine_run_backward))$"
    r"|<built-in method run_backward of ",
    Kind.PYTHON,
)
"""The program asks for gradients; what passes in it is autograd's time."""

WRAPPER_FRAME: Final = Meaning(
    r".*\.py(\(\d+\)|:\d+): (decorate_context|__call__|__r?(or|and|rshift|matmul)__|_(wrapped_)?call_impl"
    r"|wrap(per|ped)|inner|_fn)$|nn\.Module: ",
    Kind.PYTHON,
)
"""A function that only calls the one that does the work."""

COLLECTING: Final = Meaning(
    r"<built-in (method|function) collect of module|<built-in function collect>|gc\.py.*collect", Kind.PYTHON
)
"""A call of `gc.collect()`."""

FORMATTING: Final = Meaning(r"(.*[/\\])?torch[/\\]_tensor_str\.py", Kind.PYTHON)
"""A tensor is turned into text."""

PRINTING: Final = FORMATTING | Meaning(r".*(<built-in function print>|logging/__init__\.py)", Kind.PYTHON)
"""Something is printed or logged."""

COPYING_OBJECTS: Final = Meaning(r"(.*[/\\])?copy\.py\(\d+\): deepcopy$", Kind.PYTHON)
"""A whole object is copied, with all that it holds."""

TAKES_LOCK: Final = Meaning(
    r"with [\w.]*(lock|mutex|condition)\w*(\(\))?:|.*\b\w*(lock|mutex)\w*\.acquire\(", Kind.PYTHON
)
"""A line of a program's source that waits for a lock."""

MAKES_ARRAY: Final = Meaning(r".*\b(asanyarray|asarray|array|fromiter)\(", Kind.PYTHON)
"""A line of source, NumPy's own for one, that makes an array of what may be a list or a deque."""

LOOPS: Final = Meaning(r".*(\bfor\b.*\bin\b|\b(sum|min|max|sorted|list|tuple|set|map|filter)\()", Kind.PYTHON)
"""A line of source that goes through something item by item."""

SEARCHES: Final = Meaning(r".*[\w\])]\.index\(", Kind.PYTHON)
"""A line of source that looks for the place of an item."""

JOINS_TO_ITSELF: Final = Meaning(
    r"(?P<whole>[A-Za-z_]\w*(\.\w+|\[[^\]=]*\])+) *= *(np|numpy|torch|pd|pandas)\."
    r"(concatenate|append|[vh]stack|concat|cat)\((.*[^\w.])?(?P=whole)(?![\w.(\[])",
    Kind.PYTHON,
)
"""A line of source that makes an attribute or an item, which outlives a call, of itself and more."""

LOOKS_UP_ROWS: Final = Meaning(
    r"(.*[/\\])?pandas[/\\]core[/\\](indexing\.py.*: __getitem__|frame\.py.*: iter(rows|tuples))", Kind.PYTHON
)
"""Rows or numbers of a table are taken by their place or label."""

LOADER_FRAME: Final = Meaning(r"(.*[/\\])?torch[/\\]utils[/\\]data[/\\]dataloader\.py", Kind.PYTHON)
"""A DataLoader at work."""

HOOK_CALL: Final = Meaning(r".*torch[/\\]nn[/\\]modules[/\\]module\.py\(\d+\): \w+ \| .*hook\(", Kind.PYTHON)
"""A module calls one of its hooks; a frame with its source, as `StackSamples.texts` writes it."""

CHECKPOINT_SAMPLED: Final = Meaning(r"(.*[/\\])?torch[/\\]utils[/\\]checkpoint\.py", Kind.PYTHON)
"""Activation checkpointing calls a part of the model, or computes it again."""

COLLATE_CALL: Final = Meaning(
    r".*torch[/\\]utils[/\\]data[/\\]_utils[/\\]fetch\.py\(\d+\): \w+ \| .*collate_fn\(", Kind.PYTHON
)
"""A DataLoader joins samples to a batch; a frame with its source."""

MAKING_TENSORS: Final = Meaning(r"<built-in method (as_)?tensor of type |(.*\W)?torch\.(as_)?tensor\(", Kind.PYTHON)
"""torch.tensor and torch.as_tensor, as frames or in a line of source: lists are read number by number."""

SAVING: Final = Meaning(
    r"(.*[/\\])?(torch[/\\]serialization\.py.*: save|safetensors[/\\].*: save|numpy[/\\].*: save)"
    r"|(.*[/\\]python3\.\d+[/\\])?pickle\.py.*: dump"
    r"|<built-in method dumps? of module|<built-in function dumps?>",
    Kind.PYTHON,
)
"""Tensors or objects are written to a file."""

READING: Final = Meaning(
    r"(.*[/\\])?(torch[/\\]serialization\.py.*: load$|numpy[/\\].*: (load|loadtxt|fromfile|genfromtxt)$"
    r"|PIL[/\\](Image\.py.*: (open|load)$|ImageFile\.py|\w+ImagePlugin\.py)|h5py[/\\].*: __getitem__$"
    r"|pandas[/\\]io[/\\].*: (read\w*|_read\w*)$|imageio[/\\].*: \w*(read|load)\w*$|skimage[/\\]io[/\\].*: imread\w*$"
    r"|torchaudio[/\\].*: (load|load_with_torchcodec|__getitem__)$"
    r"|torchvision[/\\](io[/\\].*: (read|decode)\w*$|datasets[/\\].*: __getitem__$))"
    r"|(.*[/\\]site-packages[/\\])?soundfile\.py.*: (read|blocks|buffer_read\w*)$"
    r"|(.*[/\\]python3\.\d+[/\\])?(json[/\\]__init__\.py.*: loads?|csv\.py.*: __next__|wave\.py.*: (readframes|initfp)"
    r"|pickle\.py.*: loads?)$"
    r"|<built-in (method|function) (open|read|readline|readlines|imread|imdecode|loads?)( of |>)",
    Kind.PYTHON,
)
"""Files are read or decoded. What else such a library does, resizing an image for one, is the program's work."""

LISTING: Final = Meaning(
    r"(.*[/\\]python3\.\d+[/\\])?json[/\\](__init__\.py.*: dumps?$|encoder\.py)|<built-in method tolist of ",
    Kind.PYTHON,
)
"""All numbers of a tensor or an array become Python's own, or text."""

LOGGING: Final = PRINTING | Meaning(
    r"(.*[/\\])?(wandb[/\\]|mlflow[/\\]|matplotlib[/\\]|tensorboardX?[/\\]|torch[/\\]utils[/\\]tensorboard"
    r"|tqdm[/\\].*: (update|refresh|display|set_\w+|write)$)"
    r"|<built-in method (write|flush) of ",
    Kind.PYTHON,
)
"""Something goes to a log."""

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

LAUNCHER: Final = "torchwhy/capture/launch/program.py"
"""Runs a program under `torchwhy profile`: what called it is no part of the program."""

_RECORDER: Final = ("torchwhy/capture/", "torch/profiler/profiler.py", "torch/autograd/profiler.py")
_PYTORCHS: Final = re.compile(r"(.*[/\\])?torch[/\\](?!_ops\.py)")
_ADDRESS: Final = re.compile(r" at 0x[0-9a-f]+")
_FRAME: Final = re.compile(r"(?P<file>[^<>]+\.py)(\((?P<line>\d+|\?)\)|:(?P<number>\d+)|(?=: <module>$))")
_BUILT_IN: Final = re.compile(r"<built-in (method|function) (?P<name>\w+)(?P<torch> of type object)?")
_LIBRARIES: Final = re.compile(
    r"(^|.*[/\\])((site|dist)-packages|lib[/\\]python\d[\d.]*|torchinductor_\w+|torch|torchwhy|triton|numpy|_dynamo|torchgen"
    + "".join(f"|{re.escape(each.folder)}" for each in VOCABULARIES)
    + r")[/\\]"
    r"|(PIL|albumentations|audioread|cv2|decord|einops|fsspec|gymnasium|h5py|imageio|joblib|kornia|librosa|lmdb"
    r"|matplotlib|mlflow|networkx|nibabel|nltk|numba|pandas|polars|pyarrow|pydantic|pydicom|rdkit|requests|safetensors"
    r"|scipy|seaborn|sentencepiece|skimage|sklearn|soxr|spacy|statsmodels|sympy|tensorboard|tensorboardX|tifffile"
    r"|tokenizers|typer|urllib3|wandb|webdataset|xarray|zarr)[/\\]"  # the profiler leaves out the folder of packages
)

_FRAMEWORKS: Final = re.compile(
    r"(transformers|diffusers|accelerate|peft|trl|timm|torchvision|torchaudio|torchtune|torchtitan|lightning\w*"
    r"|pytorch_lightning|ignite|fastai|deepspeed|megatron|fairseq2?|vllm|apex|xformers|flash_attn|tqdm)[/\\]"
)
"""Code that calls PyTorch for the program: better than nothing, worse than the program's own line."""


def own_frame(stack: Sequence[str]) -> str:
    """Return the innermost frame of the program's own code, else of a framework's, as `line_of`; "" without either.

    Args:
        stack: frames, innermost first, as "train.py(34): step".

    >>> own_frame(["threading.py(9): wait", "torchwhy/capture/launch/program.py(9): run", "typer/main.py(15): wrapper"])
    ''
    >>> own_frame(["<built-in method mm>", "torch/nn/modules/linear.py(114): forward", "train.py(34): step"])
    'train.py(34): step'
    """
    return line_of(own_place(stack))


def own_place(stack: Sequence[str]) -> str:
    """Return the frame of a stack that `own_frame` means, with the number of its line also in a script.

    >>> own_place(["json/__init__.py(293): load", "train.py(57): <module>"])
    'train.py(57): <module>'
    """
    second = ""
    for frame in stack:
        if LAUNCHER in frame:
            break
        whose = code_of(frame)
        if whose == "program":
            return frame
        if whose:
            second = second or frame
    return second


def module_path(stack: Sequence[str]) -> str:
    """Return the modules that a stack goes through, the outermost first; "" for none.

    A trace names them ("nn.Module: Linear_3"). A snapshot of the allocator names functions only: each that is called
    `forward` stands for a module, by its file.

    Args:
        stack: frames, innermost first, as "train.py(34): step".

    >>> module_path(["torch/nn/modules/linear.py(114): forward", "net/block.py(9): forward", "train.py(34): step"])
    'block.linear'
    >>> module_path(["nn.Module: Linear_0", "torch/nn/modules/linear.py(114): forward", "nn.Module: Net_0"])
    'Net_0.Linear_0'
    """
    named = [frame.removeprefix(MODULE_PREFIX) for frame in stack if frame.startswith(MODULE_PREFIX)]
    files = [found["file"] for frame in stack if frame.endswith(": forward") and (found := _FRAME.match(frame))]
    return ".".join(reversed(named or [re.split(r"[/\\]", file)[-1].removesuffix(".py") for file in files]))


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
    """Return a frame as a line of the program is shown: without a number where the line is unknown, or a script's.

    The profiler notes a function by the line where it begins; one that ran when recording began by the line it was at.

    >>> line_of("train.py(34): step"), line_of("train.py(57): <module>")
    ('train.py(34): step', 'train.py: <module>')
    """
    return re.sub(r"(?<=\.py)(\(\d+\)|:\d+)(?=: <module>$)|(?<=\.py)\(\?\)", "", frame)


def place_in_script(frame: str) -> str:
    """Return the line of a sampled frame outside of functions, whose number `line_of` leaves out; "" for others.

    >>> place_in_script("train.py(57): <module>"), place_in_script("train.py(34): step")
    ('line 57 of train.py', '')
    """
    found = re.fullmatch(r"(?P<file>.*)\((?P<line>\d+)\): <module>", frame)
    return f"line {found['line']} of {found['file']}" if found else ""


def without_line(frame: str) -> str:
    """Return a frame of the program with its line unknown; any other name as it is.

    >>> without_line("train.py(34): step"), without_line("torch/hub.py(1): f")
    ('train.py(?): step', 'torch/hub.py(1): f')
    """
    found = _FRAME.match(frame)
    return f"{found['file']}(?){frame[found.end() :]}" if found and code_of(frame) else frame


def without_numbers(frame: str) -> str:
    """Return a frame without the number of its line, which an edit elsewhere in the file changes.

    >>> without_numbers("train.py(34): step"), without_numbers("aten::mm")
    ('train.py: step', 'aten::mm')
    """
    found = _FRAME.match(frame)
    return f"{found['file']}{frame[found.end() :]}" if found else frame


def program_path(path: Sequence[str]) -> list[str]:
    """Return a path from the outermost frame without the profiler, its launcher and addresses.

    >>> program_path(["runpy.py(3): run", "torchwhy/capture/launch/program.py(9): run", "train.py(2): <module>"])
    ['train.py(2): <module>']
    """
    launched = [place for place, frame in enumerate(path) if LAUNCHER in frame]
    inside = path[launched[-1] + 1 if launched else 0 :]
    return [_ADDRESS.sub("", frame) for frame in inside if not any(own in frame for own in _RECORDER)]


def recorder_runs(stack: Sequence[str]) -> bool:
    """Whether the profiler's or torchwhy's own code runs, rather than the program that it has wrapped.

    Args:
        stack: frames, innermost first.

    >>> recorder_runs(["weakref.py(4): __contains__", "torchwhy/capture/launch/optimizers.py(9): _announce"])
    True
    >>> recorder_runs(["torch/nn/modules/linear.py(9): forward", "torchwhy/capture/launch/calls.py(9): run"])
    False
    """
    for frame in stack:
        if any(own in frame for own in _RECORDER):
            return True
        if code_of(frame) or _PYTORCHS.match(frame):
            return False
    return False


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


def file_and_line(name: str) -> tuple[str, int | None] | None:
    """Return where the code of a Python frame is; None for any other name.

    >>> file_and_line("models/net.py(40): forward"), file_and_line("train.py(57): <module>"), file_and_line("aten::mm")
    (('models/net.py', 40), ('train.py', None), None)
    """
    found = _FRAME.match(line_of(name))
    if not found:
        return None
    line = found["line"] or found["number"]
    return found["file"], int(line) if line and line != "?" else None


def _standard(file: str) -> bool:
    """Whether a file belongs to Python itself; the profiler writes those as "threading.py" or "asyncio/events.py"."""
    first = re.split(r"[/\\]", file.removesuffix(".py"))[0]
    return first in sys.stdlib_module_names or first.startswith("<")
