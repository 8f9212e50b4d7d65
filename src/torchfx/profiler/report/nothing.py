"""The sentence in the place of findings where there are none: it must not contradict the verdict above it."""

from __future__ import annotations

from typing import Any

from torchfx.profiler.wording import counted

__all__ = ["nothing_found"]


def nothing_found(report: dict[str, Any]) -> str:
    """Say that no rule found anything to change; "" where no rule was asked.

    Args:
        report: what `describe` or `describe_job` returns.
    """
    if not report["ran"]:
        return ""
    kind, rules = report["verdict"]["kind"], counted(len(report["ran"]), "rule")
    if kind == "compute-bound":
        return f"{rules} looked and found nothing that asks to be changed."
    if kind == "unknown":
        return f"{rules} looked and found nothing in what was recorded."
    hint = ""
    if kind in ("overhead-bound", "mixed") and "with_stack" not in report["trace"].get("recorded", ()):
        hint = (
            " Python stacks (torchfx profile --stacks), or torch.profiler.record_function around parts of the program, "
            "would show which code it is."
        )
    return f"{rules} looked, and none can tell from this recording what to change about that.{hint}"
