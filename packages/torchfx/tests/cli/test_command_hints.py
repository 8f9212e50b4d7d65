import re

import pytest
import typer

from command import run_here
from torchfx import audio_io, spec
from torchfx.cli.app import app
from torchfx.cli.misuse import COMMANDS, OPTIONS, example
from torchfx.distributed import Recipe

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
def test_a_command_of_another_tool_suggests_a_command_that_exists(other):
    assert other not in LONG
    name, *options = COMMANDS[other].split()
    assert set(re.findall(r"--\S+", " ".join(options))) <= set(LONG[name])
    assert f"Write: torchfx {COMMANDS[other]}" in hint(other)


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


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("process", "a.wav", "b.wav", "-ar", "16000"), "Write: --rate"),
        (("process", "a.wav", "b.wav", "--mono"), "Write: -e mono"),
        (("live", "--volume", "3"), "Write: -e gain"),
        (("normalize", "a.wav", "b.wav"), "Write: torchfx process IN OUT -e normalize"),
        (("talk.WAV", "b.wav"), "torchfx process talk.WAV OUT"),
    ],
)
def test_names_of_effects_and_of_ffmpeg_suggest_what_does_that(words, text):
    assert text in hint(*words)


def test_the_hint_reaches_the_terminal(tmp_path):
    found = run_here("cut", "a", "b", folder=tmp_path)
    assert found.returncode == 2
    assert "No such command 'cut'. Write: torchfx trim" in found.stderr


@pytest.mark.parametrize("rate", ["16k", "16kHz", "16 khz", "0.016e6"])
def test_a_rate_may_carry_its_unit(tmp_path, rate):
    assert run_here("synth", "sine", "a.wav", "--rate", rate, folder=tmp_path).returncode == 0
    assert run_here("convert", "a.wav", f"b{rate}.wav", "-r", rate, folder=tmp_path).returncode == 0
    assert audio_io.info(tmp_path / f"b{rate}.wav").fs == 16_000


def test_levels_and_times_may_carry_their_units(tmp_path):
    run_here("synth", "sine", "a.wav", "--length", "0:01", folder=tmp_path)
    for words in (
        ("split", "a.wav", "parts", "--silence", "-6.5dB"),
        ("split", "a.wav", "halves", "--every", "0:00.5"),
    ):
        assert run_here(*words, folder=tmp_path).returncode == 0
    assert "write for example -40 or -40dB" in hint("split", "a.wav", "x", "--silence", "10%")
    assert "write for example 90, 90s or 1:30" in hint("play", "a.wav", "--seconds", "soon")


@pytest.mark.parametrize(
    ("text", "bits"), [("128k", 128_000), ("128kbps", 128_000), ("96 kbit/s", 96_000), ("64000", 64_000)]
)
def test_a_bit_rate_may_carry_its_unit(text, bits):
    assert Recipe(bitrate=text).bits_per_second() == bits


def test_a_ratio_may_be_a_percentage():
    assert spec.build("delay:0.1,mix=29%").mix == 0.29
