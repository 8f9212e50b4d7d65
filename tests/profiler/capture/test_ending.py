"""Programs end as under python: status, message, traceback."""

import sys

import pytest

from torchfx.profiler.capture.launch.ending import Ending, run_to_end


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


def test_an_interruption_is_to_be_passed_on(capsys):
    def program():
        raise KeyboardInterrupt

    assert run_to_end(program) == Ending("SIGINT", 130, 2)
    assert capsys.readouterr().err.endswith("KeyboardInterrupt\n")
