"""The examples in the help of the commands are valid."""

import re
import shlex

import pytest
import typer

from torchfx.cli.app import app

COMMANDS = typer.main.get_command(app).commands
EXAMPLES = [
    (name, line)
    for name, command in COMMANDS.items()
    for line in re.findall(
        rf"^ *(?:source <\()?(torchfx {name}(?: [^)>\n]*|))[)>]?.*$", command.help or "", re.MULTILINE
    )
    if not line.endswith(".")
]


@pytest.mark.parametrize(("name", "line"), EXAMPLES)
def test_an_example_has_the_command_s_arguments_and_options(name, line):
    words = shlex.split(line)[2:]
    with COMMANDS[name].make_context(name, list(words)) as context:
        assert context.params


def test_commands_with_arguments_have_an_example():
    without = {name for name, command in COMMANDS.items() if not any(name == each for each, _ in EXAMPLES)}
    assert without <= {"info", "stats", "demo"}
