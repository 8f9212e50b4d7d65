"""Imports go one way, the two packages never meet, and `import torchfx` is light."""

import ast
import os
import re
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from importlib import metadata
from pathlib import Path

import numpy as np
import pytest
import soundfile
import torch

import torchfx
from torchfx import audio_io, catalogue

ROOT = Path(torchfx.__file__).parent


def module_of(path):
    parts = ("torchfx", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def imported(path):
    """Return every torchfx module that a file imports, also inside functions and by `import_module`."""
    return tuple(_imported(path))


def _imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "torchfx")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if (node.module or "").split(".")[0] == "torchfx":
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield whole if whole in FILES else node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0]
            if isinstance(first, ast.Constant) and first.value.startswith("torchfx."):
                yield first.value


def part_of(module):
    """The file or folder below the package: "core", "profiler"."""
    return module.split(".")[1] if "." in module else ""


def room_of(module):
    """The folder of files that belong together: "torchfx.core", or the file itself."""
    room = module
    while room.rpartition(".")[0] not in {"torchfx", ""}:
        room = room.rpartition(".")[0]
    return room


def circle(graph):
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return " imports ".join(reversed(error.args[1]))
    return None


def test_circles_are_found():
    assert circle({"a": {"b"}, "b": {"c"}, "c": {"a"}}) is not None
    assert circle({"a": {"b", "c"}, "b": {"c"}}) is None


def test_rooms_are_folders_of_files_that_belong_together():
    assert room_of("torchfx.core.wave") == "torchfx.core"
    assert room_of("torchfx._ops.sos.cpu") == "torchfx._ops"
    assert room_of("torchfx.rate") == "torchfx.rate"


def test_no_part_is_imported_by_what_it_imports():
    rooms = {}
    for name, path in FILES.items():
        if name != "torchfx":  # its face names everything below it
            rooms.setdefault(room_of(name), set()).update(map(room_of, imported(path)))
    assert circle({room: others - {room, "torchfx"} for room, others in rooms.items()}) is None


def test_no_file_is_imported_by_what_it_imports():
    files = {name: path for name, path in FILES.items() if name != "torchfx"}
    assert circle({name: set(imported(path)) - {"torchfx"} for name, path in files.items()}) is None


@pytest.mark.parametrize(
    ("part", "allowed"),
    [
        ("errors", set()),
        ("_ops", {"errors", "native_library"}),
        ("audio_io", {"checks", "errors"}),
        ("pieces", set()),
        ("plan", {"_ops", "errors", "pieces", "rate", "tensors"}),
    ],
)
def test_the_lowest_parts_know_little(part, allowed):
    found = {part_of(other) for name, path in FILES.items() if part_of(name) == part for other in imported(path)}
    assert found - {part} <= allowed


def test_torchfx_never_imports_torchwhy():
    """Rules about audio lie in a package of their own, which torchwhy imports, and which imports torchwhy alone."""
    for name, path in FILES.items():
        assert "torchwhy" not in roots(path), f"{name} imports torchwhy"
        assert "_torchfx_rules" not in roots(path), f"{name} imports the rules"
    rules = sorted((ROOT.parent / "_torchfx_rules").glob("*.py"))
    assert {path.stem for path in rules} >= {"chains", "device", "preparing", "vocabulary"}
    for path in rules:
        assert roots(path) - set(sys.stdlib_module_names) <= {"torchwhy", "numpy", "_torchfx_rules"}, path


def optional_packages():
    """The packages of the extras for users, by the name they are imported with."""
    needed = [line.partition("; ") for line in metadata.requires("torchfx") or ()]
    mine = [each for each, _, when in needed if "extra" in when and not re.search("test|lint|peers", when)]
    return {re.split(r"[^\w-]", each)[0].removeprefix("python-") for each in mine}


@pytest.mark.parametrize("package", sorted(optional_packages()))
def test_what_needs_an_optional_package_says_how_to_install_it(package):
    """In its own part of the library, or in one that calls this part."""
    parts = {}
    for name, path in FILES.items():
        parts.setdefault(part_of(name), []).append(path)
    users = {part for part, paths in parts.items() if any(package in roots(path) for path in paths)}
    hint = re.compile(rf"pip install [^\n]*\b{package}\b")
    for part in users:
        callers = [path for path in FILES.values() if part in map(part_of, imported(path))]
        assert any(hint.search(path.read_text()) for path in [*parts[part], *callers]), f"{part} imports {package}"


@cache
def roots(path):
    """The packages that a file imports, also inside functions and by name."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found.add((node.module or "").partition(".")[0])
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.isidentifier():
            found |= {node.value} & {"torchwhy", "_torchfx_rules"}
    return found


def run(code, **environment):
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return ran.stdout


def test_import_where_torch_is_loaded_registers_operators_and_loads_no_heavy_module():
    heavy = ("soundfile", "scipy", "triton", "rich", "typer", "matplotlib", "pandas", "torchwhy", "torchfx.cli")
    code = """
import torch, sys
before = {*sys.modules}
import torchfx
print(torch.ops.torchfx_ext.sos_forward.default.name(), *{*sys.modules} - before)
"""
    registered, *added = run(code).split()
    assert registered == "torchfx_ext::sos_forward"
    assert "torchfx" in added
    assert not [name for name in added if name.startswith(heavy)]


def test_import_alone_needs_no_torch():
    code = "import torchfx, sys; print('torch' in sys.modules); torchfx.Wave; print('torch' in sys.modules)"
    assert run(code).split() == ["False", "True"]
    code = "import torchfx, torch; torchfx.filter; print(torch.ops.torchfx_ext.sos_forward.default.name())"
    assert run(code).split() == ["torchfx_ext::sos_forward"]


def test_a_filter_imported_alone_joins():
    code = "import torchfx\nfrom torchfx.filter import FIR\nf = FIR([1.0])\nprint(type(f | f), type(f + f))"
    assert run(code).split("'")[1::2] == ["torchfx.core.processor.FilterChain", "torchfx.core.processor.Parallel"]


def test_public_names_are_what_they_say():
    assert {name: getattr(torchfx, name).__name__ for name in torchfx.__all__} == {
        name: f"torchfx.{name}" if f"torchfx.{name}" in FILES else name for name in torchfx.__all__
    }
    assert set(torchfx.__all__) <= set(dir(torchfx))
    assert torchfx.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        torchfx.nothing  # noqa: B018


def test_import_is_a_small_part_of_importing_torch():
    """60 ms of processor time beyond PyTorch's own 1.05 s; as a ratio within one process, since machines differ.

    Without the garbage collector: whether it walks through all of PyTorch in this import or a later one is chance.
    """
    code = """
import gc, time
gc.disable()
start = time.process_time()
import torch
loaded = time.process_time()
import torchfx
from torchfx import audio_io
print((time.process_time() - loaded) / (loaded - start))
"""
    assert any(float(run(code, PYTHONDONTWRITEBYTECODE="")) < 0.07 for _ in range(4))  # the first may compile


SLOW = ("pandas", "scipy", "torch", "asyncio", "numpy.random", "numpy.testing")


@pytest.mark.parametrize("words", [["convert", "a.wav", "b.flac"], ["trim", "a.wav", "b.wav"], ["info", "a.wav"]])
def test_commands_for_files_load_only_what_they_use(tmp_path, monkeypatch, words):
    """A short recording is converted in about 0.15 s of processor time, half of it for NumPy, which soundfile loads."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    audio_io.save("a.wav", torch.zeros(1, 100), 8000)
    code = f"""
import os, sys
sys.argv = ["torchfx", *{words}]
try:
    from torchfx.cli import main
    main()
except SystemExit as ended:
    assert not ended.code
    print("", *sys.modules, os.environ["OPENBLAS_NUM_THREADS"], sep="\\n")
"""
    *loaded, threads = run(code).splitlines()
    assert "torchfx.audio_io.reader" in loaded
    unused = {*SLOW, "av", "mutagen"}
    if words[0] != "info":  # which draws its table with rich
        unused |= {"rich", "hashlib", "logging", "concurrent.futures.thread", "fractions"}
    assert unused.isdisjoint(loaded)
    assert threads == "1"


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "process --help",
        "effects",
        "completion bash",
        "info a.wav",
        "split a.wav parts --silence -40",
        "concat a.wav a.wav b.wav",
        "spectrogram a.wav",
    ],
)
def test_commands_that_need_no_torch_import_none(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    soundfile.write("a.wav", np.sin(np.arange(8000)), 8000)
    code = f"""
import sys
sys.argv = ["torchfx", *{words.split()}]
try:
    from torchfx.cli import main
    main()
except SystemExit as ended:
    print(ended.code or 0, {{"torch", "scipy"}} & {{*sys.modules}})
"""
    assert run(code).splitlines()[-1] == "0 set()"


def test_closed_designs_load_no_scipy():
    """It takes a third of a second, which a short file's filter would wait for."""
    code = """
import sys, torch, torchfx as fx
from torchfx.filter import *
for module in (
    Butterworth((300, 3000), order=4, btype="bandpass"), HiButterworth(80), HiChebyshev1(80), LoChebyshev1(9000),
    LoChebyshev2(9000), HiLinkwitzRiley(100), Peaking(1000, 1, 6), LoShelving(200), HiShelving(8000), Notch(50),
    AllPass(500), ParametricEQ([100, 1000], 1.0, [3, -3]), Weighting("A"), DCBlocker(), FIR([0.5, 0.5]),
    fx.effect.Compressor(), fx.effect.Limiter(), fx.effect.Reverb(), fx.effect.Normalize(),
):
    fx.Wave(torch.ones(1, 100), 48_000) | module
print("scipy" in sys.modules)
"""
    assert run(code).split() == ["False"]


def test_the_catalogue_reads_from_text_what_the_classes_say():
    """A declaration that text alone does not tell makes `torchfx effects` import PyTorch, seven times slower."""
    for package in catalogue.PACKAGES:
        for name in catalogue._exported(package):
            told, asked = (found(package, name) for found in (catalogue._described, catalogue._asked))
            assert _words(told) == _words(asked), name


def _words(described):
    if described is None:
        return None
    summary, declarations, *others = described
    return summary, [(each.name, str(each.default), each.documentation()) for each in declarations], *others


def test_the_collector_leaves_alone_what_processing_imports(tmp_path, monkeypatch):
    """Importing PyTorch makes hundreds of thousands of objects; to look through them takes a fifth of a short run."""
    monkeypatch.chdir(tmp_path)
    audio_io.save("a.wav", torch.zeros(1, 100), 8000)
    code = """
import atexit, gc, sys
atexit.register(lambda: print(gc.get_freeze_count() > 100_000, gc.get_stats()[2]["collections"]))
sys.argv = ["torchfx", "process", "a.wav", "b.wav", "-e", "gain:-3dB"]
from torchfx.cli import main
main()
"""
    assert run(code).splitlines()[-1] == "True 0"
