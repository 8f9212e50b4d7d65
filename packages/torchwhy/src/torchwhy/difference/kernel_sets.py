"""Whether both sides run the same kernels, and which operators now use others."""

from __future__ import annotations

from dataclasses import dataclass

from torchwhy.difference.costs import UNKNOWN, Costs, Side

__all__ = ["KernelSets", "Replacement", "kernel_sets"]

KernelUse = tuple[str, float, float]
"""A kernel's name, calls per step, microseconds per step."""


@dataclass(frozen=True)
class Replacement:
    """An operator that both sides call and that launches other kernels on B than on A.

    Attributes:
        operator: its name.
        before: kernels it launches only on A; after: only on B.
    """

    operator: str
    before: tuple[KernelUse, ...]
    after: tuple[KernelUse, ...]

    @property
    def us(self) -> tuple[float, float]:
        """Time per step of the kernels that went, and of those that came."""
        return sum(use[2] for use in self.before), sum(use[2] for use in self.after)


@dataclass(frozen=True)
class KernelSets:
    """The kernels of a step on both sides.

    Attributes:
        identical: the same names, each as often per step: the same work for the GPU.
        only_a, only_b: names that one side alone runs, the most time first.
        counts_differ: names both run, but not as often: (name, per step on A, per step on B).
        in_common: how many names both run.
        replaced: operators that launch other kernels, the most time first.
    """

    identical: bool
    only_a: tuple[str, ...]
    only_b: tuple[str, ...]
    counts_differ: tuple[tuple[str, float, float], ...]
    in_common: int
    replaced: tuple[Replacement, ...]


def kernel_sets(a: Side, b: Side) -> KernelSets | None:
    """Compare the kernels of a step; None where neither side has any."""
    if not a.kernels.names and not b.kernels.names:
        return None
    first, second = a.kernels.per_step, b.kernels.per_step
    only_a, only_b = _alone(a.kernels, second), _alone(b.kernels, first)
    differ = tuple(
        (name, count, second[name])
        for name, count in first.items()
        if name in second and abs(count - second[name]) > 1e-9 * count
    )
    common = len(first) - len(only_a)
    return KernelSets(not only_a and not only_b and not differ, only_a, only_b, differ, common, _replaced(a, b))


def _alone(costs: Costs, others: dict[str, float]) -> tuple[str, ...]:
    time = dict(zip(costs.names, costs.device_ns.mean.tolist(), strict=True))
    return tuple(sorted((name for name in costs.names if name not in others), key=lambda name: (-time[name], name)))


def _replaced(a: Side, b: Side) -> tuple[Replacement, ...]:
    found = []
    for operator, before in a.by_operator.items():
        after = b.by_operator.get(operator, {})
        went = tuple((name, *use) for name, use in before.items() if name not in after)
        came = tuple((name, *use) for name, use in after.items() if name not in before)
        if went and came and operator != UNKNOWN:
            found.append(Replacement(operator, _by_time(went), _by_time(came)))
    return tuple(sorted(found, key=lambda item: (-max(item.us), item.operator)))


def _by_time(uses: tuple[KernelUse, ...]) -> tuple[KernelUse, ...]:
    return tuple(sorted(uses, key=lambda use: (-use[2], use[0])))
