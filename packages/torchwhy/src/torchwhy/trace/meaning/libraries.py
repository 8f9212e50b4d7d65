"""Names of other packages' operators, Python frames and kernels, by the vocabularies that they offer."""

from __future__ import annotations

import re
from typing import Final

from torchwhy.plugins import VOCABULARY, offered
from torchwhy.trace.meaning.kinds import Kind, Meaning
from torchwhy.trace.meaning.vocabulary import Vocabulary

__all__ = ["LIBRARY_CALL", "LIBRARY_OPERATOR", "VOCABULARIES", "advice_for_loops"]

VOCABULARIES: Final = tuple(each for each in offered(VOCABULARY)[0] if isinstance(each, Vocabulary))

LIBRARY_OPERATOR: Final = Meaning("|".join(f"{each.operators}::" for each in VOCABULARIES) or "(?!)", Kind.OPERATOR)
"""An operator of a package with a vocabulary."""

LIBRARY_CALL: Final = Meaning(
    "|".join(rf"(.*[/\\])?{re.escape(each.folder)}[/\\].*: (__call__|__r?or__)$" for each in VOCABULARIES) or "(?!)",
    Kind.PYTHON,
)
"""An object of such a package computes: it is called, or gets its input by `|`."""


def advice_for_loops(operator: str) -> str:
    """Return what the package of an operator advises where a program calls it in a loop; "" without such advice."""
    namespace = operator.partition("::")[0]
    return next((each.in_a_loop for each in VOCABULARIES if each.operators == namespace), "")
