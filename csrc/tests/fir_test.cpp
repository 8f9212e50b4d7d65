// FIR filters and their gradients against plain sums in long double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

// A signal in memory: any strides and alignment, and space around it that nobody may write to.
template <class Sample>
class Signal {
public:
    Signal(int64_t channels, int64_t samples, int64_t time_stride, bool interleaved)
        : channels(channels), samples(samples),
          time_stride(interleaved ? channels * time_stride : time_stride),
          channel_stride(interleaved ? time_stride : samples * time_stride + pick(0, 9)), offset_(pick(8, 23)),
          memory_(static_cast<size_t>(offset_ + channels * this->channel_stride + samples * this->time_stride + 16), untouched) {}

    static Signal random(int64_t channels, int64_t samples) {
        Signal signal(channels, samples, pick(1, 3), pick(0, 3) == 0);
        if (pick(0, 1)) signal = Signal(channels, samples, 1, false);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t t = 0; t < samples; ++t) signal(c, t) = static_cast<Sample>(noise());
        return signal;
    }

    Sample& operator()(int64_t c, int64_t t) {
        return memory_[static_cast<size_t>(offset_ + c * channel_stride + t * time_stride)];
    }
    Sample* data() { return &(*this)(0, 0); }

    int64_t untouched_values() const {
        int64_t count = 0;
        for (Sample v : memory_) count += v == untouched;
        return count;
    }
    int64_t size() const { return static_cast<int64_t>(memory_.size()); }

    int64_t channels, samples, time_stride, channel_stride;

private:
    static constexpr Sample untouched = static_cast<Sample>(1234567);
    int64_t offset_;
    std::vector<Sample> memory_;
};

template <class Sample>
constexpr int32_t dtype_of = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;
template <class Sample>
constexpr double tolerance = sizeof(Sample) == 4 ? 1e-7 : 1e-13;

// The largest difference, relative to the largest value.
class Error {
public:
    void add(double value, long double truth) {
        worst_ = std::fmax(worst_, std::fabs(value - truth));
        if (std::isnan(value)) worst_ = std::numeric_limits<double>::infinity();
        peak_ = std::fmax(peak_, std::fabs(truth));
    }
    bool within(double tolerance) const { return worst_ <= tolerance * peak_; }

private:
    long double worst_ = 0, peak_ = 0;
};

// What x adds to output t of its channel, also beyond the block.
template <class Sample>
long double filtered(Signal<Sample>& x, int64_t c, int64_t t, const std::vector<double>& taps) {
    long double sum = 0;
    for (int64_t k = std::max<int64_t>(0, t - x.samples + 1); k <= std::min<int64_t>(t, taps.size() - 1); ++k)
        sum += static_cast<long double>(taps[static_cast<size_t>(k)]) * x(c, t - k);
    return sum;
}

template <class Sample>
int32_t forward(Signal<Sample>& x, Signal<Sample>& y, const std::vector<double>& taps, const double* state_in,
                double* state_out, int32_t threads) {
    return torchfx_fir_forward(dtype_of<Sample>, x.data(), x.channel_stride, x.time_stride, y.data(),
                               y.channel_stride, x.channels, x.samples, taps.data(),
                               static_cast<int64_t>(taps.size()), state_in, state_out, threads);
}

template <class Sample>
void equals_the_sum(int64_t channels, int64_t samples, int64_t n_taps, int32_t threads) {
    Signal<Sample> x = Signal<Sample>::random(channels, samples), y(channels, samples, 1, false);
    const std::vector<double> taps = noises(n_taps), start = noises(channels * (n_taps - 1));
    std::vector<double> state = start;
    const bool from_rest = pick(0, 2) == 0, state_wanted = pick(0, 2) != 0;
    std::vector<double> other(state.size());
    std::vector<double>& end = pick(0, 1) ? state : other;
    const int32_t status = forward(x, y, taps, from_rest ? nullptr : state.data(),
                                   state_wanted ? end.data() : nullptr, threads);
    expect(status == TORCHFX_OK, "forward accepts its arguments");
    expect(y.size() - y.untouched_values() == channels * samples, "forward writes the output and nothing else");
    Error error;
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < samples + (state_wanted ? n_taps - 1 : 0); ++t) {
            long double truth = filtered(x, c, t, taps);
            if (!from_rest && t < n_taps - 1) truth += start[static_cast<size_t>(c * (n_taps - 1) + t)];
            error.add(t < samples ? y(c, t) : end[static_cast<size_t>(c * (n_taps - 1) + t - samples)], truth);
        }
    expect(error.within(tolerance<Sample>), "output and state equal the sum");
}

template <class Sample>
void gradients_equal_the_sums(int64_t channels, int64_t samples, int64_t n_taps, int32_t threads) {
    Signal<Sample> x = Signal<Sample>::random(channels, samples), g = Signal<Sample>::random(channels, samples);
    Signal<Sample> grad_x(channels, samples, 1, false);
    const std::vector<double> taps = noises(n_taps), grad_state = noises(channels * (n_taps - 1));
    const bool with_state = pick(0, 1);
    const double* grad_state_out = with_state ? grad_state.data() : nullptr;
    std::vector<double> grad_state_in(grad_state.size()), grad_taps(taps.size());
    expect(torchfx_fir_backward_x(dtype_of<Sample>, g.data(), g.channel_stride, g.time_stride, grad_state_out,
                                  channels, samples, taps.data(), n_taps, grad_x.data(), grad_x.channel_stride,
                                  grad_state_in.data(), threads) == TORCHFX_OK,
           "backward_x accepts its arguments");
    expect(torchfx_fir_backward_taps(dtype_of<Sample>, g.data(), g.channel_stride, g.time_stride, grad_state_out,
                                     x.data(), x.channel_stride, x.time_stride, channels, samples, grad_taps.data(),
                                     n_taps, threads) == TORCHFX_OK,
           "backward_taps accepts its arguments");
    const auto grad_output = [&](int64_t c, int64_t t) -> long double {
        if (t < samples) return g(c, t);
        return with_state ? grad_state[static_cast<size_t>(c * (n_taps - 1) + t - samples)] : 0;
    };
    Error error_x, error_state, error_taps;
    std::vector<long double> true_taps(taps.size());
    for (int64_t c = 0; c < channels; ++c) {
        for (int64_t t = 0; t < samples; ++t) {
            long double true_x = 0;
            for (int64_t k = 0; k < n_taps && (with_state || t + k < samples); ++k) {
                true_x += taps[static_cast<size_t>(k)] * grad_output(c, t + k);
                true_taps[static_cast<size_t>(k)] += x(c, t) * grad_output(c, t + k);
            }
            error_x.add(grad_x(c, t), true_x);
        }
        for (int64_t j = 0; j < n_taps - 1; ++j)
            error_state.add(grad_state_in[static_cast<size_t>(c * (n_taps - 1) + j)], grad_output(c, j));
    }
    for (size_t k = 0; k < taps.size(); ++k) error_taps.add(grad_taps[k], true_taps[k]);
    expect(error_x.within(tolerance<Sample>), "grad_x equals the sum");
    expect(error_state.within(0), "grad_state_in is the gradient of the first outputs");
    expect(error_taps.within(1e-12), "grad_taps equals the sum");
}

template <class Sample>
void try_case(int64_t channels, int64_t samples, int64_t n_taps, int32_t threads) {
    context = std::string(torchfx_isa()) + (sizeof(Sample) == 4 ? ", float32, " : ", float64, ") +
              std::to_string(channels) + " channels of " + std::to_string(samples) + " samples, " +
              std::to_string(n_taps) + " taps, " + std::to_string(threads) + " threads";
    equals_the_sum<Sample>(channels, samples, n_taps, threads);
    gradients_equal_the_sums<Sample>(channels, samples, n_taps, threads);
}

void ugly_sizes_equal_the_sum() {
    constexpr int64_t lengths[] = {1, 2, 3, 7, 8, 9, 31, 33, 64, 101, 255, 257, 511, 1023, 1025, 4095};
    for (int64_t samples : lengths)
        for (int64_t n_taps : lengths) {
            if (samples * n_taps > 1100000) continue;
            const int32_t threads = static_cast<int32_t>(pick(1, 3));
            if (pick(0, 1)) try_case<float>(pick(1, 3), samples, n_taps, threads);
            else try_case<double>(pick(1, 3), samples, n_taps, threads);
        }
    for (int i = 0; i < 100; ++i) try_case<double>(pick(1, 5), pick(1, 3000), pick(1, 300), 2);
}

// Transforms larger than a cache, which threads share.
void long_filters_equal_the_sum() {
    try_case<float>(1, 20011, 9001, 2);
    try_case<double>(2, 3001, 20011, 3);
}

// Short blocks of many channels, whose state goes on, are filtered side by side.
void many_short_blocks_share_threads() { try_case<float>(200, 60, 200, 3); }

void blocks_equal_the_whole() {
    for (int64_t n_taps : {1, 5, 101, 700}) {
        context = "blocks, " + std::to_string(n_taps) + " taps";
        const int64_t samples = 6000;
        Signal<double> x = Signal<double>::random(2, samples), whole(2, samples, 1, false), parts(2, samples, 1, false);
        const std::vector<double> taps = noises(n_taps);
        std::vector<double> state(static_cast<size_t>(2 * (n_taps - 1)));
        forward(x, whole, taps, nullptr, nullptr, 1);
        for (int64_t t = 0, block; t < samples; t += block) {
            block = std::min(samples - t, pick(1, 900));
            torchfx_fir_forward(TORCHFX_F64, &x(0, t), x.channel_stride, x.time_stride, &parts(0, t),
                                parts.channel_stride, 2, block, taps.data(), n_taps, state.data(), state.data(), 1);
        }
        Error error;
        for (int64_t c = 0; c < 2; ++c)
            for (int64_t t = 0; t < samples; ++t) error.add(parts(c, t), whole(c, t));
        expect(error.within(1e-13), "blocks equal the whole");
    }
}

// NaNs and infinities reach exactly the outputs that a direct sum takes them to.
void a_nan_stays_where_it_belongs() {
    for (int64_t n_taps : {3, 40, 400, 2000})
        for (int64_t samples : {300, 6000}) {
            context = "NaN, " + std::to_string(n_taps) + " taps, " + std::to_string(samples) + " samples";
            Signal<float> x = Signal<float>::random(3, samples), y(3, samples, 1, false);
            std::vector<double> taps = noises(n_taps), state(static_cast<size_t>(3 * (n_taps - 1)));
            taps[1] = 0;
            x(1, samples / 2) = std::numeric_limits<float>::quiet_NaN();
            x(1, samples / 3) = std::numeric_limits<float>::infinity();
            x(2, samples / 2) = -std::numeric_limits<float>::infinity();
            forward(x, y, taps, nullptr, state.data(), 2);
            bool same = true;
            for (int64_t c = 0; c < 3; ++c)
                for (int64_t t = 0; t < samples + n_taps - 1; ++t) {
                    const long double truth = filtered(x, c, t, taps);
                    const double got = t < samples ? y(c, t)
                                                   : state[static_cast<size_t>(c * (n_taps - 1) + t - samples)];
                    same = same && (std::isfinite(truth) ? std::fabs(got - truth) < 1e-4
                                                         : std::isnan(truth) ? std::isnan(got) : got == truth);
                }
            expect(same, "a NaN or an infinity acts as in the direct sum");
        }
}

// 100 dB below the input, float32 results still hold seven digits.
void attenuating_filters_stay_exact() {
    context = "binomial highpass on a slow sine";
    const int64_t samples = 20000;
    Signal<float> x(1, samples, 1, false), y(1, samples, 1, false);
    for (int64_t t = 0; t < samples; ++t) x(0, t) = static_cast<float>(std::sin(0.14 * static_cast<double>(t)));
    std::vector<double> taps(301);
    taps[0] = 1;
    for (int order = 0; order < 6; ++order)
        for (size_t k = 300; k > 0; --k) taps[k] -= taps[k - 1];
    for (double& tap : taps) tap += 1e-30;  // long enough for an FFT
    forward(x, y, taps, nullptr, nullptr, 2);
    Error error;
    for (int64_t t = 400; t < samples; ++t) error.add(y(0, t), filtered(x, 0, t, taps));
    expect(error.within(1e-7), "float32 results are exact to the last digit");
}

void bad_arguments_write_nothing() {
    context = "bad arguments";
    Signal<float> x = Signal<float>::random(1, 50), y(1, 50, 1, false);
    std::vector<double> taps = noises(4);
    taps[2] = std::numeric_limits<double>::infinity();
    expect(forward(x, y, taps, nullptr, nullptr, 1) == TORCHFX_NOT_FINITE, "infinite taps are refused");
    taps[2] = 0;
    expect(forward(x, y, taps, nullptr, nullptr, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(torchfx_fir_forward(7, x.data(), 50, 1, y.data(), 50, 1, 50, taps.data(), 4, nullptr, nullptr, 1) ==
               TORCHFX_BAD_ARGUMENT, "unknown dtypes are refused");
    expect(torchfx_fir_forward(TORCHFX_F32, x.data(), 50, 1, y.data(), 50, 1, 50, taps.data(), 0, nullptr, nullptr, 1) ==
               TORCHFX_BAD_ARGUMENT, "no taps are refused");
    expect(y.untouched_values() == y.size(), "a refused call writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        ugly_sizes_equal_the_sum();
        a_nan_stays_where_it_belongs();
    });
    long_filters_equal_the_sum();
    blocks_equal_the_whole();
    attenuating_filters_stay_exact();
    many_short_blocks_share_threads();
    bad_arguments_write_nothing();
    return report();
}
