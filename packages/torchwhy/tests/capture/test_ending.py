"""Programs end as under python: status, message, traceback."""

import sys

import pytest

from torchwhy.capture.launch.ending import Ending, run_to_end
from torchwhy.capture.launch.program import Program


@pytest.fixture(autouse=True)
def same_process(monkeypatch):
    """A program changes these, as it should in a process of its own."""
    monkeypatch.setattr(sys, "argv", list(sys.argv))
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setitem(sys.modules, "__main__", sys.modules["__main__"])


def leave(code):
    def program():
        sys.exit(code)

    return program


@pytest.mark.parametrize(
    ("code", "ending"),
    [
        (None, Ending("finished", 0)),
        (0, Ending("finished", 0)),
        (7, Ending("exit 7", 7)),
        (-1, Ending("exit -1", 255)),
        (256, Ending("exit 256", 0)),
        ("gone wrong", Ending("exit 1", 1)),
    ],
)
def test_exit_codes_are_those_of_python(code, ending, capsys):
    assert run_to_end(leave(code)) == ending
    assert capsys.readouterr().err == ("gone wrong\n" if code == "gone wrong" else "")


def test_a_chain_of_errors_is_shown(capsys):
    def program():
        try:
            {}["missing"]
        except KeyError as error:
            raise ValueError("wrong") from error

    assert run_to_end(program) == Ending("ValueError", 1)
    shown = capsys.readouterr().err
    assert shown.index("KeyError: 'missing'") < shown.index("ValueError: wrong")
    assert "capture/launch" not in shown


def test_a_script_that_is_no_python_is_told_as_python_tells_it(tmp_path, capsys):
    script = tmp_path / "broken.py"
    script.write_text("def f(:\n")
    assert run_to_end(Program(str(script), ()).run) == Ending("SyntaxError", 1)
    shown = capsys.readouterr().err
    assert shown.startswith(f'  File "{script}", line 1\n')
    assert shown.endswith("SyntaxError: invalid syntax\n")


def test_an_interruption_is_to_be_passed_on(capsys):
    def program():
        raise KeyboardInterrupt

    assert run_to_end(program) == Ending("SIGINT", 130, 2)
    assert capsys.readouterr().err.endswith("KeyboardInterrupt\n")
