// torchfx_allpole_forward and torchfx_allpole_backward: channel by channel, in tiles of doubles.
#include <algorithm>
#include <cmath>

#include "allpole/kernels.h"
#include "allpole/lane_kernels.h"
#include "support/arena.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/signal.h"
#include "torchfx_dsp.h"

namespace torchfx {
namespace {

constexpr int64_t tile_samples = 1024;
constexpr int64_t samples_per_thread = 16384;  // fewer than these take less time than waking a thread

template <class Coefficient>
struct Coefficients {
    const Coefficient* data;  // (rows, one or one for each sample, order)
    int64_t order;
    bool per_sample;
    Rows rows;

    const Coefficient* of(int64_t channel, int64_t samples) const {
        return data + rows.of(channel) * (per_sample ? samples : 1) * order;
    }
    bool finite() const {
        const auto is_finite = [](Coefficient a) { return std::isfinite(a); };
        return per_sample || std::all_of(data, data + rows.count * order, is_finite);
    }
};

void forward(const AllpoleKernels& k, const float* a, int64_t step, int64_t order, double* samples, int64_t count) {
    k.forward_f32(a, step, order, samples, count);
}
void forward(const AllpoleKernels& k, const double* a, int64_t step, int64_t order, double* samples, int64_t count) {
    k.forward_f64(a, step, order, samples, count);
}
void backward(const AllpoleKernels& k, const AllpoleGradient<float>& of, double* samples, int64_t count) {
    k.backward_f32(of, samples, count);
}
void backward(const AllpoleKernels& k, const AllpoleGradient<double>& of, double* samples, int64_t count) {
    k.backward_f64(of, samples, count);
}

int threads_for(int64_t channels, int64_t samples, int threads) {
    return static_cast<int>(std::clamp<int64_t>(channels * samples / samples_per_thread, 1, threads));
}

// Channels of a call, one in each lane; lanes that are left over do what the first one does.
struct LaneGroup {
    int64_t first, channels;
    int lanes;

    int64_t channel(int lane) const { return first + lane < channels ? first + lane : first; }

    // From (channels, order), or zeros for NULL, to (order, lanes).
    void load(const double* states, int64_t order, double* vectors) const {
        for (int lane = 0; lane < lanes; ++lane)
            for (int64_t k = 0; k < order; ++k)
                vectors[k * lanes + lane] = states ? states[channel(lane) * order + k] : 0;
    }

    // Calls body(channel, its own values of (order, lanes), which it may change).
    template <class Body>
    void for_each(int64_t order, double* vectors, Body&& body) const {
        double own[most_lane_order];
        for (int lane = 0; lane < lanes && first + lane < channels; ++lane) {
            for (int64_t k = 0; k < order; ++k) own[k] = vectors[k * lanes + lane];
            body(first + lane, own);
            for (int64_t k = 0; k < order; ++k) vectors[k * lanes + lane] = own[k];
        }
        for (int lane = static_cast<int>(std::max<int64_t>(0, channels - first)); lane < lanes; ++lane)
            for (int64_t k = 0; k < order; ++k) vectors[k * lanes + lane] = vectors[k * lanes];
    }
};

// Runs call.lanes for groups of channels where lanes pay, call.channel for each channel otherwise.
template <class Call>
void run(const Call& call, int64_t channels, bool strided, int threads) {
    const AllpoleKernels& kernels = TORCHFX_KERNELS(allpole_kernels);
    const AllpoleLaneKernels& lane_kernels = TORCHFX_KERNELS(allpole_lane_kernels);
    const int lanes = lane_kernels.lanes;
    const int wanted = threads_for(channels, call.samples, threads);
    if (call.coefficients.per_sample && call.order() <= most_lane_order && lanes >= most_lane_order && !strided &&
        2 * channels >= lanes) {
        parallel_for_or_throw((channels + lanes - 1) / lanes, wanted, [&](int64_t i) {
            call.lanes(kernels, lane_kernels, {i * lanes, channels, lanes});
        });
        return;
    }
    parallel_for_or_throw(channels, wanted, [&](int64_t c) { call.channel(kernels, c); });
}

template <class Sample, class Coefficient>
struct Forward {
    Coefficients<Coefficient> coefficients;
    Signal<const Sample> x;
    Signal<Sample> y;
    int64_t samples;
    const double* state_in;
    double* state_out;

    int64_t order() const { return coefficients.order; }

    void channel(const AllpoleKernels& kernels, int64_t c) const {
        ScratchVector<double> past(static_cast<size_t>(order()), 0.0);
        if (state_in) std::copy_n(state_in + c * order(), order(), past.data());
        stretch(kernels, c, 0, past.data());
        if (state_out) std::copy_n(past.data(), order(), state_out + c * order());
    }

    // The samples from `start` on; `past` are the outputs before and then the last ones, latest first.
    void stretch(const AllpoleKernels& kernels, int64_t c, int64_t start, double* past) const {
        ScratchVector<double> memory(static_cast<size_t>(order() + std::min(tile_samples, samples - start)));
        double* const tile = memory.data() + order();
        std::reverse_copy(past, past + order(), memory.data());
        const Coefficient* a = coefficients.of(c, samples);
        const int64_t step = coefficients.per_sample ? order() : 0;
        for (; start < samples; start += tile_samples) {
            const int64_t count = std::min(tile_samples, samples - start);
            x.load(c, start, count, tile);
            forward(kernels, a + start * step, step, order(), tile, count);
            y.store(c, start, count, tile);
            std::copy(tile + count - order(), tile + count, memory.data());
            flush_tiny(memory.data(), order());
        }
        std::reverse_copy(memory.data(), memory.data() + order(), past);
    }

    // A group of channels, one in each lane; the samples that fill no vector follow one by one.
    void lanes(const AllpoleKernels& kernels, const AllpoleLaneKernels& lane_kernels, const LaneGroup& group) const {
        const int64_t whole = samples / group.lanes * group.lanes;
        double past[most_lane_order * most_lanes];
        group.load(state_in, order(), past);
        AllpoleLanes<Sample, Coefficient> call;
        call.past = past;
        for (int64_t start = 0; start < whole; start += tile_samples) {
            call.count = std::min(tile_samples, whole - start);
            for (int lane = 0; lane < group.lanes; ++lane) {
                const int64_t c = group.channel(lane);
                call.x[lane] = x.of(c) + start;
                call.a[lane] = coefficients.of(c, samples) + start * order();
                call.y[lane] = y.of(c) + start;
            }
            lane_kernels.of(Sample{}, Coefficient{}).forward[order()](call);
            flush_tiny(past, order() * group.lanes);
        }
        group.for_each(order(), past, [&](int64_t c, double* own) {
            if (whole < samples) stretch(kernels, c, whole, own);
            if (state_out) std::copy_n(own, order(), state_out + c * order());
        });
    }
};

template <class Sample, class Coefficient>
struct Backward {
    Coefficients<Coefficient> coefficients;
    Signal<const Sample> grad_y, y;
    int64_t samples;
    const double* state_in;
    const double* grad_state_out;
    Signal<Sample> grad_x;
    Coefficient* grad_a;  // (channels, one or one for each sample, order)
    double* grad_state_in;

    int64_t order() const { return coefficients.order; }

    void channel(const AllpoleKernels& kernels, int64_t c) const {
        ScratchVector<double> pending(static_cast<size_t>(order()), 0.0);
        if (grad_state_out) std::copy_n(grad_state_out + c * order(), order(), pending.data());
        if (coefficients.per_sample) per_sample(kernels, c, 0, samples, pending.data());
        else constant(kernels, c, pending.data());
        if (grad_state_in) std::copy_n(pending.data(), order(), grad_state_in + c * order());
    }

    // Outputs start, ..., start + count - 1 of a channel; those before the first are the state.
    void load_outputs(int64_t c, int64_t start, int64_t count, double* to) const {
        int64_t i = 0;
        for (; i < count && start + i < 0; ++i) to[i] = state_in ? state_in[c * order() - 1 - (start + i)] : 0;
        y.load(c, start + i, count - i, to + i);
    }

    // Samples first ... end - 1.
    void per_sample(const AllpoleKernels& kernels, int64_t c, int64_t first, int64_t end, double* pending) const {
        ScratchVector<double> memory(static_cast<size_t>(2 * tile_samples + order()));
        double *const tile = memory.data(), *const outputs = tile + tile_samples;
        while (end > first) {
            const int64_t start = std::max(first, end - tile_samples), count = end - start;
            grad_y.load(c, start, count, tile);
            if (grad_a) load_outputs(c, start - order(), count + order(), outputs);
            Coefficient* grad_rows = grad_a ? grad_a + (c * samples + start) * order() : nullptr;
            backward(kernels, {coefficients.of(c, samples) + start * order(), order(), outputs, pending, grad_rows},
                     tile, count);
            if (grad_x.data) grad_x.store(c, start, count, tile);
            flush_tiny(pending, order());
            end = start;
        }
    }

    // A group of channels, one in each lane; those at the end that fill no vector come before, those at the beginning,
    // where the outputs before are the state, after.
    void lanes(const AllpoleKernels& kernels, const AllpoleLaneKernels& lane_kernels, const LaneGroup& group) const {
        const int64_t whole = samples / group.lanes * group.lanes, head = std::min<int64_t>(group.lanes, whole);
        double pending[most_lane_order * most_lanes];
        group.load(grad_state_out, order(), pending);
        if (whole < samples)
            group.for_each(order(), pending,
                           [&](int64_t c, double* own) { per_sample(kernels, c, whole, samples, own); });
        AllpoleLanesGradient<Sample, Coefficient> call;
        call.pending = pending;
        call.want_x = grad_x.data != nullptr;
        call.want_a = grad_a != nullptr;
        for (int64_t end = whole; end > head;) {
            const int64_t start = std::max(head, end - tile_samples);
            call.count = end - start;
            for (int lane = 0; lane < group.lanes; ++lane) {
                const int64_t c = group.channel(lane);
                call.grad_y[lane] = grad_y.of(c) + start;
                call.a[lane] = coefficients.of(c, samples) + start * order();
                call.y[lane] = y.of(c) + start;
                call.grad_x[lane] = call.want_x ? grad_x.of(c) + start : nullptr;
                call.grad_a[lane] = call.want_a ? grad_a + (c * samples + start) * order() : nullptr;
            }
            lane_kernels.of(Sample{}, Coefficient{}).backward[order()](call);
            flush_tiny(pending, order() * group.lanes);
            end = start;
        }
        group.for_each(order(), pending, [&](int64_t c, double* own) {
            per_sample(kernels, c, 0, head, own);
            if (grad_state_in) std::copy_n(own, order(), grad_state_in + c * order());
        });
    }

    // Backwards in time the recursion is the same: each tile is turned round and run with nothing before it.
    void constant(const AllpoleKernels& kernels, int64_t c, double* pending) const {
        const Coefficient* a = coefficients.of(c, samples);
        ScratchVector<double> memory(static_cast<size_t>(2 * (tile_samples + order())));
        ScratchVector<double> sums(static_cast<size_t>(order()));
        double *const tile = memory.data() + order(), *const outputs = tile + tile_samples;
        for (int64_t end = samples; end > 0;) {
            const int64_t start = (end - 1) / tile_samples * tile_samples, count = end - start;
            grad_y.load(c, start, count, tile);
            std::reverse(tile, tile + count);
            for (int64_t i = 0; i < std::min(count, order()); ++i) tile[i] += pending[i];
            forward(kernels, a, 0, order(), tile, count);
            carry(a, tile, count, pending);
            flush_tiny(pending, order());
            if (grad_a) {
                load_outputs(c, start - order(), count + order(), outputs);
                std::reverse(outputs, outputs + count + order());
                kernels.correlate(tile, outputs, count, sums.data(), order());
            }
            std::reverse(tile, tile + count);
            if (grad_x.data) grad_x.store(c, start, count, tile);
            end = start;
        }
        if (!grad_a) return;
        for (int64_t k = 0; k < order(); ++k)
            grad_a[c * order() + k] = static_cast<Coefficient>(sums[static_cast<size_t>(k)]);
    }

    // What the samples before a tile get from it, and from those after it that it did not reach.
    void carry(const Coefficient* a, const double* reversed, int64_t count, double* pending) const {
        for (int64_t j = 0; j < order(); ++j) {
            double sum = j + count < order() ? pending[j + count] : 0;
            for (int64_t k = j; k < order() && k - j < count; ++k) sum -= a[k] * reversed[count - 1 - (k - j)];
            pending[j] = sum;
        }
    }
};

// Calls run with a float and with a double, the samples' type and the coefficients'.
template <class F>
int32_t with_types(int32_t dtype, int32_t a_dtype, F&& run) {
    return with_type(dtype, [&](auto sample) {
        return a_dtype == TORCHFX_F32 ? run(sample, float{}) : run(sample, double{});
    });
}

bool valid(int32_t dtype, int32_t a_dtype, int64_t channels, int64_t samples, int64_t order, const Rows& rows,
           int32_t threads) {
    const auto known = [](int32_t type) { return type == TORCHFX_F32 || type == TORCHFX_F64; };
    return known(dtype) && known(a_dtype) && channels >= 1 && samples >= 1 && order >= 1 && rows.valid(channels) &&
           threads >= 1;
}

}  // namespace
}  // namespace torchfx

extern "C" int32_t torchfx_allpole_forward(
    int32_t dtype, const void* x, int64_t x_channel_stride, int64_t x_time_stride, int64_t x_repeat,
    void* y, int64_t y_channel_stride, int64_t channels, int64_t samples,
    int32_t a_dtype, const void* a, int64_t order, int32_t per_sample, int64_t a_rows, int64_t a_repeat,
    const double* state_in, double* state_out, int32_t threads) {
    using namespace torchfx;
    const Rows rows = {a_rows, a_repeat};
    if (!x || !y || !a || x_repeat < 1 || !valid(dtype, a_dtype, channels, samples, order, rows, threads))
        return TORCHFX_BAD_ARGUMENT;
    return with_types(dtype, a_dtype, [&](auto sample, auto coefficient) -> int32_t {
        using Sample = decltype(sample);
        using Coefficient = decltype(coefficient);
        const Coefficients<Coefficient> coefficients = {static_cast<const Coefficient*>(a), order, per_sample != 0,
                                                        rows};
        if (!coefficients.finite()) return TORCHFX_NOT_FINITE;
        const Forward<Sample, Coefficient> call = {
            coefficients,
            {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat},
            {static_cast<Sample*>(y), y_channel_stride, 1, 1},
            samples, state_in, state_out};
        run(call, channels, x_time_stride != 1, threads);
        return TORCHFX_OK;
    });
}

extern "C" int32_t torchfx_allpole_backward(
    int32_t dtype, const void* grad_y, int64_t grad_y_channel_stride, int64_t grad_y_time_stride,
    const void* y, int64_t y_channel_stride, int64_t y_time_stride, int64_t channels, int64_t samples,
    int32_t a_dtype, const void* a, int64_t order, int32_t per_sample, int64_t a_rows, int64_t a_repeat,
    const double* state_in, const double* grad_state_out,
    void* grad_x, int64_t grad_x_channel_stride, void* grad_a, double* grad_state_in, int32_t threads) {
    using namespace torchfx;
    const Rows rows = {a_rows, a_repeat};
    if (!grad_y || !y || !a || !valid(dtype, a_dtype, channels, samples, order, rows, threads))
        return TORCHFX_BAD_ARGUMENT;
    return with_types(dtype, a_dtype, [&](auto sample, auto coefficient) -> int32_t {
        using Sample = decltype(sample);
        using Coefficient = decltype(coefficient);
        const Coefficients<Coefficient> coefficients = {static_cast<const Coefficient*>(a), order, per_sample != 0,
                                                        rows};
        if (!coefficients.finite()) return TORCHFX_NOT_FINITE;
        const Backward<Sample, Coefficient> call = {
            coefficients,
            {static_cast<const Sample*>(grad_y), grad_y_channel_stride, grad_y_time_stride, 1},
            {static_cast<const Sample*>(y), y_channel_stride, y_time_stride, 1},
            samples, state_in, grad_state_out,
            {static_cast<Sample*>(grad_x), grad_x_channel_stride, 1, 1},
            static_cast<Coefficient*>(grad_a), grad_state_in};
        run(call, channels, grad_y_time_stride != 1 || y_time_stride != 1, threads);
        return TORCHFX_OK;
    });
}
