"""Findings of single ranks, said once for all ranks that have them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from torchwhy.finding import Finding
from torchwhy.ranks.summary import Summary
from torchwhy.wording import AMOUNT, ranges

__all__ = ["merged_findings"]


def merged_findings(summaries: Sequence[Summary], ranks: Sequence[int], without: Iterable[str] = ()) -> list[Finding]:
    """Merge equal findings of a rule on several ranks into the finding of the rank with the most time at stake.

    Args:
        summaries: of the ranks.
        ranks: their numbers.
        without: names of rules to leave out.
    """
    left_out = frozenset(without)
    found: dict[tuple[str, str], list[tuple[int, Finding]]] = {}
    for rank, summary in zip(ranks, summaries, strict=True):
        for finding in summary.findings:
            if finding.slug not in left_out:
                key = finding.slug, AMOUNT.sub("#", finding.title)
                found.setdefault(key, []).append((rank, finding))
    by_rule: dict[str, list[list[tuple[int, Finding]]]] = {}
    for (slug, _), items in found.items():
        by_rule.setdefault(slug, []).append(items)
    results = []
    for groups in by_rule.values():
        # Titles of one rule may differ in more than numbers; where no rank has two, they are one finding.
        alone = len({rank for group in groups for rank, _ in group}) == sum(len(group) for group in groups)
        for items in [[item for group in groups for item in group]] if alone else groups:
            worst_rank, worst = max(items, key=lambda item: item[1].time_us)
            places = _places(sorted({rank for rank, _ in items}), len(summaries), worst_rank)
            window = replace(worst.window, name=f"{worst.window.name} on rank {worst_rank}")
            evident = tuple(replace(e, where=f"rank {worst_rank} {e.where}".strip()) for e in worst.evidence)
            results.append(replace(worst, title=f"{worst.title} ({places})", window=window, evidence=evident))
    return results


def _places(ranks: Sequence[int], every: int, worst: int) -> str:
    if len(ranks) == 1:
        return f"rank {ranks[0]} only" if every > 1 else f"rank {ranks[0]}"
    where = f"all {every} ranks" if len(ranks) == every else f"ranks {ranges(ranks)}"
    return f"rank {worst}; on {where}"
