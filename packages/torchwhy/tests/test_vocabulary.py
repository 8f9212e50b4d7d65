"""What names mean is written once: nothing outside `trace/meaning` matches or spells names of events."""

import ast
import re
from pathlib import Path

import pytest

import torchwhy

ROOT = Path(torchwhy.__file__).parent
MEANING = ROOT / "trace/meaning"
FOLDERS = sorted({path.parent for path in ROOT.rglob("*.py")} - {MEANING, *(one for one in MEANING.rglob("*"))})
TRANSLATORS = ROOT / "trace/file/recorders"
"""They write the names that PyTorch's profiler writes, for what other recorders call otherwise."""

MATCHER = ROOT / "trace/model/events.py"
"""It compiles the patterns of meanings."""

TRACE_READERS = [
    folder
    for name in ("analysis", "difference", "report", "rules", "trace/derived", "trace/model", "trace/tables")
    for folder in FOLDERS
    if folder.is_relative_to(ROOT / name)
]
"""Folders without any text to match but names; the others match files, texts and options too."""

NAME = re.compile(
    r"(aten|autograd|torch::autograd|c10d|nccl|fbgemm|mkldnn|mkl|onednn|quantized)::[\w:]*"
    r"|(cuda|hip|cu|nccl|ze|musa|cnrt)[A-Z]\w*|ProfilerStep\W?|Optimizer\.\S*|enumerate(\(.*)?|nccl:\S*"
    r"|Mem(cpy|set)( .*)?|Torch-Compiled Region.*|CompiledFunction.*|nn\.Module: |between |\[memory\]|<built-in.*"
    r"|\w*(gemm|elementwise|reduce)_kernel\w*|at::native::.*|record_param_comms|TorchDynamo.*"
)
"""Names of operators, calls of a runtime, labels, frames and kernels, or beginnings of them."""


def files(folders):
    return [path for folder in folders for path in sorted(folder.glob("*.py"))]


def described(tree):
    """The documentation in a file."""
    for node in ast.walk(tree):
        for inner in getattr(node, "body", ()) if not isinstance(node, (ast.Lambda, ast.IfExp)) else ():
            if isinstance(inner, ast.Expr) and isinstance(inner.value, ast.Constant):
                yield inner.value


def matchers(tree):
    """Where a file compiles an expression or compares the beginning or end of a name."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import) and "re" in [alias.name for alias in node.names]:
            yield f"{node.lineno} imports re"
        if isinstance(node, ast.Attribute):
            own = node.attr in {"_find", "_names_matching"}
            ends = node.attr in {"startswith", "endswith"} and "name" in ast.unparse(node.value)
            if own or ends:
                yield f"{node.lineno} {ast.unparse(node)}"


def spelled(tree):
    """Names of events in a file's texts."""
    prose = set(described(tree))
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and node not in prose else None
        if isinstance(text, str) and NAME.fullmatch(text):
            yield f"{node.lineno} {text!r}"


def test_every_folder_is_looked_at():
    looked_at = {folder.relative_to(ROOT).parts[0] for folder in FOLDERS if folder != ROOT}
    assert looked_at == {path.name for path in ROOT.iterdir() if path.is_dir() and list(path.rglob("*.py"))}
    assert {"present", "page", "counters", "ranks"} <= looked_at
    assert MEANING / "kernels" not in FOLDERS


@pytest.mark.parametrize("path", files(TRACE_READERS), ids=lambda path: str(path.relative_to(ROOT)))
def test_nothing_but_meaning_matches_names(path):
    assert path == MATCHER or list(matchers(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize(
    "path", files([each for each in FOLDERS if each != TRANSLATORS]), ids=lambda path: str(path.relative_to(ROOT))
)
def test_nothing_but_meaning_spells_names(path):
    assert list(spelled(ast.parse(path.read_text()))) == []


@pytest.mark.parametrize("text", ["ProfilerStep#", "aten::mm", "between ", "cudaLaunchKernel", "Memcpy", "enumerate"])
def test_spelled_names_are_found(text):
    assert list(spelled(ast.parse(f"x = name.replace({text!r}, '')"))) == [f"1 {text!r}"]
    assert list(spelled(ast.parse(f"x = 1\n{text!r}"))) == []
