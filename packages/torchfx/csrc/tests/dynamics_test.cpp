// Ballistics, dynamics processors, limiters and sliding maxima against the definitions.
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
            std::vector<Sample> x, y(static_cast<size_t>(channels * samples)), found(y.size());
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
            expect(torchfx_dynamics_forward(dtype_of<Sample>, x.data(), samples * stride, stride, 1, nullptr, 0, 0, 1,
                                            found.data(), samples, channels, 1, 1, samples, settings.data(), rows, 1,
                                            before.data(), last.data(), 2) == TORCHFX_OK, "dynamics are accepted");
            for (int64_t c = 0; c < channels; ++c) {
                const double* const of = settings.data() + c % rows * 8;
                double level = before[static_cast<size_t>(c)], gain = level;
                for (int64_t t = 0; t < samples; ++t) {
                    const double sample = static_cast<double>(x[static_cast<size_t>((c * samples + t) * stride)]);
                    const size_t at = static_cast<size_t>(c * samples + t);
                    level = smoothed(sample, level, of + 6);
                    gain = smoothed(curve(sample, of), gain, of + 6);
                    expect(near(level, y[at]), "ballistics are the recursion");
                    expect(near(sample * std::pow(10, (gain + of[5]) / 20), found[at]), "the gain is level, curve, ballistics");
                }
                expect(near(level, after[static_cast<size_t>(c)]), "the state is the last output");
                expect(std::fabs(gain - last[static_cast<size_t>(c)]) <= (sizeof(Sample) == 4 ? 1e-7 : 1e-11),
                       "the state is the last gain in dB");
            }
        }
}

// Channels 0 and 2, and 1 and 3, share a gain.
template <class Sample>
void groups_share_the_gain_of_the_loudest() {
    const int64_t samples = 1030;
    std::vector<Sample> x, loudest, y(4 * samples), keyed(4 * samples);
    for (const double v : noises(4 * samples)) x.push_back(static_cast<Sample>(v));
    for (int64_t c = 0; c < 2; ++c)
        for (int64_t t = 0; t < samples; ++t)
            loudest.push_back(std::max(std::fabs(x[static_cast<size_t>(c * samples + t)]),
                                       std::fabs(x[static_cast<size_t>((c + 2) * samples + t)])));
    const std::vector<double> settings = {-15, -0.8, -2, 9, -50, 4, 0.3, 0.01};
    const auto run = [&](const Sample* key, std::vector<Sample>& to) {
        return torchfx_dynamics_forward(dtype_of<Sample>, x.data(), samples, 1, 1, key, samples, 1, 1, to.data(), samples,
                                        2, 2, 2, samples, settings.data(), 1, 1, nullptr, nullptr, 2);
    };
    expect(run(nullptr, y) == TORCHFX_OK && run(loudest.data(), keyed) == TORCHFX_OK, "groups are accepted");
    expect(y == keyed, "a group's gain is that of its loudest channel");
    std::vector<Sample> alone(static_cast<size_t>(samples));
    for (int64_t c = 0; c < 4; ++c) {
        torchfx_dynamics_forward(dtype_of<Sample>, x.data() + c * samples, samples, 1, 1,
                                 loudest.data() + c % 2 * samples, samples, 1, 1, alone.data(), samples, 1, 1, 1, samples,
                                 settings.data(), 1, 1, nullptr, nullptr, 1);
        expect(std::equal(alone.begin(), alone.end(), y.begin() + c * samples), "channels of a group lie `inner` apart");
    }
}

// One channel, whose own peaks are limited, in two blocks.
template <class Sample>
void limiters_are_maxima_ballistics_and_mean() {
    for (const int64_t delay : {0, 1, 240, 2000}) {
        const int64_t samples = 3000, first = pick(1, samples - 1);
        const double threshold = 0.25, fall = 0.01;
        std::vector<Sample> z(static_cast<size_t>(delay)), y(static_cast<size_t>(samples));
        for (const double v : noises(samples)) z.push_back(static_cast<Sample>(v));
        const std::vector<double> settings = {threshold, fall};
        double state = 0;
        std::vector<double> ramp(static_cast<size_t>(delay));
        for (const int64_t start : {int64_t{0}, first}) {
            const int64_t count = start ? samples - first : first;
            const std::vector<Sample> past(z.begin() + start, z.begin() + start + delay);
            expect(torchfx_limiter_forward(dtype_of<Sample>, z.data() + start + delay, count, 1, 1, past.data(), delay,
                                           nullptr, 0, 0, 1, y.data() + start, count, 1, 1, 1, count, delay + 1, delay,
                                           settings.data(), 1, 1, &state, &state, ramp.data(), ramp.data(), 2) ==
                       TORCHFX_OK, "limiters are accepted");
        }
        std::vector<double> taken(static_cast<size_t>(delay));
        double r = 0, sum = 0;
        for (int64_t t = 0; t < samples; ++t) {
            const auto from = z.begin() + t;
            double peak = threshold;
            for (auto v = from; v <= from + delay; ++v) peak = std::max(peak, std::fabs(static_cast<double>(*v)));
            const double wanted = 1 - threshold / peak;
            r = wanted > r ? wanted : r + fall * (wanted - r);
            taken.push_back(r);
            sum += r - (t ? taken[static_cast<size_t>(t - 1)] : 0);  // the one that left the window
            const double expected = static_cast<double>(*from) * (1 - sum / static_cast<double>(delay + 1));
            expect(near(std::clamp(expected, -threshold, threshold), y[static_cast<size_t>(t)]),
                   "the limiter is maxima, ballistics and mean");
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
        return torchfx_dynamics_forward(TORCHFX_F64, x.data(), 8, 1, 1, nullptr, 0, 0, 1, y.data(), 8, channels, 1, 1, 8,
                                        settings.data(), rows, 1, nullptr, nullptr, threads);
    };
    expect(gain(0, 1, 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(gain(1, 2, 1) == TORCHFX_BAD_ARGUMENT, "a row without a channel is refused");
    expect(gain(1, 1, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(gain(1, 1, 1) == TORCHFX_NOT_FINITE, "settings that are not finite are refused");
    const double limits[] = {1, 0.1};
    double state = 0;
    expect(torchfx_limiter_forward(TORCHFX_F64, x.data(), 8, 1, 1, nullptr, 0, nullptr, 0, 0, 1, y.data(), 8, 1, 1, 1, 8, 2,
                                   0, limits, 1, 1, &state, &state, nullptr, nullptr, 1) == TORCHFX_BAD_ARGUMENT,
           "a limiter's own window is its delay");
    expect(torchfx_sliding_max(TORCHFX_F64, x.data(), 8, 1, y.data(), 8, 1, 8, 0, 1) == TORCHFX_BAD_ARGUMENT,
           "windows of no samples are refused");
    expect(std::count(y.begin(), y.end(), 7.0) == 8, "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        context = "float";
        detectors_are_the_recursion<float>();
        groups_share_the_gain_of_the_loudest<float>();
        limiters_are_maxima_ballistics_and_mean<float>();
        maxima_are_the_largest<float>();
        context = "double";
        detectors_are_the_recursion<double>();
        groups_share_the_gain_of_the_loudest<double>();
        limiters_are_maxima_ballistics_and_mean<double>();
        maxima_are_the_largest<double>();
    });
    what_does_not_fit_is_refused();
    return report();
}
