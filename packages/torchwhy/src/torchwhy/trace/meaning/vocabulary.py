"""What another package says of the names of its operators, Python frames and kernels."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Vocabulary"]


@dataclass(frozen=True)
class Vocabulary:
    """What a package's names mean; offered by the entry point `torchwhy.vocabulary`.

    Attributes:
        library: the package as people write it; in kernels' names, it stands for itself.
        operators: the namespace of its operators, which do heavy arithmetic on their first argument.
        folder: of its Python files. Their frames are not the program's own code.
        kernels: patterns of its kernels' names, each with the operation: a key of `operations`, or a common one.
        operations: its operations, described in a few words.
        in_a_loop: what to do about many calls of one of its operators in a row.
    """

    library: str
    operators: str
    folder: str
    kernels: tuple[tuple[str, str], ...] = ()
    operations: dict[str, str] = field(default_factory=dict)
    in_a_loop: str = ""
