// torchfx_allpole_forward and torchfx_allpole_backward: channel by channel, in tiles of doubles.
#include <algorithm>
#include <cmath>
#include <new>
#include <vector>

#include "allpole/kernels.h"
#include "support/pool.h"
#include "support/rows.h"
#include "support/subnormals.h"
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

// What a kernel needs to know of coefficients that don't change.
class Prepared {
public:
    template <class Coefficient>
    Prepared(const Coefficient* a, int64_t order, int lanes)
        : a_(static_cast<size_t>(order + lanes)), response_(static_cast<size_t>(lanes * lanes)), order_(order) {
        std::copy_n(a, order, a_.begin());
        double* const h = response_.data();
        h[0] = 1;
        for (int64_t i = 1; i < lanes; ++i)
            for (int64_t k = 0; k < std::min(i, order); ++k) h[i] -= a_[static_cast<size_t>(k)] * h[i - 1 - k];
        for (int j = 1; j < lanes; ++j) std::copy_n(h, lanes - j, h + j * lanes + j);
    }
    AllpoleStretch view() const { return {a_.data(), response_.data(), order_}; }
    const double* a() const { return a_.data(); }

    // Runs the recursion in place; samples[-order ... -1] are the outputs before.
    void run(const AllpoleKernels& kernels, double* samples, int64_t count) const {
        std::vector<double> given(samples, samples + count);
        kernels.stretch(view(), samples, count);
        if (std::isfinite(samples[count - 1])) return;
        std::copy(given.begin(), given.end(), samples);
        kernels.singly_f64(a_.data(), 0, order_, samples, count);
    }

private:
    std::vector<double> a_, response_;
    int64_t order_;
};

void singly(const AllpoleKernels& k, const float* a, int64_t order, double* samples, int64_t count) {
    k.singly_f32(a, order, order, samples, count);
}
void singly(const AllpoleKernels& k, const double* a, int64_t order, double* samples, int64_t count) {
    k.singly_f64(a, order, order, samples, count);
}
void backward(const AllpoleKernels& k, const AllpoleGradient<float>& of, double* samples, int64_t count) {
    k.backward_f32(of, samples, count);
}
void backward(const AllpoleKernels& k, const AllpoleGradient<double>& of, double* samples, int64_t count) {
    k.backward_f64(of, samples, count);
}

// Outputs that decay would end among the subnormal numbers.
void flush_tiny(double* values, int64_t count) {
    for (int64_t i = 0; i < count; ++i)
        if (std::fabs(values[i]) < 1e-300) values[i] = 0;
}

int threads_for(int64_t channels, int64_t samples, int threads) {
    return static_cast<int>(std::clamp<int64_t>(channels * samples / samples_per_thread, 1, threads));
}

template <class Sample>
struct Signal {
    Sample* data;
    int64_t channel_stride, time_stride, repeat;

    Sample* of(int64_t channel) const { return data ? data + channel / repeat * channel_stride : nullptr; }
};

template <class Sample, class Coefficient>
void forward_channel(const Coefficients<Coefficient>& coefficients, const AllpoleKernels& kernels,
                     const Signal<const Sample>& x, Sample* y, int64_t channel, int64_t samples, const double* state_in,
                     double* state_out) {
    const int64_t order = coefficients.order;
    const Coefficient* a = coefficients.of(channel, samples);
    std::vector<double> memory(static_cast<size_t>(order + tile_samples), 0.0);
    double* const tile = memory.data() + order;
    if (state_in) std::reverse_copy(state_in + channel * order, state_in + (channel + 1) * order, memory.data());
    const Prepared prepared(a, coefficients.per_sample ? 0 : order, kernels.lanes);
    const Sample* from = x.of(channel);
    for (int64_t start = 0; start < samples; start += tile_samples) {
        const int64_t count = std::min(tile_samples, samples - start);
        for (int64_t i = 0; i < count; ++i) tile[i] = from[(start + i) * x.time_stride];
        if (coefficients.per_sample) singly(kernels, a + start * order, order, tile, count);
        else prepared.run(kernels, tile, count);
        for (int64_t i = 0; i < count; ++i) y[start + i] = static_cast<Sample>(tile[i]);
        std::copy(tile + count - order, tile + count, memory.data());
        flush_tiny(memory.data(), order);
    }
    if (state_out) std::reverse_copy(memory.data(), memory.data() + order, state_out + channel * order);
}

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
        std::vector<double> pending(static_cast<size_t>(order()), 0.0);
        if (grad_state_out) std::copy_n(grad_state_out + c * order(), order(), pending.data());
        if (coefficients.per_sample) per_sample(kernels, c, pending.data());
        else constant(kernels, c, pending.data());
        if (grad_state_in) std::copy_n(pending.data(), order(), grad_state_in + c * order());
    }

    // Outputs start, ..., start + count - 1 of a channel; those before the first are the state.
    void load_outputs(int64_t c, int64_t start, int64_t count, double* to) const {
        int64_t i = 0;
        for (; i < count && start + i < 0; ++i) to[i] = state_in ? state_in[c * order() - 1 - (start + i)] : 0;
        const Sample* from = y.of(c);
        for (; i < count; ++i) to[i] = from[(start + i) * y.time_stride];
    }

    void per_sample(const AllpoleKernels& kernels, int64_t c, double* pending) const {
        std::vector<double> memory(static_cast<size_t>(2 * tile_samples + order()));
        double *const tile = memory.data(), *const outputs = tile + tile_samples;
        const Sample* grad = grad_y.of(c);
        for (int64_t end = samples; end > 0;) {
            const int64_t start = (end - 1) / tile_samples * tile_samples, count = end - start;
            for (int64_t i = 0; i < count; ++i) tile[i] = grad[(start + i) * grad_y.time_stride];
            if (grad_a) load_outputs(c, start - order(), count + order(), outputs);
            Coefficient* grad_rows = grad_a ? grad_a + (c * samples + start) * order() : nullptr;
            backward(kernels, {coefficients.of(c, samples) + start * order(), order(), outputs, pending, grad_rows},
                     tile, count);
            if (grad_x.data)
                for (int64_t i = 0; i < count; ++i) grad_x.of(c)[start + i] = static_cast<Sample>(tile[i]);
            flush_tiny(pending, order());
            end = start;
        }
    }

    // Backwards in time the recursion is the same: each tile is turned round and run with nothing before it.
    void constant(const AllpoleKernels& kernels, int64_t c, double* pending) const {
        const Prepared prepared(coefficients.of(c, samples), order(), kernels.lanes);
        std::vector<double> memory(static_cast<size_t>(2 * (tile_samples + order()))), sums(static_cast<size_t>(order()));
        double *const tile = memory.data() + order(), *const outputs = tile + tile_samples;
        const Sample* grad = grad_y.of(c);
        for (int64_t end = samples; end > 0;) {
            const int64_t start = (end - 1) / tile_samples * tile_samples, count = end - start;
            for (int64_t i = 0; i < count; ++i) tile[i] = grad[(end - 1 - i) * grad_y.time_stride];
            for (int64_t i = 0; i < std::min(count, order()); ++i) tile[i] += pending[i];
            prepared.run(kernels, tile, count);
            carry(prepared.a(), tile, count, pending);
            flush_tiny(pending, order());
            if (grad_a) {
                load_outputs(c, start - order(), count + order(), outputs);
                std::reverse(outputs, outputs + count + order());
                kernels.correlate(tile, outputs, count, sums.data(), order());
            }
            if (grad_x.data)
                for (int64_t i = 0; i < count; ++i) grad_x.of(c)[end - 1 - i] = static_cast<Sample>(tile[i]);
            end = start;
        }
        if (!grad_a) return;
        for (int64_t k = 0; k < order(); ++k) grad_a[c * order() + k] = static_cast<Coefficient>(sums[static_cast<size_t>(k)]);
    }

    // What the samples before a tile get from it, and from those after it that it did not reach.
    void carry(const double* a, const double* reversed, int64_t count, double* pending) const {
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
    const auto with = [&](auto sample) {
        return a_dtype == TORCHFX_F32 ? run(sample, float{}) : run(sample, double{});
    };
    const FlushSubnormals flush(dtype == TORCHFX_F64);
    try {
        return dtype == TORCHFX_F32 ? with(float{}) : with(double{});
    } catch (const std::bad_alloc&) {
        return TORCHFX_NO_MEMORY;
    }
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
        const AllpoleKernels& kernels = TORCHFX_KERNELS(allpole_kernels);
        const Signal<const Sample> signal = {static_cast<const Sample*>(x), x_channel_stride, x_time_stride, x_repeat};
        parallel_for_or_throw(channels, threads_for(channels, samples, threads), [&](int64_t c) {
            forward_channel(coefficients, kernels, signal, static_cast<Sample*>(y) + c * y_channel_stride, c, samples,
                            state_in, state_out);
        });
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
        const AllpoleKernels& kernels = TORCHFX_KERNELS(allpole_kernels);
        parallel_for_or_throw(channels, threads_for(channels, samples, threads),
                              [&](int64_t c) { call.channel(kernels, c); });
        return TORCHFX_OK;
    });
}
