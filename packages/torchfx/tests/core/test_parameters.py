"""Declared parameters: what follows from a declaration."""

import ast
import inspect
from pathlib import Path
from random import Random

import numpy as np
import pytest
import torch
from torch import nn

from torchfx import Processor, parameters
from torchfx.catalogue import available
from torchfx.effect import Gain, Normalize
from torchfx.errors import ArgumentError, ArgumentTypeError
from torchfx.filter import FIR, DesignableFIR, HiChebyshev1, LoButterworth
from torchfx.parameters import (
    Value,
    choice,
    count,
    decibels,
    flag,
    frequency,
    level,
    milliseconds,
    number,
    sample_rate,
)

FS = 48_000


class Everything(Processor):
    """One parameter of each kind."""

    threshold_db: Value = decibels(default=-20.0, doc="where it begins")
    ratio: Value = number(default=4.0, low=1.0, high=20.0)
    attack_ms: Value = milliseconds(default=5.0, low=0.1)
    centre: Value = frequency(default=1000.0)
    makeup: Value | str = level(default=1.0)
    stages: int = count(default=2, high=8)
    soft: bool = flag(default=False)
    mode: str = choice(("peak", "rms"), default="peak")
    fs: float | None = sample_rate(default=None)

    def step(self, x, state, rate):
        return x, state


def test_the_signature_follows():
    names = ["threshold_db", "ratio", "attack_ms", "centre", "makeup", "stages", "soft", "mode", "fs"]
    parameters = inspect.signature(Everything).parameters
    assert list(parameters) == names
    assert parameters["ratio"].default == 4.0
    assert inspect.signature(LoButterworth).parameters["cutoff"].default is inspect.Parameter.empty
    assert str(inspect.signature(HiChebyshev1)) == "(cutoff, order=2, ripple=0.5, fs=None)"
    assert list(inspect.signature(DesignableFIR).parameters) == ["cutoff", "num_taps", "fs", "window", "pass_zero"]


def test_the_documentation_follows():
    text = inspect.getdoc(Everything)
    assert "threshold_db: where it begins; in (-inf, 6160] dB." in text
    assert "ratio: in [1, 20]." in text
    assert "mode: one of peak, rms." in text


def test_the_text_follows():
    shown = "Everything(threshold_db=-20, ratio=4, attack_ms=5, centre=1000, makeup=1, stages=2)"
    assert str(Everything()) == shown
    assert "soft=True, mode='rms', fs=48000" in str(Everything(soft=True, mode="RMS", fs=FS))
    assert str(LoButterworth(22_049.9999999)) == "LoButterworth(cutoff=22049.9999999, order=2)"


@pytest.mark.parametrize(
    ("name", "value", "error", "message"),
    [
        ("ratio", 0.5, ArgumentError, r"ratio must lie in \[1, 20\], got 0.5"),
        ("ratio", float("nan"), ArgumentError, "ratio must be finite, got nan"),
        ("ratio", 10**400, ArgumentError, "ratio must be finite, got inf"),
        ("ratio", True, ArgumentTypeError, r"ratio must be a number, got True \(bool\)"),
        ("ratio", "4", ArgumentTypeError, "ratio must be a number, got '4'"),
        ("ratio", torch.tensor([2.0, 30.0]), ArgumentError, r"ratio must lie in \[1, 20\], got 30"),
        ("ratio", torch.tensor([2, 3]), ArgumentTypeError, "ratio must hold floating point numbers, got torch.int64"),
        ("attack_ms", 0, ArgumentError, r"attack_ms must lie in \[0.1, inf\) ms, got 0"),
        ("centre", 24_000, ArgumentError, r"centre must lie in \(0, fs/2\) = \(0, 24000\) Hz, got 24000"),
        ("makeup", "-3dBx", ArgumentError, "makeup must be a number or a text such as '-3dB', got '-3dBx'"),
        ("stages", 9, ArgumentError, "stages must be a whole number <= 8, got 9"),
        ("stages", 2.5, ArgumentTypeError, "stages must be a whole number >= 1, got 2.5"),
        ("soft", 1, ArgumentTypeError, "soft must be True or False, got 1"),
        ("mode", "mean", ArgumentError, "mode must be one of peak, rms, got 'mean'"),
    ],
)
def test_values_are_checked_at_construction_and_assignment(name, value, error, message):
    with pytest.raises(error, match=message):
        Everything(**{"fs": FS, name: value})
    module = Everything(fs=FS)
    before = getattr(module, name)
    with pytest.raises(error, match=message):
        setattr(module, name, value)
    assert getattr(module, name) == before


def test_a_rate_that_other_parameters_do_not_fit_is_refused():
    module = Everything(centre=10_000)
    with pytest.raises(ArgumentError, match=r"centre must lie in \(0, fs/2\) = \(0, 4000\) Hz, got 10000"):
        module.fs = 8000
    assert module.fs is None


@pytest.mark.parametrize("value", [np.float32(0.5), np.float64(0.5), np.array(0.5), torch.tensor(0.5), 0.5])
def test_numbers_of_any_library_are_numbers(value):
    assert Gain(value).gain == 0.5
    assert isinstance(Gain(value).gain, float)


@pytest.mark.parametrize(
    ("made", "factor"),
    [
        (lambda: Gain("-20dB"), 0.1),
        (lambda: Gain(-20, "dB"), 0.1),
        (lambda: Gain(-20, "DB"), 0.1),
        (lambda: Gain("0.25", "amplitude"), 0.25),
    ],
)
def test_levels_are_read_from_texts(made, factor):
    assert made().factor == pytest.approx(factor, rel=1e-15)


def test_every_level_takes_decibels(generator):
    x = torch.randn(2, 100, generator=generator)
    assert float(Normalize("-6.020599913279624 dB")(x).abs().max()) == pytest.approx(0.5)
    gain = Gain(1.0)
    gain.gain = "-20dB"
    assert str(gain) == "Gain(-20 dB)"
    assert torch.allclose(gain(x), x * 0.1)


def test_what_is_learned_is_where_pytorch_looks(generator):
    parameter = nn.Parameter(torch.tensor(0.5))
    chain = Gain(parameter) | LoButterworth(nn.Parameter(torch.tensor(1000.0)), fs=FS)
    assert [name for name, _ in chain.named_parameters()] == ["0.gain", "1.cutoff"]
    assert next(chain.parameters()) is parameter
    chain(torch.randn(2, 100, generator=generator)).square().sum().backward()
    assert float(parameter.grad) != 0
    chain[0].gain = 2.0
    assert [name for name, _ in chain.named_parameters()] == ["1.cutoff"]


def test_one_value_per_example_is_kept_as_a_buffer(generator):
    cutoffs = torch.tensor([[200.0], [2000.0], [8000.0]])
    module = LoButterworth(cutoffs, order=3, fs=FS)
    assert dict(module.named_buffers())["cutoff"] is cutoffs
    assert str(module) == "LoButterworth(cutoff=<3x1>, order=3, fs=48000)"
    x = torch.randn(3, 2, 500, generator=generator)
    together = module(x)
    for i in range(3):
        assert torch.allclose(together[i], LoButterworth(float(cutoffs[i]), 3, FS)(x[i]), atol=1e-6)
    assert module.sos.shape == (3, 1, 2, 6)
    assert module.b.shape == (3, 1, 4)


def test_a_bank_is_one_call(monkeypatch, generator):
    """Bands come in front of the time, and the signal is given once for all of them."""
    from torchfx import _ops

    calls = []
    original = _ops.parallel_iir_forward
    monkeypatch.setattr(_ops, "parallel_iir_forward", lambda *args, **kw: calls.append(1) or original(*args, **kw))
    edges = torch.tensor([100.0, 1000.0, 10_000.0])
    x = torch.randn(2, 1, 800, generator=generator)
    bands = LoButterworth(edges, fs=FS)(x)
    assert bands.shape == (2, 3, 800)
    assert calls == [1]
    for i, edge in enumerate(edges.tolist()):
        assert torch.allclose(bands[:, i], LoButterworth(edge, fs=FS)(x[:, 0]), atol=1e-6)


def test_taps_per_channel(generator):
    taps = torch.randn(2, 31, generator=generator, dtype=torch.float64)
    x = torch.randn(2, 300, generator=generator, dtype=torch.float64)
    y = FIR(taps)(x)
    for i in range(2):
        assert torch.allclose(y[i], FIR(taps[i])(x[i]), atol=1e-12)


def test_random_values_lie_in_range():
    random = Random(0)
    for entry in available().values():
        for declaration in entry.declarations:
            for _ in range(50):
                value = declaration.draw(random, FS)
                assert declaration.check(value, FS) is not None or declaration.default is None


def test_a_base_class_with_its_own_constructor_works():
    class Twice(Gain):
        """A subclass as users write it."""

        def __init__(self, factor):
            super().__init__(2 * factor)
            self.anything = factor

    module = Twice(3.0)
    assert module.factor == 6.0
    assert str(inspect.signature(Twice)) == "(factor)"
    assert torch.equal(module(torch.ones(2)), torch.full((2,), 6.0))


def test_declared_types_are_seen_by_mypy(tmp_path):
    api = pytest.importorskip("mypy.api")
    program = tmp_path / "program.py"
    program.write_text(
        "import torchfx as fx\n"
        "fx.filter.LoButterworth(1000, order=4, fs=48_000)\n"
        "fx.filter.LoButterworth()\n"
        "fx.filter.LoButterworth(1000, order='4')\n"
        "fx.filter.LoButterworth(1000, ripple=1)\n"
        "fx.effect.Gain('-3dB', clamp=True)\n"
    )
    found, _, _ = api.run([str(program), "--no-incremental", "--cache-dir", str(tmp_path)])
    errors = [int(line.split(":")[1]) for line in found.splitlines() if ": error:" in line and "program.py" in line]
    assert errors == [3, 4, 5]


def test_every_function_that_declares_is_listed_for_type_checkers():
    tree = ast.parse(Path(parameters.__file__).read_text("utf-8"))
    made = [node.name for node in tree.body if isinstance(node, ast.FunctionDef) and ast.unparse(node.returns) == "Any"]
    (base,) = (node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == "Declared")
    (listed,) = (each.value for each in base.decorator_list[0].keywords if each.arg == "field_specifiers")
    assert sorted(map(ast.unparse, listed.elts)) == sorted(made)
    assert set(made) <= set(parameters.__all__)


def test_half_precision_rounds_no_learned_cutoff():
    low = LoButterworth(torch.nn.Parameter(torch.tensor(1234.567)), fs=FS)
    for convert in (low.half, low.bfloat16, low.double, low.float):
        assert convert().cutoff.item() == pytest.approx(1234.567, rel=1e-7)


def test_errors_of_designs_say_which_way_to_go():
    with pytest.raises(ArgumentError, match=r"^cutoff 22049.9999999 Hz and order 30 .*; lower the cutoff"):
        LoButterworth(22_049.9999999, order=30, fs=44_100)(torch.zeros(10))
