"""The compander: its definition by a loop, FFmpeg's filter of the same name, and the mean of its curve in the knee."""

import av
import numpy as np
import pytest
import torch
from scipy.integrate import trapezoid
from torch.autograd import gradcheck

from oracle import bound, deviation
from torchfx.effect import Compand
from torchfx.errors import ArgumentError

FS = 48_000
CURVE = [[-70.0, -75.0], [-55.0, -30.0], [-20.0, -14.0], [0.0, -9.0]]


def gain_db(level, points, knee):
    """Return the curve's gain, averaged over the knee: of straight lines, exactly by their integral."""
    levels, gains = points[:, 0], points[:, 1] - points[:, 0]
    slope = (gains[-1] - gains[-2]) / (levels[-1] - levels[-2])

    def line(at):
        return np.where(at > levels[-1], gains[-1] + slope * (at - levels[-1]), np.interp(at, levels, gains))

    if knee == 0:
        return float(line(level))
    corners = levels[(levels > level - knee / 2) & (levels < level + knee / 2)]
    edges = np.array([level - knee / 2, *corners, level + knee / 2])
    return float(trapezoid(line(edges), edges) / knee)


def loop(x, points, attack, release, knee, makeup, initial):
    """Return the output for one channel, sample by sample."""
    rise, fall = (-np.expm1(-1000 / (FS * max(each, 1e-4))) for each in (attack, release))
    level, y = 10 ** (initial / 20), []
    for sample in x:
        level += (rise if abs(sample) > level else fall) * (abs(sample) - level)
        y.append(sample * 10 ** ((gain_db(20 * np.log10(max(level, 1e-15)), np.array(points), knee) + makeup) / 20))
    return np.array(y)


def loud_and_quiet(rng, *shape):
    return rng.standard_normal(shape) * 10 ** np.linspace(-6, 0.5, shape[-1])


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("knee", [0.0, 5.0, 60.0])
@pytest.mark.parametrize(("attack", "release", "initial"), [(0.0, 0.0, 0.0), (0.3, 5.0, -90.0), (20.0, 1.0, 6.0)])
def test_it_is_its_definition(rng, dtype, knee, attack, release, initial):
    x = torch.from_numpy(loud_and_quiet(rng, 1025)).to(dtype)
    module = Compand(CURVE, attack, release, knee, -3.0, initial, fs=FS)
    expected = loop(x.double().numpy(), CURVE, attack, release, knee, -3.0, initial)
    assert deviation(module(x), expected) < bound(dtype)
    by_hand, _ = module.step(x, module.init_state((), FS, dtype), FS)
    assert deviation(by_hand, expected) < bound(dtype)


def test_with_bends_at_right_angles_it_is_ffmpegs(rng):
    x = np.clip(loud_and_quiet(rng, FS), -1.0, 1.0)  # theirs has no curve above 0 dB
    graph = av.filter.Graph()
    points = "|".join(f"{level}/{out}" for level, out in CURVE)
    nodes = [
        graph.add_abuffer(format="dblp", sample_rate=FS, layout="mono", time_base="1/48000"),
        graph.add("compand", f"attacks=0.01:decays=0.2:points={points}:soft-knee=0.01:gain=4:volume=-20"),
        graph.add("abuffersink"),
    ]
    graph.link_nodes(*nodes).configure()
    frame = av.AudioFrame.from_ndarray(x[None], format="dblp", layout="mono")
    frame.sample_rate = FS
    graph.push(frame)
    graph.push(None)
    theirs = graph.pull().to_ndarray()[0]
    ours = Compand(CURVE, 10.0, 200.0, 0.0, 4.0, -20.0, fs=FS)(torch.from_numpy(x)).numpy()
    loud = np.abs(x) > 0
    assert np.max(np.abs(20 * np.log10(ours[loud] / theirs[loud]))) < 0.01  # dB: their bends are never quite sharp


def test_a_curve_to_itself_changes_nothing(rng):
    x = torch.from_numpy(loud_and_quiet(rng, 2, 700))
    assert torch.allclose(Compand([[-80, -80], [0, 0]], knee_db=12.0, fs=FS)(x), x, rtol=1e-14, atol=0)


def test_the_gain_below_the_first_point_stays_and_the_last_line_goes_on():
    levels = torch.tensor([-200.0, -61.0, -10.0, 0.0, 20.0], dtype=torch.float64)
    x = 10 ** (levels / 20)
    y = Compand([[-60.0, -50.0], [-20.0, -15.0]], 0.0, 0.0, fs=FS)(x)
    assert torch.allclose(20 * torch.log10(y), torch.tensor([-190.0, -51.0, -6.25, 2.5, 20.0]).double(), atol=1e-11)


def test_channels_share_the_gain_of_the_loudest(rng):
    x = torch.from_numpy(loud_and_quiet(rng, 2, 700))
    linked, apart = (Compand(CURVE, 1.0, 20.0, 3.0, lookahead_ms=0.5, link=link, fs=FS) for link in (True, False))
    gains = linked(x) / x
    assert torch.allclose(gains[0], gains[1], rtol=1e-12)
    assert deviation(apart(x)[1], apart(x[1]).numpy()) < 1e-12


def test_the_level_counts_before_the_signal():
    x = torch.cat([torch.full((480,), 0.01), torch.ones(480)]).double()
    now, later = (Compand(CURVE, 1.0, lookahead_ms=each, initial_db=-40.0, fs=FS)(x) for each in (0.0, 5.0))
    assert torch.allclose(later[: 480 - 240], now[: 480 - 240], rtol=1e-12)
    assert torch.allclose((later / x)[240:720], (now / x)[480:], rtol=1e-12)


def test_every_example_has_a_curve_of_its_own(rng):
    x = torch.from_numpy(loud_and_quiet(rng, 3, 2, 900))
    curves = torch.tensor(CURVE) + torch.tensor([0.0, -5.0, 4.0])[:, None, None, None]
    whole = Compand(curves, 1.0, knee_db=4.0, fs=FS)
    for example in range(3):
        alone = Compand(curves[example, 0], 1.0, knee_db=4.0, fs=FS)(x[example])
        assert torch.allclose(whole(x)[example], alone, rtol=1e-12)


def test_curve_knee_and_times_are_learned(rng):
    x = torch.from_numpy(rng.standard_normal((2, 40)))
    points = torch.tensor(CURVE, dtype=torch.float64, requires_grad=True)
    given = [torch.tensor(value, dtype=torch.float64, requires_grad=True) for value in (0.1, 0.3, 4.0, 1.0, -20.0)]

    def output(points, *given):
        return Compand(points, *given, fs=FS)(x)

    assert gradcheck(output, (points, *given))


@pytest.mark.parametrize(
    ("points", "message"),
    [
        ([[-20.0, 0.0], [-20.0, -5.0]], "levels that rise by at least 0.001 dB"),
        ([[-20.0, 0.0], [-30.0, -5.0]], "got a step of -10 dB"),
        ([[-2000.0, 0.0]], r"\[-1000, 1000\] dB, got 2000"),
        ([[-20.0, 0.0, 1.0]], r"\(..., points >= 1, 2\), got \(1, 3\)"),
        ([-20.0, 0.0], r"\(2,\)"),
        ([[-20.0, float("nan")]], "finite"),
    ],
)
def test_points_that_are_no_curve_are_refused(points, message):
    with pytest.raises(ArgumentError, match=f"points must .*{message}"):
        Compand(points)
