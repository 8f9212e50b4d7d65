"""A baseline: counts of an earlier run that later runs must not exceed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from torchwhy.counters.counts import Counts
from torchwhy.counters.counts_file import CountsFileError
from torchwhy.counters.metrics import METRICS
from torchwhy.errors import TorchWhyError
from torchwhy.gate.budget import Check, why_unknown

__all__ = ["Baseline", "EnvironmentMismatch"]


class EnvironmentMismatch(TorchWhyError, RuntimeError):  # noqa: N818 - named after what is wrong, as others here
    """Counts come from different environments and cannot be compared."""


@dataclass(frozen=True)
class Baseline:
    """A file of counts that later counts are compared with.

    >>> old, new = Counts(operators={"aten::mm": 2}), Counts(operators={"aten::mm": 2, "aten::relu": 1})
    >>> print(*(check for check in Baseline(Path("kept.json"), old).checks(new) if not check.passed))
    operators is 3, allowed: at most 2, as in kept.json
        +1 aten::relu
    """

    path: Path
    counts: Counts

    @classmethod
    def load(cls, path: str | Path) -> Baseline:
        """Read a baseline.

        Raises:
            CountsFileError: the file does not exist or cannot be read.
        """
        if not Path(path).exists():
            raise CountsFileError(f"there is no baseline {path}; write one with `torchwhy gate RUN --update`")
        return cls(Path(path), Counts.load(path))

    @classmethod
    def update(cls, path: str | Path, counts: Counts, *, force: bool = False) -> Baseline:
        """Save `counts` as the new baseline.

        Raises:
            EnvironmentMismatch: the old baseline is from another environment, and `force` is not given.
        """
        if Path(path).exists() and not force:
            cls.load(path).require_same_environment(counts)
        return cls(counts.save(path), counts)

    def require_same_environment(self, counts: Counts) -> None:
        """Raise if the counts come from another environment.

        Raises:
            EnvironmentMismatch: the environments differ; the message names the differences.
        """
        ours, theirs = counts.environment, self.counts.environment
        different = [
            f"{key} {theirs.get(key, 'unknown')} there, {ours.get(key, 'unknown')} here"
            for key in sorted({*ours, *theirs})
            if ours.get(key) != theirs.get(key)
        ]
        if different:
            raise EnvironmentMismatch(
                f"the baseline {self.path} is from another environment ({'; '.join(different)}); "
                "count where it was made, or replace it with --update --force"
            )

    def checks(self, counts: Counts) -> tuple[Check, ...]:
        """Compare every metric of the baseline: a larger number fails, a smaller number passes.

        Raises:
            EnvironmentMismatch: both are from different environments.
        """
        self.require_same_environment(counts)
        now, before = counts.metrics(), self.counts.metrics()
        return tuple(self._check(name, now[name], before[name], counts) for name in METRICS if before[name] is not None)

    def improved(self, counts: Counts) -> tuple[str, ...]:
        """Return the metrics that are smaller now; save them with `--update`."""
        now, before = counts.metrics(), self.counts.metrics()
        return tuple(
            f"{name} {before[name]} -> {value}"
            for name, value in now.items()
            if value is not None and value < (before[name] or 0)
        )

    def _check(self, name: str, now: int | None, before: int | None, counts: Counts) -> Check:
        passed = now is not None and before is not None and now <= before
        evidence = () if passed else self._evidence(name, now, counts)
        return Check(name, f"at most {before}, as in {self.path.name}", now, passed, evidence, str(self.path))

    def _evidence(self, name: str, now: int | None, counts: Counts) -> tuple[str, ...]:
        if now is None:
            return why_unknown(name, counts)
        if name in ("operators", "native_calls"):
            ours, theirs = getattr(counts, name), getattr(self.counts, name)
            changes = {key: ours.get(key, 0) - theirs.get(key, 0) for key in sorted({*ours, *theirs})}
            return tuple(f"{change:+d} {key}" for key, change in changes.items() if change)
        return ()
