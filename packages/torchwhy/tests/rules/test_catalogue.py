"""Rules are found by themselves, in this package's files and in those of others."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.traces import Story, a_finding
from torchwhy import plugins
from torchwhy.errors import ArgumentError
from torchwhy.rules import catalogue
from torchwhy.rules.diagnose import diagnose
from torchwhy.rules.rule import rule


@rule("X1", "too-quiet", source="a house rule")
def too_quiet(trace, *, operators=5):
    """Hardly anything runs."""
    if len(trace) < operators:
        yield a_finding(trace.window)


@pytest.fixture
def offered(monkeypatch):
    """What other packages offer; the catalogue is read again before and after."""
    found = []
    monkeypatch.setattr(plugins, "_all", lambda: Entries(found))
    forget()
    yield found
    forget()


class Entries(list):
    """As `importlib.metadata.entry_points()`, with entries of rules alone."""

    def select(self, group):
        return self if group == "torchwhy.rules" else []


def forget():
    plugins.offered.cache_clear()
    catalogue.all_rules.cache_clear()


def entry(value):
    return SimpleNamespace(name="house", load=lambda: value)


@pytest.mark.parametrize("value", [too_quiet, SimpleNamespace(one=too_quiet, other=3)], ids=["rule", "module"])
def test_other_packages_offer_rules(offered, value):
    offered.append(entry(value))
    assert catalogue.find_rule("X1") is catalogue.find_rule("too-quiet") is too_quiet
    assert catalogue.matching(("X",)) == {"X1"}
    story = Story(gpu=None)
    story.op("aten::mm", at=0, us=10)
    found = {finding.code: finding for finding in diagnose(story.trace()).findings}
    assert (found["X1"].slug, found["X1"].source) == ("too-quiet", "a house rule")
    assert "X1" not in {f.code for f in diagnose(story.trace(), thresholds={"x1": {"operators": 1}}).findings}


def test_a_file_directly_in_the_package_is_read(tmp_path):
    (tmp_path / "quiet.py").write_text(
        "from torchwhy.rules.rule import rule\n"
        "@rule('X2', 'much-too-quiet', source='a house rule')\n"
        "def much_too_quiet(trace):\n    'Hardly anything runs.'\n    return ()\n"
    )
    code = (
        f"import torchwhy.rules as rules; rules.__path__.append({str(tmp_path)!r})\n"
        "from torchwhy.rules.catalogue import find_rule\nprint(find_rule('X2').slug)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout == "much-too-quiet\n"


def test_two_rules_of_one_name_are_an_error(offered):
    @rule("B9", "other-name", source="elsewhere")
    def impostor(trace):
        """Takes a code that is taken."""

    offered.append(entry(impostor))
    with pytest.raises(ArgumentError, match="two rules are called B9: dataloader-wait and other-name"):
        catalogue.all_rules()


def test_families_names_and_codes_choose_rules():
    assert {code[0] for code in catalogue.matching(("b",))} == {"B"}
    assert catalogue.matching(("dataloader-wait", "C1")) == {"B9", "C1"}
    with pytest.raises(ArgumentError, match="no rule or family is called 'nothing'"):
        catalogue.matching(("nothing",))


def test_those_about_trust_come_first():
    families = [rule.family for rule in catalogue.all_rules()]
    assert families == sorted(families)
    assert families[0] == "A"
    numbers = [int(rule.code[1:]) for rule in catalogue.all_rules() if rule.family == "B"]
    assert numbers == sorted(numbers)
