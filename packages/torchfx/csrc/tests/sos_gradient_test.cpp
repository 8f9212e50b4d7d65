// The recursive filter's gradients against long double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sos_reference.h"

using namespace testing;

namespace {

template <class Sample>
struct Gradients {
    std::vector<Sample> x;
    std::vector<double> sos, state;
};

struct Problem {
    int64_t channels, samples, x_repeat;
    Sos sos;
    std::vector<double> state_in, grad_state_out;
    std::vector<double> x, grad_y;  // (channels / x_repeat, samples), (channels, samples)
    std::size_t outputs() const { return static_cast<std::size_t>(channels * samples); }
};

Problem random_problem(int64_t channels, int64_t samples, Sos sos, int64_t x_repeat = 1) {
    const int64_t states = 2 * channels * sos.sections();
    return {channels, samples, x_repeat, std::move(sos), noises(states), noises(states),
            noises(channels / x_repeat * samples), noises(channels * samples)};
}

template <class A, class B>
double distance(const std::vector<A>& got, const std::vector<B>& expected) {
    Real worst = 0, largest = 1e-30L;
    for (std::size_t i = 0; i < got.size(); ++i) {
        worst = std::max<Real>(worst, std::fabs(Real(got[i]) - Real(expected[i])));
        largest = std::max<Real>(largest, std::fabs(Real(expected[i])));
    }
    return static_cast<double>(worst / largest);
}

template <class Sample>
constexpr int32_t dtype = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

// What a forward pass keeps, with other threads than the backward pass is going to have.
template <class Sample>
std::vector<double> record(const Problem& p, const std::vector<Sample>& x, int64_t threshold, int32_t threads) {
    const int64_t per_channel = (p.samples + TORCHFX_CHECKPOINT_STEPS - 1) / TORCHFX_CHECKPOINT_STEPS;
    std::vector<double> checkpoints(static_cast<std::size_t>(p.channels * per_channel * 2 * p.sos.sections()));
    std::vector<Sample> y(p.outputs()), expected(p.outputs());
    std::vector<double> after(p.state_in.size());
    expect(torchfx_sos_forward_recording(dtype<Sample>, x.data(), p.samples, 1, p.x_repeat, y.data(), p.samples,
                                         p.channels, p.samples, p.sos.values.data(), p.sos.sections(), p.sos.rows,
                                         p.sos.repeat, p.state_in.data(), after.data(), checkpoints.data(), threshold,
                                         threads + 1) == TORCHFX_OK, "recording");
    torchfx_sos_forward(dtype<Sample>, x.data(), p.samples, 1, p.x_repeat, expected.data(), p.samples, p.channels,
                        p.samples, p.sos.values.data(), p.sos.sections(), p.sos.rows, p.sos.repeat, p.state_in.data(),
                        nullptr, threshold, threads);
    expect(distance(y, expected) < 2e-7, "output while recording");
    return checkpoints;
}

template <class Sample>
Gradients<Sample> run(const Problem& p, int64_t threshold, int32_t threads, bool recorded) {
    const std::vector<Sample> x(p.x.begin(), p.x.end());
    std::vector<Sample> grad_y(p.grad_y.size());
    for (int64_t c = 0; c < p.channels; ++c)  // channels alternate, as in the gradient of interleaved audio
        for (int64_t t = 0; t < p.samples; ++t)
            grad_y[static_cast<std::size_t>(t * p.channels + c)] = static_cast<Sample>(p.grad_y[static_cast<std::size_t>(c * p.samples + t)]);
    Gradients<Sample> g{std::vector<Sample>(p.outputs()), std::vector<double>(p.sos.values.size()),
                        std::vector<double>(p.state_in.size())};
    const std::vector<double> checkpoints = recorded ? record(p, x, threshold, threads) : std::vector<double>();
    const int32_t status = torchfx_sos_backward(
        dtype<Sample>, x.data(), p.samples, 1, p.x_repeat, grad_y.data(), 1, p.channels, p.channels, p.samples,
        p.sos.values.data(), p.sos.sections(), p.sos.rows, p.sos.repeat, p.state_in.data(), p.grad_state_out.data(),
        recorded ? checkpoints.data() : nullptr, g.x.data(), p.samples, g.sos.data(), g.state.data(), threshold, threads);
    expect(status == TORCHFX_OK, "status");
    return g;
}

// Rows of `values`, each for `repeat` channels.
template <class Sample>
Signal rounded(const std::vector<double>& values, int64_t channels, int64_t samples, int64_t repeat = 1) {
    Signal signal(static_cast<std::size_t>(channels));
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < samples; ++t)
            signal[static_cast<std::size_t>(c)].push_back(static_cast<Sample>(values[static_cast<std::size_t>(c / repeat * samples + t)]));
    return signal;
}

// The part of row r, of `rows` in all.
template <class T>
std::vector<T> part(const std::vector<T>& all, int64_t r, int64_t rows) {
    const auto size = static_cast<std::ptrdiff_t>(all.size()) / rows;
    return {all.begin() + r * size, all.begin() + (r + 1) * size};
}

template <class Sample>
void equals_long_double(const Problem& p, int64_t threshold, int32_t threads) {
    const Signal x = rounded<Sample>(p.x, p.channels, p.samples, p.x_repeat);
    Signal grad = rounded<Sample>(p.grad_y, p.channels, p.samples);
    std::vector<Real> grad_state(p.grad_state_out.begin(), p.grad_state_out.end());
    const std::vector<Real> grad_sos =
        filter_gradient(p.sos, x, {p.state_in.begin(), p.state_in.end()}, grad, grad_state);
    std::vector<Real> grad_x;
    for (const auto& channel : grad) grad_x.insert(grad_x.end(), channel.begin(), channel.end());

    for (const bool recorded : {false, true}) {
        const Gradients<Sample> got = run<Sample>(p, threshold, threads, recorded);
        for (int64_t c = 0; c < p.channels; ++c)
            expect(distance(part(got.x, c, p.channels), part(grad_x, c, p.channels)) < (sizeof(Sample) == 4 ? 2e-7 : 1e-11),
                   "gradient of x");
        for (int64_t r = 0; r < p.sos.rows; ++r)
            expect(distance(part(got.sos, r, p.sos.rows), part(grad_sos, r, p.sos.rows)) < 1e-9, "gradient of sos");
        expect(distance(got.state, grad_state) < 1e-9, "gradient of the initial state");
    }
}

void ugly_sizes_equal_long_double() {
    for (const int64_t samples : {1, 5, 8, 127, 129, 1000, 2500})
        for (const int64_t channels : {1, 2, 5, 8, 11})
            for (const int64_t threshold : {int64_t{1}, std::numeric_limits<int64_t>::max()}) {
                const int64_t sections = pick(1, 9);
                context = std::string(torchfx_isa()) + " samples " + std::to_string(samples) + " channels " +
                          std::to_string(channels) + " sections " + std::to_string(sections);
                const Problem p = random_problem(channels, samples, random_sos(sections));
                equals_long_double<float>(p, threshold, static_cast<int32_t>(pick(1, 3)));
                equals_long_double<double>(p, threshold, static_cast<int32_t>(pick(1, 3)));
            }
}

// As many rows as channels; rows that repeat, in the middle too; several channels to a row of x.
void rows_equal_long_double() {
    struct Spread { int64_t rows, repeat, channels, x_repeat; };
    for (const Spread s : {Spread{2, 1, 2, 1}, {17, 1, 17, 1}, {3, 2, 12, 1}, {3, 2, 12, 2}, {4, 1, 12, 4}, {2, 3, 7, 1},
                           {3, 1, 3, 3}, {1, 4, 9, 9}})
        for (const int64_t samples : {1, 1025, 3001})
            for (const int64_t threshold : {int64_t{1}, std::numeric_limits<int64_t>::max()}) {
                context = std::string(torchfx_isa()) + " rows " + std::to_string(s.rows) + " repeat " +
                          std::to_string(s.repeat) + " channels " + std::to_string(s.channels) + " x_repeat " +
                          std::to_string(s.x_repeat) + " samples " + std::to_string(samples);
                std::vector<std::vector<double>> rows;
                for (int64_t r = 0; r < s.rows; ++r) rows.push_back(random_sos(5));
                const Problem p = random_problem(s.channels, samples, Sos(rows, s.repeat), s.x_repeat);
                equals_long_double<float>(p, threshold, static_cast<int32_t>(pick(1, 3)));
                equals_long_double<double>(p, threshold, static_cast<int32_t>(pick(1, 3)));
            }
}

// Filters that have nothing in common side by side, split by warm-up and by carried states.
void unlike_rows_equal_long_double() {
    for (const double slower : {2000.0 / 48000, 20.0 / 48000}) {
        context = "unlike rows, " + std::to_string(slower);
        const Sos sos({padded(first_order(10000.0 / 48000), 4), lowpass(8, slower)}, 1);
        const Problem p = random_problem(2, 1 << 15, sos);
        equals_long_double<float>(p, 1, 2);
        equals_long_double<double>(p, 1, 2);
        equals_long_double<float>(random_problem(12, 1025, sos), 1, 2);
    }
}

// A stage without b0 has no gain to take out, and gains may be too far apart to: in one row, beside others that have.
void any_gain_equals_long_double() {
    for (const double gain : {0.0, -1e-9, 1e-110}) {
        context = std::string(torchfx_isa()) + " gain " + std::to_string(gain);
        std::vector<double> sos = random_sos(3);
        if (gain == 0) sos[6] = 0;
        else for (int i = 0; i < 3; ++i) sos[6 + i] *= gain, sos[12 + i] /= gain;
        equals_long_double<float>(random_problem(2, 600, sos), 1, 2);
        equals_long_double<float>(random_problem(3, 600, Sos({random_sos(3), sos, random_sos(3)}, 1)), 1, 2);
    }
}

// A state such as the signal itself brings about, or from before a change of the coefficients.
void any_state_equals_long_double() {
    for (const double scale : {0.0, 1e-6, 1.0, 1e6}) {
        context = std::string(torchfx_isa()) + " state of scale " + std::to_string(scale);
        Problem p = random_problem(3, 1200, lowpass(4, 100.0 / 48000));
        for (double& s : p.state_in) s *= scale;
        equals_long_double<float>(p, 1, 2);
        // One row beside another whose signal is louder.
        Problem rows = random_problem(2, 1200, Sos({lowpass(4, 0.2), lowpass(4, 100.0 / 48000)}, 1));
        for (std::size_t i = 0; i < rows.state_in.size(); ++i)
            if (i % 4 >= 2) rows.state_in[i] *= scale;
        for (std::size_t i = 0; i < 1200; ++i) rows.x[i] *= 1e6;
        equals_long_double<float>(rows, 1, 2);
    }
}

// Split by warm-up (1 kHz) and by carried states (20 Hz).
void split_signals_equal_long_double() {
    for (const double cutoff : {1000.0 / 48000, 20.0 / 48000})
        for (const int64_t channels : {1, 3})
            for (const bool rest : {false, true}) {
                context = "split, cutoff " + std::to_string(cutoff) + " channels " + std::to_string(channels);
                Problem p = random_problem(channels, 20011, lowpass(6, cutoff));
                if (rest) std::fill(p.state_in.begin(), p.state_in.end(), 0.0);
                equals_long_double<float>(p, 1, 2);
                equals_long_double<double>(p, 1, 2);
            }
}

void what_is_not_wanted_is_not_needed() {
    context = "gradient of x alone";
    const Problem p = random_problem(2, 3000, lowpass(4, 0.02));
    const Gradients<double> all = run<double>(p, 1, 2, false);
    std::vector<double> alone(p.x.size());
    torchfx_sos_backward(TORCHFX_F64, nullptr, 0, 0, 1, p.grad_y.data(), p.samples, 1, p.channels, p.samples,
                         p.sos.values.data(), p.sos.sections(), 1, 1, nullptr, p.grad_state_out.data(), nullptr,
                         alone.data(), p.samples, nullptr, nullptr, 1, 2);
    expect(distance(alone, all.x) < 1e-12, "equals the one computed with the others");
}

void bad_arguments_write_nothing() {
    context = "bad arguments";
    const Problem p = random_problem(3, 100, lowpass(4, 0.02));
    const double untouched = 1234567;
    std::vector<double> grad_x(p.outputs(), untouched), grad_sos(p.sos.values.size(), untouched);
    const auto call = [&](const double* x, int64_t x_repeat, int64_t rows, int64_t repeat) {
        return torchfx_sos_backward(TORCHFX_F64, x, p.samples, 1, x_repeat, p.grad_y.data(), p.samples, 1, p.channels,
                                    p.samples, p.sos.values.data(), p.sos.sections(), rows, repeat, nullptr, nullptr,
                                    nullptr, grad_x.data(), p.samples, grad_sos.data(), nullptr, 1, 2);
    };
    expect(call(nullptr, 1, 1, 1) == TORCHFX_BAD_ARGUMENT, "gradients of sos need x");
    expect(call(p.x.data(), 0, 1, 1) == TORCHFX_BAD_ARGUMENT, "x_repeat");
    expect(call(p.x.data(), 2, 1, 1) == TORCHFX_BAD_ARGUMENT, "channels that x_repeat does not divide");
    expect(call(p.x.data(), 1, 0, 1) == TORCHFX_BAD_ARGUMENT, "sos_rows");
    expect(call(p.x.data(), 1, 1, 0) == TORCHFX_BAD_ARGUMENT, "sos_repeat");
    expect(grad_x == std::vector<double>(grad_x.size(), untouched), "grad_x is left alone");
    expect(grad_sos == std::vector<double>(grad_sos.size(), untouched), "grad_sos is left alone");
}

}  // namespace

int main() {
    with_every_isa(ugly_sizes_equal_long_double);
    with_every_isa(rows_equal_long_double);
    with_every_isa(any_gain_equals_long_double);
    with_every_isa(any_state_equals_long_double);
    split_signals_equal_long_double();
    unlike_rows_equal_long_double();
    what_is_not_wanted_is_not_needed();
    bad_arguments_write_nothing();
    return report();
}
