"""General operators where a special one computes the same with less work."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.finding import Finding
from torchwhy.rules.needless import needless
from torchwhy.rules.rule import rule
from torchwhy.trace.derived.forward_pass import ForwardPass, forward_pass
from torchwhy.trace.derived.shapes import Shape, dtypes, values
from torchwhy.trace.meaning.arithmetic import (
    ATTENTION_CALL,
    COMPLEX_FOURIER,
    ELEMENTWISE,
    GENERAL_EIGENVALUES,
    INVERSE_COMPLEX_FOURIER,
    SUM_OR_MEAN,
    TABLE_LOOKUP,
)
from torchwhy.trace.meaning.kinds import Meaning
from torchwhy.trace.meaning.operators import EXPAND, MAGNITUDE, READS_ROWS, REAL_PART, REPEAT, RESHAPE
from torchwhy.trace.model.events import parse_list
from torchwhy.trace.model.trace import Trace

__all__ = [
    "complex_transform",
    "gathered_columns",
    "general_eigenvalues",
    "repeated_heads",
    "summed_rows",
]

BEFORE: Final = 12
"""Keys and values are repeated at most this number of operators before attention."""

BEHIND: Final = 2
"""The real part is taken at most this number of operators after a transform."""

OF_LOOKUP: Final = 0.5
"""The share of a lookup that an embedding bag saves: 0.85 of a lookup of 200 rows for each result, in the forward pass
on one core, and little of the gradient of the table."""

OF_EIGENVALUES: Final = 0.7
"""The share of the time that symmetric matrices save: with 64 to 600 rows they took a third or less, on one core."""

OF_COLUMNS: Final = 0.9
"""The share of the time that rows save: 512 random rows of 40,000 were read 44 times as fast as 512 columns of 1000
numbers, on one core."""

OF_FORWARD: Final = 0.15
OF_INVERSE: Final = 0.5
"""The share of a transform to the spectrum and back that half of the spectrum saves: 16 x 72,000 points took 1.14 and
2.5 times as long with all of it, on one core. For real numbers PyTorch computes half of the spectrum, and copies the
other half."""

BETWEEN: Final = 6
"""The spectrum is multiplied at most this number of operators before its inverse transform."""


@rule("D64", "complex-transform", source="transforms timed with all and with half of the spectrum", frees="device")
def complex_transform(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Real signals go through a Fourier transform for complex ones.

    Sees: `torch.fft.fft` (or `fft2`, `fftn`) of a tensor of real numbers, in a program that takes the real part of
    every inverse transform of that shape, or the magnitude of the spectrum right after. Transforms in 5% of the window
    or more. Needs recorded shapes.

    Costs: the spectrum of a real signal is symmetric: half of it is written, multiplied and transformed back for
    nothing. At stake are half of the inverse transforms and of what is computed for each bin, and 15% of the others.

    Fix: `torch.fft.rfft` and `torch.fft.irfft(spectrum, n=length)`.

    Known problems: what addresses the bins of negative frequencies must be rewritten: there are n // 2 + 1 bins.
    """
    program, events = trace.derived(forward_pass), trace.events
    forward = [
        i
        for i in np.flatnonzero(events.are(COMPLEX_FOURIER, program.rows)).tolist()
        if dtypes(trace, int(program.rows[i]))[:1] and "float" in dtypes(trace, int(program.rows[i]))[0]
    ]
    inverse = np.flatnonzero(events.are(INVERSE_COMPLEX_FOURIER, program.rows)).tolist()
    real = bool(inverse) and all(_read_by(trace, program, i, REAL_PART) for i in inverse)
    if real:
        halves = inverse + [k for i in inverse for k in _on_spectrum(trace, program, i)]
    else:
        forward = [i for i in forward if _read_by(trace, program, i, MAGNITUDE)]
        halves = [k for i in forward for k in (i + 1, i + 2) if _read_by(trace, program, k - 1, MAGNITUDE, 1)]
    parts = {int(program.rows[i]): OF_FORWARD for i in forward} | {int(program.rows[i]): OF_INVERSE for i in halves}
    yield from needless(
        trace,
        parts if forward else {},
        share,
        "Real signals go through complex Fourier transforms",
        cause="The input is real"
        + (", and of the inverse the real part is taken" if real else ", and of the spectrum the magnitude is taken")
        + ": half of the spectrum repeats the other half.",
        fix="torch.fft.rfft, and torch.fft.irfft(spectrum, n=length) for the way back.",
    )


def _read_by(trace: Trace, program: ForwardPass, i: int, meaning: Meaning, within: int = BEHIND) -> bool:
    """Whether an operator of a meaning comes right after one."""
    return bool(trace.events.are(meaning, program.rows[i + 1 : i + 1 + within]).any())


def _on_spectrum(trace: Trace, program: ForwardPass, i: int) -> list[int]:
    """Elementwise operators on what an inverse transform reads, before it."""
    return [
        k
        for k in range(max(i - BETWEEN, 0), i)
        if trace.events.are(ELEMENTWISE, program.rows[k : k + 1])[0] and program.shapes[k][:1] == program.shapes[i][:1]
    ]


@rule("D65", "repeated-heads", source="copies of expanded keys and values right before attention", frees="device")
def repeated_heads(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Keys and values are copied once for each group of heads before attention.

    Sees: among the twelve operators before `F.scaled_dot_product_attention`, `repeat_interleave`, or a `reshape` of
    what `expand` repeated, that makes keys or values with as many heads as the queries of fewer. They take 5% of the
    window or more, with their backward pass.

    Costs: grouped-query attention has few heads of keys and values so that little is read. A copy for each group writes
    and reads all of it again, in generation for each new word. At stake are the copies.

    Fix: `F.scaled_dot_product_attention(q, k, v, enable_gqa=True)`, where a fused kernel takes it. For one new word at
    a time, the groups as places: queries of shape (batch, heads of keys, group, size).

    Known problems: tensors are known by their shapes. Without a fused kernel for groups `enable_gqa` copies as well.
    """
    program, events = trace.derived(forward_pass), trace.events
    found: set[int] = set()
    for i in np.flatnonzero(events.are(ATTENTION_CALL, program.rows)).tolist():
        if len(program.shapes[i]) < 3 or any(len(shape) != 4 for shape in program.shapes[i][:3]):
            continue
        _, *kept = program.shapes[i][:3]
        for k in range(max(i - BEFORE, 0), i):
            if _repeats_heads(trace, program, k, kept):
                found.add(int(program.rows[k]))
    yield from needless(
        trace,
        dict.fromkeys(found, 1.0),
        share,
        "Keys and values are copied for each group of heads",
        confidence="high",
        cause="Attention has fewer heads of keys and values than of queries, and each is copied for every head of the "
        "queries that reads it.",
        fix="F.scaled_dot_product_attention(q, k, v, enable_gqa=True), where a fused kernel takes it; for one new word "
        "at a time q.view(batch, key_heads, group, size), which needs no copies.",
    )


def _repeats_heads(trace: Trace, program: ForwardPass, k: int, kept: list[Shape]) -> bool:
    """Whether an operator writes keys or values of these shapes from fewer heads."""
    taken = program.shapes[k][0] if program.shapes[k] else ()
    row = program.rows[k : k + 1]
    if trace.events.are(REPEAT, row)[0]:
        return any(len(taken) == 4 and taken[2:] == shape[2:] and taken[1] < shape[1] for shape in kept)
    if not trace.events.are(RESHAPE, row)[0] or len(taken) != 5 or taken[2] < 2 or k < 1:
        return False
    merged = (taken[0], taken[1] * taken[2], *taken[3:])
    before = program.shapes[k - 1][0] if program.shapes[k - 1] else ()
    expanded = trace.events.are(EXPAND, program.rows[k - 1 : k])[0] and len(before) == 5 and before[2] == 1
    return bool(expanded) and merged in kept


@rule("D66", "summed-rows", source="`aten::embedding` with a sum or mean of its rows right after", frees="device")
def summed_rows(trace: Trace, *, share: float = 0.05, rows: int = 8) -> Iterator[Finding]:
    """The rows of an embedding are written out to be summed.

    Sees: `aten::embedding` of 8 indices or more for each result, and right after it a sum or mean over them. Both take
    5% of the window or more, with their backward pass.

    Costs: all rows are written, and read again for the sum. At stake are the sum, and half of the lookup.

    Fix: `nn.EmbeddingBag(words, size, mode="mean")`, or `F.embedding_bag`: it adds rows up as it reads them.

    Known problems: weighted sums need `per_sample_weights`, for `mode="sum"` alone; empty places need `padding_idx`.
    """
    program, events = trace.derived(forward_pass), trace.events
    parts: dict[int, float] = {}
    for i in np.flatnonzero(events.are(TABLE_LOOKUP, program.rows)).tolist():
        if i + 1 >= len(program.rows) or not events.are(SUM_OR_MEAN, program.rows[i + 1 : i + 2])[0]:
            continue
        if len(program.shapes[i]) != 2 or len(program.shapes[i][0]) != 2:
            continue
        table, index = program.shapes[i]
        given = values(trace, int(program.rows[i + 1]))
        axes = parse_list(given[1]) if len(given) > 1 else []
        over = len(index) == 2 and axes in ([1], [-2]) and program.shapes[i + 1][:1] == [(*index, table[1])]
        if over and index[1] >= rows:
            parts |= {int(program.rows[i]): OF_LOOKUP, int(program.rows[i + 1]): 1.0}
    yield from needless(
        trace,
        parts,
        share,
        "The rows of an embedding are written out to be summed",
        confidence="high",
        cause="All looked-up rows are written, and read again for their sum.",
        fix='nn.EmbeddingBag(words, size, mode="mean" or "sum"): it adds rows up as it reads them.',
    )


@rule("D67", "gathered-columns", source="`x[:, index]` by the shape of what reads it next", frees="device")
def gathered_columns(trace: Trace, *, share: float = 0.1, least: int = 64) -> Iterator[Finding]:
    """Samples are gathered as columns of a matrix whose rows lie together in memory.

    Sees: `x[:, index]` or `index_select(1, index)` of a matrix of at least 64 rows and columns, known by what the next
    operator reads: as many rows, and another number of columns. It takes 10% of the window or more.

    Costs: memory is read by lines of 64 or 128 bytes. Of each line one number is used, where a row uses all of it. At
    stake are nine tenths of the time.

    Fix: keep the data with one sample in each row (`data = data.T.contiguous()`, once), and take `data[index]`.

    Known problems: a matrix that was transposed without a copy has its columns together; strides aren't read.
    """
    program, events = trace.derived(forward_pass), trace.events
    found = []
    for i in np.flatnonzero(events.are(READS_ROWS, program.rows)).tolist():
        if i + 1 >= len(program.rows) or not program.shapes[i] or len(program.shapes[i][0]) != 2:
            continue
        rows, columns = program.shapes[i][0]
        read = program.shapes[i + 1][0] if program.shapes[i + 1] else ()
        if min(rows, columns) >= least and len(read) == 2 and read[0] == rows and read[1] < columns:
            found.append(int(program.rows[i]))
    yield from needless(
        trace,
        dict.fromkeys(found, OF_COLUMNS),
        share,
        "Samples are gathered as columns",
        cause="The numbers of a column lie far apart in memory: of each line that is read one number is used.",
        fix="Keep one sample in each row: data = data.T.contiguous() once, then data[index] instead of data[:, index].",
    )


@rule("D68", "general-eigenvalues", source="`aten::linalg_eig` with the real part taken right after", frees="device")
def general_eigenvalues(trace: Trace, *, share: float = 0.05) -> Iterator[Finding]:
    """Eigenvalues of symmetric matrices are computed by the method for general matrices.

    Sees: `torch.linalg.eig` with the real part taken of its result among the next two operators: eigenvalues of
    symmetric matrices have no other. It takes 5% of the window or more.

    Costs: a general matrix is reduced and iterated in several times the operations, in complex numbers, and the vectors
    come out neither ordered nor orthogonal. At stake are seven tenths of it.

    Fix: `torch.linalg.eigh(A)`: values in ascending order, orthogonal vectors, and gradients that are defined.

    Known problems: a matrix that isn't symmetric, whose eigenvalues are real, needs `eig`.
    """
    program, events = trace.derived(forward_pass), trace.events
    called = np.flatnonzero(events.are(GENERAL_EIGENVALUES, program.rows)).tolist()
    rows = [int(program.rows[i]) for i in called if _read_by(trace, program, i, REAL_PART)]
    yield from needless(
        trace,
        dict.fromkeys(rows, OF_EIGENVALUES),
        share,
        "Eigenvalues are computed for general matrices and made real",
        cause="Only the real part of torch.linalg.eig's result is used; for a symmetric matrix the rest is zero.",
        fix="torch.linalg.eigh where the matrix is symmetric, as a covariance, a Gram matrix or a Laplacian is.",
    )
