import inspect
import re

import pytest
import typer
from command_line import run_here

from torchwhy.cli.app import app
from torchwhy.cli.misuse import COMMANDS, OPTIONS, example

GROUP = typer.main.get_command(app)
LONG = {
    name: [each for option in command.params for each in (*option.opts, *option.secondary_opts) if each[:2] == "--"]
    for name, command in GROUP.commands.items()
}
EVERY = {option for options in LONG.values() for option in options}


def misspelt(word):
    """Yield the word with a letter doubled, one dropped, and two exchanged."""
    middle = max(1, len(word) // 2)
    yield word[:middle] + word[middle - 1 :]
    yield word[:-1]
    yield word[: middle - 1] + word[middle] + word[middle - 1] + word[middle + 1 :]


def hint(*words):
    """Parse a command line as the command does, and return its error in one line."""
    with pytest.raises(Exception, match=r".") as error:
        GROUP.main(list(words), standalone_mode=False)
    return error.value.format_message()


@pytest.mark.parametrize("name", LONG)
def test_a_misspelt_command_suggests_the_command(name):
    for wrong in set(misspelt(name)) - set(LONG) - set(COMMANDS):
        assert f"Did you mean {name!r}?" in hint(wrong)


@pytest.mark.parametrize("name", LONG)
def test_a_misspelt_option_suggests_the_option(name):
    for option in LONG[name]:
        for wrong in set(misspelt(option[2:])) - {each[2:] for each in LONG[name]} - set(OPTIONS):
            assert f"Did you mean {option}?" in hint(name, f"--{wrong}")


@pytest.mark.parametrize("other", COMMANDS)
def test_a_command_of_another_tool_suggests_a_command_that_exists(other, tmp_path, monkeypatch):
    assert other not in LONG
    name, *options = COMMANDS[other].split()
    assert set(re.findall(r"--\S+", " ".join(options))) <= set(LONG[name])
    assert f"Write: torchwhy {COMMANDS[other]}" in hint(other)
    monkeypatch.chdir(tmp_path)
    (tmp_path / other).mkdir()
    assert f"Write: torchwhy {COMMANDS[other]} (To read a trace: torchwhy explain {other})" in hint(other)


@pytest.mark.parametrize("other", OPTIONS)
def test_an_option_of_another_tool_suggests_an_option_that_exists(other):
    assert {each for each in OPTIONS[other] if each[:2] == "--"} <= EVERY
    for name, options in LONG.items():
        meant = next((each for each in OPTIONS[other] if each in options), None)
        if meant and f"--{other}" not in options:
            assert f"Write: {meant}" in hint(name, f"--{other}")


def test_a_wrong_number_is_answered_with_an_example_that_works():
    checked = 0
    for name, command in GROUP.commands.items():
        for option in command.params:
            if "int" in option.type.name or "float" in option.type.name:
                long = max(option.opts, key=len)
                assert f"Write for example {long} {example(option)}." in hint(name, long, "a few")
                option.type.convert(example(option), option, None)
                checked += 1
    assert checked > 10


def test_a_single_dash_before_a_long_name_is_understood():
    assert "Write: --limit" in hint("explain", "trace.json", "-top", "3")


@pytest.mark.parametrize(("word", "command"), [("train.py", "profile train.py"), ("t.json.gz", "explain t.json.gz")])
def test_a_file_instead_of_a_command_suggests_the_command_that_reads_it(word, command):
    assert f"torchwhy {command}" in hint(word)


def test_the_hint_reaches_the_terminal(tmp_path):
    found = run_here("compare", "a", "b", folder=tmp_path)
    assert found.returncode == 2
    assert "No such command 'compare'. Write: torchwhy diff" in found.stderr


def test_times_and_percentages_may_carry_their_units(tmp_path):
    for words in (("--budget", "5min"), ("--budget", "1:30")):
        found = run_here("try", *words, "missing.py", folder=tmp_path)
        assert "cannot run missing.py" in found.stderr
    assert "does not exist" in run_here("diff", "--fail-on-slower", "3%", "a", "b", folder=tmp_path).stderr
    assert "such as 5 or 5%" in hint("diff", "--fail-on-slower", "slow", "a", "b")


def test_help_has_no_words_in_brackets():
    """They would be taken for markup and left out, as in "pip install torchwhy[mcp]"."""
    texts = {command.callback.__name__: inspect.getdoc(command.callback) or "" for command in app.registered_commands}
    assert not {name: found for name, text in texts.items() if (found := re.findall(r"\[[a-z][^\]]*\]", text))}
