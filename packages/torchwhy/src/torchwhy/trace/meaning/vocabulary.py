"""Vocabulary of another package: the meaning of its operator, frame and kernel names."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Vocabulary"]


@dataclass(frozen=True)
class Vocabulary:
    """The meaning of a package's names; provided by the entry point `torchwhy.vocabulary`.

    Attributes:
        library: name of the package, as written in texts and in kernel names.
        operators: namespace of its operators, which do heavy computation on their first argument.
        folder: folder of its Python files. Their frames do not count as the program's code.
        kernels: patterns of its kernel names, each with an operation: a key of `operations`, or a common operation.
        operations: its operations, described in a few words.
        in_a_loop: advice for many consecutive calls of one of its operators.
    """

    library: str
    operators: str
    folder: str
    kernels: tuple[tuple[str, str], ...] = ()
    operations: dict[str, str] = field(default_factory=dict)
    in_a_loop: str = ""
