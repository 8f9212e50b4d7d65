"""Tables of rules in pyproject.toml."""

import pytest

from torchwhy.errors import ArgumentError, ArgumentTypeError
from torchwhy.rules.catalogue import all_rules
from torchwhy.rules.settings import Settings, chosen, settings_from


@pytest.fixture
def settings(tmp_path):
    def read(text):
        (tmp_path / "pyproject.toml").write_text(text)
        return settings_from(tmp_path / "pyproject.toml")

    return read


def test_nothing_is_set_without_a_file_or_table(settings):
    assert settings_from(None) == Settings()
    assert settings("[project]\nname = 'x'\n") == Settings()
    assert settings("[tool.torchwhy.budgets]\nsyncs__eq = 0\n") == Settings()


def test_a_file_of_others_need_not_be_toml(settings):
    assert settings("{{ template }}") == Settings()


def test_everything_that_can_be_set(settings):
    found = settings("""
        [tool.torchwhy.rules]
        select = ["B", "dataloader-wait"]
        ignore = ["B10"]
        [tool.torchwhy.rules.B9]
        share = 0.1
        [tool.torchwhy.rules.dataloader-single-process]
        share = 1
    """)
    assert found == Settings(
        ("B", "dataloader-wait"),
        ("B10",),
        {"dataloader-wait": {"share": 0.1}, "dataloader-single-process": {"share": 1}},
    )


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("rules = 3", ArgumentTypeError, "must be a table, got 3"),
        ("rules.select = 'B9'", ArgumentTypeError, "select must be a list"),
        ("rules.select = ['B9x']", ArgumentError, "no rule or family is called 'B9x'"),
        ("rules.shares = 3", ArgumentError, "shares is neither select nor ignore"),
        ("rules.dataloader-wiat.share = 3", ArgumentError, "nearest: B9 dataloader-wait"),
        ("rules.B9.shares = 3", ArgumentError, "must be one of: share; got 'shares'"),
        ("rules.B9.share = 'much'", ArgumentTypeError, "share of dataloader-wait must be a number, got 'much'"),
        ("rules.B9.share = true", ArgumentTypeError, "must be a number, got True"),
        ("rules.B9 = [1", ArgumentError, "is not TOML"),
    ],
)
def test_mistakes_are_named_with_their_file(settings, text, error, words):
    with pytest.raises(error, match=r"pyproject\.toml") as raised:
        settings(f"[tool.torchwhy]\n{text}\n")
    assert words in str(raised.value)


def test_what_is_asked():
    assert chosen(Settings()) == all_rules()
    assert [rule.code for rule in chosen(Settings(select=("b9", "B10")))] == ["B9", "B10"]
    assert chosen(Settings(select=("B9",), ignore=("b",))) == ()
    assert {rule.family for rule in chosen(Settings(ignore=("A",)))} >= {"B"}
    assert "A" not in {rule.family for rule in chosen(Settings(ignore=("A",)))}
