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
    int64_t channels, samples;
    std::vector<double> sos, state_in, grad_state_out;
    std::vector<double> x, grad_y;  // (channels, samples)
    int64_t sections() const { return static_cast<int64_t>(sos.size() / 6); }
};

Problem random_problem(int64_t channels, int64_t samples, std::vector<double> sos) {
    const int64_t states = 2 * channels * static_cast<int64_t>(sos.size() / 6);
    return {channels, samples, std::move(sos), noises(states), noises(states), noises(channels * samples), noises(channels * samples)};
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
    std::vector<double> checkpoints(static_cast<std::size_t>(p.channels * per_channel * 2 * p.sections()));
    std::vector<Sample> y(x.size()), expected(x.size());
    std::vector<double> after(p.state_in.size());
    expect(torchfx_sos_forward_recording(dtype<Sample>, x.data(), p.samples, 1, y.data(), p.samples, p.channels, p.samples,
                                         p.sos.data(), p.sections(), p.state_in.data(), after.data(), checkpoints.data(),
                                         threshold, threads + 1) == TORCHFX_OK, "recording");
    torchfx_sos_forward(dtype<Sample>, x.data(), p.samples, 1, expected.data(), p.samples, p.channels, p.samples,
                        p.sos.data(), p.sections(), p.state_in.data(), nullptr, threshold, threads);
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
    Gradients<Sample> g{std::vector<Sample>(x.size()), std::vector<double>(p.sos.size()), std::vector<double>(p.state_in.size())};
    const std::vector<double> checkpoints = recorded ? record(p, x, threshold, threads) : std::vector<double>();
    const int32_t status = torchfx_sos_backward(
        dtype<Sample>, x.data(), p.samples, 1, grad_y.data(), 1, p.channels, p.channels, p.samples, p.sos.data(),
        p.sections(), p.state_in.data(), p.grad_state_out.data(), recorded ? checkpoints.data() : nullptr, g.x.data(),
        p.samples, g.sos.data(), g.state.data(), threshold, threads);
    expect(status == TORCHFX_OK, "status");
    return g;
}

template <class Sample>
Signal rounded(const std::vector<double>& values, int64_t channels, int64_t samples) {
    Signal signal(static_cast<std::size_t>(channels));
    for (int64_t i = 0; i < channels * samples; ++i)
        signal[static_cast<std::size_t>(i / samples)].push_back(static_cast<Sample>(values[static_cast<std::size_t>(i)]));
    return signal;
}

template <class Sample>
void equals_long_double(const Problem& p, int64_t threshold, int32_t threads) {
    const Signal x = rounded<Sample>(p.x, p.channels, p.samples);
    Signal grad = rounded<Sample>(p.grad_y, p.channels, p.samples);
    std::vector<Real> grad_state(p.grad_state_out.begin(), p.grad_state_out.end());
    const std::vector<Real> grad_sos =
        filter_gradient(p.sos, x, {p.state_in.begin(), p.state_in.end()}, grad, grad_state);
    std::vector<Real> grad_x;
    for (const auto& channel : grad) grad_x.insert(grad_x.end(), channel.begin(), channel.end());

    for (const bool recorded : {false, true}) {
        const Gradients<Sample> got = run<Sample>(p, threshold, threads, recorded);
        expect(distance(got.x, grad_x) < (sizeof(Sample) == 4 ? 2e-7 : 1e-11), "gradient of x");
        expect(distance(got.sos, grad_sos) < 1e-9, "gradient of sos");
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

// A stage without b0 has no gain to take out, and gains may be too far apart to.
void any_gain_equals_long_double() {
    for (const double gain : {0.0, -1e-9, 1e-110}) {
        context = std::string(torchfx_isa()) + " gain " + std::to_string(gain);
        std::vector<double> sos = random_sos(3);
        if (gain == 0) sos[6] = 0;
        else for (int i = 0; i < 3; ++i) sos[6 + i] *= gain, sos[12 + i] /= gain;
        const Problem p = random_problem(2, 600, sos);
        equals_long_double<float>(p, 1, 2);
    }
}

// A state such as the signal itself brings about, or from before a change of the coefficients.
void any_state_equals_long_double() {
    for (const double scale : {0.0, 1e-6, 1.0, 1e6}) {
        context = std::string(torchfx_isa()) + " state of scale " + std::to_string(scale);
        Problem p = random_problem(3, 1200, lowpass(4, 100.0 / 48000));
        for (double& s : p.state_in) s *= scale;
        equals_long_double<float>(p, 1, 2);
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
    torchfx_sos_backward(TORCHFX_F64, nullptr, 0, 0, p.grad_y.data(), p.samples, 1, p.channels, p.samples, p.sos.data(),
                         p.sections(), nullptr, p.grad_state_out.data(), nullptr, alone.data(), p.samples, nullptr, nullptr, 1, 2);
    expect(distance(alone, all.x) < 1e-12, "equals the one computed with the others");
    std::vector<double> sos(p.sos.size());
    expect(torchfx_sos_backward(TORCHFX_F64, nullptr, 0, 0, p.grad_y.data(), p.samples, 1, p.channels, p.samples,
                                p.sos.data(), p.sections(), nullptr, nullptr, nullptr, nullptr, 0, sos.data(), nullptr, 1,
                                2) == TORCHFX_BAD_ARGUMENT, "gradients of sos need x");
}

}  // namespace

int main() {
    with_every_isa(ugly_sizes_equal_long_double);
    with_every_isa(any_gain_equals_long_double);
    with_every_isa(any_state_equals_long_double);
    split_signals_equal_long_double();
    what_is_not_wanted_is_not_needed();
    return report();
}
