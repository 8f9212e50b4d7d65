"""Differences between two recordings besides the program: devices, recorded events, sizes and types of inputs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Final

import numpy as np

from torchwhy.difference.compiled import compiled_conditions
from torchwhy.difference.costs import Side
from torchwhy.difference.likeness import Likeness
from torchwhy.difference.noise import drift_of
from torchwhy.trace.meaning.kinds import Kind
from torchwhy.trace.model.device import devices_of
from torchwhy.wording import duration, enumeration, percent

__all__ = ["conditions_of", "device_of"]

TYPES: Final = {
    "float": "float32", "double": "float64", "c10::Half": "float16", "c10::BFloat16": "bfloat16",
    "c10::complex<float>": "complex64", "c10::complex<double>": "complex128",
}  # fmt: skip

COSTLY: Final = {
    "with_stack": "Python stacks", "profile_memory": "memory", "with_flops": "floating point operations",
    "with_modules": "modules",
}  # fmt: skip
"""The parts of a recording that slow the host down, the most costly first."""


def conditions_of(a: Side, b: Side, likeness: Likeness) -> tuple[str, ...]:
    """Say in sentences what a reader has to know before blaming the program for a difference."""
    return (
        *_program(likeness),
        *_devices(a, b),
        *_recording(a, b),
        *_steps(a, b),
        *compiled_conditions(a, b),
        *_inputs(a, b),
    )


def device_of(side: Side) -> str:
    """The name of the device the work ran on; "CPU" without any."""
    trace = side.trace
    if not trace.has_gpu:
        return "CPU"
    used = set(devices_of(trace.events, trace.links.work).tolist())
    devices = [device for device in trace.info.devices if device.id in used] or trace.info.devices
    names = sorted({device.name for device in devices if device.name})
    vendor = {"amd": "an AMD GPU", "nvidia": "an NVIDIA GPU"}.get(trace.info.vendor, "a GPU")
    return " and ".join(names) or vendor


def _devices(a: Side, b: Side) -> Iterator[str]:
    first, second = device_of(a), device_of(b)
    if first != second:
        yield f"A ran on {first}, B on {second}."
    counts = [len(side.trace.gpus) for side in (a, b)]
    if counts[0] != counts[1] and all(counts):
        yield f"A used {counts[0]} of the machine's GPUs, B {counts[1]}."
    sizes = [side.trace.info.world_size or 1 for side in (a, b)]
    if sizes[0] != sizes[1]:
        yield f"A is one of {sizes[0]} ranks, B one of {sizes[1]}."
    ranks = [side.trace.info.rank for side in (a, b)]
    if sizes[0] == sizes[1] and None not in ranks and ranks[0] != ranks[1]:
        yield f"A is rank {ranks[0]}, B rank {ranks[1]}."
    versions = [side.trace.info.runtime_version for side in (a, b)]
    if None not in versions and versions[0] != versions[1]:
        yield f"CUDA {_version(versions[0])} on A, {_version(versions[1])} on B."


def _recording(a: Side, b: Side) -> Iterator[str]:
    flags = [set(side.trace.info.flags) for side in (a, b)]
    for i, side in enumerate((a, b)):
        if side.trace.has_stacks:
            flags[i].add("with_stack")
        if (side.trace.events.kind == Kind.MEMORY).any():
            flags[i].add("profile_memory")
    for which, only in (("A", flags[0] - flags[1]), ("B", flags[1] - flags[0])):
        names = [words for flag, words in COSTLY.items() if flag in only]
        if names:
            yield f"Only {which} recorded {enumeration(names)}: that makes its host side slower than the program is."


def _steps(a: Side, b: Side) -> Iterator[str]:
    found = [side.rounds for side in (a, b)]
    if all(rounds.are_steps for rounds in found) and found[0].kind != found[1].kind:
        yield f"Steps of A are: {found[0].kind}; steps of B: {found[1].kind}. They needn't mean the same."
    for which, rounds in zip("AB", found, strict=True):
        if drift := drift_of(rounds.host):
            half = f"{duration(drift[0] / 1000)} in the first half, {duration(drift[1] / 1000)} in the second"
            yield f"{which}'s steps drift ({half}): something besides the program changed meanwhile."
        if rounds.cold_us is not None:
            yield f"{which}'s first step is cold and left out."


def _program(likeness: Likeness) -> Iterator[str]:
    if likeness.share is None and likeness.operators is not None:
        share = percent(likeness.operators)
        yield f"A and B have {share} of operators in common: step times compare only if both compute the same."
    elif likeness.share is None:
        yield "It is unknown whether A and B are one program: too few operators were recorded."
    if likeness.what == "labels":
        share = percent(likeness.operators or 0.0)
        names = enumeration([*likeness.labels[:4], *(["others"] if len(likeness.labels) > 4 else [])])
        yield f"A and B have {share} of operators in common: they are compared by the labels both have, {names}."


def _inputs(a: Side, b: Side) -> Iterator[str]:
    """The operators with the most time that both sides call: do they get the same sizes and types?"""
    uses = [_input_uses(side) for side in (a, b)]
    both = [name for name in uses[0] if name in uses[1]]
    heavy = sorted(both, key=lambda name: -max(_time(a, name), _time(b, name)))[:8]
    other = [name for name in heavy if set(uses[0][name][0]) != set(uses[1][name][0])]
    if len(other) * 2 > len(heavy):
        name = other[0]
        gone = next(iter(_only(uses[0][name][0], uses[1][name][0])), "others")
        came = next(iter(_only(uses[1][name][0], uses[0][name][0])), "others")
        yield f"Inputs differ: {name} gets {gone} on A, {came} on B."
    types = [Counter[str]() for _ in uses]
    for i in (0, 1):
        for name in heavy:
            types[i].update(uses[i][name][1])
    main = [found.most_common(1)[0][0] if found else "" for found in types]
    if main[0] != main[1] and all(main):
        yield f"A computes in {main[0]}, B in {main[1]}."


def _only(a: Counter[str], b: Counter[str]) -> list[str]:
    return [size for size, _ in a.most_common() if size not in b]


def _time(side: Side, name: str) -> float:
    place = side.calls.place[name]
    return float(max(side.calls.host_ns.mean[place], side.calls.device_ns.mean[place]))


def _input_uses(side: Side) -> dict[str, tuple[Counter[str], Counter[str]]]:
    """For each operator with tensors as inputs: how often each sizes, and each floating type, came."""
    events = side.trace.events
    rows = side.host[events.kind[side.host] == Kind.OPERATOR]
    sizes, types = events.text_ids("Input Dims", rows), events.text_ids("Input type", rows)
    known = sizes >= 0
    triples = np.stack((events.name[rows[known]], sizes[known], types[known]))
    distinct, counts = np.unique(triples, axis=1, return_counts=True)
    found: dict[str, tuple[Counter[str], Counter[str]]] = {}
    for (name, size, kind), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):
        text = events.texts[size]
        if not any(character.isdigit() for character in text):
            continue
        shapes, kinds = found.setdefault(events.texts[name], (Counter(), Counter()))
        shapes[_sizes(text)] += count
        spoken = [TYPES[word] for word in TYPES if kind >= 0 and f'"{word}"' in events.texts[kind]]
        kinds.update(dict.fromkeys(spoken, count))
    return {name: uses for name, uses in found.items() if name in side.calls.place}


def _sizes(text: str) -> str:
    """The inputs that are tensors, such as "[64, 3, 7, 7] [64]" of "[[64, 3, 7, 7], [64], [], []]"."""
    parts = [part.strip(" ,[]") for part in text.split("]")]
    return " ".join(f"[{part}]" for part in parts if any(character.isdigit() for character in part))


def _version(number: int | None) -> str:
    return f"{(number or 0) // 1000}.{(number or 0) % 1000 // 10}"
