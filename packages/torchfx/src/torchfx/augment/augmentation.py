"""`Augmentation` (the base class), distributions, and augmentations that wrap processors or combine other
augmentations.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random as PythonRandom
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.utils.data import get_worker_info

from torchfx.checks import finite_number, number_text, whole_number
from torchfx.core.processor import FilterChain
from torchfx.design.colored_noise import COLORS
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.functional.noise import CHANNEL, add_noise, add_white, colored_from, key_of
from torchfx.other_names import checks_names
from torchfx.parameters import Declaration, PerBand, is_real, named, number
from torchfx.parameters import choice as choice_of
from torchfx.tensors import check_signal

__all__ = [
    "SNR_DB", "AddNoise", "Augmentation", "Compose", "Distribution", "Drawn", "OneOf", "Random", "SomeOf", "choice",
    "extremes_of", "log_uniform", "uniform", "values_of",
]  # fmt: skip

Drawn = dict[str, Any]
PROBABILITY = named("p", number(low=0.0, high=1.0, learnable=False))
SNR_DB = named("snr_db", number(unit="dB", low=-200.0, high=200.0, learnable=False))
COLOR = named("color", choice_of(tuple(COLORS)))


# --- distributions ----------------------------------------------------------------------------------------------------


class Distribution(ABC):
    """Distribution of a random parameter. A subclass implements `draw`."""

    @abstractmethod
    def draw(self, examples: int, generator: torch.Generator | None) -> Tensor | list[Any]:
        """Return a value for each example: float64 (examples,), or a list."""

    def extremes(self) -> Sequence[Any]:
        """Return the extreme values, to check the parameter when the augmentation is built."""
        return list(self.draw(1, torch.Generator().manual_seed(0)))


@dataclass(frozen=True)
class _Uniform(Distribution):
    low: float
    high: float
    logarithmic: bool

    def extremes(self) -> Sequence[float]:
        return self.low, self.high

    def draw(self, examples: int, generator: torch.Generator | None) -> Tensor:
        share = torch.rand(examples, generator=generator, dtype=torch.float64)
        if self.logarithmic:
            found = self.low * (self.high / self.low) ** share
        else:
            found = self.low + (self.high - self.low) * share
        return found.clamp(self.low, self.high)  # rounding leads out of the range otherwise

    def __repr__(self) -> str:
        name = "log_uniform" if self.logarithmic else "uniform"
        return f"{name}({number_text(self.low)}, {number_text(self.high)})"


@dataclass(frozen=True)
class _Choice(Distribution):
    options: tuple[Any, ...]

    def extremes(self) -> Sequence[Any]:
        return self.options

    def draw(self, examples: int, generator: torch.Generator | None) -> list[Any]:
        return [self.options[i] for i in torch.randint(len(self.options), (examples,), generator=generator).tolist()]

    def __repr__(self) -> str:
        return f"choice([{', '.join(map(repr, self.options))}])"


def uniform(low: float, high: float) -> Distribution:
    """Uniform distribution from low to high.

    Examples:
        >>> uniform(-6, 6).draw(3, torch.Generator().manual_seed(0))
        tensor([ 5.6406,  2.4938, -0.4874], dtype=torch.float64)
    """
    return _Uniform(*_ascending(low, high), logarithmic=False)


def log_uniform(low: float, high: float) -> Distribution:
    """Log-uniform distribution from low > 0 to high, for frequencies, times and quality factors."""
    low, high = _ascending(low, high)
    if low <= 0:
        raise ArgumentError(f"low must lie in (0, high], got {number_text(low)}")
    return _Uniform(low, high, logarithmic=True)


def choice(options: Iterable[Any]) -> Distribution:
    """Choose one of several values with equal probability.

    Examples:
        >>> choice(["lowshelf", "highshelf"])
        choice(['lowshelf', 'highshelf'])
    """
    found = tuple(options)
    if not found:
        raise ArgumentError("options must hold at least one value, got none")
    return _Choice(found)


def _ascending(low: float, high: float) -> tuple[float, float]:
    low, high = finite_number("low", low), finite_number("high", high)
    if low > high:
        raise ArgumentError(f"low must not exceed high, got {number_text(low)} and {number_text(high)}")
    return low, high


# --- augmentations ----------------------------------------------------------------------------------------------------


class Augmentation(nn.Module, ABC):
    """Base class: a random change of each example. `Random` wraps any filter or effect.

    The random values can be reused: `augmentation(x)` equals `augmentation.run(x, augmentation.draw(len(x)))`, and
    `run` can apply the same values to a second signal, such as a training target. `draw` returns a dictionary with
    "applied", bool (examples,), and the drawn parameters by name; it can serve as a label.

    Random numbers come from PyTorch's default generator, which `torch.manual_seed` seeds and a DataLoader seeds in each
    worker, or from a given generator. In DataLoader workers (fork or spawn) a given generator is reseeded from its seed
    and the worker's seed, so that workers and epochs differ; the loader's `generator` makes them reproducible.

    Args:
        p: probability that an example is changed.
        generator: a `torch.Generator` on the CPU, or a seed; None: the generator of the enclosing augmentation, or
            PyTorch's default. `state_dict` contains its state.
    """

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = checks_names(cls.__init__)  # type: ignore[method-assign]

    def __init__(self, p: float = 1.0, generator: torch.Generator | int | None = None) -> None:
        """Check and keep both."""
        super().__init__()
        self.p: float = PROBABILITY.check(p, None)
        if isinstance(generator, int) and not isinstance(generator, bool):
            generator = torch.Generator().manual_seed(whole_number("generator", generator, 0, 2**63 - 1))
        if generator is not None and not (isinstance(generator, torch.Generator) and generator.device.type == "cpu"):
            raise ArgumentTypeError(
                f"generator must be a torch.Generator on the CPU, a seed or None, got {generator!r}"
            )
        self.generator = generator
        self._worker: int | None = None

    def draw(self, examples: int) -> Drawn:
        """Return random values for a number of examples."""
        examples = whole_number("examples", examples, 0)
        return self._draw(torch.ones(examples, dtype=torch.bool), None)

    def run(self, x: Tensor, drawn: Drawn) -> Tensor:
        """Return signals (examples, channels, time), changed by the drawn values.

        Raises:
            ArgumentError: the values were drawn for another number of examples, or an effect changes the signal's
                shape.
        """
        x = check_signal(x)
        together = x.reshape(math.prod(x.shape[:-2]), *x.shape[-2:]) if x.dim() > 1 else x[None, None]
        if len(drawn["applied"]) != len(together):
            raise ArgumentError(
                f"drawn must hold values for {len(together)} examples, shape {tuple(x.shape)}, got "
                f"{len(drawn['applied'])}"
            )
        y = self._run(together, drawn)
        return y.reshape(*x.shape[:-1], y.shape[-1])

    def forward(self, x: Tensor) -> Tensor:
        """Return changed signals in training mode, else the input."""
        if not self.training:
            return x
        x = check_signal(x)
        return self.run(x, self.draw(math.prod(x.shape[:-2])))

    def refusal(self) -> str:
        """Return the reason why an augmentation cannot run in a stream."""
        return "draws random values for whole examples, not for blocks of one"

    @abstractmethod
    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        """Return values for all examples.

        Args:
            among: bool (examples,), those that the augmentation around this one wants to be changed.
            around: its generator.
        """

    @abstractmethod
    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        """Return signals (examples, channels, time), changed by the drawn values."""

    def _applied(self, among: Tensor, generator: torch.Generator | None) -> Tensor:
        return among & (torch.rand(len(among), generator=generator, dtype=torch.float64) < self.p)

    def _generator(self, around: torch.Generator | None) -> torch.Generator | None:
        """Return where numbers come from, here in this worker."""
        worker = get_worker_info()
        if self.generator is not None and worker is not None and worker.seed != self._worker:
            both = PythonRandom(f"{self.generator.initial_seed()} {worker.seed}")
            self.generator, self._worker = torch.Generator().manual_seed(both.getrandbits(32)), worker.seed
        return around if self.generator is None else self.generator

    def __getstate__(self) -> dict[str, Any]:
        """Return what is pickled: a generator as bytes, since a spawned worker cannot open its temporary tensor."""
        state = self.get_extra_state()
        return self.__dict__ | {"generator": None if state is None else state.numpy().tobytes()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Take over what was pickled."""
        own = state["generator"]
        super().__setstate__(state | {"generator": None})  # type: ignore[no-untyped-call]
        self.set_extra_state(None if own is None else torch.frombuffer(bytearray(own), dtype=torch.uint8))

    def get_extra_state(self) -> Tensor | None:
        """Return the state of an own generator."""
        return None if self.generator is None else self.generator.get_state()

    def set_extra_state(self, state: Tensor | None) -> None:
        """Restore the state of a generator."""
        if state is not None:
            self.generator = self.generator or torch.Generator()
            self.generator.set_state(state)

    def extra_repr(self) -> str:
        """Return the probability."""
        return f"p={number_text(self.p)}"


class Random(Augmentation):
    """Wrap a filter or an effect with random parameters.

    Args:
        make: a processor class, or a function that returns a module. A function gets numbers as tensors (examples, 1),
            which broadcast with (examples, channels).
        p, generator: as in `Augmentation`.
        parameters: the processor's parameters, each a value or a distribution, or a list of both if the parameter takes
            lists. A single distribution for a parameter of several bands draws one value per band.

    Raises:
        ArgumentError: a value, or the range of a distribution, exceeds the parameter's range.

    Examples:
        >>> import torchfx as fx
        >>> bell = Random(fx.filter.Peaking, cutoff=log_uniform(100, 7000), gain_db=uniform(-6, 6), fs=16_000, p=0.5)
        >>> bell
        Random(Peaking, cutoff=log_uniform(100, 7000), gain_db=uniform(-6, 6), fs=16000, p=0.5)
        >>> x = torch.randn(4, 1, 16_000)
        >>> drawn = bell.draw(4)
        >>> y = bell.run(x, drawn)
        >>> torch.equal(y[~drawn["applied"]], x[~drawn["applied"]])
        True
        >>> torch.equal(bell.eval()(x), x)
        True
        >>> eq = Random(fx.filter.ParametricEQ, cutoff=[100, 1000, 5000], gain_db=uniform(-6, 6), fs=16_000)
        >>> eq.draw(4)["gain_db"].shape
        torch.Size([4, 3])
    """

    def __init__(
        self,
        make: Callable[..., nn.Module],
        /,
        *,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
        **parameters: Any,
    ) -> None:
        """Check the parameters by building the processor with the extreme values of the distributions."""
        super().__init__(p, generator)
        if not callable(make) or isinstance(make, nn.Module):
            raise ArgumentTypeError(f"make must be a class or a function that returns a module, got {make!r}")
        self.make = make
        self.given: dict[str, Any] = parameters
        extremes = {name: extremes_of(value) for name, value in parameters.items()}
        for i in range(max(map(len, extremes.values()), default=1)):
            made = make(**{name: each[min(i, len(each) - 1)] for name, each in extremes.items()})
            if not isinstance(made, nn.Module):
                raise ArgumentTypeError(f"make must return a module, got {made!r}")

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator, examples = self._generator(around), len(among)
        drawn: Drawn = {"applied": self._applied(among, generator)}
        banded = {name for name in self.given if isinstance(self._declared(name), PerBand)}
        bands = max((len(self.given[name]) for name in banded if _is_list(self.given[name])), default=1)
        for name, value in self.given.items():
            if isinstance(value, Distribution):
                several = name in banded and bands > 1
                drawn[name] = (
                    _joined([value] * bands, examples, generator) if several else value.draw(examples, generator)
                )
            elif _has_distributions(value):
                drawn[name] = _joined(value, examples, generator)
        return drawn

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        return _changed(x, self._made(drawn, x.device))

    def _made(self, drawn: Drawn, device: torch.device) -> Iterator[tuple[list[int], nn.Module]]:
        """Yield examples that are changed together, and by what."""
        names = [name for name in drawn if name in self.given]
        together = {name: self._together(name, drawn[name]) for name in names if self._takes_tensor(name, drawn[name])}
        apart = {name: _plain(drawn[name]) for name in names if name not in together}
        for rows, values in _groups(drawn["applied"], apart):
            whole = len(rows) == len(drawn["applied"])
            tensors = {name: (each if whole else each[rows]).to(device) for name, each in together.items()}
            yield rows, self.make(**self.given | values | tensors)

    def _declared(self, name: str) -> Declaration | None:
        declared: Mapping[str, Declaration] = getattr(self.make, "declarations", {})
        return declared.get(name)

    def _takes_tensor(self, name: str, values: Tensor | list[Any]) -> bool:
        """Return whether a parameter takes a tensor with what was drawn for each example."""
        declared = self._declared(name)
        numbers = isinstance(values, Tensor) or all(map(is_real, values))
        return numbers and (declared is None or (declared.number is not None and declared.number.learnable))

    def _together(self, name: str, values: Tensor | list[Any]) -> Tensor:
        """Return values that broadcast with (examples, channels), or with (examples, channels, bands)."""
        found = torch.as_tensor(values, dtype=torch.float64).unsqueeze(1)
        return found.unsqueeze(-1) if isinstance(self._declared(name), PerBand) and found.dim() == 2 else found

    def extra_repr(self) -> str:
        """Return the processor and its parameters."""
        name = getattr(self.make, "__name__", repr(self.make))
        return ", ".join([name, *(f"{name}={value!r}" for name, value in self.given.items()), super().extra_repr()])


class AddNoise(Augmentation):
    """Add noise at a signal-to-noise ratio, different noise for each example; see `torchfx.functional.add_noise`.

    The ratio compares the power of an example, over all channels, with the power of its noise. Silence stays silent.

    Args:
        snr_db: signal-to-noise ratio, dB: a number or a distribution.
        color: "white", "pink" or "brown".
        p, generator: as in `Augmentation`.

    Examples:
        >>> noisy = AddNoise(uniform(10, 30))
        >>> x = torch.randn(4, 1, 16_000)
        >>> drawn = noisy.draw(4)
        >>> noise = noisy.run(x, drawn) - x
        >>> snr_db = 10 * torch.log10(x.square().mean((1, 2)) / noise.square().mean((1, 2)))
        >>> torch.allclose(snr_db.double(), drawn["snr_db"], atol=1e-3)
        True
    """

    def __init__(
        self,
        snr_db: float | Distribution,
        color: str = "white",
        *,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Check the ratio and the colour."""
        super().__init__(p, generator)
        self.color: str = COLOR.check(color, None)
        for extreme in extremes_of(snr_db):
            SNR_DB.check(extreme, None)
        self.snr_db = snr_db

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator = self._generator(around)
        applied = self._applied(among, generator)
        ratios = values_of(self.snr_db, len(among), generator)
        seed = int(torch.randint(2**32, (), generator=generator))
        return {"applied": applied, "snr_db": ratios, "seed": seed}

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        rows = drawn["applied"].nonzero().flatten()
        if not len(rows):
            return x
        whole = len(rows) == len(x)
        part = x if whole else x[rows]
        place = CHANNEL * (rows[:, None] * x.shape[1] + torch.arange(x.shape[1])).to(x.device)
        key, snr_db = key_of(drawn["seed"]), drawn["snr_db"][rows, None]
        if self.color == "white":
            noisy = add_white(part, place, key, snr_db)
        else:
            noisy = add_noise(part, colored_from(place, x.shape[-1], self.color, key, x.dtype), snr_db)
        return noisy if whole else x.index_copy(0, rows.to(x.device), noisy)

    def extra_repr(self) -> str:
        """Return the ratio and the probability."""
        return f"{self.snr_db!r}, {self.color!r}, {super().extra_repr()}"


class SomeOf(Augmentation):
    """Apply a random subset of augmentations to each example, in the given order.

    Args:
        augmentations: augmentations, each with its own `p`, and filters, effects or other modules with fixed
            parameters.
        count: size of the subset, from 0 to all; or (least, most), with a uniformly random size in this range.
        weights: relative probabilities, >= 0, one for each; None: equal. Several augmentations are drawn without
            replacement.
        p: probability that an example is changed at all.
        generator: as in `Augmentation`; it is also used by `augmentations` without their own generator.

    Raises:
        ArgumentError: no augmentations are given, or count or weights are out of range.

    Examples:
        >>> import torchfx as fx
        >>> gain = Random(fx.effect.Gain, gain=uniform(-6, 6), gain_type="db")
        >>> some = SomeOf([gain, Random(fx.effect.Invert), AddNoise(20.0)], count=(1, 2), generator=0)
        >>> drawn = some.draw(1000)
        >>> sum(part["applied"].int() for part in drawn["parts"]).unique()
        tensor([1, 2], dtype=torch.int32)
    """

    def __init__(
        self,
        augmentations: Iterable[nn.Module],
        count: int | tuple[int, int],
        *,
        weights: Sequence[float] | None = None,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Check and store the augmentations."""
        super().__init__(p, generator)
        augmentations = list(augmentations)
        for part in augmentations:
            if not isinstance(part, nn.Module):
                raise ArgumentTypeError(f"augmentations must be modules, got {part!r} ({type(part).__name__})")
        self.parts = nn.ModuleList(augmentations)
        if not len(self.parts):
            raise ArgumentError("augmentations must hold at least one, got none")
        if isinstance(count, (list, tuple)) and len(count) != 2:
            raise ArgumentError(f"count must be a whole number or a pair (least, most), got {count!r}")
        least, most = count if isinstance(count, (list, tuple)) else (count, count)
        self.least = whole_number("count", least, 0, len(self.parts))
        self.most = whole_number("count", most, self.least, len(self.parts))
        self.weights = None if weights is None else _checked_weights(weights, len(self.parts), self.most)

    def _draw(self, among: Tensor, around: torch.Generator | None) -> Drawn:
        generator = self._generator(around)
        applied = self._applied(among, generator)
        times = torch.rand(len(among), len(self.parts), generator=generator)
        if self.weights is not None:  # clocks that ring at such rates: the first ones are picked
            times = (-times.double().clamp(min=1e-12).log() / self.weights).argsort(-1)
        order = times.argsort(-1)
        counts = torch.randint(self.least, self.most + 1, (len(among), 1), generator=generator)
        picked = (order < counts) & applied[:, None]
        parts = [
            part._draw(picked[:, i], generator) if isinstance(part, Augmentation) else {"applied": picked[:, i]}
            for i, part in enumerate(self.parts)
        ]
        return {"applied": applied, "parts": parts}

    def _run(self, x: Tensor, drawn: Drawn) -> Tensor:
        chain: list[nn.Module] = []  # one after the other, a chain of filters and gains is one operator call
        for part, own in zip(self.parts, drawn["parts"], strict=True):
            if isinstance(part, Augmentation) and not isinstance(part, Random):
                x, chain = part._run(_through(chain, x), own), []
                continue
            made = part._made(own, x.device) if isinstance(part, Random) else _fixed(part, own)
            groups = list(made)
            if [len(rows) for rows, _ in groups] == [len(x)]:
                chain.append(groups[0][1])
            else:
                x, chain = _changed(_through(chain, x), groups), []
        return _through(chain, x)


class OneOf(SomeOf):
    """Apply one randomly chosen augmentation to each example; see `SomeOf`.

    With `weights`, augmentation i is chosen with the probability weights[i] / sum(weights).

    Examples:
        >>> import torchfx as fx
        >>> filters = (fx.filter.LoButterworth, fx.filter.HiButterworth)
        >>> OneOf([Random(each, cutoff=log_uniform(200, 4000)) for each in filters])
        OneOf(
          p=1
          (parts): ModuleList(
            (0): Random(LoButterworth, cutoff=log_uniform(200, 4000), p=1)
            (1): Random(HiButterworth, cutoff=log_uniform(200, 4000), p=1)
          )
        )
    """

    def __init__(
        self,
        augmentations: Iterable[nn.Module],
        *,
        weights: Sequence[float] | None = None,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Pick one."""
        super().__init__(augmentations, 1, weights=weights, p=p, generator=generator)


class Compose(SomeOf):
    """Apply all augmentations in sequence; see `SomeOf`.

    Examples:
        >>> import torchfx as fx
        >>> augmentation = Compose(
        ...     [
        ...         fx.filter.HiButterworth(80, fs=16_000),
        ...         Random(fx.filter.Peaking, cutoff=log_uniform(100, 7000), gain_db=uniform(-6, 6), fs=16_000),
        ...         Random(fx.effect.Gain, gain=uniform(-12, 0), gain_type="db"),
        ...         AddNoise(uniform(5, 30), p=0.5),
        ...     ],
        ...     generator=0,
        ... )
        >>> augmentation(torch.randn(8, 1, 16_000)).shape
        torch.Size([8, 1, 16000])
    """

    def __init__(
        self,
        augmentations: Iterable[nn.Module],
        *,
        p: float = 1.0,
        generator: torch.Generator | int | None = None,
    ) -> None:
        """Pick all."""
        augmentations = list(augmentations)
        super().__init__(augmentations, len(augmentations), p=p, generator=generator)


def _checked_weights(weights: Sequence[float], count: int, most: int) -> Tensor:
    """Return weights of several augmentations, float64, (count,), of which at least `most` are positive."""
    found = torch.tensor([finite_number("weights", weight) for weight in weights], dtype=torch.float64)
    if len(found) != count or bool((found < 0).any()) or int((found > 0).sum()) < most:
        raise ArgumentError(f"weights must be {count} numbers >= 0, at least {most} of them > 0, got {found.tolist()}")
    return found


def _fixed(module: nn.Module, drawn: Drawn) -> Iterator[tuple[list[int], nn.Module]]:
    """Yield the examples that a module with fixed parameters changes, if there are any."""
    rows = drawn["applied"].nonzero().flatten().tolist()
    if rows:
        yield rows, module


def _through(chain: list[nn.Module], x: Tensor) -> Tensor:
    if not chain:
        return x
    return _same_shape(chain[0] if len(chain) == 1 else FilterChain(*chain), x)


def _changed(x: Tensor, groups: Iterable[tuple[list[int], nn.Module]]) -> Tensor:
    """Return signals (examples, channels, time) of which some groups went through a module each."""
    y = x
    for rows, module in groups:
        if len(rows) == len(x):
            return _same_shape(module, x)
        y = x.clone() if y is x else y
        y[rows] = _same_shape(module, x[rows])
    return y


def _same_shape(module: nn.Module, x: Tensor) -> Tensor:
    y = cast(Tensor, module(x))
    if y.shape != x.shape:
        raise ArgumentError(
            f"an augmentation keeps the shape of its signals, but {type(module).__name__} makes {tuple(y.shape)} of "
            f"{tuple(x.shape)}"
        )
    return y


# --- values for examples ----------------------------------------------------------------------------------------------


def _is_list(value: Any) -> bool:
    return isinstance(value, (list, tuple))


def _has_distributions(value: Any) -> bool:
    """Return whether a value is a list of which some are drawn."""
    return _is_list(value) and any(isinstance(part, Distribution) for part in value)


def extremes_of(value: Any) -> Sequence[Any]:
    """Return the values to check a parameter with."""
    if isinstance(value, Distribution):
        return value.extremes()
    if not _has_distributions(value):
        return [value]
    each = [extremes_of(part) for part in value]
    return [[part[min(i, len(part) - 1)] for part in each] for i in range(max(map(len, each)))]


def values_of(value: float | Distribution, examples: int, generator: torch.Generator | None) -> Tensor:
    """Return a number, or the draws of a distribution, for each example: float64, (examples,)."""
    found = value.draw(examples, generator) if isinstance(value, Distribution) else [value] * examples
    return torch.as_tensor(found, dtype=torch.float64)


def _joined(parts: Sequence[Any], examples: int, generator: torch.Generator | None) -> Tensor | list[Any]:
    """Return several values for each example: float64 (examples, parts), or a list of lists."""
    columns = [
        part.draw(examples, generator) if isinstance(part, Distribution) else [part] * examples for part in parts
    ]
    if all(isinstance(column, Tensor) or all(map(is_real, column)) for column in columns):
        return torch.stack([torch.as_tensor(column, dtype=torch.float64) for column in columns], dim=-1)
    return [list(row) for row in zip(*map(_plain, columns), strict=True)]


def _plain(values: Tensor | list[Any]) -> list[Any]:
    return values.tolist() if isinstance(values, Tensor) else values


def _groups(applied: Tensor, apart: dict[str, list[Any]]) -> Iterator[tuple[list[int], dict[str, Any]]]:
    """Yield the examples that share what is drawn apart, and that."""
    groups: dict[str, list[int]] = {}
    for i in applied.nonzero().flatten().tolist():
        groups.setdefault(repr([values[i] for values in apart.values()]), []).append(i)
    for rows in groups.values():
        yield rows, {name: values[rows[0]] for name, values in apart.items()}
