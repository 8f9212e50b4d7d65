"""Load a trace for reading: `torchfx.profiler.load`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torchfx.profiler.rules.catalogue import all_rules, matching
from torchfx.profiler.rules.diagnose import diagnose
from torchfx.profiler.rules.finding import Finding
from torchfx.profiler.trace.columns import ARGUMENTS
from torchfx.profiler.trace.scanning import scan
from torchfx.profiler.trace.source import Source
from torchfx.profiler.trace.trace import Trace

__all__ = ["LoadedTrace", "load"]


class LoadedTrace(Trace):
    """A trace that can be asked what is wrong with it."""

    def diagnose(
        self,
        select: tuple[str, ...] = (),
        ignore: tuple[str, ...] = (),
        thresholds: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> tuple[Finding, ...]:
        """Return what the rules find, the most time at stake first.

        Args:
            select: codes, names or families ("B") of rules; all where empty.
            ignore: those to leave out.
            thresholds: values by rule, then by name, as in {"dataloader-wait": {"share": 0.1}}.
        """
        wanted = matching(select) if select else {rule.code for rule in all_rules()}
        codes = wanted - matching(ignore)
        rules = [rule for rule in all_rules() if rule.code in codes]
        return diagnose(self, rules=rules, thresholds=thresholds).findings


def load(source: Source) -> LoadedTrace:
    """Read a trace that `torch.profiler` wrote.

    Args:
        source: a path, "-" for standard input, or an open binary file; plain or gzip.

    Raises:
        TraceError: it cannot be read, or is no trace.
    """
    name = source if isinstance(source, str) else getattr(source, "name", None) or str(source)
    return LoadedTrace(str(name), scan(source, ARGUMENTS))
