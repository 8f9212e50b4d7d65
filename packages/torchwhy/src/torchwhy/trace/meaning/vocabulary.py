"""Names of other packages' operators, Python frames and kernels, which those packages explain themselves."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from torchwhy.plugins import VOCABULARY, offered
from torchwhy.trace.meaning.kinds import Kind, Meaning

__all__ = ["LIBRARY_OPERATOR", "VOCABULARIES", "Vocabulary", "advice_for_loops"]


@dataclass(frozen=True)
class Vocabulary:
    """What a package's names mean; offered by the entry point `torchwhy.vocabulary`.

    Attributes:
        library: the package as people write it; in kernels' names, it stands for itself.
        operators: the namespace of its operators, which do heavy arithmetic on their first argument.
        folder: of its Python files. Their frames are not the program's own code.
        kernels: patterns of its kernels' names, each with the operation: a key of `operations`, or a common one.
        operations: operations of its own, described in a few words.
        in_a_loop: what to do about many calls of one of its operators in a row.
    """

    library: str
    operators: str
    folder: str
    kernels: tuple[tuple[str, str], ...] = ()
    operations: dict[str, str] = field(default_factory=dict)
    in_a_loop: str = ""


VOCABULARIES: Final = tuple(each for each in offered(VOCABULARY)[0] if isinstance(each, Vocabulary))

LIBRARY_OPERATOR: Final = Meaning("|".join(f"{each.operators}::" for each in VOCABULARIES) or "(?!)", Kind.OPERATOR)
"""An operator of a package with a vocabulary."""


def advice_for_loops(operator: str) -> str:
    """Return what the package of an operator advises where a program calls it in a loop; "" without such advice."""
    namespace = operator.partition("::")[0]
    return next((each.in_a_loop for each in VOCABULARIES if each.operators == namespace), "")
