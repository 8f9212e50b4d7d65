// The recursive filter against long double.
#include <algorithm>
#include <cmath>
#include <limits>

#include "sos/decay.h"
#include "sos_reference.h"

using namespace testing;

namespace {

constexpr int64_t always = 1, never = std::numeric_limits<int64_t>::max();  // thresholds for splitting in time

template <class Sample>
constexpr int32_t dtype = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;
template <class Sample>
constexpr double tolerance = sizeof(Sample) == 4 ? 2e-7 : 1e-11;  // of the peak

// A signal in memory with any strides and alignment.
template <class Sample>
struct Memory {
    int64_t channels, samples, channel_stride, time_stride, offset;
    std::vector<Sample> values;

    static constexpr Sample untouched = static_cast<Sample>(1234567);

    Memory(int64_t channels, int64_t samples, int64_t time_stride, bool interleaved)
        : channels(channels), samples(samples),
          channel_stride(interleaved ? 1 : samples * time_stride + pick(0, 70)),
          time_stride(interleaved ? channels : time_stride), offset(pick(0, 15)),
          values(static_cast<std::size_t>(offset + channels * channel_stride + samples * this->time_stride + 16), untouched) {}

    Sample& operator()(int64_t c, int64_t t) {
        return values[static_cast<std::size_t>(offset + c * channel_stride + t * time_stride)];
    }
    Sample* data() { return values.data() + offset; }
    int64_t count_untouched() const { return std::count(values.begin(), values.end(), untouched); }
};

template <class Sample>
Signal exact(Memory<Sample>& x) {
    Signal signal(static_cast<std::size_t>(x.channels));
    for (int64_t c = 0; c < x.channels; ++c)
        for (int64_t t = 0; t < x.samples; ++t) signal[static_cast<std::size_t>(c)].push_back(x(c, t));
    return signal;
}

template <class Sample>
Memory<Sample> noise_in(int64_t channels, int64_t samples, int64_t time_stride = 1, bool interleaved = false) {
    Memory<Sample> x(channels, samples, time_stride, interleaved);
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < samples; ++t) x(c, t) = static_cast<Sample>(noise());
    return x;
}

// y may have several channels for each of x, one behind the other.
template <class Sample>
int32_t run(Memory<Sample>& x, Memory<Sample>& y, const Sos& sos, const double* state_in, double* state_out,
            int64_t threshold, int32_t threads) {
    return torchfx_sos_forward(dtype<Sample>, x.data(), x.channel_stride, x.time_stride, y.channels / x.channels,
                               y.data(), y.channel_stride, y.channels, x.samples, sos.values.data(), sos.sections(),
                               sos.rows, sos.repeat, state_in, state_out, threshold, threads);
}

// Of the peak of each channel.
template <class Sample>
Real error(Memory<Sample>& y, const Signal& expected) {
    Real worst = 0;
    for (int64_t c = 0; c < y.channels; ++c) {
        const std::vector<Real>& channel = expected[static_cast<std::size_t>(c)];
        Real off = 0;
        for (int64_t t = 0; t < y.samples; ++t)
            off = std::max(off, std::fabs(y(c, t) - channel[static_cast<std::size_t>(t)]));
        worst = std::max(worst, off / std::max<Real>(peak(channel), 1e-30L));
    }
    return worst;
}

template <class Sample>
void equals_long_double(Memory<Sample>& x, const Sos& sos, bool with_state, int64_t threshold, int32_t threads,
                        int64_t x_repeat = 1) {
    const int64_t channels = x.channels * x_repeat, states = 2 * sos.sections() * channels;
    std::vector<double> state = with_state ? noises(states) : std::vector<double>(static_cast<std::size_t>(states));
    Signal expected;
    for (const auto& row : exact(x)) expected.insert(expected.end(), static_cast<std::size_t>(x_repeat), row);
    std::vector<Real> exact_state(state.begin(), state.end());
    filter(sos, expected, exact_state);

    Memory<Sample> y(channels, x.samples, 1, false);
    const int64_t outside = y.count_untouched() - channels * x.samples;
    // The state is updated in place where there is one.
    expect(run(x, y, sos, with_state ? state.data() : nullptr, state.data(), threshold, threads) == TORCHFX_OK, "status");
    expect(error(y, expected) < tolerance<Sample>, "output");
    expect(y.count_untouched() == outside, "writes the output and nothing else");
    Real worst = 0, largest = 1e-30L;
    for (std::size_t i = 0; i < state.size(); ++i) {
        worst = std::max(worst, std::fabs(state[i] - exact_state[i]));
        largest = std::max(largest, std::fabs(exact_state[i]));
    }
    expect(worst / largest < (sizeof(Sample) == 4 ? 1e-7 : 1e-11), "final state");
}

template <class Sample>
void ugly_sizes_equal_long_double() {
    for (const int64_t samples : {1, 2, 7, 8, 9, 15, 127, 128, 129, 1023, 1025, 3001})
        for (int trial = 0; trial < 6; ++trial) {
            const int64_t channels = trial == 0 ? 1 : pick(1, 19), sections = trial == 1 ? pick(17, 40) : pick(1, 9);
            const bool interleaved = pick(0, 3) == 0;
            Memory<Sample> x = noise_in<Sample>(channels, samples, pick(0, 2) ? 1 : 3, interleaved);
            const int64_t threshold = pick(0, 1) ? always : never;
            context = std::string(torchfx_isa()) + " samples " + std::to_string(samples) + " channels " + std::to_string(channels) +
                      " sections " + std::to_string(sections) + " strides " + std::to_string(x.channel_stride) + " " +
                      std::to_string(x.time_stride) + (threshold == always ? " split" : " whole");
            equals_long_double(x, random_sos(sections), pick(0, 1), threshold, static_cast<int32_t>(pick(1, 4)));
        }
}

// 20 Hz at 192 kHz and 1 kHz at 48 kHz, 12th order: split by carried states and by warm-up. 1 Hz and 2 Hz at 48 kHz:
// poles so close to the circle that how soon they decay is lost in |A|^2 written out in z.
template <class Sample>
void low_filters_stay_exact() {
    struct Design { int order; double cutoff; };
    for (const auto [order, cutoff] : {Design{12, 20.0 / 192000}, {12, 1000.0 / 48000}, {12, 0.45}, {2, 1.0 / 48000}, {10, 2.0 / 48000}})
        for (const int64_t channels : {1, 3, 8})
            for (const int64_t threshold : {always, never}) {
                context = std::string(torchfx_isa()) + " order " + std::to_string(order) + " cutoff " + std::to_string(cutoff) +
                          " channels " + std::to_string(channels) + (threshold == always ? " split" : " whole");
                Memory<Sample> x = noise_in<Sample>(channels, 30011);
                equals_long_double(x, lowpass(order, cutoff), true, threshold, 2);
            }
}

template <class Sample>
void blocks_equal_the_whole() {
    const std::vector<double> sos = lowpass(8, 0.01);
    const int64_t channels = 2, samples = 10000;
    Memory<Sample> x = noise_in<Sample>(channels, samples), whole(channels, samples, 1, false), parts(channels, samples, 1, false);
    parts.channel_stride = whole.channel_stride;
    parts.values = whole.values;
    parts.offset = whole.offset;
    expect(run(x, whole, sos, nullptr, nullptr, never, 1) == TORCHFX_OK, "status");
    std::vector<double> state(static_cast<std::size_t>(2 * channels) * sos.size() / 6);
    for (int64_t start = 0; start < samples;) {
        const int64_t n = std::min(samples - start, pick(1, 2000));
        torchfx_sos_forward(dtype<Sample>, &x(0, start), x.channel_stride, 1, 1, &parts(0, start), parts.channel_stride,
                            channels, n, sos.data(), static_cast<int64_t>(sos.size() / 6), 1, 1, state.data(),
                            state.data(), always, 2);
        start += n;
    }
    context = "blocks";
    expect(error(parts, exact(whole)) < (sizeof(Sample) == 4 ? 1e-6 : 1e-12), "blocks equal the whole");
}

// As many rows as channels; rows that repeat, in the middle too; several channels to a row of x.
template <class Sample>
void rows_equal_long_double() {
    struct Spread { int64_t rows, repeat, channels, x_repeat; };
    for (const Spread s : {Spread{2, 1, 2, 1}, {17, 1, 17, 1}, {3, 2, 12, 1}, {3, 2, 12, 2}, {4, 1, 12, 4}, {2, 3, 7, 1},
                           {3, 1, 3, 3}, {1, 4, 9, 9}, {16, 1, 16, 16}})
        for (const int64_t samples : {1, 63, 1025, 4001})
            for (const int64_t threshold : {always, never}) {
                const bool interleaved = pick(0, 3) == 0;
                Memory<Sample> x = noise_in<Sample>(s.channels / s.x_repeat, samples, pick(0, 2) ? 1 : 3, interleaved);
                context = std::string(torchfx_isa()) + " rows " + std::to_string(s.rows) + " repeat " +
                          std::to_string(s.repeat) + " channels " + std::to_string(s.channels) + " x_repeat " +
                          std::to_string(s.x_repeat) + " samples " + std::to_string(samples) +
                          (interleaved ? " interleaved" : "") + (threshold == always ? " split" : " whole");
                equals_long_double(x, Sos(unlike_rows(s.rows), s.repeat), pick(0, 1), threshold,
                                   static_cast<int32_t>(pick(1, 4)), s.x_repeat);
            }
}

// Two channels, each with a filter of its own: split by warm-up, and by carried states where one of them is slow.
template <class Sample>
void rows_split_in_time_equal_long_double() {
    for (const double slower : {2000.0 / 48000, 20.0 / 48000}) {
        context = "rows split in time, " + std::to_string(slower);
        Memory<Sample> x = noise_in<Sample>(2, 1 << 18);
        equals_long_double(x, Sos({padded(first_order(0.2), 6), lowpass(12, slower)}, 1), true, always, 2);
        Memory<Sample> one = noise_in<Sample>(1, 1 << 18);
        equals_long_double(one, Sos({lowpass(12, slower), highpass(12, 0.1)}, 1), true, always, 2, 2);
    }
}

// A NaN makes everything after it NaN, in its channel; long before the next segment's warm-up too. Each channel has a
// filter of its own.
void a_nan_stays_in_its_channel_and_future() {
    for (const int64_t threshold : {always, never})
        for (const double cutoff : {0.1, 0.0005}) {
            context = std::string("nan, cutoff ") + std::to_string(cutoff);
            const int64_t channels = 3, samples = 20000, where = 1234;
            Memory<float> x = noise_in<float>(channels, samples), clean(channels, samples, 1, false), y = clean;
            const Sos sos({lowpass(4, 0.2), lowpass(4, cutoff), highpass(4, 0.05)}, 1);
            run(x, clean, sos, nullptr, nullptr, threshold, 2);
            x(1, where) = std::numeric_limits<float>::quiet_NaN();
            std::vector<double> state(static_cast<std::size_t>(2 * channels * sos.sections()));
            run(x, y, sos, nullptr, state.data(), threshold, 2);
            bool others = true, before = true, after = true;
            for (int64_t t = 0; t < samples; ++t) {
                others = others && std::fabs(y(0, t) - clean(0, t)) < 1e-6f && std::fabs(y(2, t) - clean(2, t)) < 1e-6f;
                if (t < where) before = before && std::fabs(y(1, t) - clean(1, t)) < 1e-6f;
                else after = after && std::isnan(y(1, t));
            }
            expect(others, "other channels");
            expect(before, "samples before");
            expect(after, "samples after");
            expect(std::isnan(state[2]) && !std::isnan(state[0]) && !std::isnan(state[4]), "final state");
        }
}

void a_limit_of_decay_samples_changes_nothing_below_it() {
    constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();
    for (int trial = 0; trial < 300; ++trial) {
        context = "decay of filter " + std::to_string(trial);
        const int64_t sections = pick(1, 6);
        const std::vector<double> sos = random_sos(sections);
        const auto decay = [&](int64_t at_most) { return torchfx::decay_samples(sos.data(), sections, 1e-13, at_most); };
        const int64_t samples = decay(unlimited);
        expect(samples < unlimited && decay(samples) == samples, "it is found up to the limit");
        expect(decay(samples - 1) == unlimited, "and not beyond");
    }
}

// A segment started from rest must have forgotten the constant that the filter suppresses, not only most of it.
void suppressed_input_leaves_no_trace() {
    context = "constant under a high-pass";
    const std::vector<double> sos = highpass(4, 0.02);
    const int64_t samples = 20000;
    Memory<double> x = noise_in<double>(1, samples), whole(1, samples, 1, false), split(1, samples, 1, false);
    for (int64_t t = 0; t < samples; ++t) x(0, t) += 100;
    std::vector<double> settled(4);
    run(x, whole, sos, nullptr, settled.data(), never, 1);
    run(x, whole, sos, settled.data(), nullptr, never, 1);
    run(x, split, sos, settled.data(), nullptr, always, 1);
    expect(error(split, exact(whole)) < 1e-11, "split equals whole");
}

void subnormal_floats_round_correctly() {
    for (const int64_t samples : {500, 200000}) {  // on one thread, and on two
        context = "subnormal output, " + std::to_string(samples);
        Memory<float> x = noise_in<float>(1, samples), y(1, samples, 1, false);
        for (int64_t t = 0; t < samples; ++t) x(0, t) *= 1e-38f;
        const std::vector<double> sos = lowpass(2, 0.1);
        Signal expected = exact(x);
        std::vector<Real> state(2);
        filter(sos, expected, state);
        run(x, y, sos, nullptr, nullptr, 1024, 2);
        bool equal = true;
        for (std::size_t t = 0; t < expected[0].size(); ++t)
            equal = equal && y(0, static_cast<int64_t>(t)) == static_cast<float>(expected[0][t]);
        expect(equal, "subnormal floats are kept");
    }
}

// Doubles among which subnormal ones may count as zero: coefficients and states of that size do nothing to a signal.
template <class Sample>
void subnormal_coefficients_and_states_change_nothing() {
    for (const int64_t threshold : {always, never}) {
        context = "subnormal coefficients";
        const double tiny = 1e-310;
        Memory<Sample> x = noise_in<Sample>(3, 5000), y(3, 5000, 1, false);
        const Sos sos({{0.5, tiny, -tiny, 1, -0.5, tiny}, {1, tiny, 0, 1, tiny, tiny}, {tiny, 1, tiny, 1, -1.9, 0.95}}, 1);
        Signal expected = exact(x);
        std::vector<Real> exact_state(6, Real(tiny));
        filter(sos, expected, exact_state);
        std::vector<double> state(6, tiny);
        run(x, y, sos, state.data(), state.data(), threshold, 2);
        expect(error(y, expected) < tolerance<Sample>, "output");
    }
}

void subnormal_doubles_stay_below_the_smallest_normal_one() {
    context = "subnormal doubles";
    Memory<double> x = noise_in<double>(2, 5000), y(2, 5000, 1, false);
    for (int64_t c = 0; c < 2; ++c)
        for (int64_t t = 0; t < 5000; ++t) x(c, t) *= 1e-310;
    const Sos sos = lowpass(4, 0.01);
    std::vector<double> state(8);
    run(x, y, sos, nullptr, state.data(), always, 2);
    double largest = 0;
    for (int64_t c = 0; c < 2; ++c)
        for (int64_t t = 0; t < 5000; ++t) largest = std::max(largest, std::fabs(y(c, t)));
    for (const double s : state) largest = std::max(largest, std::fabs(s));
    expect(largest < std::numeric_limits<double>::min(), "as the input");
    volatile double mine = 1e-310;
    expect(mine * 0.5 > 0, "the caller's own arithmetic keeps subnormals after the call");
}

void bad_arguments_write_nothing() {
    context = "bad arguments";
    Memory<double> x = noise_in<double>(2, 10), y(2, 10, 1, false);
    const int64_t untouched = y.count_untouched();
    const auto status = [&](std::vector<double> sos) { return run(x, y, sos, nullptr, nullptr, always, 2); };
    const double inf = std::numeric_limits<double>::infinity();
    expect(status({1, 0, 0, 1, 0, inf}) == TORCHFX_NOT_FINITE, "infinite coefficient");
    expect(status({1, 0, 0, 0, 0, 0}) == TORCHFX_NOT_FINITE, "a0 = 0");
    expect(status({1, 0, 0, 1, 0, 1}) == TORCHFX_UNSTABLE, "poles on the circle");
    expect(status({1, 0, 0, 2, -4, 1.9}) == TORCHFX_UNSTABLE, "a pole outside the circle");
    expect(status({1, 0, 0, 1, 0, 0.5, 1, 0, 0, 1, -1.5, 0.5}) == TORCHFX_UNSTABLE, "a pole at 1 in the second section");
    const double sos[6] = {1, 0, 0, 1, 0, 0};
    const auto call = [&](int32_t type, int64_t channels, int64_t samples, int64_t sections, int32_t threads,
                          int64_t x_repeat = 1, int64_t rows = 1, int64_t repeat = 1) {
        return torchfx_sos_forward(type, x.data(), 10, 1, x_repeat, y.data(), 10, channels, samples, sos, sections, rows,
                                   repeat, nullptr, nullptr, always, threads);
    };
    expect(call(2, 1, 1, 1, 1) == TORCHFX_BAD_ARGUMENT, "dtype");
    expect(call(1, 0, 1, 1, 1) == TORCHFX_BAD_ARGUMENT, "channels");
    expect(call(1, 1, 0, 1, 1) == TORCHFX_BAD_ARGUMENT, "samples");
    expect(call(1, 1, 1, 0, 1) == TORCHFX_BAD_ARGUMENT, "sections");
    expect(call(1, 1, 1, 1, 0) == TORCHFX_BAD_ARGUMENT, "threads");
    expect(call(1, 1, 1, 1, 1, 0) == TORCHFX_BAD_ARGUMENT, "x_repeat");
    expect(call(1, 3, 1, 1, 1, 2) == TORCHFX_BAD_ARGUMENT, "channels that x_repeat does not divide");
    expect(call(1, 1, 1, 1, 1, 1, 0) == TORCHFX_BAD_ARGUMENT, "sos_rows");
    expect(call(1, 1, 1, 1, 1, 1, 1, 0) == TORCHFX_BAD_ARGUMENT, "sos_repeat");
    expect(call(1, 2, 1, 1, 1, 1, 3, 1) == TORCHFX_BAD_ARGUMENT, "a row without a channel");
    expect(run(x, y, Sos({{1, 0, 0, 1, 0, 0}, {1, 0, 0, 1, 0, 1}}, 1), nullptr, nullptr, always, 2) == TORCHFX_UNSTABLE,
           "an unstable second row");
    expect(y.count_untouched() == untouched, "nothing written");
}

}  // namespace

int main() {
    with_every_isa([] {
        ugly_sizes_equal_long_double<float>();
        ugly_sizes_equal_long_double<double>();
        low_filters_stay_exact<double>();
        rows_equal_long_double<float>();
        rows_equal_long_double<double>();
    });
    low_filters_stay_exact<float>();
    rows_split_in_time_equal_long_double<float>();
    rows_split_in_time_equal_long_double<double>();
    blocks_equal_the_whole<float>();
    blocks_equal_the_whole<double>();
    a_nan_stays_in_its_channel_and_future();
    a_limit_of_decay_samples_changes_nothing_below_it();
    suppressed_input_leaves_no_trace();
    subnormal_floats_round_correctly();
    subnormal_coefficients_and_states_change_nothing<float>();
    subnormal_coefficients_and_states_change_nothing<double>();
    subnormal_doubles_stay_below_the_smallest_normal_one();
    bad_arguments_write_nothing();
    return report();
}
