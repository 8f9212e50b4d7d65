// Ballistics, the gain of dynamics processors and sliding maxima against the definitions.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

template <class Sample>
constexpr int32_t dtype_of = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

// The definition, in doubles.
double smoothed(double x, double before, const double* rise_and_fall) {
    return before + rise_and_fall[x > before ? 0 : 1] * (x - before);
}

double curve(double sample, const double* of) {
    const double level = 20 * std::log10(std::max(std::fabs(sample), 1e-15)), half = of[3] / 2;
    const auto bent = [half](double o) {
        return o <= -half ? 0 : o >= half ? o : (o + half) * (o + half) / (4 * half);
    };
    return std::max(of[1] * bent(level - of[0]) + of[2] * bent(of[0] - level), of[4]);
}

template <class Sample>
bool near(double truth, Sample found) {
    return std::fabs(truth - static_cast<double>(found)) <= (sizeof(Sample) == 4 ? 1e-6 : 1e-11);
}

template <class Sample>
void detectors_are_the_recursion() {
    for (const int64_t samples : {1, 7, 513, 1025})
        for (const int64_t channels : {1, 2, 17}) {
            const int64_t stride = pick(1, 2), rows = channels > 1 ? 2 : 1;
            std::vector<Sample> x, y(static_cast<size_t>(channels * samples)), gains(y.size());
            for (const double v : noises(channels * samples * stride)) x.push_back(static_cast<Sample>(v));
            std::vector<double> settings;
            for (int64_t r = 0; r < rows; ++r) {
                const bool fast_up = r == 0;
                settings.insert(settings.end(), {-15, -0.8, -2, fast_up ? 9.0 : 0.0, -50, 4, fast_up ? 0.3 : 0.004,
                                                 fast_up ? 0.01 : 1.0});
            }
            std::vector<double> coefficients;
            for (int64_t r = 0; r < rows; ++r)
                for (const int i : {6, 7}) coefficients.push_back(settings[static_cast<size_t>(r * 8 + i)]);
            const std::vector<double> before = noises(channels);
            std::vector<double> after(before.size()), last(before.size());
            const int32_t status = torchfx_ballistics_forward(
                dtype_of<Sample>, x.data(), samples * stride, stride, 1, y.data(), samples, channels, samples,
                coefficients.data(), rows, 1, before.data(), after.data(), 2);
            expect(status == TORCHFX_OK, "ballistics are accepted");
            expect(torchfx_dynamics_gain(dtype_of<Sample>, x.data(), samples * stride, stride, 1, gains.data(), samples,
                                         channels, samples, settings.data(), rows, 1, before.data(), last.data(), 2) ==
                       TORCHFX_OK, "gains are accepted");
            for (int64_t c = 0; c < channels; ++c) {
                const double* const of = settings.data() + c % rows * 8;
                double level = before[static_cast<size_t>(c)], gain = level;
                for (int64_t t = 0; t < samples; ++t) {
                    const double sample = static_cast<double>(x[static_cast<size_t>((c * samples + t) * stride)]);
                    const size_t at = static_cast<size_t>(c * samples + t);
                    level = smoothed(sample, level, of + 6);
                    gain = smoothed(curve(sample, of), gain, of + 6);
                    expect(near(level, y[at]), "ballistics are the recursion");
                    expect(near(std::pow(10, (gain + of[5]) / 20), gains[at]), "the gain is level, curve, ballistics");
                }
                expect(near(level, after[static_cast<size_t>(c)]), "the state is the last output");
                expect(near(gain, last[static_cast<size_t>(c)]), "the state is the last gain in dB");
            }
        }
}

template <class Sample>
void maxima_are_the_largest() {
    for (const int64_t window : {1, 2, 5, 64, 5000})
        for (const int64_t samples : {1, 63, 5000}) {
            const int64_t stride = pick(1, 2), heard = samples + window - 1;
            std::vector<Sample> x, y(static_cast<size_t>(2 * samples));
            for (const double v : noises(2 * heard * stride)) x.push_back(static_cast<Sample>(v));
            expect(torchfx_sliding_max(dtype_of<Sample>, x.data(), heard * stride, stride, y.data(), samples, 2, samples,
                                       window, 2) == TORCHFX_OK, "maxima are accepted");
            for (int64_t c = 0; c < 2; ++c)
                for (int64_t t = 0; t < samples; t += 17) {
                    Sample largest = -std::numeric_limits<Sample>::infinity();
                    for (int64_t i = t; i < t + window; ++i)
                        largest = std::max(largest, x[static_cast<size_t>((c * heard + i) * stride)]);
                    expect(largest == y[static_cast<size_t>(c * samples + t)], "maxima are the largest");
                }
        }
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8), settings = {0, 0, 0, 0, 0, std::numeric_limits<double>::quiet_NaN(), 1, 1};
    std::vector<double> y(8, 7.0);
    const auto gain = [&](int64_t channels, int64_t rows, int32_t threads) {
        return torchfx_dynamics_gain(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, channels, 8, settings.data(), rows, 1,
                                     nullptr, nullptr, threads);
    };
    expect(gain(0, 1, 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(gain(1, 2, 1) == TORCHFX_BAD_ARGUMENT, "a row without a channel is refused");
    expect(gain(1, 1, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(gain(1, 1, 1) == TORCHFX_NOT_FINITE, "settings that are not finite are refused");
    expect(torchfx_sliding_max(TORCHFX_F64, x.data(), 8, 1, y.data(), 8, 1, 8, 0, 1) == TORCHFX_BAD_ARGUMENT,
           "windows of no samples are refused");
    expect(std::count(y.begin(), y.end(), 7.0) == 8, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        context = "float";
        detectors_are_the_recursion<float>();
        maxima_are_the_largest<float>();
        context = "double";
        detectors_are_the_recursion<double>();
        maxima_are_the_largest<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
