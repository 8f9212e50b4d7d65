"""`torchwhy rule`."""

from __future__ import annotations

from torchwhy.cli.console import complain
from torchwhy.cli.documents import show
from torchwhy.errors import ArgumentError
from torchwhy.present.formats import check_format
from torchwhy.present.rule_pages import rule_list, rule_page
from torchwhy.rules.catalogue import all_rules, find_rule

__all__ = ["run"]


def run(label: str | None, form: str) -> int:
    """Print one rule's documentation, or a list of all; return 0, or 2 for an unknown rule or format."""
    try:
        check_format(form)
        document = rule_list(all_rules()) if label is None else rule_page(find_rule(label))
    except ArgumentError as error:
        return complain(error, 2)
    show(document, form)
    return 0
