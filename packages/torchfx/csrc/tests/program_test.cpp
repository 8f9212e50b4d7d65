// Programs: every step against its definition, chains against the single calls, blocks against the whole, and the refusal
// of what does not fit together.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "testing.h"

using namespace testing;

namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN(), infinity = std::numeric_limits<double>::infinity();
constexpr int64_t never = std::numeric_limits<int64_t>::max();  // threshold for splitting in time

template <class Sample>
constexpr int32_t dtype_of = sizeof(Sample) == 4 ? TORCHFX_F32 : TORCHFX_F64;

int64_t bits(double value) {
    int64_t integer;
    std::memcpy(&integer, &value, sizeof integer);
    return integer;
}

template <class T>
int64_t address(const std::vector<T>& values) {
    return static_cast<int64_t>(reinterpret_cast<intptr_t>(values.data()));
}

struct Program {
    explicit Program(int32_t dtype, int64_t buffers = 2) : words{dtype, 0, buffers} {}

    Program& step(int64_t kind, int64_t source, int64_t target, int32_t dtype, const std::vector<int64_t>& arguments = {}) {
        records.push_back(words.size());
        words.insert(words.end(), {kind, 5 + static_cast<int64_t>(arguments.size()), source, target, dtype});
        words.insert(words.end(), arguments.begin(), arguments.end());
        ++words[1];
        return *this;
    }
    int64_t size() const { return static_cast<int64_t>(words.size()); }

    std::vector<int64_t> words;
    std::vector<size_t> records;  // where they begin
};

// (channels, samples), in memory with some distance between channels and, if wanted, between samples.
template <class Sample>
struct Signal {
    Signal(int64_t channels, int64_t samples, int64_t stride = 1)
        : channels(channels), samples(samples), stride(stride), row(samples * stride + 3),
          values(static_cast<size_t>(channels * row), static_cast<Sample>(1234567)) {}

    static Signal random(int64_t channels, int64_t samples, int64_t stride = 1) {
        Signal signal(channels, samples, stride);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t t = 0; t < samples; ++t) signal(c, t) = static_cast<Sample>(noise());
        return signal;
    }
    Sample& operator()(int64_t c, int64_t t) { return values[static_cast<size_t>(c * row + t * stride)]; }
    const Sample& operator()(int64_t c, int64_t t) const { return values[static_cast<size_t>(c * row + t * stride)]; }

    int64_t channels, samples, stride, row;
    std::vector<Sample> values;
};

template <class Sample>
int32_t run(const Program& program, const Signal<Sample>& x, Signal<Sample>& y, int32_t threads = 2) {
    return torchfx_program_run(program.words.data(), program.size(), x.values.data(), x.row, x.stride, y.values.data(), y.row,
                               x.channels, x.samples, never, threads);
}

template <class Sample>
void run_in_blocks(const Program& program, const Signal<Sample>& x, Signal<Sample>& y) {
    for (int64_t start = 0, count; start < x.samples; start += count) {
        count = std::min<int64_t>(x.samples - start, pick(1, 120));
        expect(torchfx_program_run(program.words.data(), program.size(), x.values.data() + start * x.stride, x.row, x.stride,
                                   y.values.data() + start, y.row, x.channels, count, never, 1) == TORCHFX_OK,
               "a block is accepted");
    }
}

// Whether `truth(channel, time)` is what y holds, to the bit, NaNs for NaNs, and nothing else was written.
template <class Sample>
bool holds(const Signal<Sample>& y, const std::function<Sample(int64_t, int64_t)>& truth) {
    Signal<Sample> expected(y.channels, y.samples);
    for (int64_t c = 0; c < y.channels; ++c)
        for (int64_t t = 0; t < y.samples; ++t) expected(c, t) = truth(c, t);
    return std::equal(y.values.begin(), y.values.end(), expected.values.begin(), [](Sample a, Sample b) {
        return a == b ? std::signbit(a) == std::signbit(b) : std::isnan(a) && std::isnan(b);
    });
}

template <class Sample>
double largest_difference(const Signal<Sample>& a, const Signal<Sample>& b) {
    double worst = 0;
    for (int64_t c = 0; c < a.channels; ++c)
        for (int64_t t = 0; t < a.samples; ++t) worst = std::fmax(worst, std::fabs(double{a(c, t)} - double{b(c, t)}));
    return worst;
}

const std::vector<double> sections = {0.2, 0.3, 0.1, 1.0, -0.9, 0.5, 1.0, -0.4, 0.1, 2.0, 0.6, 0.2};

// --- every step ----------------------------------------------------------------------------------------

template <class Sample>
void gain_multiplies_by_the_factor_of_the_row() {
    const std::vector<double> factors = {1.0 / 3, -2.5, 1e-3};
    for (int64_t rows : {1, 2, 3})
        for (int64_t repeat : {1, 2}) {
            const Signal<Sample> x = Signal<Sample>::random(5, 70, 2);
            Signal<Sample> y(5, 70);
            const Program program =
                Program(dtype_of<Sample>).step(TORCHFX_STEP_gain, 0, 1, dtype_of<Sample>, {address(factors), rows, repeat});
            expect(run(program, x, y) == TORCHFX_OK, "gain is accepted");
            expect(holds<Sample>(y, [&](int64_t c, int64_t t) {
                return x(c, t) * static_cast<Sample>(factors[static_cast<size_t>(c / repeat % rows)]);
            }), "gain multiplies in the samples' dtype");
        }
}

template <class Sample>
void clamp_bounds_all_but_nans() {
    const double bounds[][2] = {{-0.25, 0.5}, {-infinity, 0.1}, {0.1, infinity}, {0.5, -0.5}, {-1.0 / 3, 1.0 / 3}};
    for (const auto& [low, high] : bounds) {
        Signal<Sample> x = Signal<Sample>::random(2, 100), y(2, 100);
        x(0, 5) = static_cast<Sample>(nan);
        x(1, 6) = static_cast<Sample>(-infinity);
        const Program program =
            Program(dtype_of<Sample>).step(TORCHFX_STEP_clamp, 0, 1, dtype_of<Sample>, {bits(low), bits(high)});
        expect(run(program, x, y) == TORCHFX_OK, "clamp is accepted");
        expect(holds<Sample>(y, [&, low = low, high = high](int64_t c, int64_t t) {
            const Sample v = x(c, t);
            return std::isnan(v) ? v : std::min(std::max(v, static_cast<Sample>(low)), static_cast<Sample>(high));
        }), "clamp bounds the samples");
    }
}

template <class Sample>
void add_sums_two_buffers() {
    const int32_t dtype = dtype_of<Sample>;
    const std::vector<double> factor = {0.3};
    for (int64_t stride : {1, 3}) {
        const Signal<Sample> x = Signal<Sample>::random(3, 200, stride);
        Signal<Sample> y(3, 200);
        const Program program = Program(dtype, 3)
                                    .step(TORCHFX_STEP_gain, 0, 2, dtype, {address(factor), 1, 1})
                                    .step(TORCHFX_STEP_add, 2, 1, dtype, {0})
                                    .step(TORCHFX_STEP_add, 1, 1, dtype, {1});
        expect(run(program, x, y) == TORCHFX_OK, "add is accepted");
        expect(holds<Sample>(y, [&](int64_t c, int64_t t) {
            const Sample once = x(c, t) * static_cast<Sample>(factor[0]) + x(c, t);
            return once + once;
        }), "add sums its sources, x and its own target among them");
    }
}

template <class Sample>
void crossfade_waits_and_crosses_in_any_blocks() {
    constexpr int64_t waiting = 70, length = 90;
    const int32_t dtype = dtype_of<Sample>;
    const std::vector<double> infinite = {1e30};
    const Signal<Sample> x = Signal<Sample>::random(3, 300, 2);
    Signal<Sample> y(3, 300);
    std::vector<int64_t> passed = {0};
    const Program program = Program(dtype, 3)
                                .step(TORCHFX_STEP_gain, 0, 2, dtype, {address(infinite), 1, 1})
                                .step(TORCHFX_STEP_crossfade, 0, 1, dtype, {2, address(passed), waiting, length});
    run_in_blocks(program, x, y);
    expect(passed[0] == 300, "samples are counted");
    bool crosses = true;
    for (int64_t c = 0; c < 3; ++c)
        for (int64_t t = 0; t < 300; ++t) {
            const double u = std::clamp((t + 1.0 - waiting) / length, 0.0, 1.0), along = u * u * (3 - 2 * u);
            const Sample loud = x(c, t) * static_cast<Sample>(1e30);
            const double truth = along == 0 ? x(c, t) : along == 1 ? loud : x(c, t) + along * (double{loud} - x(c, t));
            crosses = crosses && std::abs(y(c, t) - truth) <= 1e-6 * std::abs(truth);
        }
    expect(crosses, "the first source, the way along 3 u^2 - 2 u^3, the second source");
    const auto status = [&](const std::vector<int64_t>& arguments) {
        return run(Program(dtype, 3).step(TORCHFX_STEP_gain, 0, 2, dtype, {address(infinite), 1, 1})
                       .step(TORCHFX_STEP_crossfade, 0, 1, dtype, arguments), x, y);
    };
    expect(status({2, 0, waiting, length}) == TORCHFX_BAD_ARGUMENT, "no counter");
    expect(status({2, address(passed), -1, length}) == TORCHFX_BAD_ARGUMENT, "a negative time");
    expect(status({2, address(passed), waiting, 0}) == TORCHFX_BAD_ARGUMENT, "no way");
    expect(status({1, address(passed), waiting, length}) == TORCHFX_BAD_ARGUMENT, "no such source");
}

template <class Sample>
void delay_gives_its_state_first_and_keeps_the_last_inputs() {
    for (int64_t delay : {1, 7, 300, 301, 2000}) {
        const Signal<Sample> x = Signal<Sample>::random(2, 300, 2);
        Signal<Sample> y(2, 300);
        const Signal<Sample> before = Signal<Sample>::random(2, delay);
        std::vector<Sample> state;
        for (int64_t c = 0; c < 2; ++c)
            for (int64_t t = 0; t < delay; ++t) state.push_back(before(c, t));
        const Program program =
            Program(dtype_of<Sample>).step(TORCHFX_STEP_delay, 0, 1, dtype_of<Sample>, {delay, address(state)});
        expect(run(program, x, y) == TORCHFX_OK, "delay is accepted");
        const auto input = [&](int64_t c, int64_t t) { return t < 0 ? before(c, t + delay) : x(c, t); };
        expect(holds<Sample>(y, [&](int64_t c, int64_t t) { return input(c, t - delay); }), "delay moves samples in time");
        bool kept = true;
        for (int64_t c = 0; c < 2; ++c)
            for (int64_t t = 0; t < delay; ++t)
                kept = kept && state[static_cast<size_t>(c * delay + t)] == input(c, 300 - delay + t);
        expect(kept, "delay keeps the last inputs, oldest first");
    }
}

void widen_and_narrow_convert() {
    const Signal<float> x = Signal<float>::random(2, 100, 2);
    Signal<float> y(2, 100);
    const Program back_and_forth =
        Program(TORCHFX_F32, 3).step(TORCHFX_STEP_widen, 0, 2, TORCHFX_F32).step(TORCHFX_STEP_narrow, 2, 1, TORCHFX_F64);
    expect(run(back_and_forth, x, y) == TORCHFX_OK, "widen and narrow are accepted");
    expect(holds<float>(y, [&](int64_t c, int64_t t) { return x(c, t); }), "a float widened and narrowed is itself");
    const Signal<double> fine = Signal<double>::random(2, 100, 2);
    Signal<double> coarse(2, 100);
    const Program rounding =
        Program(TORCHFX_F64, 3).step(TORCHFX_STEP_narrow, 0, 2, TORCHFX_F64).step(TORCHFX_STEP_widen, 2, 1, TORCHFX_F32);
    expect(run(rounding, fine, coarse) == TORCHFX_OK, "narrow and widen are accepted");
    expect(holds<double>(coarse, [&](int64_t c, int64_t t) { return static_cast<float>(fine(c, t)); }),
           "a double narrowed is rounded to float");
}

template <class Sample>
void sos_and_fir_are_the_recurrence_and_the_sum() {
    const int32_t dtype = dtype_of<Sample>;
    for (int64_t samples : {1, 40, 700}) {
        const Signal<Sample> x = Signal<Sample>::random(3, samples, 2);
        Signal<Sample> cascaded(3, samples), summed(3, samples);
        // A row for channels 0 and 2, one for 1.
        const std::vector<double> taps = noises(2 * 50);
        std::vector<double> cascades(sections);
        cascades.insert(cascades.end(), sections.begin() + 6, sections.end());
        cascades.insert(cascades.end(), sections.begin(), sections.begin() + 6);
        cascades[12] *= 2;
        std::vector<double> state(2 * 3 * 2), past(3 * 49);
        expect(run(Program(dtype).step(TORCHFX_STEP_sos, 0, 1, dtype, {address(cascades), 2, 2, 1, address(state)}), x,
                   cascaded) == TORCHFX_OK, "sos is accepted");
        expect(run(Program(dtype).step(TORCHFX_STEP_fir, 0, 1, dtype, {address(taps), 50, 2, 1, address(past)}), x, summed) ==
                   TORCHFX_OK, "fir is accepted");
        double sos_error = 0, fir_error = 0;
        for (int64_t c = 0; c < 3; ++c) {
            long double s[2][2] = {};
            for (int64_t t = 0; t < samples; ++t) {
                long double v = x(c, t);
                for (size_t k = 0; k < 2; ++k) {
                    const double* b = &cascades[static_cast<size_t>(c % 2 * 12) + 6 * k];
                    const long double y = b[0] / b[3] * v + s[k][0];
                    s[k][0] = b[1] / b[3] * v - b[4] / b[3] * y + s[k][1];
                    s[k][1] = b[2] / b[3] * v - b[5] / b[3] * y;
                    v = y;
                }
                sos_error = std::fmax(sos_error, std::fabs(static_cast<double>(v - cascaded(c, t))));
                long double sum = 0;
                for (int64_t k = 0; k < std::min<int64_t>(50, t + 1); ++k)
                    sum += taps[static_cast<size_t>(c % 2 * 50 + k)] * static_cast<long double>(x(c, t - k));
                fir_error = std::fmax(fir_error, std::fabs(static_cast<double>(sum - summed(c, t))));
            }
            for (size_t k = 0; k < 2; ++k)
                for (size_t i = 0; i < 2; ++i)
                    sos_error = std::fmax(sos_error, std::fabs(static_cast<double>(s[k][i]) -
                                                               state[2 * (3 * k + static_cast<size_t>(c)) + i]));
        }
        const double tolerance = sizeof(Sample) == 4 ? 1e-6 : 1e-13;
        expect(sos_error < tolerance, "sos is the recurrence, and leaves its state");
        expect(fir_error < tolerance, "fir is the sum");
    }
}

// A response in partitions, by the definition: true stereo, a row for each channel, samples that are not finite, and the
// state that `settle` leaves.
template <class Sample>
void partitioned_is_the_sum_in_blocks_of_any_size() {
    const int32_t dtype = dtype_of<Sample>;
    struct Case { int64_t channels, width, taps, rows, samples; };
    for (const Case& each : {Case{2, 2, 700, 4, 1500}, Case{3, 1, 9000, 2, 12000}, Case{1, 1, 2, 1, 600}}) {
        const int64_t pairs = each.channels * each.width, reach = each.taps - 1;
        std::vector<double> taps = noises(each.rows * each.taps), state = noises(pairs * reach), before = state;
        int64_t size = 0, spectra = 0;
        expect(torchfx_fir_partitioned_size(each.channels, each.width, each.taps, each.rows, &size, &spectra) == TORCHFX_OK, "size");
        std::vector<double> work(static_cast<size_t>(size));
        Signal<Sample> x = Signal<Sample>::random(each.channels, each.samples, 2), y(each.channels, each.samples);
        x(0, each.samples / 2) = static_cast<Sample>(infinity);
        const Program program = Program(dtype).step(
            TORCHFX_STEP_partitioned, 0, 1, dtype,
            {each.width, address(taps), each.taps, each.rows, 1, address(state), address(work)});
        for (int64_t start = 0, count; start < each.samples; start += count) {
            count = std::min(each.samples - start, pick(0, 1) ? pick(1, 600) : pick(1, 5000));
            expect(torchfx_program_run(program.words.data(), program.size(), x.values.data() + start * x.stride, x.row,
                                       x.stride, y.values.data() + start, y.row, each.channels, count, never, 2) == TORCHFX_OK,
                   "partitioned is accepted");
            if (pick(0, 4) == 0)
                expect(torchfx_fir_settle(each.channels, each.width, taps.data(), each.taps, each.rows, 1, state.data(),
                                          work.data(), 2) == TORCHFX_OK, "settle is accepted");
        }
        expect(torchfx_fir_settle(each.channels, each.width, taps.data(), each.taps, each.rows, 1, state.data(), work.data(),
                                  1) == TORCHFX_OK, "settle is accepted at the end");
        Signal<double> right(each.channels, each.samples), one(1, each.samples);
        for (auto& value : right.values) value = 0;
        std::vector<double> after(static_cast<size_t>(pairs * reach));
        for (int64_t pair = 0; pair < pairs; ++pair) {
            const int64_t output = pair / each.width, input = output / each.width * each.width + pair % each.width;
            Signal<double> wide(1, each.samples);
            for (int64_t t = 0; t < each.samples; ++t) wide(0, t) = x(input, t);
            torchfx_fir_forward(TORCHFX_F64, wide.values.data(), wide.row, 1, 1, one.values.data(), one.row, 1, each.samples,
                                taps.data() + pair % each.rows * each.taps, each.taps, 1, 1, before.data() + pair * reach,
                                after.data() + pair * reach, 1);
            for (int64_t t = 0; t < each.samples; ++t) right(output, t) += one(0, t);
        }
        const auto near = [](double a, double b, double bound) {
            return a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) < bound;
        };
        bool same = true, same_state = true;
        for (int64_t c = 0; c < each.channels; ++c)
            for (int64_t t = 0; t < each.samples; ++t)
                same = same && near(y(c, t), right(c, t), sizeof(Sample) == 4 ? 1e-4 : 1e-10);
        for (size_t i = 0; i < state.size(); ++i) same_state = same_state && near(state[i], after[i], 1e-10);
        expect(same, "partitioned is the convolution");
        expect(same_state, "settle leaves the state of the convolution");
    }
}

template <class Sample>
void dynamics_is_the_operator_for_groups_of_channels() {
    const std::vector<double> settings = {-20, -0.75, 0, 6, -1e4, 3, 0.001, 0.05, -30, -0.5, 0, 0, -1e4, 0, 0.01, 0.1};
    for (int64_t linked : {1, 3}) {
        const int64_t groups = 6 / linked;
        std::vector<double> state = noises(groups), after = state;
        const Signal<Sample> x = Signal<Sample>::random(6, 700, 2);
        Signal<Sample> y(6, 700), expected(6, 700);
        const Program program = Program(dtype_of<Sample>).step(
            TORCHFX_STEP_dynamics, 0, 1, dtype_of<Sample>, {0, linked, address(settings), 2, 1, address(state)});
        expect(run(program, x, y) == TORCHFX_OK, "dynamics is accepted");
        torchfx_dynamics_forward(dtype_of<Sample>, x.values.data(), x.row, x.stride, 1, nullptr, 0, 0, 1,
                                 expected.values.data(), expected.row, groups, linked, 1, 700, settings.data(), 2, 1,
                                 after.data(), after.data(), 1);
        expect(largest_difference(y, expected) == 0 && state == after, "dynamics is the operator");
        std::vector<double> bad = settings;
        bad[3] = nan;
        const auto status = [&](const std::vector<int64_t>& arguments) {
            return run(Program(dtype_of<Sample>).step(TORCHFX_STEP_dynamics, 0, 1, dtype_of<Sample>, arguments), x, y);
        };
        expect(status({0, linked, address(bad), 2, 1, address(state)}) == TORCHFX_NOT_FINITE, "a NaN is refused");
        expect(status({0, 4, address(settings), 1, 1, address(state)}) == TORCHFX_BAD_ARGUMENT, "no whole groups");
        expect(status({0, linked, address(settings), 2, 1, 0}) == TORCHFX_BAD_ARGUMENT, "no state");
        expect(status({1, linked, address(settings), 2, 1, address(state)}) == TORCHFX_BAD_ARGUMENT, "the target is no key");
        expect(status({2, linked, address(settings), 2, 1, address(state)}) == TORCHFX_BAD_ARGUMENT, "no such key");
    }
}

template <class Sample>
void limiter_is_the_operator_in_blocks_of_any_size() {
    const int64_t delay = 50;
    const std::vector<double> settings = {0.3, 0.001};
    for (int64_t linked : {1, 2}) {
        const int64_t groups = 4 / linked;
        std::vector<double> state(static_cast<size_t>(groups)), ramp(static_cast<size_t>(groups * delay));
        std::vector<double> after = state, ramp_after = ramp;
        std::vector<Sample> past(static_cast<size_t>(4 * delay)), silence = past;
        const Signal<Sample> x = Signal<Sample>::random(4, 700, 2);
        Signal<Sample> y(4, 700), expected(4, 700);
        const Program program = Program(dtype_of<Sample>).step(
            TORCHFX_STEP_limiter, 0, 1, dtype_of<Sample>,
            {0, linked, delay, delay, address(settings), 1, 1, address(past), address(state), address(ramp)});
        run_in_blocks(program, x, y);
        torchfx_limiter_forward(dtype_of<Sample>, x.values.data(), x.row, x.stride, 1, silence.data(), delay, nullptr, 0, 0,
                                1, expected.values.data(), expected.row, groups, linked, 1, 700, delay + 1, delay,
                                settings.data(), 1, 1, after.data(), after.data(), ramp_after.data(), ramp_after.data(), 1);
        expect(largest_difference(y, expected) < 1e-6, "limiter is the operator");
        const auto status = [&](const std::vector<int64_t>& arguments) {
            return run(Program(dtype_of<Sample>).step(TORCHFX_STEP_limiter, 0, 1, dtype_of<Sample>, arguments), x, y);
        };
        expect(status({0, linked, delay, delay, address(settings), 1, 1, 0, address(state), address(ramp)}) ==
                   TORCHFX_BAD_ARGUMENT, "a limiter without a past is refused");
        expect(status({0, linked, delay, delay, address(settings), 1, 1, address(past), address(state), 0}) ==
                   TORCHFX_BAD_ARGUMENT, "a limiter without a ramp is refused");
        expect(status({1, linked, delay, delay, address(settings), 1, 1, address(past), address(state), address(ramp)}) ==
                   TORCHFX_BAD_ARGUMENT, "the target holds no peaks");
    }
}

template <class Sample>
std::vector<Sample> silence(int64_t count) { return std::vector<Sample>(static_cast<size_t>(count)); }

// A NaN equals a NaN.
bool alike(double a, double b) { return a == b || (a != a && b != b); }

template <class Sample>
void maximum_is_the_largest_magnitude_so_far_in_blocks_of_any_size() {
    const int32_t dtype = dtype_of<Sample>;
    for (int64_t before : {0, 1, 50})
        for (int64_t linked : {1, 3}) {
            std::vector<Sample> past = silence<Sample>(6 / linked * before);
            Signal<Sample> x = Signal<Sample>::random(6, 400, 2), y(6, 400);
            x(4, 200) = static_cast<Sample>(nan);
            const Program program =
                Program(dtype).step(TORCHFX_STEP_maximum, 0, 1, dtype, {linked, before, before ? address(past) : 0});
            run_in_blocks(program, x, y);
            bool right = true;
            for (int64_t c = 0; c < 6; c += linked)
                for (int64_t t = 0; t < 400; ++t) {
                    double most = 0;
                    for (int64_t i = std::max<int64_t>(0, t - before); i <= t; ++i)
                        for (int64_t j = c; j < c + linked; ++j) most = std::fabs(x(j, i)) <= most ? most : std::fabs(x(j, i));
                    if (c == 4 - 4 % linked && t >= 200 && t <= 200 + before) most = nan;
                    right = right && alike(y(c, t), most);
                }
            expect(right, "maximum is the largest magnitude");
            const auto status = [&](const std::vector<int64_t>& arguments) {
                return run(Program(dtype).step(TORCHFX_STEP_maximum, 0, 1, dtype, arguments), x, y);
            };
            expect(status({4, before, address(past)}) == TORCHFX_BAD_ARGUMENT, "no whole groups");
            expect(status({linked, 50, 0}) == TORCHFX_BAD_ARGUMENT, "no past");
            expect(status({linked, -1, address(past)}) == TORCHFX_BAD_ARGUMENT, "nothing lies behind");
        }
}

template <class Sample>
void true_peak_hears_what_lies_between() {
    const int32_t dtype = dtype_of<Sample>;
    const int64_t wait = 2, up = 2, n_taps = 3;
    // The low-pass 0, 1, 1, 1, 0, 0 around its tap 2: between two samples lies their sum.
    std::vector<double> taps = {0, 1, 0, 1, 1, 0};
    std::vector<Sample> past = silence<Sample>(3 * 2 * wait);
    const Signal<Sample> x = Signal<Sample>::random(3, 400, 2);
    Signal<Sample> y(3, 400);
    const Program program =
        Program(dtype).step(TORCHFX_STEP_true_peak, 0, 1, dtype, {address(taps), up, n_taps, 2, wait, address(past)});
    run_in_blocks(program, x, y);
    double worst = 0;
    for (int64_t c = 0; c < 3; ++c)
        for (int64_t t = 0; t < 400; ++t) {
            const auto at = [&](int64_t i) { return i < 0 ? 0.0 : static_cast<double>(x(c, i)); };
            const double here = at(t - wait), next = at(t - wait + 1);
            worst = std::max(worst, std::fabs(y(c, t) - std::max(std::fabs(here), std::fabs(here + next))));
        }
    expect(worst < 1e-6, "true_peak is the largest of a sample and what follows");
    const auto status = [&](const std::vector<int64_t>& arguments) {
        return run(Program(dtype).step(TORCHFX_STEP_true_peak, 0, 1, dtype, arguments), x, y);
    };
    expect(status({0, up, n_taps, 2, wait, address(past)}) == TORCHFX_BAD_ARGUMENT, "no taps");
    expect(status({address(taps), up, n_taps, 2, 0, address(past)}) == TORCHFX_BAD_ARGUMENT, "nothing to wait for");
    expect(status({address(taps), up, n_taps, 2, wait, 0}) == TORCHFX_BAD_ARGUMENT, "no past");
    taps[4] = nan;
    expect(status({address(taps), up, n_taps, 2, wait, address(past)}) == TORCHFX_NOT_FINITE, "a NaN is refused");
}

// Not to the bit: a phase is rounded at the end of each block.
template <class Sample>
void what_swings_is_the_operator_in_blocks_of_any_size() {
    const int64_t channels = 3, samples = 700, kept = 60, stages = 4;
    const int32_t dtype = dtype_of<Sample>;
    const double bound = sizeof(Sample) == 4 ? 1e-5 : 1e-10;
    const std::vector<double> gain = {0.01, 0.5, 0.5, 0.3, 0, 1}, delay = {0.01, 20, 9, 0.5, 0.7}, phaser = {0.02, 0.05, 1, 0.5, 0.7};
    const Signal<Sample> x = Signal<Sample>::random(channels, samples, 2);
    Signal<Sample> y(channels, samples), expected(channels, samples);
    std::vector<double> phase(channels, 0.25), after = phase, state = noises(stages * channels), state_after = state;
    std::vector<Sample> past(static_cast<size_t>(channels * kept)), silence = past;
    const auto expect_same = [&](const char* what) {
        expect(largest_difference(y, expected) < bound, what);
        expect(std::fabs(phase[0] - after[0]) < 1e-12, "phases go on");
        std::fill(phase.begin(), phase.end(), 0.25);
        after = phase;
    };
    const auto refused = [&](int64_t kind, const std::vector<int64_t>& arguments) {
        expect(run(Program(dtype).step(kind, 0, 1, dtype, arguments), x, y) == TORCHFX_BAD_ARGUMENT, "a hole is refused");
    };

    run_in_blocks(Program(dtype).step(TORCHFX_STEP_modulated_gain, 0, 1, dtype, {address(gain), 2, 1, address(phase)}), x, y);
    torchfx_modulated_gain_forward(dtype, x.values.data(), x.row, x.stride, 1, expected.values.data(), expected.row, channels,
                                   samples, gain.data(), 2, 1, after.data(), after.data(), 1);
    expect_same("modulated_gain is the operator");
    refused(TORCHFX_STEP_modulated_gain, {address(gain), 2, 1, 0});
    refused(TORCHFX_STEP_modulated_gain, {address(gain), 4, 1, address(phase)});

    const std::vector<int64_t> delaying = {address(delay), 1, 1, address(phase), kept, address(past)};
    run_in_blocks(Program(dtype).step(TORCHFX_STEP_modulated_delay, 0, 1, dtype, delaying), x, y);
    torchfx_modulated_delay_forward(dtype, x.values.data(), x.row, x.stride, 1, silence.data(), silence.data(), kept,
                                    expected.values.data(), expected.row, channels, samples, delay.data(), 1, 1, after.data(), after.data(), 1);
    expect_same("modulated_delay is the operator");
    refused(TORCHFX_STEP_modulated_delay, {address(delay), 1, 1, address(phase), 3, address(past)});
    refused(TORCHFX_STEP_modulated_delay, {address(delay), 1, 1, address(phase), kept, 0});

    const std::vector<int64_t> shifting = {address(phaser), 1, 1, address(phase), stages, address(state)};
    run_in_blocks(Program(dtype).step(TORCHFX_STEP_phaser, 0, 1, dtype, shifting), x, y);
    torchfx_phaser_forward(dtype, x.values.data(), x.row, x.stride, 1, expected.values.data(), expected.row, channels, samples,
                           stages, phaser.data(), 1, 1, after.data(), after.data(), state_after.data(), state_after.data(), 1);
    expect_same("phaser is the operator");
    refused(TORCHFX_STEP_phaser, {address(phaser), 1, 1, address(phase), 0, address(state)});
    refused(TORCHFX_STEP_phaser, {address(phaser), 1, 1, address(phase), stages, 0});
    std::vector<double> bad = phaser;
    bad[1] = nan;
    expect(run(Program(dtype).step(TORCHFX_STEP_phaser, 0, 1, dtype, {address(bad), 1, 1, address(phase), stages, address(state)}),
               x, y) == TORCHFX_NOT_FINITE, "a NaN is refused");
}

template <class Sample>
void detectors_hear_the_first_of_a_groups_channels_in_a_second_source() {
    const int32_t dtype = dtype_of<Sample>;
    const std::vector<double> curve = {-20, -0.75, 0, 6, -1e4, 3, 0.001, 0.05}, wall = {0.3, 0.001};
    const int64_t delay = 30, ahead = 20;
    for (int64_t linked : {1, 3}) {
        const int64_t groups = 6 / linked;
        std::vector<double> state = noises(groups), after = state, factors = {0.5};
        const Signal<Sample> x = Signal<Sample>::random(6, 700, 2);
        Signal<Sample> key(6, 700), y(6, 700), expected(6, 700);
        for (int64_t c = 0; c < 6; ++c)
            for (int64_t t = 0; t < 700; ++t) key(c, t) = x(c, t) * Sample(0.5);
        const Program ducked = Program(dtype, 3)
            .step(TORCHFX_STEP_gain, 0, 2, dtype, {address(factors), 1, 1})
            .step(TORCHFX_STEP_dynamics, 0, 1, dtype, {2, linked, address(curve), 1, 1, address(state)});
        expect(run(ducked, x, y) == TORCHFX_OK, "a key is accepted");
        torchfx_dynamics_forward(dtype, x.values.data(), x.row, x.stride, 1, key.values.data(), linked * key.row, key.stride,
                                 1, expected.values.data(), expected.row, groups, linked, 1, 700, curve.data(), 1, 1,
                                 after.data(), after.data(), 1);
        expect(largest_difference(y, expected) == 0 && state == after, "dynamics with a key is the operator");

        std::vector<double> ramp(static_cast<size_t>(groups * ahead)), ramp_after = ramp;
        std::vector<Sample> past = silence<Sample>(6 * delay), before = past;
        std::fill(state.begin(), state.end(), 0.0);
        after = state;
        const Program limited = Program(dtype, 3)
            .step(TORCHFX_STEP_gain, 0, 2, dtype, {address(factors), 1, 1})
            .step(TORCHFX_STEP_limiter, 0, 1, dtype,
                  {2, linked, delay, ahead, address(wall), 1, 1, address(past), address(state), address(ramp)});
        expect(run(limited, x, y) == TORCHFX_OK, "peaks are accepted");
        torchfx_limiter_forward(dtype, x.values.data(), x.row, x.stride, 1, before.data(), delay, key.values.data(),
                                linked * key.row, key.stride, 1, expected.values.data(), expected.row, groups, linked, 1,
                                700, 1, ahead, wall.data(), 1, 1, after.data(), after.data(), ramp_after.data(),
                                ramp_after.data(), 1);
        expect(largest_difference(y, expected) == 0 && state == after && ramp == ramp_after,
               "limiter with peaks is the operator");
    }
}

// Two rows of systems, and channels whose loops have no table: no drive, or too much feedback.
template <class Sample>
void saturated_is_the_operator_in_blocks_of_any_size() {
    const int32_t dtype = dtype_of<Sample>;
    const int64_t channels = 7, samples = 700, states = 2;
    const std::vector<double> systems = {0.5, 0.1, 0.3, 0, 0.4, 0.2, 1, 0.5, 0.3, 0.7, 0, 0.3, 0.2, -0.4, 0.2, 0.5, 0.5, 0.8};
    const std::vector<double> feedback = {1, 2, 2, 1, 0.5, 100, 1}, drive = {1, 2, 0.1, 5, 0, 1, 3};
    const std::vector<double> outputs = {1, 0.5, 0.3, 0.4, -0.7, 1};
    std::vector<double> loops, state = noises(channels * states), after = state;
    for (size_t c = 0; c < 7; ++c) loops.push_back(feedback[c] * systems[c % 2 * 9 + 8]);
    std::vector<double> tables(7 * TORCHFX_SATURATION_TABLE);
    expect(torchfx_saturation_tables(loops.data(), channels, tables.data()) == TORCHFX_OK, "tables are made");
    const Signal<Sample> x = Signal<Sample>::random(channels, samples, 2);
    Signal<Sample> y(channels, samples), expected(channels, samples);
    const std::vector<int64_t> arguments = {address(systems), states, 2, 1, address(outputs), address(feedback),
                                            address(drive), address(tables), channels, 1, address(state)};
    run_in_blocks(Program(dtype).step(TORCHFX_STEP_saturated, 0, 1, dtype, arguments), x, y);
    expect(torchfx_saturated_forward(dtype, x.values.data(), x.row, x.stride, 1, expected.values.data(), expected.row,
                                     channels, samples, systems.data(), states, 1, 2, 1, outputs.data(), feedback.data(),
                                     drive.data(), nullptr, 1, 1, after.data(), after.data(), 2) == TORCHFX_OK, "the operator runs");
    expect(largest_difference(y, expected) < (sizeof(Sample) == 4 ? 1e-6 : 1e-13), "saturated is the operator");
    for (size_t i = 0; i < state.size(); ++i) expect(std::fabs(state[i] - after[i]) < 1e-13, "and leaves its state");
    for (size_t i = 0; i < arguments.size(); ++i) {
        std::vector<int64_t> wrong = arguments;
        wrong[i] = 0;
        expect(run(Program(dtype).step(TORCHFX_STEP_saturated, 0, 1, dtype, wrong), x, y) == TORCHFX_BAD_ARGUMENT,
               "an argument of 0 is refused");
    }
}

double definition(int64_t curve, double x, double p) {
    const double u = std::fabs(p * x), v = std::fmin(1.0, std::fmax(-1.0, p * x));
    switch (curve) {
        case TORCHFX_CURVE_clip: return std::fmin(std::fmax(x, -p), p);
        case TORCHFX_CURVE_tanh: return std::tanh(p * x);
        case TORCHFX_CURVE_cubic: return (3 * v - v * v * v) / 2;
        case TORCHFX_CURVE_arctan: return std::atan(p * x) * 2 / std::acos(-1.0);
        case TORCHFX_CURVE_overdrive:
            return std::copysign(u < 1.0 / 3 ? 2 * u : u < 2.0 / 3 ? (3 - (2 - 3 * u) * (2 - 3 * u)) / 3 : 1, x);
        case TORCHFX_CURVE_round: return std::nearbyint(p * x) / p;
        case TORCHFX_CURVE_square: return p * x * x;
        default: return p * std::fabs(std::fmin(1.0, std::fmax(-1.0, x)));  // a table: p, 0, p
    }
}

template <class Sample>
void curves_are_their_formulas() {
    const int32_t dtype = dtype_of<Sample>;
    const int64_t samples = 700;
    constexpr double subnormal = std::numeric_limits<Sample>::min();
    std::vector<double> parameters = {0.25, 1, 8, 1, 0, 1, 2, 0, 2, 0.5, 0, 0.5};
    for (int64_t curve = 0; curve < TORCHFX_CURVE_COUNT; ++curve)
        for (int64_t stride : {1, 2}) {
            const bool table = curve == TORCHFX_CURVE_table;
            const int64_t length = table ? 3 : 1;
            const double* const own = parameters.data() + (table ? 3 : 0);
            Signal<Sample> x = Signal<Sample>::random(4, samples, stride), y(4, samples);
            for (int64_t t = 0; t < samples; ++t) x(1, t) *= static_cast<Sample>(std::exp2(static_cast<double>(t % 120 - 60)));
            x(2, 5) = static_cast<Sample>(nan);
            const int64_t at = static_cast<int64_t>(reinterpret_cast<intptr_t>(own));
            const std::vector<int64_t> arguments = {curve, at, length, 3, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0};
            expect(run(Program(dtype).step(TORCHFX_STEP_curve, 0, 1, dtype, arguments), x, y) == TORCHFX_OK, "curve is accepted");
            bool right = true;
            for (int64_t c = 0; c < 4; ++c)
                for (int64_t t = 0; t < samples; ++t) {
                    const double wanted = definition(curve, double{x(c, t)}, own[c % 3 * length]);
                    // Of float samples quotients are floats, as their terms are.
                    const double rounding = sizeof(Sample) == 4 ? 2e-7 : 1e-15, size = table ? 2 : std::fabs(wanted);
                    right = right && (std::isnan(x(c, t)) ? std::isnan(y(c, t))
                                                          : std::fabs(y(c, t) - wanted) <= rounding * size + subnormal);
                }
            context = "curve " + std::to_string(curve);
            expect(right, "a curve is its formula");
        }
    context = sizeof(Sample) == 4 ? "float32" : "float64";
}

// With low-passes that repeat a sample and take the first one of each again, oversampling is a delay.
template <class Sample>
void an_oversampled_curve_is_late() {
    const int32_t dtype = dtype_of<Sample>;
    const int64_t wait = 3, up = 2, samples = 400;
    std::vector<double> drive = {2}, there = {1, 0, 1, 0}, back = {1};
    std::vector<Sample> past = silence<Sample>(3 * 2 * wait), shaped = silence<Sample>(3 * 2 * wait * up);
    const Signal<Sample> x = Signal<Sample>::random(3, samples, 2);
    Signal<Sample> y(3, samples);
    const std::vector<int64_t> arguments = {TORCHFX_CURVE_tanh, address(drive), 1, 1, 1, up, address(there), 2,
                                            address(back), 1, 0, wait, address(past), address(shaped)};
    run_in_blocks(Program(dtype).step(TORCHFX_STEP_curve, 0, 1, dtype, arguments), x, y);
    double worst = 0;
    for (int64_t c = 0; c < 3; ++c)
        for (int64_t t = 0; t < samples; ++t)
            worst = std::max(worst, std::fabs(y(c, t) - (t < 2 * wait ? 0 : std::tanh(2 * double{x(c, t - 2 * wait)}))));
    expect(worst < 1e-6, "an oversampled curve comes 2 wait samples late");
    const auto status = [&](size_t argument, int64_t value) {
        std::vector<int64_t> wrong = arguments;
        wrong[argument] = value;
        return run(Program(dtype).step(TORCHFX_STEP_curve, 0, 1, dtype, wrong), x, y);
    };
    for (size_t argument : {1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13})
        expect(status(argument, 0) == TORCHFX_BAD_ARGUMENT, "an argument of 0 is refused");
    for (int64_t curve : {-1, int{TORCHFX_CURVE_COUNT}}) expect(status(0, curve) == TORCHFX_BAD_ARGUMENT, "no such curve");
    expect(status(0, TORCHFX_CURVE_table) == TORCHFX_BAD_ARGUMENT, "a table of one entry");
    expect(status(10, -1) == TORCHFX_BAD_ARGUMENT, "no middle");
    expect(status(3, 4) == TORCHFX_BAD_ARGUMENT, "a row without a channel");
    drive[0] = nan;
    expect(status(10, 0) == TORCHFX_NOT_FINITE, "a NaN is refused");
}

// With a key of its own, and without one.
template <class Sample>
void compand_is_its_definition_in_blocks_of_any_size() {
    const int32_t dtype = dtype_of<Sample>;
    const int64_t samples = 1300, points = 2;
    // rise, fall, half the knee; level, gain, slope, bend share of each point
    const std::vector<double> settings = {0.2, 0.01, 3, -40, 6, -0.5, -0.04, -10, -9, 0.2, 0.05,
                                          0.05, 0.3, 0, -60, 0, 1, 0, -20, 40, 1, 0};
    for (int64_t key : {0, 2})
        for (int64_t linked : {1, 2}) {
            std::vector<double> state(static_cast<size_t>(4 / linked), 0.1);
            Signal<Sample> x = Signal<Sample>::random(4, samples, 2);
            Signal<Sample> y(4, samples);
            for (int64_t t = 0; t < samples; ++t) x(0, t) = t % 500 < 200 ? x(0, t) : x(0, t) / 100;
            const std::vector<int64_t> arguments = {key, linked, address(settings), points, 2, 1, address(state)};
            Program program(dtype, key ? 3 : 2);
            if (key) program = program.step(TORCHFX_STEP_maximum, 0, 2, dtype, {linked, 0, 0});
            run_in_blocks(program.step(TORCHFX_STEP_compand, 0, 1, dtype, arguments), x, y);
            double worst = 0;
            for (int64_t g = 0; g < 4 / linked; ++g) {
                const double* const own = settings.data() + g % 2 * (3 + 4 * points);
                double size = 0.1;
                for (int64_t t = 0; t < samples; ++t) {
                    double peak = 0;
                    for (int64_t c = g * linked; c < (g + 1) * linked; ++c) peak = std::fmax(peak, std::fabs(double{x(c, t)}));
                    size += own[peak > size ? 0 : 1] * (peak - size);
                    const double level = 20 * std::log10(std::fmax(size, 1e-15));
                    double gain = own[4], rounding = 0;
                    for (int64_t n = 0; n < points; ++n) {
                        const double *const point = own + 3 + 4 * n, over = level - point[0];
                        if (over > 0) gain = point[1] + point[2] * over;
                        rounding += point[3] * std::pow(std::fmax(own[2] - std::fabs(over), 0), 2);
                    }
                    for (int64_t c = g * linked; c < (g + 1) * linked; ++c) {
                        const double wanted = x(c, t) * std::pow(10, (gain + rounding) / 20);
                        worst = std::fmax(worst, std::fabs(y(c, t) - wanted) / std::fmax(std::fabs(wanted), 1));
                    }
                }
            }
            expect(worst < (sizeof(Sample) == 4 ? 2e-7 : 1e-12), "compand is its definition");
            for (size_t argument = 1; argument < arguments.size(); ++argument) {
                std::vector<int64_t> wrong = arguments;
                wrong[argument] = 0;
                wrong[0] = 0;
                expect(run(Program(dtype).step(TORCHFX_STEP_compand, 0, 1, dtype, wrong), x, y) == TORCHFX_BAD_ARGUMENT,
                       "an argument that does not fit is refused");
            }
        }
}

template <class Sample>
void transient_is_its_definition_in_blocks_of_any_size() {
    const int32_t dtype = dtype_of<Sample>;
    const int64_t samples = 1300;
    const std::vector<double> settings = {9, -4, 0.01, 0.002, -120, 20, -6, 3, 0.1, 0.05, -60, 10};
    for (int64_t linked : {1, 2}) {
        const int64_t groups = 4 / linked;
        std::vector<double> rising(static_cast<size_t>(groups), 30.0), falling(static_cast<size_t>(groups), 100.0);
        Signal<Sample> x = Signal<Sample>::random(4, samples, 2);
        Signal<Sample> y(4, samples);
        for (int64_t t = 0; t < samples; ++t) x(0, t) = t % 500 < 200 ? x(0, t) : Sample{0};
        const std::vector<int64_t> arguments = {2, linked, address(settings), 2, 1, address(rising), address(falling)};
        const Program program = Program(dtype, 3)
                                    .step(TORCHFX_STEP_maximum, 0, 2, dtype, {linked, 0, 0})
                                    .step(TORCHFX_STEP_transient, 0, 1, dtype, arguments);
        run_in_blocks(program, x, y);
        double worst = 0;
        for (int64_t g = 0; g < groups; ++g) {
            const double* const own = settings.data() + g % 2 * 6;
            double rise = 30, fall = 100;
            for (int64_t t = 0; t < samples; ++t) {
                double peak = 0;
                for (int64_t c = g * linked; c < (g + 1) * linked; ++c) peak = std::fmax(peak, std::fabs(double{x(c, t)}));
                const double level = std::fmax(20 * std::log10(peak) - own[4], 0);
                rise += (level > rise ? own[2] : 1) * (level - rise);
                fall += (level > fall ? 1 : own[3]) * (level - fall);
                const double db = own[0] * std::fmin(std::fabs(level - rise) / own[5], 1) +
                                  own[1] * std::fmin(std::fabs(level - fall) / own[5], 1);
                for (int64_t c = g * linked; c < (g + 1) * linked; ++c)
                    worst = std::fmax(worst, std::fabs(y(c, t) - x(c, t) * std::pow(10, db / 20)));
            }
        }
        expect(worst < (sizeof(Sample) == 4 ? 5e-7 : 1e-12), "transient is its definition");
        for (size_t argument = 0; argument < arguments.size(); ++argument) {
            std::vector<int64_t> wrong = arguments;
            wrong[argument] = argument ? 0 : 1;  // for the key the target, which nothing was written to
            expect(run(Program(dtype).step(TORCHFX_STEP_transient, 0, 1, dtype, wrong), x, y) == TORCHFX_BAD_ARGUMENT,
                   "an argument that does not fit is refused");
        }
    }
}

template <class Sample>
void mix_sums_a_groups_channels_by_weights() {
    const int32_t dtype = dtype_of<Sample>;
    const int64_t width = 3, channels = 6, samples = 1100;
    std::vector<double> weights = noises(2 * width * width);  // of either group
    const Signal<Sample> x = Signal<Sample>::random(channels, samples, 2);
    Signal<Sample> y(channels, samples);
    const std::vector<int64_t> arguments = {width, address(weights), 2, 1};
    expect(run(Program(dtype).step(TORCHFX_STEP_mix, 0, 1, dtype, arguments), x, y) == TORCHFX_OK, "mix runs");
    double worst = 0;
    for (int64_t c = 0; c < channels; ++c)
        for (int64_t t = 0; t < samples; ++t) {
            double sum = 0;
            for (int64_t i = 0; i < width; ++i)
                sum += weights[static_cast<size_t>(c * width + i)] * static_cast<double>(x(c / width * width + i, t));
            worst = std::max(worst, std::fabs(y(c, t) - static_cast<double>(static_cast<Sample>(sum))));
        }
    expect(worst < (sizeof(Sample) == 4 ? 1e-6 : 1e-14), "mix is the sum of a group's channels by weights");
    const auto status = [&](const std::vector<int64_t>& wrong) {
        return run(Program(dtype).step(TORCHFX_STEP_mix, 0, 1, dtype, wrong), x, y);
    };
    expect(status({4, address(weights), 1, 1}) == TORCHFX_BAD_ARGUMENT, "no whole groups");
    expect(status({width, 0, 2, 1}) == TORCHFX_BAD_ARGUMENT, "no weights");
    expect(status({width, address(weights), 3, 1}) == TORCHFX_BAD_ARGUMENT, "more rows than groups");
    weights[0] = infinity;
    expect(status(arguments) == TORCHFX_NOT_FINITE, "an infinite weight is refused");
}

template <class Sample>
void every_step_equals_its_definition() {
    context = sizeof(Sample) == 4 ? "float32" : "float64";
    gain_multiplies_by_the_factor_of_the_row<Sample>();
    clamp_bounds_all_but_nans<Sample>();
    add_sums_two_buffers<Sample>();
    crossfade_waits_and_crosses_in_any_blocks<Sample>();
    delay_gives_its_state_first_and_keeps_the_last_inputs<Sample>();
    sos_and_fir_are_the_recurrence_and_the_sum<Sample>();
    partitioned_is_the_sum_in_blocks_of_any_size<Sample>();
    dynamics_is_the_operator_for_groups_of_channels<Sample>();
    limiter_is_the_operator_in_blocks_of_any_size<Sample>();
    what_swings_is_the_operator_in_blocks_of_any_size<Sample>();
    maximum_is_the_largest_magnitude_so_far_in_blocks_of_any_size<Sample>();
    true_peak_hears_what_lies_between<Sample>();
    mix_sums_a_groups_channels_by_weights<Sample>();
    detectors_hear_the_first_of_a_groups_channels_in_a_second_source<Sample>();
    saturated_is_the_operator_in_blocks_of_any_size<Sample>();
    curves_are_their_formulas<Sample>();
    an_oversampled_curve_is_late<Sample>();
    transient_is_its_definition_in_blocks_of_any_size<Sample>();
    compand_is_its_definition_in_blocks_of_any_size<Sample>();
}

// --- chains --------------------------------------------------------------------------------------------

// In one tile the steps get what the single calls get; in several, states pass between.
void a_chain_equals_the_single_calls() {
    for (int64_t samples : {1, 1000, 100000}) {
        context = "chain over " + std::to_string(samples) + " samples";
        const int64_t n_taps = 101, channels = 2;
        const Signal<float> x = Signal<float>::random(channels, samples);
        Signal<float> y(channels, samples), expected(channels, samples);
        const std::vector<double> taps = noises(n_taps);
        const std::vector<double> taps_start = noises(channels * (n_taps - 1)), start = noises(2 * channels * 2);
        std::vector<double> taps_state = taps_start, state = start, taps_after = taps_start, after = start;
        const Program program = Program(TORCHFX_F32, 4)
                                    .step(TORCHFX_STEP_widen, 0, 2, TORCHFX_F32)
                                    .step(TORCHFX_STEP_fir, 2, 3, TORCHFX_F64, {address(taps), n_taps, 1, 1, address(taps_state)})
                                    .step(TORCHFX_STEP_sos, 3, 2, TORCHFX_F64, {address(sections), 2, 1, 1, address(state)})
                                    .step(TORCHFX_STEP_narrow, 2, 1, TORCHFX_F64)
                                    .step(TORCHFX_STEP_clamp, 1, 1, TORCHFX_F32, {bits(-2.0), bits(2.0)});
        expect(run(program, x, y) == TORCHFX_OK, "the chain is accepted");
        Signal<double> wide(channels, samples), filtered(channels, samples), cascaded(channels, samples);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t t = 0; t < samples; ++t) wide(c, t) = double{x(c, t)};
        torchfx_fir_forward(TORCHFX_F64, wide.values.data(), wide.row, 1, 1, filtered.values.data(), filtered.row, channels,
                            samples, taps.data(), n_taps, 1, 1, taps_after.data(), taps_after.data(), 2);
        const Program alone =
            Program(TORCHFX_F64).step(TORCHFX_STEP_sos, 0, 1, TORCHFX_F64, {address(sections), 2, 1, 1, address(after)});
        run(alone, filtered, cascaded);
        for (int64_t c = 0; c < channels; ++c)
            for (int64_t t = 0; t < samples; ++t)
                expected(c, t) = std::min(std::max(static_cast<float>(cascaded(c, t)), -2.0f), 2.0f);
        const bool one_tile = samples < 100000;
        expect(one_tile ? y.values == expected.values : largest_difference(y, expected) < 1e-6, "the chain equals the calls");
        double error = 0;
        for (size_t i = 0; i < state.size(); ++i) error = std::fmax(error, std::fabs(state[i] - after[i]));
        for (size_t i = 0; i < taps_state.size(); ++i) error = std::fmax(error, std::fabs(taps_state[i] - taps_after[i]));
        expect(error < (one_tile ? 1e-300 : 1e-11), "the chain leaves the states of the calls");
    }
}

// Steps that go sample by sample, over more than one tile.
template <class Sample>
class Recursion {
public:
    explicit Recursion(bool with_sos)
        : state_(2 * 3 * 2), kept_(3 * delay), program_(dtype_of<Sample>, 4) {
        const int32_t dtype = dtype_of<Sample>;
        if (with_sos) program_.step(TORCHFX_STEP_sos, 0, 2, dtype, {address(sections), 2, 1, 1, address(state_)});
        else program_.step(TORCHFX_STEP_gain, 0, 2, dtype, {address(factors_), 1, 1});
        program_.step(TORCHFX_STEP_delay, 2, 3, dtype, {delay, address(kept_)})
            .step(TORCHFX_STEP_gain, 3, 3, dtype, {address(factors_), 3, 1})
            .step(TORCHFX_STEP_add, 3, 1, dtype, {0})
            .step(TORCHFX_STEP_clamp, 1, 1, dtype, {bits(-1.0), bits(1.0)});
    }
    Recursion(const Recursion&) = delete;

    // Of the samples [first, first + count).
    int32_t run(const Signal<Sample>& x, Signal<Sample>& y, int64_t first, int64_t count) {
        return torchfx_program_run(program_.words.data(), program_.size(), &x.values[static_cast<size_t>(first)], x.row, 1,
                                   &y.values[static_cast<size_t>(first)], y.row, 3, count, never, 2);
    }

private:
    static constexpr int64_t delay = 123;
    const std::vector<double> factors_ = {0.5, 0.3, -0.7};
    std::vector<double> state_;
    std::vector<Sample> kept_;
    Program program_;
};

template <class Sample>
void any_blocks_equal_the_whole(bool with_sos) {
    context = std::string("blocks, ") + (sizeof(Sample) == 4 ? "float32" : "float64");
    const int64_t samples = 50000;
    const Signal<Sample> x = Signal<Sample>::random(3, samples);
    Signal<Sample> whole(3, samples), parts(3, samples);
    expect(Recursion<Sample>(with_sos).run(x, whole, 0, samples) == TORCHFX_OK, "the whole is accepted");
    Recursion<Sample> recursion(with_sos);
    const int64_t lengths[] = {0, 1, 7, 1000, 30000};
    bool accepted = true;
    for (int64_t t = 0, i = 0, count; t < samples; t += count, ++i) {
        count = std::min(lengths[i % 4 == 3 && i > 40 ? 4 : i % 4], samples - t);
        accepted = accepted && recursion.run(x, parts, t, count) == TORCHFX_OK;
    }
    expect(accepted, "blocks are accepted");
    expect(whole.values == parts.values, "blocks equal the whole to the bit");
}

void a_block_of_no_samples_is_no_error() {
    context = "no samples";
    const std::vector<double> taps = {1, 2, 3}, start = {4, 5};
    std::vector<double> state = start;
    const Program program =
        Program(TORCHFX_F32).step(TORCHFX_STEP_fir, 0, 1, TORCHFX_F32, {address(taps), 3, 1, 1, address(state)});
    expect(torchfx_program_run(program.words.data(), program.size(), nullptr, 0, 1, nullptr, 0, 1, 0, never, 1) == TORCHFX_OK,
           "a block of no samples is accepted");
    expect(state == start, "and changes no state");
}

// --- refusals ------------------------------------------------------------------------------------------

// A program of all kinds, what it points to, and the damage a test does to it.
class Victim {
public:
    Victim() : taps(5, 0.1), factors(2, 0.5), sos(sections), sos_state(2 * 2 * 2, 0.25), fir_state(2 * 4, 0.5), kept(2 * 3, 0.75f),
               program(TORCHFX_F32, 4) {
        program.step(TORCHFX_STEP_gain, 0, 2, TORCHFX_F32, {address(factors), 2, 1})
            .step(TORCHFX_STEP_delay, 2, 3, TORCHFX_F32, {3, address(kept)})
            .step(TORCHFX_STEP_add, 3, 1, TORCHFX_F32, {2})
            .step(TORCHFX_STEP_widen, 1, 2, TORCHFX_F32)
            .step(TORCHFX_STEP_fir, 2, 3, TORCHFX_F64, {address(taps), 5, 1, 1, address(fir_state)})
            .step(TORCHFX_STEP_sos, 3, 2, TORCHFX_F64, {address(sos), 2, 1, 1, address(sos_state)})
            .step(TORCHFX_STEP_narrow, 2, 1, TORCHFX_F64)
            .step(TORCHFX_STEP_clamp, 1, 1, TORCHFX_F32, {bits(-1.0), bits(1.0)});
    }
    Victim(const Victim&) = delete;

    int64_t& header(size_t word) { return program.words[word]; }
    int64_t& word(size_t step, size_t word) { return program.words[program.records[step] + word]; }
    int64_t& argument(size_t step, size_t argument) { return word(step, 5 + argument); }

    std::vector<double> taps, factors, sos, sos_state, fir_state;
    std::vector<float> kept;
    Program program;
};

enum StepOf { gain, delay, add, widen, fir, sos, narrow, clamp };  // where in it

void expect_refused(const char* what, int32_t status, const std::function<void(Victim&)>& harm) {
    context = what;
    Victim victim;
    harm(victim);
    const std::vector<double> sos_state = victim.sos_state, fir_state = victim.fir_state;
    const std::vector<float> kept = victim.kept;
    const Signal<float> x = Signal<float>::random(2, 50);
    Signal<float> y(2, 50);
    const std::vector<float> untouched = y.values;
    expect(run(victim.program, x, y) == status, "a damaged program is refused, for its reason");
    expect(y.values == untouched, "a refused program writes no sample");
    expect(victim.sos_state == sos_state && victim.fir_state == fir_state && victim.kept == kept,
           "a refused program changes no state");
}

void a_program_that_does_not_fit_together_is_refused() {
    constexpr int64_t huge = std::numeric_limits<int64_t>::max();
    const auto refused = [](const char* what, const std::function<void(Victim&)>& harm) {
        expect_refused(what, TORCHFX_BAD_ARGUMENT, harm);
    };
    refused("no words", [](Victim& v) { v.program.words.clear(); });
    refused("a header alone", [](Victim& v) { v.program.words.resize(3); });
    refused("a word too few", [](Victim& v) { v.program.words.pop_back(); });
    refused("a word too many", [](Victim& v) { v.program.words.push_back(0); });
    for (int64_t dtype : {-1, 2}) refused("unknown dtype", [=](Victim& v) { v.header(0) = dtype; });
    refused("the other dtype", [](Victim& v) { v.header(0) = TORCHFX_F64; });
    for (int64_t steps : {int64_t{-1}, int64_t{0}, int64_t{7}, int64_t{9}, huge})
        refused("number of steps", [=](Victim& v) { v.header(1) = steps; });
    for (int64_t buffers : {int64_t{-1}, int64_t{0}, int64_t{1}, int64_t{3}, int64_t{11}, huge})
        refused("number of buffers", [=](Victim& v) { v.header(2) = buffers; });
    for (size_t step = 0; step < 8; ++step) {
        for (int64_t kind : {int64_t{-1}, int64_t{9}, huge}) refused("kind", [=](Victim& v) { v.word(step, 0) = kind; });
        for (int64_t size : {int64_t{-1}, int64_t{0}, int64_t{4}, int64_t{11}, huge})
            refused("record's size", [=](Victim& v) { v.word(step, 1) = size; });
        for (int64_t source : {int64_t{-1}, int64_t{4}, huge}) refused("source", [=](Victim& v) { v.word(step, 2) = source; });
        for (int64_t target : {int64_t{-1}, int64_t{0}, int64_t{4}, huge})
            refused("target", [=](Victim& v) { v.word(step, 3) = target; });
        for (int64_t dtype : {int64_t{-1}, int64_t{2}, huge}) refused("dtype", [=](Victim& v) { v.word(step, 4) = dtype; });
        refused("the other dtype", [=](Victim& v) { v.word(step, 4) = 1 - v.word(step, 4); });
    }
    refused("another kind's size", [](Victim& v) { v.word(gain, 0) = TORCHFX_STEP_sos; });
    refused("an unwritten source", [](Victim& v) { v.word(gain, 2) = 3; });
    for (size_t step : {delay, widen, fir, sos, narrow})
        refused("the source as target", [=](Victim& v) { v.word(step, 3) = v.word(step, 2); });
    refused("doubles written to y", [](Victim& v) { v.word(sos, 3) = 1; });
    refused("y never written", [](Victim& v) {
        for (size_t step : {add, narrow, clamp}) v.word(step, 3) = 3;
        for (size_t step : {widen, clamp}) v.word(step, 2) = 3;
    });
    for (int64_t second : {int64_t{-1}, int64_t{1}, int64_t{4}, huge})
        refused("second source", [=](Victim& v) { v.argument(add, 0) = second; });
    for (size_t argument : {0, 1, 2}) refused("gain of 0", [=](Victim& v) { v.argument(gain, argument) = 0; });
    refused("a factor without a channel", [](Victim& v) { v.argument(gain, 1) = 3; });
    for (size_t argument : {0, 1}) refused("delay of 0", [=](Victim& v) { v.argument(delay, argument) = 0; });
    for (size_t argument : {0, 1, 2, 3, 4}) {
        refused("fir of 0", [=](Victim& v) { v.argument(fir, argument) = 0; });
        refused("sos of 0", [=](Victim& v) { v.argument(sos, argument) = 0; });
    }
    refused("a row of taps without a channel", [](Victim& v) { v.argument(fir, 2) = 3; });
    refused("rows of sections without a channel", [](Victim& v) { v.argument(sos, 2) = 3; });
}

void coefficients_that_a_step_refuses_are_refused_before_any_step_runs() {
    for (double bad : {nan, infinity}) {
        expect_refused("taps", TORCHFX_NOT_FINITE, [=](Victim& v) { v.taps[3] = bad; });
        expect_refused("sections", TORCHFX_NOT_FINITE, [=](Victim& v) { v.sos[10] = bad; });
        expect_refused("factors", TORCHFX_NOT_FINITE, [=](Victim& v) { v.factors[1] = bad; });
    }
    for (size_t bound : {0, 1})
        expect_refused("bounds", TORCHFX_NOT_FINITE, [=](Victim& v) { v.argument(clamp, bound) = bits(nan); });
    expect_refused("a pole outside", TORCHFX_UNSTABLE, [](Victim& v) { v.sos[11] = 2; });
}

void a_partitioned_step_that_does_not_fit_is_refused() {
    context = "partitioned";
    std::vector<double> taps = noises(10), state(2 * 9), work(100000);
    const Signal<float> x = Signal<float>::random(2, 50);
    Signal<float> y(2, 50);
    const std::vector<int64_t> good = {1, address(taps), 10, 1, 1, address(state), address(work)};
    const auto status = [&](size_t argument, int64_t value) {
        std::vector<int64_t> arguments = good;
        arguments[argument] = value;
        return run(Program(TORCHFX_F32).step(TORCHFX_STEP_partitioned, 0, 1, TORCHFX_F32, arguments), x, y);
    };
    for (size_t argument = 0; argument < good.size(); ++argument)
        expect(status(argument, 0) == TORCHFX_BAD_ARGUMENT, "an argument of 0 is refused");
    expect(status(0, 3) == TORCHFX_BAD_ARGUMENT, "channels that make no whole group are refused");
    expect(status(2, 1) == TORCHFX_BAD_ARGUMENT, "one tap is refused");
    expect(status(3, 3) == TORCHFX_BAD_ARGUMENT, "a row of taps without a channel is refused");
    int64_t size = 0, spectra = 0;
    expect(torchfx_fir_partitioned_size(0, 1, 10, 1, &size, &spectra) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(torchfx_fir_settle(2, 1, taps.data(), 10, 1, 1, state.data(), work.data(), 0) == TORCHFX_BAD_ARGUMENT,
           "no threads are refused");
    taps[3] = nan;
    expect(status(0, 1) == TORCHFX_NOT_FINITE, "taps that are not finite are refused");
}

// A delay of 3 samples, whose late output is its input.
template <class Sample>
void copied_states_stay_as_they_are() {
    context = "copied states";
    constexpr int64_t delay = 3;
    const std::vector<double> factors = {2};
    for (int64_t samples : {1, 2, 3, 4, 70}) {
        const Signal<Sample> x = Signal<Sample>::random(2, samples, 2);
        const std::vector<Sample> state = {1, 2, 3, 4, 5, 6};
        const Program program = Program(dtype_of<Sample>, 3)
            .step(TORCHFX_STEP_gain, 0, 2, dtype_of<Sample>, {address(factors), 1, 1})
            .step(TORCHFX_STEP_delay, 2, 1, dtype_of<Sample>, {delay, address(state)});
        const auto call = [&](int64_t late, int64_t bytes, Signal<Sample>& y) {
            return torchfx_program_run_copied(program.words.data(), program.size(), state.data(), bytes, late,
                                              x.values.data(), x.row, x.stride, y.values.data(), y.row, 2, samples, never, 1);
        };
        Signal<Sample> aligned(2, samples), lagging(2, samples), untouched(2, samples);
        const auto size = static_cast<int64_t>(state.size() * sizeof(Sample));
        expect(call(delay, size, aligned) == TORCHFX_OK && call(0, size, lagging) == TORCHFX_OK, "both are accepted");
        expect(holds<Sample>(aligned, [&](int64_t c, int64_t t) { return 2 * x(c, t); }), "what is late is left out");
        expect(holds<Sample>(lagging, [&](int64_t c, int64_t t) {
                   return t < delay ? state[static_cast<size_t>(c * delay + t)] : 2 * x(c, t - delay);
               }), "the states are heard");
        expect(state == std::vector<Sample>{1, 2, 3, 4, 5, 6}, "the states stay as they are");
        expect(call(-1, size, untouched) == TORCHFX_BAD_ARGUMENT && call(0, -1, untouched) == TORCHFX_BAD_ARGUMENT,
               "negative numbers are refused");
        expect(holds<Sample>(untouched, [](int64_t, int64_t) { return static_cast<Sample>(1234567); }),
               "a refused call writes nothing");
    }
}

void arguments_of_the_call_are_checked() {
    context = "arguments";
    const Victim victim;
    const Signal<float> x = Signal<float>::random(2, 50);
    Signal<float> y(2, 50);
    const std::vector<float> untouched = y.values;
    const auto call = [&](const void* from, void* to, int64_t channels, int64_t samples, int32_t threads) {
        return torchfx_program_run(victim.program.words.data(), victim.program.size(), from, x.row, 1, to, y.row, channels,
                                   samples, never, threads);
    };
    const float* const in = x.values.data();
    float* const out = y.values.data();
    expect(call(nullptr, out, 2, 50, 1) == TORCHFX_BAD_ARGUMENT, "no x is refused");
    expect(call(in, nullptr, 2, 50, 1) == TORCHFX_BAD_ARGUMENT, "no y is refused");
    expect(call(in, out, 0, 50, 1) == TORCHFX_BAD_ARGUMENT, "no channels are refused");
    expect(call(in, out, 2, -1, 1) == TORCHFX_BAD_ARGUMENT, "negative lengths are refused");
    expect(call(in, out, 2, 50, 0) == TORCHFX_BAD_ARGUMENT, "no threads are refused");
    expect(torchfx_program_run(nullptr, 10, in, x.row, 1, out, y.row, 2, 50, never, 1) == TORCHFX_BAD_ARGUMENT,
           "no program is refused");
    expect(y.values == untouched, "a refused call writes nothing");
    expect(call(in, out, 2, 50, 1) == TORCHFX_OK && y.values != untouched, "the same program runs where nothing is wrong");
}

}  // namespace

int main() {
    with_every_isa([] {
        every_step_equals_its_definition<float>();
        every_step_equals_its_definition<double>();
        a_chain_equals_the_single_calls();
    });
    widen_and_narrow_convert();
    any_blocks_equal_the_whole<float>(true);
    any_blocks_equal_the_whole<double>(false);
    copied_states_stay_as_they_are<float>();
    copied_states_stay_as_they_are<double>();
    a_block_of_no_samples_is_no_error();
    a_program_that_does_not_fit_together_is_refused();
    coefficients_that_a_step_refuses_are_refused_before_any_step_runs();
    a_partitioned_step_that_does_not_fit_is_refused();
    arguments_of_the_call_are_checked();
    return report();
}
