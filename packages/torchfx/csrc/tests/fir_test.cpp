// FIR filters and their gradients against plain sums in long double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "support/subnormals.h"
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

// Taps (rows, count): channel c has row c / repeat % rows.
struct Taps {
    static Taps random(int64_t count, int64_t rows = 1, int64_t repeat = 1) {
        return {count, rows, repeat, noises(rows * count)};
    }
    double& operator()(int64_t c, int64_t k) { return values[static_cast<size_t>(row(c) * count + k)]; }
    const double& operator()(int64_t c, int64_t k) const { return values[static_cast<size_t>(row(c) * count + k)]; }
    int64_t row(int64_t c) const { return c / repeat % rows; }

    int64_t count, rows, repeat;
    std::vector<double> values;
};

// What x adds to output t of channel c, also beyond the block. Sums in long double take a hundred times longer over NaNs.
template <class Sum = long double, class Sample>
Sum filtered(Signal<Sample>& x, int64_t x_repeat, int64_t c, int64_t t, const Taps& taps) {
    const int64_t first = std::max<int64_t>(0, t - x.samples + 1), end = std::min<int64_t>(t + 1, taps.count);
    return dot<Sum>(&taps(c, first), 1, &x(c / x_repeat, t - first), -x.time_stride, end - first);
}

template <class Sample>
int32_t forward(Signal<Sample>& x, int64_t x_repeat, Signal<Sample>& y, const Taps& taps, const double* state_in,
                double* state_out, int32_t threads) {
    return torchfx_fir_forward(dtype_of<Sample>, x.data(), x.channel_stride, x.time_stride, x_repeat, y.data(),
                               y.channel_stride, y.channels, x.samples, taps.values.data(), taps.count, taps.rows,
                               taps.repeat, state_in, state_out, threads);
}

struct Case {
    int64_t channels, samples, n_taps;
    int64_t tap_rows = 1, tap_repeat = 1, x_repeat = 1;
    int32_t threads = 2;
};

template <class Sample>
void equals_the_sum(const Case& t) {
    Signal<Sample> x = Signal<Sample>::random(t.channels / t.x_repeat, t.samples), y(t.channels, t.samples, 1, false);
    const Taps taps = Taps::random(t.n_taps, t.tap_rows, t.tap_repeat);
    const std::vector<double> start = noises(t.channels * (t.n_taps - 1));
    std::vector<double> state = start;
    const bool from_rest = pick(0, 2) == 0, state_wanted = pick(0, 2) != 0;
    std::vector<double> other(state.size());
    std::vector<double>& end = pick(0, 1) ? state : other;
    const int32_t status = forward(x, t.x_repeat, y, taps, from_rest ? nullptr : state.data(),
                                   state_wanted ? end.data() : nullptr, t.threads);
    expect(status == TORCHFX_OK, "forward accepts its arguments");
    expect(y.size() - y.untouched_values() == t.channels * t.samples, "forward writes the output and nothing else");
    Error error;
    for (int64_t c = 0; c < t.channels; ++c)
        for (int64_t i = 0; i < t.samples + (state_wanted ? t.n_taps - 1 : 0); ++i) {
            long double truth = filtered(x, t.x_repeat, c, i, taps);
            if (!from_rest && i < t.n_taps - 1) truth += start[static_cast<size_t>(c * (t.n_taps - 1) + i)];
            error.add(i < t.samples ? y(c, i) : end[static_cast<size_t>(c * (t.n_taps - 1) + i - t.samples)], truth);
        }
    expect(error.within(tolerance<Sample>), "output and state equal the sum");
}

template <class Sample>
void gradients_equal_the_sums(const Case& t) {
    Signal<Sample> x = Signal<Sample>::random(t.channels / t.x_repeat, t.samples);
    Signal<Sample> g = Signal<Sample>::random(t.channels, t.samples);
    Signal<Sample> grad_x(t.channels, t.samples, 1, false);
    const Taps taps = Taps::random(t.n_taps, t.tap_rows, t.tap_repeat);
    const std::vector<double> grad_state = noises(t.channels * (t.n_taps - 1));
    const bool with_state = pick(0, 1);
    const double* grad_state_out = with_state ? grad_state.data() : nullptr;
    std::vector<double> grad_state_in(grad_state.size());
    Taps grad_taps = taps;
    expect(torchfx_fir_backward_x(dtype_of<Sample>, g.data(), g.channel_stride, g.time_stride, grad_state_out,
                                  t.channels, t.samples, taps.values.data(), t.n_taps, t.tap_rows, t.tap_repeat,
                                  grad_x.data(), grad_x.channel_stride, grad_state_in.data(), t.threads) == TORCHFX_OK,
           "backward_x accepts its arguments");
    expect(torchfx_fir_backward_taps(dtype_of<Sample>, g.data(), g.channel_stride, g.time_stride, grad_state_out,
                                     x.data(), x.channel_stride, x.time_stride, t.x_repeat, t.channels, t.samples,
                                     grad_taps.values.data(), t.n_taps, t.tap_rows, t.tap_repeat, t.threads) == TORCHFX_OK,
           "backward_taps accepts its arguments");
    Error error_x, error_state, error_taps;
    std::vector<long double> true_taps(taps.values.size());
    for (int64_t c = 0; c < t.channels; ++c) {
        std::vector<double> grad_output;  // of the block and, behind it, of the state
        for (int64_t i = 0; i < t.samples; ++i) grad_output.push_back(g(c, i));
        for (int64_t j = 0; j < t.n_taps - 1; ++j)
            grad_output.push_back(with_state ? grad_state[static_cast<size_t>(c * (t.n_taps - 1) + j)] : 0);
        for (int64_t i = 0; i < t.samples; ++i)
            error_x.add(grad_x(c, i), dot<long double>(&taps(c, 0), 1, &grad_output[static_cast<size_t>(i)], 1, t.n_taps));
        for (int64_t k = 0; k < t.n_taps; ++k)
            true_taps[static_cast<size_t>(taps.row(c) * t.n_taps + k)] += dot<long double>(
                &x(c / t.x_repeat, 0), x.time_stride, &grad_output[static_cast<size_t>(k)], 1, t.samples);
        for (int64_t j = 0; j < t.n_taps - 1; ++j)
            error_state.add(grad_state_in[static_cast<size_t>(c * (t.n_taps - 1) + j)], grad_output[static_cast<size_t>(j)]);
    }
    for (size_t k = 0; k < true_taps.size(); ++k) error_taps.add(grad_taps.values[k], true_taps[k]);
    expect(error_x.within(tolerance<Sample>), "grad_x equals the sum");
    expect(error_state.within(0), "grad_state_in is the gradient of the first outputs");
    expect(error_taps.within(1e-12), "grad_taps equals the sum");
}

template <class Sample>
void try_case(const Case& t) {
    context = std::string(torchfx_isa()) + (sizeof(Sample) == 4 ? ", float32, " : ", float64, ") +
              std::to_string(t.channels) + " channels of " + std::to_string(t.samples) + " samples, " +
              std::to_string(t.tap_rows) + " rows of " + std::to_string(t.n_taps) + " taps repeated " +
              std::to_string(t.tap_repeat) + " times, signals " + std::to_string(t.x_repeat) + " times, " +
              std::to_string(t.threads) + " threads";
    equals_the_sum<Sample>(t);
    gradients_equal_the_sums<Sample>(t);
}

void ugly_sizes_equal_the_sum() {
    constexpr int64_t lengths[] = {1, 2, 3, 7, 8, 9, 31, 33, 64, 101, 255, 257, 511, 1023, 1025, 4095};
    for (int64_t samples : lengths)
        for (int64_t n_taps : lengths) {
            if (samples * n_taps > 1100000) continue;
            const Case t = {pick(1, 3), samples, n_taps, 1, pick(1, 3), 1, static_cast<int32_t>(pick(1, 3))};
            if (pick(0, 1)) try_case<float>(t);
            else try_case<double>(t);
        }
    for (int i = 0; i < 100; ++i) try_case<double>({pick(1, 5), pick(1, 3000), pick(1, 300)});
}

// Direct sums, transforms of one cache, blocks shorter than the taps, channels that fill the rows unevenly.
void rows_of_taps_equal_the_sum() {
    constexpr int64_t batches[][4] = {  // channels, tap_rows, tap_repeat, x_repeat
        {2, 2, 1, 1}, {2, 2, 1, 2}, {12, 3, 2, 1}, {12, 3, 4, 3}, {12, 12, 1, 12}, {17, 17, 1, 1}, {17, 3, 2, 1}, {17, 5, 4, 17}};
    for (const auto& [channels, tap_rows, tap_repeat, x_repeat] : batches)
        for (int64_t samples : {1, 60, 1025})
            for (int64_t n_taps : {1, 2, 101, 300}) {
                const int32_t threads = static_cast<int32_t>(pick(1, 4));
                const Case t = {channels, samples, n_taps, tap_rows, tap_repeat, x_repeat, threads};
                if (pick(0, 1)) try_case<float>(t);
                else try_case<double>(t);
            }
    try_case<float>({17, 65, 5000, 17, 1, 1, 2});
    try_case<double>({3, 1025, 5000, 3, 1, 1, 2});
    try_case<double>({4, 6000, 511, 2, 2, 2, 3});
}

// Transforms larger than a cache, which threads share.
void long_filters_equal_the_sum() {
    try_case<float>({1, 20011, 9001});
    try_case<double>({2, 3001, 20011, 1, 1, 1, 3});
}

// Each row is what a call with its taps alone gives.
void rows_of_long_taps_equal_single_calls() {
    context = "rows of long taps";
    const int64_t samples = 40000, n_taps = 9001;
    Signal<double> x = Signal<double>::random(1, samples), g = Signal<double>::random(2, samples);
    Signal<double> y(2, samples, 1, false), grad_x(2, samples, 1, false), one(1, samples, 1, false);
    const Taps taps = Taps::random(n_taps, 2);
    Taps grad_taps = taps;
    std::vector<double> one_grad(static_cast<size_t>(n_taps));
    forward(x, 2, y, taps, nullptr, nullptr, 2);
    torchfx_fir_backward_x(TORCHFX_F64, g.data(), g.channel_stride, g.time_stride, nullptr, 2, samples,
                           taps.values.data(), n_taps, 2, 1, grad_x.data(), grad_x.channel_stride, nullptr, 2);
    torchfx_fir_backward_taps(TORCHFX_F64, g.data(), g.channel_stride, g.time_stride, nullptr, x.data(), x.channel_stride,
                              x.time_stride, 2, 2, samples, grad_taps.values.data(), n_taps, 2, 1, 2);
    Error error_y, error_x, error_taps;
    for (int64_t c = 0; c < 2; ++c) {
        torchfx_fir_forward(TORCHFX_F64, x.data(), 0, x.time_stride, 1, one.data(), 0, 1, samples, &taps(c, 0), n_taps, 1, 1,
                            nullptr, nullptr, 1);
        for (int64_t t = 0; t < samples; ++t) error_y.add(y(c, t), one(0, t));
        torchfx_fir_backward_x(TORCHFX_F64, &g(c, 0), 0, g.time_stride, nullptr, 1, samples, &taps(c, 0), n_taps, 1, 1,
                               one.data(), 0, nullptr, 1);
        for (int64_t t = 0; t < samples; ++t) error_x.add(grad_x(c, t), one(0, t));
        torchfx_fir_backward_taps(TORCHFX_F64, &g(c, 0), 0, g.time_stride, nullptr, x.data(), 0, x.time_stride, 1, 1, samples,
                                  one_grad.data(), n_taps, 1, 1, 1);
        for (int64_t k = 0; k < n_taps; ++k) error_taps.add(grad_taps(c, k), one_grad[static_cast<size_t>(k)]);
    }
    expect(error_y.within(1e-13), "outputs equal those of single calls");
    expect(error_x.within(1e-13), "gradients equal those of single calls");
    expect(error_taps.within(1e-13), "gradients of taps equal those of single calls");
}

// Short blocks of many channels, whose state goes on, are filtered side by side.
void many_short_blocks_share_threads() { try_case<float>({200, 60, 200, 1, 1, 1, 3}); }

void blocks_equal_the_whole() {
    for (int64_t n_taps : {1, 5, 101, 700}) {
        context = "blocks, " + std::to_string(n_taps) + " taps";
        const int64_t samples = 6000;
        Signal<double> x = Signal<double>::random(2, samples), whole(2, samples, 1, false), parts(2, samples, 1, false);
        const Taps taps = Taps::random(n_taps, 2);
        std::vector<double> state(static_cast<size_t>(2 * (n_taps - 1)));
        forward(x, 1, whole, taps, nullptr, nullptr, 1);
        for (int64_t t = 0, block; t < samples; t += block) {
            block = std::min(samples - t, pick(1, 900));
            torchfx_fir_forward(TORCHFX_F64, &x(0, t), x.channel_stride, x.time_stride, 1, &parts(0, t),
                                parts.channel_stride, 2, block, taps.values.data(), n_taps, 2, 1, state.data(),
                                state.data(), 1);
        }
        Error error;
        for (int64_t c = 0; c < 2; ++c)
            for (int64_t t = 0; t < samples; ++t) error.add(parts(c, t), whole(c, t));
        expect(error.within(1e-13), "blocks equal the whole");
    }
}

constexpr double infinity = std::numeric_limits<double>::infinity();

// Which samples are not finite.
enum class Damage { one_of_each, infinities_of_one_sign, one_in_a_hundred, infinite, nan };
constexpr Damage all_damages[] = {Damage::one_of_each, Damage::infinities_of_one_sign, Damage::one_in_a_hundred,
                                  Damage::infinite, Damage::nan};

template <class Sample>
void damage(Signal<Sample>& x, Damage kind) {
    const Sample inf = static_cast<Sample>(infinity), nan = static_cast<Sample>(std::nan(""));
    for (int64_t c = 0; c < x.channels; ++c) {
        if (kind == Damage::one_of_each && c + 1 < x.channels) {
            x(c, x.samples / 2) = c % 2 ? nan : -inf;
            x(c, x.samples / 3) = inf;
        }
        for (int64_t t = 0; t < x.samples; ++t) {
            if (kind == Damage::infinities_of_one_sign && pick(0, 99) == 0) x(c, t) = c % 2 ? inf : -inf;
            if (kind == Damage::one_in_a_hundred && pick(0, 99) == 0) x(c, t) = pick(0, 3) ? (pick(0, 1) ? inf : -inf) : nan;
            if (kind == Damage::infinite) x(c, t) = inf;
            if (kind == Damage::nan) x(c, t) = nan;
        }
    }
}

bool same(double found, double truth, double tolerance) {
    if (std::isfinite(truth)) return std::fabs(found - truth) < tolerance;
    return std::isnan(truth) ? std::isnan(found) : found == truth;
}

// Taps of one sign let infinities of one sign through; those with zeros turn them into NaNs.
Taps taps_for_damage(int64_t n_taps, int64_t rows) {
    Taps taps = Taps::random(n_taps, rows);
    for (int64_t row = 0; row < rows; ++row)
        for (int64_t k = 0; k < n_taps; ++k) {
            if (row % 3 != 1) taps(row, k) = std::fabs(taps(row, k)) + 1e-3;
            if (row % 3 == 2 && k % 50 == 1) taps(row, k) = 0;
        }
    return taps;
}

void a_nan_or_an_infinity_acts_as_in_the_direct_sum() {
    for (int64_t n_taps : {3, 40, 400, 2000})
        for (int64_t samples : {3, 300, 4000})
            for (Damage kind : all_damages) {
                context = "damage " + std::to_string(static_cast<int>(kind)) + ", " + std::to_string(n_taps) + " taps, " +
                          std::to_string(samples) + " samples";
                Signal<float> x = Signal<float>::random(3, samples), y(3, samples, 1, false), grad_x(3, samples, 1, false);
                damage(x, kind);
                const Taps taps = taps_for_damage(n_taps, 3);
                std::vector<double> state = noises(3 * (n_taps - 1)), start = state;
                if (n_taps > 9) start[7] = state[7] = -infinity;
                expect(forward(x, 1, y, taps, state.data(), state.data(), 2) == TORCHFX_OK, "damage is accepted");
                torchfx_fir_backward_x(TORCHFX_F32, x.data(), x.channel_stride, x.time_stride, start.data(), 3, samples,
                                       taps.values.data(), n_taps, 3, 1, grad_x.data(), grad_x.channel_stride, nullptr, 2);
                bool forward_same = true, backward_same = true;
                for (int64_t c = 0; c < 3; ++c) {
                    const double* before = start.data() + c * (n_taps - 1);
                    for (int64_t t = 0; t < samples + n_taps - 1; ++t) {
                        double truth = filtered<double>(x, 1, c, t, taps);
                        if (t < n_taps - 1) truth += before[t];
                        const double found = t < samples ? y(c, t) : state[static_cast<size_t>(c * (n_taps - 1) + t - samples)];
                        forward_same = forward_same && same(found, truth, 1e-4);
                    }
                    for (int64_t t = 0; t < samples; ++t) {
                        const int64_t inside = std::min(n_taps, samples - t);
                        double truth = dot<double>(&taps(c, 0), 1, &x(c, t), x.time_stride, inside);
                        if (inside < n_taps) truth += dot<double>(&taps(c, inside), 1, before + t + inside - samples, 1, n_taps - inside);
                        backward_same = backward_same && same(grad_x(c, t), truth, 1e-4);
                    }
                }
                expect(forward_same, "damage acts as in the direct sum");
                expect(backward_same, "damage acts on the gradient as in the direct sum");
            }
}

// Above 2^15 results the damage is added in steps, which threads share.
void damage_is_added_across_steps() {
    context = "steps of damage";
    const int64_t samples = 100000, n_taps = 301;
    Signal<double> x = Signal<double>::random(2, samples), y(2, samples, 1, false);
    for (int64_t t : {32700, 32768, 65536, 90000}) x(1, t) = t == 65536 ? std::nan("") : infinity;
    Taps taps = Taps::random(n_taps);
    for (double& tap : taps.values) tap = -std::fabs(tap) - 1e-3;
    forward(x, 1, y, taps, nullptr, nullptr, 2);
    bool all_same = true;
    for (int64_t c = 0; c < 2; ++c)
        for (int64_t t = 0; t < samples; t += t % 1000 == 999 ? 1 : t > 32000 && t < 34000 ? 1 : 11)
            all_same = all_same && same(y(c, t), filtered<double>(x, 1, c, t, taps), 1e-9);
    expect(all_same, "every result is that of the direct sum");
}

// A direct sum, a transform, and a block shorter than the taps.
template <class Sample>
bool subnormals_pass(int64_t samples, int64_t n_taps, double scale) {
    Signal<Sample> x = Signal<Sample>::random(2, samples), y(2, samples, 1, false);
    for (int64_t c = 0; c < 2; ++c)
        for (int64_t t = 0; t < samples; ++t) x(c, t) = static_cast<Sample>(x(c, t) * scale);
    const Taps taps = Taps::random(n_taps);
    std::vector<double> state(static_cast<size_t>(2 * (n_taps - 1)));
    forward(x, 1, y, taps, nullptr, state.data(), 2);
    Error error;
    for (int64_t c = 0; c < 2; ++c)
        for (int64_t t = 0; t < samples; ++t) error.add(y(c, t), filtered(x, 1, c, t, taps));
    return error.within(1e-4);
}

void subnormal_floats_are_samples_and_subnormal_doubles_are_zero() {
    for (const auto& [samples, n_taps] : {std::pair<int64_t, int64_t>{500, 9}, {5000, 300}, {50, 300}}) {
        context = "subnormals, " + std::to_string(samples) + " samples, " + std::to_string(n_taps) + " taps";
        expect(subnormals_pass<float>(samples, n_taps, 1e-40), "subnormal floats are filtered like any others");
        if (torchfx::flush_bits) expect(!subnormals_pass<double>(samples, n_taps, 1e-310), "subnormal doubles are flushed");
        volatile double smallest = std::numeric_limits<double>::min();
        expect(smallest / 2 != 0, "the caller's subnormals are kept");
    }
}

// 100 dB below the input, float32 results still hold seven digits.
void attenuating_filters_stay_exact() {
    context = "binomial highpass on a slow sine";
    const int64_t samples = 20000;
    Signal<float> x(1, samples, 1, false), y(1, samples, 1, false);
    for (int64_t t = 0; t < samples; ++t) x(0, t) = static_cast<float>(std::sin(0.14 * static_cast<double>(t)));
    Taps taps = {301, 1, 1, std::vector<double>(301)};
    taps.values[0] = 1;
    for (int order = 0; order < 6; ++order)
        for (size_t k = 300; k > 0; --k) taps.values[k] -= taps.values[k - 1];
    for (double& tap : taps.values) tap += 1e-30;  // long enough for an FFT
    forward(x, 1, y, taps, nullptr, nullptr, 2);
    Error error;
    for (int64_t t = 400; t < samples; ++t) error.add(y(0, t), filtered(x, 1, 0, t, taps));
    expect(error.within(1e-7), "float32 results are exact to the last digit");
}

void bad_arguments_write_nothing() {
    context = "bad arguments";
    Signal<float> x = Signal<float>::random(2, 50), y(2, 50, 1, false);
    Taps taps = Taps::random(4, 2);
    std::vector<double> grad_taps(8, 7.0);
    taps.values[6] = infinity;
    expect(forward(x, 1, y, taps, nullptr, nullptr, 1) == TORCHFX_NOT_FINITE, "infinite taps are refused in any row");
    taps.values[6] = 0;
    expect(forward(x, 1, y, taps, nullptr, nullptr, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    const auto refused = [&](int32_t dtype, int64_t x_repeat, int64_t n_taps, int64_t rows, int64_t repeat) {
        return torchfx_fir_forward(dtype, x.data(), x.channel_stride, x.time_stride, x_repeat, y.data(), 50, 2, 50,
                                   taps.values.data(), n_taps, rows, repeat, nullptr, nullptr, 1) == TORCHFX_BAD_ARGUMENT &&
               torchfx_fir_backward_taps(dtype, y.data(), 50, 1, nullptr, x.data(), x.channel_stride, x.time_stride,
                                         x_repeat, 2, 50, grad_taps.data(), n_taps, rows, repeat, 1) == TORCHFX_BAD_ARGUMENT;
    };
    expect(refused(7, 1, 4, 2, 1), "unknown dtypes are refused");
    expect(refused(TORCHFX_F32, 1, 0, 2, 1), "no taps are refused");
    expect(refused(TORCHFX_F32, 0, 4, 2, 1), "an x_repeat of 0 is refused");
    expect(refused(TORCHFX_F32, 3, 4, 2, 1), "an x_repeat that does not divide the channels is refused");
    expect(refused(TORCHFX_F32, 1, 4, 0, 1), "no rows are refused");
    expect(refused(TORCHFX_F32, 1, 4, 2, 0), "a tap_repeat of 0 is refused");
    expect(refused(TORCHFX_F32, 1, 4, 2, 2), "a row without a channel is refused");
    expect(y.untouched_values() == y.size(), "a refused call writes nothing");
    expect(grad_taps == std::vector<double>(8, 7.0), "a refused gradient writes nothing");
}

}  // namespace

int main() {
    with_every_isa([] {
        ugly_sizes_equal_the_sum();
        rows_of_taps_equal_the_sum();
        a_nan_or_an_infinity_acts_as_in_the_direct_sum();
    });
    damage_is_added_across_steps();
    long_filters_equal_the_sum();
    rows_of_long_taps_equal_single_calls();
    blocks_equal_the_whole();
    subnormal_floats_are_samples_and_subnormal_doubles_are_zero();
    attenuating_filters_stay_exact();
    many_short_blocks_share_threads();
    bad_arguments_write_nothing();
    return report();
}
