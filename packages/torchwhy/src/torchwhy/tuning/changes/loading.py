"""The workers of DataLoaders, and what they hand over."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from torchwhy.tuning.change import Change, changes
from torchwhy.tuning.records import Facts, Loader

__all__ = ["persistent_workers", "pinned_memory", "prefetching", "workers"]

MOST_WORKERS = 16


@changes("dataloader-wait", "dataloader-single-process", "between-steps-gap", "starved-threads")
def workers(facts: Facts) -> Iterator[Change]:
    """One or two workers, half as many as processors, or as many; and no workers where the program has some."""
    alone = [one for one in facts.loaders if not one.workers and not one.iterable]
    if alone:
        half, every = (min(count, MOST_WORKERS) for count in (facts.processors // 2, facts.processors))
        counts = {1, 2, half, every} & set(range(1, every + 1))
        for count in sorted(counts, reverse=True):
            options = {"num_workers": count, "persistent_workers": True}
            yield _change(alone, options, count, partial(_set_options, "alone", options))
    busy = [one for one in facts.loaders if one.workers]
    if busy:
        yield _change(busy, {"num_workers": 0}, 0, partial(_set_options, "busy", _NO_WORKERS))


_NO_WORKERS: dict[str, Any] = {"num_workers": 0, "persistent_workers": False, "prefetch_factor": None, "timeout": 0}


def _change(loaders: list[Loader], options: Mapping[str, Any], count: int, apply: Any) -> Change:
    name = f"{count or 'no'} loader worker{'s' * (count != 1)}"
    return Change(name, _lines(loaders, options), apply=apply)


def _lines(loaders: list[Loader], options: Mapping[str, Any]) -> tuple[str, ...]:
    given = ", ".join(f"{name}={value!r}" for name, value in options.items())
    places = dict.fromkeys(one.line for one in loaders)
    return tuple(f"DataLoader(..., {given})" + (f"  # {place}" if place else "") for place in places)


@changes("dataloader-wait", "between-steps-gap")
def persistent_workers(facts: Facts) -> Iterator[Change]:
    """Workers stay from epoch to epoch."""
    yield from _of_busy(
        facts, "workers kept between epochs", {"persistent_workers": True}, lambda one: not one.persistent
    )


@changes("dataloader-wait", "step-tail")
def prefetching(facts: Facts) -> Iterator[Change]:
    """Each worker is more batches ahead."""
    yield from _of_busy(facts, "8 batches ahead", {"prefetch_factor": 8}, lambda one: (one.prefetch or 2) < 8)


@changes("pageable-copy", "sync-copy", "transfer-share", "low-bandwidth")
def pinned_memory(facts: Facts) -> Iterator[Change]:
    """Batches lie in memory that the GPU reads directly."""
    loaders = [one for one in facts.loaders if not one.pinned]
    if facts.cuda and loaders:
        options = {"pin_memory": True}
        yield Change("pinned memory", _lines(loaders, options), apply=partial(_set_options, "all", options))


def _of_busy(facts: Facts, name: str, options: dict[str, Any], suits: Any) -> Iterator[Change]:
    loaders = [one for one in facts.loaders if one.workers and suits(one)]
    if loaders:
        yield Change(name, _lines(loaders, options), apply=partial(_set_options, "busy", options))


def _set_options(which: str, options: Mapping[str, Any], observer: Any) -> None:
    """Give other arguments to loaders than the program gives.

    Args:
        which: "alone" changes loaders without workers of a data set with numbered items, "busy" those with workers.
        options: by name.
        observer: is not needed.
    """
    from torch.utils.data import DataLoader, IterableDataset

    original = DataLoader.__init__
    signature = inspect.signature(original)

    @functools.wraps(original)
    def make(*args: Any, **named: Any) -> None:
        bound = signature.bind(*args, **named)
        count, data = bound.arguments.get("num_workers", 0), bound.arguments.get("dataset")
        fits = {"alone": not count and not isinstance(data, IterableDataset), "busy": bool(count), "all": True}[which]
        if fits:
            bound.arguments.update(options)
        original(*bound.args, **bound.kwargs)

    name = "__init__"
    setattr(DataLoader, name, make)
