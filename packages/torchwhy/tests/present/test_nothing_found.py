"""Where no rule finds anything, the closing sentence agrees with the verdict."""

import pytest

from tests.analysis.programs import computing, no_events, on_cpu, overhead, report_on, training
from tests.present.documents import shown

HEALTHY = "2 rules looked and found nothing to change."
NO_HELP = "2 rules looked and found no cause of that in this recording."
STACKS = "Python stacks (torchwhy profile --stacks)"


def words(report, form):
    return " ".join(shown(report, form).replace("\\", "").split())


@pytest.mark.parametrize("form", ["text", "markdown", "html"])
def test_the_sentence_agrees_with_the_verdict(form):
    assert HEALTHY in words(report_on(computing()), form)
    assert NO_HELP in words(report_on(overhead()), form)
    assert NO_HELP in words(report_on(training(load=480)), form)
    assert "2 rules looked and found nothing in what was recorded." in words(report_on(no_events()), form)


def test_stacks_are_advised_where_the_host_is_the_limit_and_they_are_missing():
    slow = on_cpu(operator_us=4)
    assert STACKS in words(report_on(slow), "text")
    assert STACKS not in words(report_on(training(load=480)), "text")
    slow.top["with_stack"] = 1
    assert STACKS not in words(report_on(slow), "text")
    assert NO_HELP in words(report_on(slow), "text")


def test_silence_where_no_rule_was_asked():
    assert "looked" not in words(report_on(overhead(), ran=()), "text")
