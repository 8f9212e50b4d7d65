// Bands of spectra against the discrete Fourier transform's definition, with every instruction set.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

constexpr double pi = 3.14159265358979323846;

struct Case {
    int64_t samples, channels, count, length, size, hop, origin, bands;  // 0 bands: every bin
    int32_t reflect;
    double power, preemphasis, centred, gain, floor, offset;
};

// Sample t of a signal with what lies beyond its ends.
double sample(const Case& c, const float* x, int64_t t) {
    if (c.reflect) t = t < 0 ? -t : t >= c.samples ? 2 * (c.samples - 1) - t : t;
    return t < 0 || t >= c.samples ? 0 : static_cast<double>(x[t]);
}

// The frame as it is transformed: `length` samples times the window.
std::vector<double> windowed(const Case& c, const float* x, const std::vector<double>& window, int64_t f) {
    std::vector<double> frame;
    for (int64_t n = 0; n < c.length; ++n) frame.push_back(sample(c, x, f * c.hop - c.origin + n));
    double mean = 0;
    for (const double v : frame) mean += c.centred != 0 ? v / static_cast<double>(c.length) : 0;
    for (double& v : frame) v -= mean;
    for (std::size_t n = frame.size(); n-- > 0;) frame[n] -= c.preemphasis * frame[n == 0 ? 0 : n - 1];
    for (std::size_t n = 0; n < frame.size(); ++n) frame[n] *= window[n];
    return frame;
}

// |X[k]|^power of a frame.
std::vector<double> spectrum(const Case& c, const std::vector<double>& frame) {
    std::vector<double> found;
    for (int64_t k = 0; k <= c.size / 2; ++k) {
        double re = 0, im = 0;
        for (int64_t n = 0; n < c.length; ++n) {
            const double angle = -2 * pi * static_cast<double>(k * n % c.size) / static_cast<double>(c.size);
            re += frame[static_cast<std::size_t>(n)] * std::cos(angle);
            im += frame[static_cast<std::size_t>(n)] * std::sin(angle);
        }
        found.push_back(std::pow(re * re + im * im, c.power / 2));
    }
    return found;
}

// Bands that overlap, are cut off by either end, hold one bin, and one that holds none.
std::vector<double> filters_of(const Case& c) {
    const int64_t bins = c.size / 2 + 1;
    std::vector<double> filters(static_cast<std::size_t>(c.bands * bins));
    for (int64_t m = 0; m + 1 < c.bands; ++m) {
        const int64_t first = m == 0 ? 0 : pick(0, bins - 1), end = m == 1 ? bins : pick(first + 1, bins);
        for (int64_t k = first; k < end; ++k) filters[static_cast<std::size_t>(m * bins + k)] = (noise() + 1) / 2;
    }
    return filters;
}

struct Signal {
    std::vector<float> x;
    std::vector<double> window, filters;
    explicit Signal(const Case& c) : window(noises(c.length)), filters(filters_of(c)) {
        for (const double v : noises(c.channels * c.samples)) x.push_back(static_cast<float>(v));
    }
};

std::vector<float> bands(const Case& c, const Signal& s, int32_t threads) {
    const int64_t bands = c.bands ? c.bands : c.size / 2 + 1;
    std::vector<float> y(static_cast<std::size_t>(c.channels * bands * c.count), -1.0f);
    const double settings[] = {c.power, c.preemphasis, c.centred, c.gain, c.floor, c.offset};
    expect(torchfx_mel_forward(s.x.data(), c.samples, 1, c.samples, y.data(), c.channels, c.count, s.window.data(), c.length,
                               c.size, c.hop, c.origin, c.reflect, c.bands ? s.filters.data() : nullptr, bands, settings,
                               threads) == TORCHFX_OK, "it is accepted");
    return y;
}

void it_is_the_definition(const Case& c) {
    const Signal s(c);
    const std::vector<float> y = bands(c, s, 1);
    expect(bands(c, s, 3) == y, "threads change nothing");
    const int64_t bins = c.size / 2 + 1, rows = c.bands ? c.bands : bins;
    for (int64_t channel = 0; channel < c.channels; ++channel)
        for (int64_t f = 0; f < c.count; ++f) {
            const std::vector<double> power =
                spectrum(c, windowed(c, s.x.data() + channel * c.samples, s.window, f));
            const double largest = *std::max_element(power.begin(), power.end());
            for (int64_t m = 0; m < rows; ++m) {
                double sum = power[static_cast<std::size_t>(c.bands ? 0 : m)], weight = 1;
                if (c.bands) {
                    const double* const row = s.filters.data() + m * bins;
                    sum = dot<double>(row, 1, power.data(), 1, bins);
                    weight = 0;
                    for (int64_t k = 0; k < bins; ++k) weight += row[k];
                }
                const double found = static_cast<double>(y[static_cast<std::size_t>((channel * rows + m) * c.count + f)]);
                const double error = 1e-6 * largest * std::max(weight, 1.0);
                if (c.gain == 0) expect(std::fabs(found - sum) <= error, "powers are those of the definition");
                else {
                    const double v = std::max(sum + c.offset, c.floor);  // whose error the logarithm divides by it
                    const double bound = std::fabs(c.gain) * (error / v + 1e-6 * (1 + std::fabs(std::log(v))));
                    expect(std::fabs(found - c.gain * std::log(v)) <= bound, "logarithms are those of the definition");
                }
            }
        }
}

// What is not finite stays in the frames that hold it.
void nan_stays_in_its_frames(float bad) {
    const Case c = {1000, 1, 40, 50, 60, 25, 0, 5, 0, 2, 0, 0, 1, 1e-10, 0};
    Signal s(c);
    const std::vector<float> before = bands(c, s, 1);
    s.x[510] = bad;  // frames 19 and 20
    const std::vector<float> after = bands(c, s, 1);
    for (int64_t m = 0; m + 1 < c.bands; ++m)
        for (int64_t f = 0; f < c.count; ++f) {
            const std::size_t at = static_cast<std::size_t>(m * c.count + f);
            if (f == 19 || f == 20) expect(!std::isfinite(after[at]), "a frame that holds it shows it");
            else expect(after[at] == before[at], "the others are what they were");
        }
}

void what_does_not_fit_is_refused() {
    const std::vector<float> x(100);
    std::vector<float> y(1000, 7.0f);
    const std::vector<double> window(64, 1.0), settings = {2, 0, 0, 0, 0, 0};
    const auto run = [&](int64_t samples, int64_t length, int64_t size, int64_t hop, int64_t origin, int32_t reflect,
                         int64_t bands) {
        return torchfx_mel_forward(x.data(), samples, 1, samples, y.data(), 1, 2, window.data(), length, size, hop, origin,
                                   reflect, nullptr, bands, settings.data(), 1);
    };
    expect(run(100, 32, 34, 8, 0, 0, 18) == TORCHFX_BAD_ARGUMENT, "a size with the factor 17 is refused");
    expect(run(100, 32, 45, 8, 0, 0, 23) == TORCHFX_BAD_ARGUMENT, "an odd size is refused");
    expect(run(100, 34, 32, 8, 0, 0, 17) == TORCHFX_BAD_ARGUMENT, "a window longer than the transform is refused");
    expect(run(100, 32, 32, 0, 0, 0, 17) == TORCHFX_BAD_ARGUMENT, "no hop is refused");
    expect(run(100, 32, 32, 8, 0, 0, 16) == TORCHFX_BAD_ARGUMENT, "fewer bands than bins are refused without filters");
    expect(run(10, 32, 32, 8, 10, 1, 17) == TORCHFX_BAD_ARGUMENT, "a signal that is reflected twice is refused");
    expect(run(0, 32, 32, 8, 0, 0, 17) == TORCHFX_BAD_ARGUMENT, "no samples are refused");
    expect(y == std::vector<float>(1000, 7.0f), "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        for (const int64_t size : {4, 6, 10, 16, 60, 400, 450})
            for (const int64_t count : {1, 7, 16, 33})
                for (const int32_t reflect : {0, 1}) {
                    context = "size " + std::to_string(size) + ", " + std::to_string(count) + " frames";
                    const int64_t length = pick((size + 1) / 2, size), hop = pick(1, size), origin = pick(0, size / 2);
                    const int64_t samples = std::max<int64_t>(size + 1, (count - 1) * hop - origin + length - size / 2);
                    it_is_the_definition({samples, 2, count, length, size, hop, origin, pick(3, 9), reflect, 2, 0, 0, 0, 0, 0});
                    it_is_the_definition({samples, 1, count, length, size, hop, origin, 0, reflect, 1, 0, 0, 0, 0, 0});
                    it_is_the_definition(
                        {samples, 1, count, length, size, hop, origin, 4, reflect, 2, 0.97, 1, 10, 1e-10, 1e-6});
                }
        context = "not finite";
        nan_stays_in_its_frames(std::numeric_limits<float>::quiet_NaN());
        nan_stays_in_its_frames(std::numeric_limits<float>::infinity());
    });
    what_does_not_fit_is_refused();
    return report();
}
