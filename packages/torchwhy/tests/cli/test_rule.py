"""`torchwhy rule` as a person runs it."""

import subprocess
import sys

import msgspec
import pytest

from torchwhy.cli.rule import run
from torchwhy.present.formats import FORMATS
from torchwhy.present.markdown import escaped
from torchwhy.rules.catalogue import all_rules


def shown(capsys, label=None, form="text"):
    assert run(label, form) == 0
    return capsys.readouterr().out


def test_all_rules_are_listed_by_family(capsys):
    out = shown(capsys)
    for rule in all_rules():
        assert f"  {rule.code:<4}  {rule.slug} " in out
    assert out.index("\nB  ") < out.index("B9 ")
    assert max(map(len, out.splitlines())) <= 80


@pytest.mark.parametrize("label", ["B9", "b9", "dataloader-wait"])
def test_one_rule(capsys, label):
    out = shown(capsys, label)
    assert out.startswith("B9 dataloader-wait\n\nThe program waits for its next batch.\n\nSees: ")
    assert "    [tool.torchwhy.rules.dataloader-wait]\n    share = 0.05\n" in out
    assert '    [tool.torchwhy.rules]\n    ignore = ["B9"]\n' in out
    assert "\nSource: " in out


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.slug)
def test_every_rule_is_printed_and_its_tables_are_toml(capsys, rule):
    out = shown(capsys, rule.code)
    assert max(map(len, out.splitlines())) <= 80
    tables = "\n".join(line.strip() for line in out.splitlines() if line.startswith("    "))
    rules = msgspec.toml.decode(tables.encode())["tool"]["torchwhy"]["rules"]
    assert rules["ignore"] == [rule.code]
    assert rules.get(rule.slug, {}) == rule.thresholds
    assert shown(capsys, rule.code, "markdown").startswith(f"### {rule.code} {rule.slug}\n\n{escaped(rule.title)}")


def test_markdown_list_is_tables(capsys):
    out = shown(capsys, form="markdown")
    assert "| B9 | dataloader-wait | The program waits for its next batch. |" in out


@pytest.mark.parametrize("form", FORMATS)
def test_every_format(capsys, form):
    assert "dataloader-wait" in shown(capsys, "B9", form) or form in ("junit", "sarif")
    assert shown(capsys, None, form)


def test_json_has_the_documentation(capsys):
    found = msgspec.json.decode(shown(capsys, "B9", "json"))
    assert (found["schema"], found["code"], found["thresholds"]) == (1, "B9", {"share": 0.05})
    assert len(msgspec.json.decode(shown(capsys, None, "json"))["rules"]) == len(all_rules())


@pytest.mark.parametrize(
    ("label", "words"),
    [
        ("dataloder-wait", "no rule is called 'dataloder-wait'; nearest: B9 dataloader-wait"),
        ("dataloader", "B9 dataloader-wait"),
        ("zzz", "`torchwhy rule` lists all"),
    ],
)
def test_an_unknown_rule(capsys, label, words):
    assert run(label, "text") == 2
    found = capsys.readouterr()
    assert found.out == ""
    assert words in found.err


def test_an_unknown_format(capsys):
    assert run(None, "yaml") == 2
    assert "--format must be one of text, json, markdown" in capsys.readouterr().err


def test_no_torch_is_loaded():
    code = """
import sys
sys.argv = ["torchwhy", "rule", "B9"]
from torchwhy.cli import main
try:
    main()
except SystemExit as ended:
    assert not ended.code
print([name for name in ("torch", "rich", "scipy", "pandas") if name in sys.modules], file=sys.stderr)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stderr == "[]\n"
