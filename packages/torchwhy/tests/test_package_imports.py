"""Imports go one way, reading loads no PyTorch, and nothing is about audio."""

import ast
import os
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

import torchwhy

ROOT = Path(torchwhy.__file__).parent


def module_of(path):
    parts = ("torchwhy", *path.relative_to(ROOT).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@cache
def imported(path):
    """Return every torchwhy module that a file imports, also inside functions and by `import_module`."""
    return tuple(_imported(path))


def _imported(path):
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "torchwhy")
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import"
            if (node.module or "").split(".")[0] == "torchwhy":
                for alias in node.names:
                    whole = f"{node.module}.{alias.name}"
                    yield whole if whole in FILES else node.module
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            first = node.args[0]
            if isinstance(first, ast.Constant) and first.value.startswith("torchwhy."):
                yield first.value


def part_of(module):
    """The file or folder below the package: "core", "profiler"."""
    return module.split(".")[1] if "." in module else ""


DEEPER = ("torchwhy.trace",)
"""Folders that hold parts of their own."""


def room_of(module):
    """The folder of files that belong together: "torchwhy.rules", "torchwhy.trace.model"."""
    room = module
    while room.rpartition(".")[0] not in {"torchwhy", "", *DEEPER}:
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
    assert room_of("torchwhy.rules.host.batches") == "torchwhy.rules"
    assert room_of("torchwhy.trace.model.tree") == "torchwhy.trace.model"
    assert room_of("torchwhy.finding") == "torchwhy.finding"


def test_no_part_is_imported_by_what_it_imports():
    rooms = {}
    for name, path in FILES.items():
        if name not in {"torchwhy", *DEEPER}:  # their faces name everything below them
            rooms.setdefault(room_of(name), set()).update(map(room_of, imported(path)))
    assert circle({room: others - {room, "torchwhy"} for room, others in rooms.items()}) is None


def test_no_file_is_imported_by_what_it_imports():
    files = {name: path for name, path in FILES.items() if name not in {"torchwhy", *DEEPER}}
    assert circle({name: set(imported(path)) - {"torchwhy"} for name, path in files.items()}) is None


@pytest.mark.parametrize(
    ("part", "allowed"),
    [
        ("errors", set()),
        ("plugins", set()),
        ("wording", set()),
        ("trace", {"errors", "native_library", "plugins", "wording"}),
    ],
)
def test_the_lowest_parts_know_little(part, allowed):
    found = {part_of(other) for name, path in FILES.items() if part_of(name) == part for other in imported(path)}
    assert found - {part} <= allowed


def test_torchwhy_never_imports_torchfx():
    for name, path in FILES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            names += [node.value] if isinstance(node, ast.Constant) and isinstance(node.value, str) else []
            assert not [each for each in names if each.split(".")[0] == "torchfx"], f"{name} names torchfx"


def run(code, **environment):
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return ran.stdout


def test_import_alone_needs_no_torch():
    code = "import torchwhy, sys; print('torch' in sys.modules, 'numpy' in sys.modules); torchwhy.load"
    assert run(code).split() == ["False", "False"]
    assert run("import torchwhy, sys; torchwhy.load; print('torch' in sys.modules)").split() == ["False"]


def test_public_names_are_what_they_say():
    assert {name: getattr(torchwhy, name).__name__ for name in torchwhy.__all__} == {n: n for n in torchwhy.__all__}
    assert set(torchwhy.__all__) <= set(dir(torchwhy))
    assert torchwhy.__version__[0].isdigit()
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        torchwhy.nothing  # noqa: B018


SLOW = ("rich", "pandas", "scipy", "torch", "asyncio", "numpy.random", "numpy.testing")
UNUSED = (
    "loading.workers",
    "report.job_report",
    "present.html",
    "present.junit",
    "present.sarif",
    "present.trace_table",
)
UNREAD = ("loading", "analysis", "report", "present.explanation", "trace.file.scanning")  # without a trace


TRACE = '{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm", "pid": 1, "tid": 1, "ts": 1, "dur": 9}]}'


@pytest.mark.parametrize(("command", "argument"), [("explain", "trace.json"), ("rule", "B9")])
def test_reading_commands_load_only_what_they_use(tmp_path, command, argument):
    """They start in half a second; what would make that longer is told by name, since times depend on the machine."""
    (tmp_path / "trace.json").write_text(TRACE)
    code = f"""
import sys
sys.argv = ["torchwhy", {command!r}, {str(tmp_path / argument) if command == "explain" else argument!r}]
try:
    from torchwhy.cli import main
    main()
except SystemExit as ended:
    assert not ended.code
    print("", *sys.modules, sep="\\n")
"""
    loaded = run(code).splitlines()
    assert "torchwhy.rules.host.batches" in loaded
    assert set(loaded).isdisjoint(SLOW)
    unused = tuple(f"torchwhy.{name}" for name in UNUSED + (UNREAD if command == "rule" else ()))
    assert [name for name in loaded if name.startswith(unused)] == []


@pytest.mark.parametrize(
    "words",
    [
        "--help",
        "--version",
        "profile --help",
        "rule",
        "report trace.json -o page.html",
        "diff trace.json trace.json",
        "export trace.json --to csv -o events.csv",
    ],
)
def test_commands_that_need_no_torch_import_none(words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("trace.json").write_text(TRACE)
    code = f"""
import sys
sys.argv = ["torchwhy", *{words.split()}]
try:
    from torchwhy.cli import main
    main()
except SystemExit as ended:
    print(ended.code or 0, {{"torch", "pandas"}} & {{*sys.modules}})
"""
    assert run(code).splitlines()[-1] == "0 set()"
