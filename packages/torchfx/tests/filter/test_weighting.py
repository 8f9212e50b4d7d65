"""Weighting curves and record equalisation against the standards' tables and their analogue formulas."""

import numpy as np
import pytest
import torch
from scipy import signal

from torchfx import spec
from torchfx.design import riaa, weighting
from torchfx.errors import ArgumentError, SampleRateError
from torchfx.filter import RIAA, Weighting


def gains(sos, f, fs):
    return 20 * np.log10(abs(signal.sosfreqz(sos.numpy(), np.asarray(f), fs=fs)[1]))


# IEC 61672-1:2013, table 3: nominal frequency, A and C weighting (dB), class 1 limits above and below (dB). A and C are
# also in the free table at https://lichtbeeldgeluid.nl/geluid/tabellen/.
IEC_61672 = [
    (10, -70.4, -14.3, 3.0, np.inf), (20, -50.5, -6.2, 2.0, 2.0), (31.5, -39.4, -3.0, 1.5, 1.5),
    (63, -26.2, -0.8, 1.0, 1.0), (125, -16.1, -0.2, 1.0, 1.0), (250, -8.6, 0.0, 1.0, 1.0), (500, -3.2, 0.0, 1.0, 1.0),
    (1000, 0.0, 0.0, 0.7, 0.7), (2000, 1.2, -0.2, 1.0, 1.0), (4000, 1.0, -0.8, 1.0, 1.0), (8000, -1.1, -3.0, 1.5, 2.5),
    (12_500, -4.3, -6.2, 2.0, 5.0), (16_000, -6.6, -8.5, 2.5, 16.0), (20_000, -9.3, -11.2, 3.0, np.inf),
]  # fmt: skip
# IEC 651 (1979), table IV: B weighting.
IEC_651 = [(20, -24.2), (63, -9.3), (125, -4.2), (250, -1.3), (500, -0.3), (1000, 0.0), (4000, -0.7), (8000, -2.9)]
# IEC 60098: playback, relative to 1 kHz.
IEC_60098 = [
    (20, 19.27), (50, 16.95), (100, 13.09), (200, 8.22), (500, 2.65), (1000, 0.0), (2000, -2.59), (5000, -8.21),
    (10_000, -13.73), (15_000, -17.16), (20_000, -19.62),
]  # fmt: skip
# ITU-R BS.1770-5, tables 1 and 2, at 48 kHz.
BS_1770 = [
    [1.53512485958697, -2.69169618940638, 1.19839281085285, 1.0, -1.69065929318241, 0.73248077421585],
    [1.0, -2.0, 1.0, 1.0, -1.99004745483398, 0.99007225036621],
]


@pytest.mark.parametrize("fs", [8000, 16_000, 32_000, 44_100, 48_000, 96_000, 192_000])
def test_a_and_c_lie_inside_class_1(fs):
    rows = np.array([row for row in IEC_61672 if row[0] < 0.45 * fs])
    exact = 1000 * 10 ** (np.round(10 * np.log10(rows[:, 0] / 1000)) / 10)  # the third-octave frequency of that name
    for column, curve in ((1, "A"), (2, "C")):
        off = gains(weighting(curve, fs), exact, fs) - rows[:, column]
        assert (off < rows[:, 3]).all()
        assert (-off < rows[:, 4]).all()
        assert abs(off[rows[:, 0] <= 0.4 * fs]).max() < 0.45
        if fs >= 96_000:
            assert abs(off).max() < 0.06  # the table is rounded to 0.1 dB


def test_b_is_the_tables():
    f, expected = np.array(IEC_651).T
    exact = 1000 * 10 ** (np.round(10 * np.log10(f / 1000)) / 10)
    assert abs(gains(weighting("B", 96_000), exact, 96_000) - expected).max() < 0.1


def test_k_is_the_standards_and_the_same_curve_at_other_rates():
    assert np.allclose(weighting("K", 48_000), BS_1770, rtol=0, atol=1e-14)
    f = np.geomspace(20, 10_000, 50)
    expected = gains(torch.tensor(BS_1770), f, 48_000)
    for fs, bound in ((44_100, 0.1), (96_000, 0.25)):
        assert abs(gains(weighting("K", fs), f, fs) - expected).max() < bound


@pytest.mark.parametrize(("fs", "bound"), [(44_100, 0.35), (48_000, 0.35), (96_000, 0.02), (192_000, 0.02)])
def test_records_play_back_as_the_table_says(fs, bound):
    f, expected = np.array(IEC_60098).T
    playback = gains(riaa(fs), f, fs)
    assert abs(playback - expected).max() < bound
    assert gains(riaa(fs), [1000.0], fs) == pytest.approx([0.0], abs=1e-12)
    assert np.allclose(gains(riaa(fs, recording=True), f, fs), -playback, atol=1e-9)


def test_the_classes_are_their_designs():
    assert torch.equal(Weighting("k", fs=44_100).sos, weighting("K", 44_100))
    assert torch.equal(RIAA(recording=True, fs=44_100).sos, riaa(44_100, True))
    assert str(spec.build("weighting:c")) == "Weighting(curve='C')"


@pytest.mark.parametrize(
    ("made", "error", "message"),
    [
        (lambda: Weighting("D"), ArgumentError, "curve must be one of A, B, C, K, got 'D'"),
        (lambda: weighting("A", 4000), SampleRateError, r"fs must lie in \[8000, inf\) Hz for this curve, got 4000"),
        (lambda: RIAA(fs=4000)(torch.zeros(10)), SampleRateError, r"fs must lie in \[8000, inf\) Hz .* got 4000"),
    ],
)
def test_bad_arguments_raise(made, error, message):
    with pytest.raises(error, match=message):
        made()
