// The phase vocoder against its definition, with transforms written as sums.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

using Spectrum = std::vector<std::complex<double>>;

constexpr double two_pi = 6.283185307179586;

// exp(2 pi i n / size)
std::complex<double> unit(int64_t n, int64_t size) {
    return std::polar(1.0, two_pi * static_cast<double>(n % size) / static_cast<double>(size));
}

template <class Sample>
Spectrum spectrum_from(const std::vector<Sample>& x, int64_t start, const std::vector<double>& window) {
    const int64_t size = static_cast<int64_t>(window.size());
    Spectrum found(static_cast<size_t>(size / 2 + 1));
    for (int64_t k = 0; k <= size / 2; ++k)
        for (int64_t i = 0; i < size; ++i) {
            const int64_t t = start + i;
            if (t < 0 || t >= static_cast<int64_t>(x.size())) continue;
            const double heard = static_cast<double>(x[static_cast<size_t>(t)]) * window[static_cast<size_t>(i)];
            found[static_cast<size_t>(k)] += heard * unit(-k * i, size);
        }
    return found;
}

// Bins with more power than the two on each side.
std::vector<int64_t> peaks_of(const Spectrum& spectrum) {
    std::vector<int64_t> peaks;
    const int64_t bins = static_cast<int64_t>(spectrum.size());
    for (int64_t k = 0; k < bins; ++k) {
        bool largest = true;
        for (int64_t j = std::max<int64_t>(k - 2, 0); j <= std::min(k + 2, bins - 1); ++j)
            largest = largest && (j == k || std::norm(spectrum[static_cast<size_t>(k)]) * (1 - 1e-9) >
                                                std::norm(spectrum[static_cast<size_t>(j)]));
        if (largest) peaks.push_back(k);
    }
    return peaks;
}

// The frame `now`, turned; `last` is the one before, `before` the input's a hop before.
Spectrum turned(const Spectrum& now, const Spectrum& before, const Spectrum& last) {
    Spectrum found = now;
    const std::vector<int64_t> peaks = peaks_of(now);
    if (peaks.empty()) return found;
    for (int64_t k = 0; k < static_cast<int64_t>(now.size()); ++k) {
        const size_t p = static_cast<size_t>(*std::min_element(peaks.begin(), peaks.end(), [k](int64_t a, int64_t b) {
            return std::abs(a - k) < std::abs(b - k);  // the lower one of two
        }));
        const std::complex<double> turn = last[p] * std::conj(before[p]);
        if (std::abs(turn) > 0) found[static_cast<size_t>(k)] *= turn / std::abs(turn);
    }
    return found;
}

template <class Sample>
void frames_are_turned_by_their_peaks() {
    const int64_t size = 256, hop = 64, samples = 700, channels = 2, count = 11, bins = size / 2 + 1;
    const int64_t stride = pick(1, 2), length = (count - 1) * hop + size;
    const int64_t starts[] = {-100, -20, 61, 140, 230, 260, 261, 350, 444, 500, 610};
    std::vector<double> window(size);
    for (int64_t i = 0; i < size; ++i)
        window[static_cast<size_t>(i)] = std::sin(two_pi / 2 * (static_cast<double>(i) + 0.5) / size);
    std::vector<Sample> x, y(static_cast<size_t>(channels * length));
    for (const double v : noises(channels * samples * stride)) x.push_back(static_cast<Sample>(v));
    const std::vector<double> state = noises(channels * bins * 2);
    for (const bool rest : {true, false}) {
        std::vector<double> after(state.size());
        const int threads = rest ? 2 : 3;  // a channel each, or the frames of one shared
        expect(torchfx_phase_vocoder_forward(sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64, x.data(), samples * stride,
                                             stride, samples, y.data(), channels, starts, count, window.data(), size, hop,
                                             rest ? nullptr : state.data(), after.data(), threads) == TORCHFX_OK,
               "frames are accepted");
        for (int64_t c = 0; c < channels; ++c) {
            std::vector<Sample> heard;
            for (int64_t t = 0; t < samples; ++t) heard.push_back(x[static_cast<size_t>((c * samples + t) * stride)]);
            Spectrum last(static_cast<size_t>(bins));
            const auto kept = [&](const std::vector<double>& of, int64_t k) {
                const size_t at = static_cast<size_t>(2 * (c * bins + k));
                return std::complex<double>(of[at], of[at + 1]);
            };
            for (int64_t k = 0; k < bins && !rest; ++k) last[static_cast<size_t>(k)] = kept(state, k);
            std::vector<double> expected(static_cast<size_t>(length));
            for (int64_t u = 0; u < count; ++u) {
                const Spectrum before = spectrum_from(heard, starts[u] - hop, window);
                last = turned(spectrum_from(heard, starts[u], window), before, last);
                for (int64_t i = 0; i < size; ++i) {
                    double sum = last[0].real() + last[static_cast<size_t>(size / 2)].real() * (i % 2 ? -1 : 1);
                    for (int64_t k = 1; k < size / 2; ++k)
                        sum += 2 * (last[static_cast<size_t>(k)] * unit(k * i, size)).real();
                    expected[static_cast<size_t>(u * hop + i)] += sum / size * window[static_cast<size_t>(i)];
                }
            }
            for (int64_t t = 0; t < length; ++t) {
                const double found = static_cast<double>(y[static_cast<size_t>(c * length + t)]);
                expect(std::fabs(expected[static_cast<size_t>(t)] - found) < (sizeof(Sample) == 4 ? 1e-6 : 1e-9),
                       "the output is the sum of the turned frames");
            }
            for (int64_t k = 0; k < bins; ++k)
                expect(std::abs(kept(after, k) - last[static_cast<size_t>(k)]) < 1e-9, "the state is the last spectrum");
        }
    }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(512), window(512, 1.0);
    std::vector<double> y(512, 7.0), after(1024);
    const int64_t start = 0;
    const auto run = [&](int64_t size, int64_t hop) {
        return torchfx_phase_vocoder_forward(TORCHFX_F64, x.data(), 512, 1, 512, y.data(), 1, &start, 1, window.data(), size,
                                             hop, nullptr, after.data(), 1);
    };
    for (const int64_t size : {128, 300})
        expect(run(size, 64) == TORCHFX_BAD_ARGUMENT, "sizes are powers of two from 256 on");
    for (const int64_t hop : {0, 256})
        expect(run(256, hop) == TORCHFX_BAD_ARGUMENT, "a hop is shorter than the window");
    expect(std::count(y.begin(), y.end(), 7.0) == 512, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        context = "float";
        frames_are_turned_by_their_peaks<float>();
        context = "double";
        frames_are_turned_by_their_peaks<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
