// Gains, delays and all-pass filters that swing with an oscillator, against their definitions.
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
constexpr long double pi = 3.14159265358979323846L;

size_t at(int64_t i) { return static_cast<size_t>(i); }

// Channels of a signal with their oscillators; some phases agree with the channel's before.
template <class Sample>
struct Case {
    Case(int64_t channels, int64_t samples, std::vector<double> settings, int64_t rows)
        : channels(channels), samples(samples), stride(pick(1, 2)), rows(rows), settings(std::move(settings)),
          phase(noises(channels)), y(at(channels * samples)) {
        for (int64_t i = 0; i < (channels * samples - 1) * stride + 1; ++i) x.push_back(static_cast<Sample>(noise()));
        for (double& each : phase) each = std::fabs(each);
        for (int64_t c = rows; c < channels; c += 2) phase[at(c)] = phase[at(c - rows)];
        before = phase;
    }
    const double* row(int64_t c) const {
        return settings.data() + c % rows * static_cast<int64_t>(settings.size()) / rows;
    }
    long double heard(int64_t c, int64_t t) const { return static_cast<long double>(x[at((c * samples + t) * stride)]); }
    long double turns(int64_t c, int64_t t) const {
        const long double all = static_cast<long double>(before[at(c)]) + static_cast<long double>(row(c)[0]) * t;
        return all - std::floor(all);
    }
    long double sine(int64_t c, int64_t t) const { return std::sin(2 * pi * turns(c, t)); }
    bool is(int64_t c, int64_t t, long double expected) const {
        const long double found = static_cast<long double>(y[at(c * samples + t)]);
        return std::fabs(found - expected) < (sizeof(Sample) == 4 ? 1e-6L : 1e-11L);
    }
    void expect_phases() const {
        for (int64_t c = 0; c < channels; ++c) {
            const long double off = std::fabs(static_cast<long double>(phase[at(c)]) - turns(c, samples));
            expect(std::min(off, 1 - off) < 1e-12L, "phases go on");
        }
    }

    int64_t channels, samples, stride, rows;
    std::vector<double> settings, phase, before;
    std::vector<Sample> x, y;
};

template <class Body>
void for_sizes(Body&& body) {
    for (const int64_t samples : {1, 17, 256, 257, 1025})
        for (const int64_t channels : {1, 3, 17})
            for (const int64_t rows : {1, 3})
                if (rows <= channels) body(channels, samples, rows);
}

template <class Sample>
void gains_are_the_definition() {
    for_sizes([](int64_t channels, int64_t samples, int64_t rows) {
        std::vector<double> settings = {0.31, 0.4, 0.5, 0.002, 0, 1, 0.49999, -1, 0.1};
        settings.resize(at(3 * rows));
        Case<Sample> of(channels, samples, settings, rows);
        expect(torchfx_modulated_gain_forward(dtype_of<Sample>, of.x.data(), samples * of.stride, of.stride, 1, of.y.data(),
                                              samples, channels, samples, of.settings.data(), rows, 1, of.phase.data(),
                                              of.phase.data(), 2) == TORCHFX_OK, "a gain is accepted");
        bool same = true;
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t t = 0; t < samples; ++t)
                same = same && of.is(c, t, of.heard(c, t) * (of.row(c)[1] + of.row(c)[2] * of.sine(c, t)));
        expect(same, "a gain is the definition");
        of.expect_phases();
    });
}

template <class Sample>
void delays_are_the_definition(double feedback) {
    const int64_t kept = 300;
    for_sizes([&](int64_t channels, int64_t samples, int64_t rows) {
        // The second reaches below the least delay and beyond what is kept, the third ends at a whole number.
        std::vector<double> settings = {0.013, 30, 7.3, 0.4, 0, 0.31, 150, 200, 1, 0, 0.07, 2.5, 0.5, 0.7, 0};
        for (int64_t row = 0; row < 3; ++row) settings[at(5 * row + 4)] = feedback * (1 - row);
        settings.resize(at(5 * rows));
        Case<Sample> of(channels, samples, settings, rows);
        std::vector<Sample> past;
        for (int64_t i = 0; i < channels * kept; ++i) past.push_back(static_cast<Sample>(noise()));
        std::vector<Sample> after(past.size());
        expect(torchfx_modulated_delay_forward(dtype_of<Sample>, of.x.data(), samples * of.stride, of.stride, 1, past.data(),
                                               after.data(), kept, of.y.data(), samples, channels, samples, of.settings.data(), rows, 1,
                                               of.phase.data(), of.phase.data(), 2) == TORCHFX_OK, "a delay is accepted");
        bool same = true, goes_on = true;
        for (int64_t c = 0; c < channels; ++c) {
            const double* own = of.row(c);
            std::vector<long double> line(past.begin() + c * kept, past.begin() + (c + 1) * kept);
            for (int64_t t = 0; t < samples; ++t) {
                line.push_back(of.heard(c, t));
                const auto heard = [&](int64_t place) { return line[at(kept + place)]; };
                const long double d = std::clamp<long double>(own[1] + own[2] * of.sine(c, t), TORCHFX_LEAST_DELAY,
                                                              kept - TORCHFX_LEAST_DELAY);
                const long double f = std::ceil(d) - d;
                const int64_t left = t - static_cast<int64_t>(std::ceil(d));
                const long double p = heard(left - 1), q = heard(left), r = heard(left + 1), s = heard(left + 2);
                const long double late =
                    q + f / 2 * (r - p + f * (2 * p - 5 * q + 4 * r - s + f * (3 * (q - r) + s - p)));
                same = same && of.is(c, t, (1 - own[3]) * of.heard(c, t) + own[3] * late);
                line.back() = static_cast<Sample>(line.back() + own[4] * late);
            }
            for (int64_t k = 0; k < kept; ++k)
                goes_on = goes_on && std::fabs(line[at(samples + k)] - after[at(c * kept + k)]) < (sizeof(Sample) == 4 ? 1e-5L : 1e-11L);
        }
        expect(same, "a delay is the definition");
        expect(goes_on, "a delay's line goes on");
        of.expect_phases();
    });
}

template <class Sample>
void phasers_are_the_definition(double feedback) {
    const int64_t stages = 7;
    for_sizes([&](int64_t channels, int64_t samples, int64_t rows) {
        std::vector<double> settings = {0.003, 0.03, 1, 0.5, 0, 0.31, 0.2, 3, 1, 0, 0, 0.001, 0, 0.3, 0};
        for (int64_t row = 0; row < 3; ++row) settings[at(5 * row + 4)] = feedback * (1 - row);
        settings.resize(at(5 * rows));
        Case<Sample> of(channels, samples, settings, rows);
        std::vector<double> state = noises(stages * channels), start = state;
        expect(torchfx_phaser_forward(dtype_of<Sample>, of.x.data(), samples * of.stride, of.stride, 1, of.y.data(), samples,
                                      channels, samples, stages, of.settings.data(), rows, 1, of.phase.data(),
                                      of.phase.data(), state.data(), state.data(), 2) == TORCHFX_OK, "a phaser is accepted");
        bool same = true, same_state = true;
        for (int64_t c = 0; c < channels; ++c) {
            const double* own = of.row(c);
            std::vector<long double> s;
            for (int64_t k = 0; k < stages; ++k) s.push_back(start[at(k * channels + c)]);
            for (int64_t t = 0; t < samples; ++t) {
                const long double corner = std::min(own[1] * std::exp2(own[2] * of.sine(c, t)), 0.49L);
                const long double w = std::tan(pi * corner), a = (w - 1) / (w + 1);
                long double through = own[4], rest = 0;
                for (const long double each : s) {
                    rest = a * rest + each;
                    through *= a;
                }
                long double v = (of.heard(c, t) + own[4] * rest) / (1 - through);
                for (long double& each : s) {
                    const long double y = a * v + each;
                    each = v - a * y;
                    v = y;
                }
                same = same && of.is(c, t, (1 - own[3]) * of.heard(c, t) + own[3] * v);
            }
            for (int64_t k = 0; k < stages; ++k)
                same_state = same_state && std::fabs(s[at(k)] - state[at(k * channels + c)]) < 1e-11L;
        }
        expect(same, "a phaser is the definition");
        expect(same_state, "filters go on");
        of.expect_phases();
    });
}

void what_does_not_fit_is_refused() {
    context = "arguments";
    const std::vector<double> x(8), past(8), settings = {0.1, 3, 1, std::numeric_limits<double>::quiet_NaN(), 0}, state(2);
    std::vector<double> y(8, 7.0), line(8), phase(1), after(2, 7.0);
    const auto gain = [&](const double* phase_in, int64_t rows) {
        return torchfx_modulated_gain_forward(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, 1, 8, settings.data(), rows, 1,
                                              phase_in, phase.data(), 1);
    };
    const auto delay = [&](int64_t kept) {
        return torchfx_modulated_delay_forward(TORCHFX_F64, x.data(), 8, 1, 1, past.data(), line.data(), kept, y.data(), 8, 1, 8,
                                               settings.data(), 1, 1, phase.data(), phase.data(), 1);
    };
    expect(gain(nullptr, 1) == TORCHFX_BAD_ARGUMENT, "a gain without a phase is refused");
    expect(gain(phase.data(), 2) == TORCHFX_BAD_ARGUMENT, "a row without a channel is refused");
    expect(delay(8) == TORCHFX_NOT_FINITE, "settings that are not finite are refused");
    const std::vector<double> finite = {0.1, 0.1, 1, 0.5, 0};
    expect(torchfx_modulated_delay_forward(TORCHFX_F64, x.data(), 8, 1, 1, past.data(), line.data(), 3, y.data(), 8, 1, 8,
                                           finite.data(), 1, 1, phase.data(), phase.data(), 1) == TORCHFX_BAD_ARGUMENT,
           "a past that is too short is refused");
    expect(torchfx_phaser_forward(TORCHFX_F64, x.data(), 8, 1, 1, y.data(), 8, 1, 8, 0, finite.data(), 1, 1, phase.data(),
                                  phase.data(), state.data(), after.data(), 1) == TORCHFX_BAD_ARGUMENT,
           "a phaser without filters is refused");
    expect(y == std::vector<double>(8, 7.0) && after == std::vector<double>(2, 7.0), "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        context = "float";
        gains_are_the_definition<float>();
        for (const double feedback : {0.0, 0.9}) {
            delays_are_the_definition<float>(feedback);
            phasers_are_the_definition<float>(feedback);
        }
        context = "double";
        gains_are_the_definition<double>();
        for (const double feedback : {0.0, 0.9}) {
            delays_are_the_definition<double>(feedback);
            phasers_are_the_definition<double>(feedback);
        }
    });
    what_does_not_fit_is_refused();
    return report();
}
