// torchfx_lfilter_forward and torchfx_lfilter_zero_phase: transfer functions in the transposed direct form, a channel in
// each lane.
#include <algorithm>
#include <cmath>
#include <vector>

#include "allpole/transfer_kernels.h"
#include "support/both_ways.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/scratch.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

void run_kernel(const TransferKernels& kernels, const TransferLanes<float>& of) { kernels.forward_f32(of); }
void run_kernel(const TransferKernels& kernels, const TransferLanes<double>& of) { kernels.forward_f64(of); }
void run_kernel(const TransferKernels& kernels, const TransferLanes<float, double>& of) { kernels.forward_widening(of); }
void run_kernel(const TransferKernels& kernels, const TransferLanes<double, float>& of) { kernels.forward_narrowing(of); }

// (rows, order + 1), a0 = 1.
struct Polynomials {
    const double* data;
    int64_t order;
    Rows rows;

    const double* of(int64_t channel) const { return data + rows.of(channel) * (order + 1); }
    bool finite() const {
        return std::all_of(data, data + rows.count * (order + 1), [](double value) { return std::isfinite(value); });
    }
    // Those of a lane's channel, to (order + 1, lanes).
    void load(int64_t channel, int lanes, double* to) const {
        for (int64_t k = 0; k <= order; ++k) to[k * lanes] = of(channel)[k];
    }
};

struct Transfer {
    Polynomials b, a;
    int threads;

    int64_t order() const { return b.order; }
    int32_t check(int64_t channels) const {
        if (!b.data || !a.data || order() < 1 || threads < 1 || !b.rows.valid(channels) || !a.rows.valid(channels))
            return TORCHFX_BAD_ARGUMENT;
        return b.finite() && a.finite() ? TORCHFX_OK : TORCHFX_NOT_FINITE;
    }
};

// How channels are cut: into segments of so many samples, each of which but a channel's first starts that much earlier, from
// rest.
struct Cut {
    int64_t length, warm_up;
};

// What may be left of a state's entry in the others where a segment starts: far below the rounding of the samples, because
// the states of low filters are far larger than their outputs.
double forgotten(int64_t bytes_per_sample) { return bytes_per_sample == 4 ? 1e-17 : 1e-22; }

// Segments shorter than this would hardly be longer than what they warm up.
constexpr int64_t shortest_cut = 1024, shortest_warm_up = 512;

// After how many samples, at most `at_most`, a filter has forgotten its state, found by filtering silence from each unit
// state; 0 if it hasn't by then.
int64_t forgets_after(const Transfer& of, int64_t at_most, double tolerance) {
    const TransferKernels& kernels = TORCHFX_KERNELS(transfer_kernels);
    const int64_t n = of.order(), lanes = kernels.lanes;
    const auto size = [&](int64_t rows) { return static_cast<std::size_t>(rows * lanes); };
    std::vector<double> b(size(n + 1)), a(size(n + 1)), z(size(n) * static_cast<std::size_t>((n + lanes - 1) / lanes));
    for (int64_t k = 0; k <= n; ++k)
        for (int64_t lane = 0; lane < lanes; ++lane) a[static_cast<std::size_t>(k * lanes + lane)] = of.a.data[k];
    const auto entry = [&](int64_t k, int64_t unit) -> double& {
        return z[static_cast<std::size_t>((unit / lanes * n + k) * lanes + unit % lanes)];
    };
    for (int64_t k = 0; k < n; ++k) entry(k, k) = 1;
    TransferLanes<double> silence = {};
    silence.stride = 1;
    silence.order = n;
    silence.b = b.data();
    silence.a = a.data();
    int64_t passed = 0;
    for (int64_t next = shortest_warm_up; next <= at_most; next *= 2) {
        silence.count = next - passed;
        passed = next;
        for (int64_t unit = 0; unit < n; unit += lanes) {
            silence.state = &entry(0, unit);
            kernels.forward_f64(silence);
        }
        if (std::all_of(z.begin(), z.end(), [&](double v) { return std::fabs(v) < tolerance; })) return passed;
    }
    return 0;
}

template <class In, class Out>
Cut cut_of(const Transfer& of, int64_t channels, const Pass<In, Out>& pass) {
    const Cut whole = {pass.samples, 0};
    const int64_t most = int64_t{TORCHFX_KERNELS(transfer_kernels).lanes} * of.threads / channels;
    const bool in_place = static_cast<const void*>(pass.x) == pass.y;
    if (most < 2 || in_place || of.a.rows.count > 1 || of.b.rows.count > 1) return whole;
    const int64_t line = 64 / static_cast<int64_t>(sizeof(Out));  // odd numbers of them: see sos/plan.cpp
    const int64_t length = std::max(((pass.samples / most + line) / line | 1) * line, shortest_cut);
    if (pass.samples < 2 * length) return whole;
    const int64_t warm_up = forgets_after(of, length / 2, forgotten(std::min(sizeof(In), sizeof(Out))));
    return warm_up ? Cut{length, warm_up} : whole;
}

// Channels [first, first + count) of a transfer function, whose states (count, order) go on.
template <class In, class Out>
void run_channels(const Transfer& of, int64_t first, int64_t count, double* states, const Pass<In, Out>& pass,
                  const Cut& cut) {
    const TransferKernels& kernels = TORCHFX_KERNELS(transfer_kernels);
    const int64_t n = of.order(), segments = (pass.samples + cut.length - 1) / cut.length, streams = count * segments;
    const int lanes = kernels.lanes;
    std::vector<double> ends(segments > 1 ? static_cast<std::size_t>(streams * n) : 0);
    parallel_for_or_throw((streams + lanes - 1) / lanes, of.threads, [&](int64_t index) {
        const int used = static_cast<int>(std::min<int64_t>(lanes, streams - index * lanes));
        Scratch<double, 3 * 13 * most_transfer_lanes> memory(static_cast<std::size_t>((3 * n + 2) * lanes));
        double *const b = memory.data(), *const a = b + (n + 1) * lanes, *const z = a + (n + 1) * lanes;
        std::fill_n(b, (3 * n + 2) * lanes, 0.0);
        TransferLanes<In, Out> group = {};
        group.stride = pass.x_time_stride;
        group.y_stride = pass.y_time_stride;
        group.order = n;
        group.b = b;
        group.a = a;
        group.state = z;
        const auto stream = [&](int lane) { return index * lanes + lane; };
        const auto start = [&](int lane) { return stream(lane) % segments * cut.length; };
        const auto length = [&](int lane) { return std::min(cut.length, pass.samples - start(lane)); };
        const auto read_from = [&](int lane, int64_t t) {
            const int64_t row = stream(lane) / segments / pass.x_repeat;
            group.x[lane] = pass.x + row * pass.x_channel_stride + (start(lane) + t) * pass.x_time_stride;
        };
        for (int lane = 0; lane < used; ++lane) {
            of.b.load(first + stream(lane) / segments, lanes, b + lane);
            of.a.load(first + stream(lane) / segments, lanes, a + lane);
            if (start(lane) > 0) read_from(lane, -cut.warm_up);
        }
        group.count = cut.warm_up;
        if (cut.warm_up) run_kernel(kernels, group);
        for (int lane = 0; lane < used; ++lane)
            if (start(lane) == 0)
                for (int64_t k = 0; k < n; ++k) z[k * lanes + lane] = states[stream(lane) / segments * n + k];
        const auto next_end = [&](int64_t done) {  // or 0
            int64_t end = 0;
            for (int lane = 0; lane < used; ++lane)
                if (length(lane) > done && (end == 0 || length(lane) < end)) end = length(lane);
            return end;
        };
        int64_t done = 0;
        while (const int64_t end = next_end(done)) {
            for (int lane = 0; lane < used; ++lane) {
                group.x[lane] = nullptr;
                group.y[lane] = nullptr;
                if (length(lane) <= done) continue;
                read_from(lane, done);
                const int64_t at = (start(lane) + done) * pass.y_time_stride;
                if (pass.y) group.y[lane] = pass.y + stream(lane) / segments * pass.y_channel_stride + at;
            }
            group.count = end - done;
            run_kernel(kernels, group);
            for (int lane = 0; lane < used; ++lane) {
                double* const after = (segments > 1 ? ends.data() : states) + stream(lane) * n;
                if (length(lane) == end)
                    for (int64_t k = 0; k < n; ++k) after[k] = z[k * lanes + lane];
            }
            done = end;
        }
    });
    for (int64_t c = 0; c < count && segments > 1; ++c) {
        const double* const own = ends.data() + c * segments * n;
        // A NaN or an infinity is never forgotten: such a channel is filtered again in one piece.
        if (std::all_of(own, own + (segments - 1) * n, [](double v) { return std::isfinite(v); })) {
            std::copy_n(own + (segments - 1) * n, n, states + c * n);
            continue;
        }
        Pass<In, Out> alone = pass;
        alone.x += c / pass.x_repeat * pass.x_channel_stride;
        alone.x_repeat = 1;
        if (pass.y) alone.y += c * pass.y_channel_stride;
        run_channels(of, first + c, 1, states + c * n, alone, {pass.samples, 0});
    }
}

template <class In, class Out>
void run_channels(const Transfer& of, int64_t first, int64_t count, double* states, const Pass<In, Out>& pass) {
    run_channels(of, first, count, states, pass, cut_of(of, count, pass));
}

// Some channels on their way forwards and backwards.
class Settling {
public:
    Settling(const Transfer& of, int64_t first, int64_t count)
        : of_(of), first_(first), count_(count), states_(static_cast<std::size_t>(count * of.order())) {}

    // Each state is what the samples so far still add to later outputs: b[j] - a[j] y for all j behind it, y being the
    // output on an input of 1.
    void settle(int64_t channel, double level) {
        const double *const b = of_.b.of(first_ + channel), *const a = of_.a.of(first_ + channel);
        const int64_t n = of_.order();
        double above = 0, below = 0, sum = 0;
        for (int64_t k = 0; k <= n; ++k) {
            above += b[k];
            below += a[k];
        }
        for (int64_t k = n; k > 0; --k) {
            sum += b[k] - a[k] * (above / below);
            states_[static_cast<std::size_t>(channel * n + k - 1)] = level * sum;
        }
    }

    template <class In, class Out>
    void run(const Pass<In, Out>& pass) {
        run_channels(of_, first_, count_, states_.data(), pass);
    }

private:
    const Transfer& of_;
    int64_t first_, count_;
    std::vector<double> states_;
};

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_lfilter_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t order,
    const double* b, int64_t b_rows, int64_t b_repeat, const double* a, int64_t a_rows, int64_t a_repeat,
    double* state, int32_t threads) {
    using namespace torchfx;
    const Transfer transfer = {{b, order, {b_rows, b_repeat}}, {a, order, {a_rows, a_repeat}}, threads};
    if (!x || !y || channels < 1 || samples < 1 || x_repeat < 1 || channels % x_repeat != 0)
        return TORCHFX_BAD_ARGUMENT;
    if (const int32_t status = transfer.check(channels)) return status;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        Scratch<double, 64> rest(static_cast<std::size_t>(state ? 0 : channels * order));
        std::fill_n(rest.data(), state ? 0 : channels * order, 0.0);
        run_channels(transfer, 0, channels, state ? state : rest.data(),
                     Pass<Sample, Sample>{static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat,
                                          static_cast<Sample*>(y), y_channel_stride, 1, samples});
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_lfilter_zero_phase(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples, int64_t order,
    const double* b, int64_t b_rows, int64_t b_repeat, const double* a, int64_t a_rows, int64_t a_repeat,
    int64_t edge, int32_t extension, int32_t threads) {
    using namespace torchfx;
    const Transfer transfer = {{b, order, {b_rows, b_repeat}}, {a, order, {a_rows, a_repeat}}, threads};
    if (const int32_t status = transfer.check(channels)) return status;
    return with_type(dtype, [&](auto sample) -> int32_t {
        using Sample = decltype(sample);
        const BothWays<Sample> call = {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat,
                                       static_cast<Sample*>(y), y_channel_stride, channels, samples, edge, extension};
        if (!call.valid()) return TORCHFX_BAD_ARGUMENT;
        run_both_ways(call, TORCHFX_KERNELS(transfer_kernels).lanes, threads,
                      [&](int64_t first, int64_t count) { return Settling(transfer, first, count); });
        return TORCHFX_OK;
    });
}
