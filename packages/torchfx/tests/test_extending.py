"""The recipes of CONTRIBUTING: what is added is found everywhere, and no list is edited for it."""

import os
import re
import subprocess
import sys

import pytest
import soundfile
import torch

EFFECT = '''
"""A compressor as a newcomer would write it."""

import torch

import torchfx as fx
from torchfx.parameters import Value, decibels, milliseconds, number, sample_rate

__all__ = ["Squash"]


class Squash(fx.Processor):
    """Make loud parts softer."""

    threshold_db: Value = decibels(default=-20.0)
    ratio: Value = number(default=4.0, low=1.0, high=20.0)
    release_ms: Value = milliseconds(default=50.0, low=1.0)
    fs: float | None = sample_rate(default=None)

    def init_state(self, shape, rate, dtype, device):
        return (torch.zeros(shape, dtype=torch.float64, device=device),)

    def step(self, x, state, rate):
        keep = 1 - 1000 / (self.release_ms * rate)
        loudness, gains = state[0], []
        for sample in x.double().abs().unbind(-1):
            loudness = torch.maximum(sample, loudness * keep)
            over = (20 * torch.log10(loudness.clamp(min=1e-9)) - self.threshold_db).clamp(min=0)
            gains.append(10 ** (-over * (1 - 1 / self.ratio) / 20))
        gain = torch.stack(gains, dim=-1).to(x.dtype) if gains else x
        return x * gain, (loudness,)
'''

USE = """
import torch, torchfx as fx
from squashing import Squash

squash = Squash(ratio=8.0)
chain = fx.filter.HiButterworth(80) | squash | fx.effect.Gain("-3dB")
x = torch.randn(2, 600, generator=torch.Generator().manual_seed(0))
whole = (fx.Wave(x, 48_000) | chain).ys
stream = fx.realtime.Stream(chain, 48_000, 2)
blocks = torch.cat([stream.process(block) for block in x.split(97, dim=-1)], dim=-1)
assert float((blocks - whole).abs().max()) < 1e-6
assert repr(chain.plan(48_000)).count("Squash(threshold_db=-20, ratio=8, release_ms=50)") == 1
print("chain and stream agree")
"""


@pytest.fixture
def package(tmp_path):
    """A package with an effect, installed as far as Python can tell."""
    folder = tmp_path / "site"
    (folder / "squashing-1.0.dist-info").mkdir(parents=True)
    (folder / "squashing.py").write_text(EFFECT)
    (folder / "squashing-1.0.dist-info" / "METADATA").write_text("Name: squashing\nVersion: 1.0\n")
    (folder / "squashing-1.0.dist-info" / "entry_points.txt").write_text(
        "[torchfx.processors]\nsquashing = squashing\n"
    )
    return folder


def run(*command, folder, cwd=None):
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    return subprocess.run(
        [sys.executable, *map(str, command)], capture_output=True, text=True, check=False, cwd=cwd,
        env={**os.environ, "PYTHONPATH": path, "NO_COLOR": "1"}, timeout=120,
    )  # fmt: skip


def test_an_effect_is_one_file(package):
    ran = run("-c", USE, folder=package)
    assert (ran.stdout, ran.stderr, ran.returncode) == ("chain and stream agree\n", "", 0)


def test_an_effect_is_on_the_command_line(package, tmp_path):
    listed = run("-m", "torchfx", "effects", folder=package)
    assert re.search(r"^  squash +Make loud parts softer\.$", listed.stdout, re.MULTILINE)
    page = run("-m", "torchfx", "effects", "squash", folder=package)
    assert re.search(r"^  ratio +default 4; .*in \[1, 20\]", page.stdout, re.MULTILINE)
    source = tmp_path / "in.wav"
    soundfile.write(source, torch.randn(400, 2, generator=torch.Generator().manual_seed(0)).clamp(-1, 1).numpy(), 8000)
    ran = run("-m", "torchfx", "process", source, "out.wav", "-e", "squash:-30dB,ratio=2", folder=package, cwd=tmp_path)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert soundfile.info(tmp_path / "out.wav").frames == 400
    refused = run("-m", "torchfx", "process", source, "x.wav", "-e", "squash:ratio=99", folder=package, cwd=tmp_path)
    assert refused.returncode == 2
    assert "ratio must lie in [1, 20], got 99" in refused.stderr


SCHEMA = """
from torchfx._ops.operator import Operand, Operator


def shapes(x, factor):
    return [(x.shape, x.dtype)]


OPERATORS = (
    Operator("throwaway(Tensor x, float factor) -> Tensor y", {"x": Operand(1)}, (Operand(1, exact=True),), shapes),
)
"""
REFERENCE = """
def throwaway(x, factor, y):
    y.copy_(x * factor)
"""
GRADIENT = """
from torchfx._ops.differentiation import Gradient

GRADIENTS = {
    "throwaway": Gradient(
        backward=lambda forward, arguments, grads: (forward(grads[0], arguments[1]),),
        tangent=lambda forward, arguments, tangents: (forward(tangents[0], arguments[1]),),
    )
}
"""
CPU = """
import torch


def throwaway(x, factor, y):
    assert x.data_ptr() != y.data_ptr()
    torch.mul(x, factor, out=y)
"""
REGISTER = """
import sys
import torch
import throwaway_operator
from torchfx._ops.operator import register

operators = {}
[row] = register(throwaway_operator, operators)
print(row.backends["cpu"], row.backends["cuda"], row.backends["other"])
x = torch.arange(6.0, dtype=torch.float64).reshape(2, 3).requires_grad_()
run = operators["throwaway"]
assert torch.equal(run(x, 3.0), 3 * x)
"""
TRANSFORMED = """
assert torch.equal(run(x.detach(), 3.0, out=[torch.empty(2, 3, dtype=torch.float64)]), 3 * x)
assert run(torch.empty(2, 3, device="meta"), 3.0).shape == (2, 3)
assert torch.autograd.gradcheck(lambda x: run(x, 3.0), x, check_forward_ad=True, check_batched_grad=True)
assert torch.equal(torch.func.vmap(lambda x: run(x, 3.0))(x), 3 * x)
assert torch.equal(torch.compile(lambda x: run(x, 3.0), fullgraph=True, backend="aot_eager")(x), 3 * x)
torch.library.opcheck(torch.ops.torchfx_ext.throwaway.default, (x, 3.0))
"""


@pytest.mark.many
def test_a_second_backend_is_one_file(tmp_path):
    folder = tmp_path / "throwaway_operator"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    for name, text in (("schema", SCHEMA), ("reference", REFERENCE), ("gradient", GRADIENT)):
        (folder / f"{name}.py").write_text(text)
    ran = run("-c", REGISTER, folder=tmp_path)
    assert (ran.stdout, ran.returncode) == ("reference reference reference\n", 0), ran.stderr
    (folder / "cpu.py").write_text(CPU)
    ran = run("-c", REGISTER + TRANSFORMED, folder=tmp_path)
    assert (ran.stdout, ran.returncode) == ("cpu reference reference\n", 0), ran.stderr
